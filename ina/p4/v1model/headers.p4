// The header stack and the metadata of the v1model program.

#ifndef INA_V1MODEL_HEADERS_P4
#define INA_V1MODEL_HEADERS_P4

#include "../shared/headers.p4"

// parent_port: behind which the parent is, where there is one. What Distribute has decided, and Address
// writes into the header: is_result, and receiver, whom the only copy is for.
#define TARGET_METADATA bit<9> parent_port; bit<1> is_result; bit<8> receiver;
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
