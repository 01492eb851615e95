// In place of tna.p4 and t2na.p4: the fields of Tofino's own metadata that the program uses, on v1model.

#ifndef EMULATED_TNA_P4
#define EMULATED_TNA_P4

#define V1MODEL_VERSION 20200408 // counters and registers with an index type
#include <v1model.p4>

struct ingress_intrinsic_metadata_t {
    bit<9>  ingress_port;
    bit<48> ingress_mac_tstamp;
}

struct ingress_intrinsic_metadata_from_parser_t {
    bit<1> unused;
}

struct ingress_intrinsic_metadata_for_deparser_t {
    bit<3> drop_ctl;
}

struct ingress_intrinsic_metadata_for_tm_t {
    bit<9>  ucast_egress_port;
    bit<16> mcast_grp_a;
}

struct egress_intrinsic_metadata_t {
    bit<9>  egress_port;
    bit<16> egress_rid;
    bit<19> enq_qdepth;
}

struct egress_intrinsic_metadata_from_parser_t {
    bit<1> unused;
}

struct egress_intrinsic_metadata_for_deparser_t {
    bit<3>  drop_ctl;
    bit<14> mtu_trunc_len; // Tofino 2
}

struct egress_intrinsic_metadata_for_output_port_t {
    bit<1> unused;
}

#endif // EMULATED_TNA_P4
