// The header stack and the metadata of the v1model program.

#ifndef INA_V1MODEL_HEADERS_P4
#define INA_V1MODEL_HEADERS_P4

#include "../shared/headers.p4"

// Of a switch with a parent (admit_inner_job): parent_port, own_worker, own_bit, own_level. What
// Distribute has decided, and Address does: receiver, whom the only copy is for; worker and kind, what
// the header says.
#define TARGET_METADATA                                                      \
    bit<9> parent_port; bit<8> own_worker; bit<32> own_bit; bit<4> own_level; \
    bit<8> receiver; bit<8> worker; bit<4> kind;
#include "../shared/metadata.p4"

#define CPU_PORT 510 // packet-in and packet-out

struct headers_t {
    packet_out_h packet_out;
    packet_in_h  packet_in;
    ethernet_h   ethernet;
    ipv4_h       ipv4;
    udp_h        udp;
    ina_h        ina;
    values_h     values;
}

#endif // INA_V1MODEL_HEADERS_P4
