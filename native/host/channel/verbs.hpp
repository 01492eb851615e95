// libibverbs, as far as it is here: looked for when it is first asked for, so that nothing of ina
// depends on it. What both sides agree on in memory is in verbs_abi.hpp.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "host/channel/verbs_abi.hpp"

namespace ina::host::verbs {

// Its functions. Who has called fork_init() may fork: memory that a device reads and writes is not
// the child's (kernels before 5.12 would else let it drift away from the parent's).
struct Library {
    int (*fork_init)();
    Device **(*get_device_list)(int *count);
    void (*free_device_list)(Device **list);
    const char *(*get_device_name)(Device *device);
    Context *(*open_device)(Device *device);
    int (*close_device)(Context *context);
    int (*query_port)(Context *context, std::uint8_t port, PortAttr *attributes);
    ssize_t (*query_gid_table)(Context *context, GidEntry *entries, std::size_t most,
                               std::uint32_t flags, std::size_t entry_bytes);
    Pd *(*alloc_pd)(Context *context);
    int (*dealloc_pd)(Pd *pd);
    Mr *(*reg_mr)(Pd *pd, void *memory, std::size_t bytes, int access);
    int (*dereg_mr)(Mr *mr);
    CompChannel *(*create_comp_channel)(Context *context);
    int (*destroy_comp_channel)(CompChannel *channel);
    Cq *(*create_cq)(Context *context, int entries, void *cq_context, CompChannel *channel,
                     int vector);
    int (*destroy_cq)(Cq *cq);
    int (*get_cq_event)(CompChannel *channel, Cq **cq, void **cq_context);
    void (*ack_cq_events)(Cq *cq, unsigned count);
    Qp *(*create_qp)(Pd *pd, QpInitAttr *attributes);
    int (*modify_qp)(Qp *qp, QpAttr *attributes, int mask);
    int (*destroy_qp)(Qp *qp);
};

// The one of this process. Throws std::runtime_error: one line that says what is missing.
const Library &library();

struct GidInfo {
    std::uint32_t index = 0;
    std::uint32_t type = 0;  // kGidRoceV1, kGidRoceV2, 0: InfiniBand's
    std::string address;     // as IPv6
    std::uint32_t ipv4 = 0;  // host byte order; 0: it is no IPv4 address
    std::uint32_t interface_index = 0;
};

struct PortInfo {
    std::uint8_t number = 0;
    bool is_active = false;
    bool is_ethernet = false;
    std::uint32_t active_mtu_bytes = 0;
    std::uint32_t max_mtu_bytes = 0;
    std::vector<GidInfo> gids;
};

struct DeviceInfo {
    std::string name;
    std::string trouble;  // why nothing else is known of it; empty: it was opened
    std::vector<PortInfo> ports;
};

// All of this machine. Throws std::runtime_error: no library.
std::vector<DeviceInfo> devices();

// An open device. Throws std::runtime_error: no library, no such device, it cannot be opened.
Context *open(const std::string &name);

// Bytes of a path MTU as the library says it; 0: it is none.
std::uint32_t mtu_bytes_of(int said);

}  // namespace ina::host::verbs
