// What libibverbs and we must agree on in memory, as far as connections and their SENDs need it:
// the library is looked for when it is first asked for (verbs.hpp), and ina is built where there is
// none. Fields are those of its header, in this order, under names of our own; what stands behind
// the last that we use is left out where the library makes the object.
//
// Posting and polling are no symbols of the library but pointers in its context, which its header
// calls inline. They have been at these places since version 1.1 of its ABI (2006), and programs
// built then still run: that is what its soname promises.
//
// tests/host/roce/test_verbs_abi.py compares every size and place with the header.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ina::host::verbs {

struct Device;
struct Pd;
struct Cq;
struct Qp;
struct Wc;
struct SendWr;
struct RecvWr;

// Values of the header's enums.
constexpr std::uint32_t kGidRoceV1 = 1;
constexpr std::uint32_t kGidRoceV2 = 2;
constexpr int kPortActive = 4;
constexpr std::uint8_t kEthernet = 2;
constexpr int kQpRc = 2;
constexpr int kQpUc = 3;
constexpr int kStateInit = 1;
constexpr int kStateRtr = 2;
constexpr int kStateRts = 3;
constexpr int kWcSuccess = 0;
constexpr int kWcFlushed = 5;
constexpr int kWcRetriesSpent = 12;
constexpr int kWrSend = 2;
constexpr unsigned kSendSignaled = 1 << 1;
constexpr int kAccessLocalWrite = 1;
constexpr int kAttrState = 1 << 0;
constexpr int kAttrAccessFlags = 1 << 3;
constexpr int kAttrPkeyIndex = 1 << 4;
constexpr int kAttrPort = 1 << 5;
constexpr int kAttrAv = 1 << 7;
constexpr int kAttrPathMtu = 1 << 8;
constexpr int kAttrTimeout = 1 << 9;
constexpr int kAttrRetryCnt = 1 << 10;
constexpr int kAttrRnrRetry = 1 << 11;
constexpr int kAttrRqPsn = 1 << 12;
constexpr int kAttrMaxRdAtomic = 1 << 13;
constexpr int kAttrMinRnrTimer = 1 << 15;
constexpr int kAttrSqPsn = 1 << 16;
constexpr int kAttrMaxDestRdAtomic = 1 << 17;
constexpr int kAttrDestQpn = 1 << 20;

using Unused = void *(*)();

struct ContextOps {
    Unused before_poll[11];
    int (*poll_cq)(Cq *cq, int entries, Wc *wc);
    int (*req_notify_cq)(Cq *cq, int solicited_only);
    Unused before_post[12];
    int (*post_send)(Qp *qp, SendWr *wr, SendWr **bad);
    int (*post_recv)(Qp *qp, RecvWr *wr, RecvWr **bad);
    Unused after_post[5];
};

struct Context {
    Device *device;
    ContextOps ops;
};

struct CompChannel {
    Context *context;
    int fd;
};

struct Cq {
    Context *context;
};

struct Qp {
    Context *context;
    void *qp_context;
    Pd *pd;
    Cq *send_cq;
    Cq *recv_cq;
    void *srq;
    std::uint32_t handle;
    std::uint32_t qp_num;
};

struct Mr {
    Context *context;
    Pd *pd;
    void *addr;
    std::size_t length;
    std::uint32_t handle;
    std::uint32_t lkey;
};

struct Gid {
    alignas(8) std::uint8_t raw[16];
};

struct GidEntry {
    Gid gid;
    std::uint32_t gid_index;
    std::uint32_t port_num;
    std::uint32_t gid_type;
    std::uint32_t ndev_ifindex;
};

struct PortAttr {
    int state;
    int max_mtu;     // 1: 256 bytes, 2: 512 ... 5: 4096
    int active_mtu;  // as max_mtu
    int gid_tbl_len;
    std::uint32_t port_cap_flags;
    std::uint32_t max_msg_sz;
    std::uint32_t bad_pkey_cntr;
    std::uint32_t qkey_viol_cntr;
    std::uint16_t pkey_tbl_len;
    std::uint16_t lid;
    std::uint16_t sm_lid;
    std::uint8_t lmc;
    std::uint8_t max_vl_num;
    std::uint8_t sm_sl;
    std::uint8_t subnet_timeout;
    std::uint8_t init_type_reply;
    std::uint8_t active_width;
    std::uint8_t active_speed;
    std::uint8_t phys_state;
    std::uint8_t link_layer;
    std::uint8_t flags;
    std::uint16_t port_cap_flags2;
};

struct GlobalRoute {
    Gid dgid;
    std::uint32_t flow_label;
    std::uint8_t sgid_index;
    std::uint8_t hop_limit;
    std::uint8_t traffic_class;
};

struct AhAttr {
    GlobalRoute grh;
    std::uint16_t dlid;
    std::uint8_t sl;
    std::uint8_t src_path_bits;
    std::uint8_t static_rate;
    std::uint8_t is_global;
    std::uint8_t port_num;
};

struct QpCap {
    std::uint32_t max_send_wr;
    std::uint32_t max_recv_wr;
    std::uint32_t max_send_sge;
    std::uint32_t max_recv_sge;
    std::uint32_t max_inline_data;
};

struct QpInitAttr {
    void *qp_context;
    Cq *send_cq;
    Cq *recv_cq;
    void *srq;
    QpCap cap;
    int qp_type;
    int sq_sig_all;
};

struct QpAttr {
    int qp_state;
    int cur_qp_state;
    int path_mtu;
    int path_mig_state;
    std::uint32_t qkey;
    std::uint32_t rq_psn;
    std::uint32_t sq_psn;
    std::uint32_t dest_qp_num;
    unsigned qp_access_flags;
    QpCap cap;
    AhAttr ah_attr;
    AhAttr alt_ah_attr;
    std::uint16_t pkey_index;
    std::uint16_t alt_pkey_index;
    std::uint8_t en_sqd_async_notify;
    std::uint8_t sq_draining;
    std::uint8_t max_rd_atomic;
    std::uint8_t max_dest_rd_atomic;
    std::uint8_t min_rnr_timer;
    std::uint8_t port_num;
    std::uint8_t timeout;
    std::uint8_t retry_cnt;
    std::uint8_t rnr_retry;
    std::uint8_t alt_port_num;
    std::uint8_t alt_timeout;
    std::uint32_t rate_limit;
};

struct Sge {
    std::uint64_t addr;
    std::uint32_t length;
    std::uint32_t lkey;
};

struct SendWr {
    std::uint64_t wr_id;
    SendWr *next;
    Sge *sg_list;
    int num_sge;
    int opcode;
    unsigned send_flags;
    std::uint32_t immediate;
    // Of RDMA, datagrams, memory windows, segmentation: nothing for a SEND.
    std::uint64_t remote[4];
    std::uint32_t xrc;
    std::uint64_t window[6];
};

struct RecvWr {
    std::uint64_t wr_id;
    RecvWr *next;
    Sge *sg_list;
    int num_sge;
};

struct Wc {
    std::uint64_t wr_id;
    int status;
    int opcode;
    std::uint32_t vendor_err;
    std::uint32_t byte_len;
    std::uint32_t immediate;
    std::uint32_t qp_num;
    std::uint32_t src_qp;
    unsigned wc_flags;
    std::uint16_t pkey_index;
    std::uint16_t slid;
    std::uint8_t sl;
    std::uint8_t dlid_path_bits;
};

}  // namespace ina::host::verbs
