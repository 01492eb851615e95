#include "host/channel/rdma_port.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>

namespace ina::host {
namespace {

constexpr std::uint8_t kHopLimit = 64;
constexpr std::uint32_t kPsnMask = 0xFF'FFFF;
// Nobody reads from the other's memory; some devices want one all the same.
constexpr std::uint8_t kReads = 1;
// Of a receiver without a buffer, which posts one soon: 0.64 ms (InfiniBand's code 12), and without
// an end, for who does not receive is found by others.
constexpr std::uint8_t kNotReadyTimer = 12;
constexpr std::uint8_t kForEver = 7;

[[noreturn]] void refuse(const std::string &what, int error) {
    std::string why = std::generic_category().message(error);
    if (error == ENOMEM) why += " (ulimit -l limits what a device may use)";
    throw std::runtime_error(what + ": " + why);
}

template <typename Thing>
Thing *made(Thing *thing, const std::string &what) {
    if (thing == nullptr) refuse(what, errno);
    return thing;
}

std::string dotted(std::uint32_t ipv4) {
    in_addr address{htonl(ipv4)};
    char text[INET_ADDRSTRLEN] = {};
    ::inet_ntop(AF_INET, &address, text, sizeof text);
    return text;
}

verbs::AhAttr way_to(std::uint32_t ipv4, const RdmaPlace &place, std::uint8_t traffic_class) {
    verbs::AhAttr way{};
    way.is_global = 1;
    way.port_num = place.port;
    verbs::GlobalRoute &route = way.grh;
    route.sgid_index = place.gid_index;
    route.hop_limit = kHopLimit;
    route.traffic_class = traffic_class;
    route.dgid.raw[10] = route.dgid.raw[11] = 0xFF;
    const std::uint32_t address = htonl(ipv4);
    std::memcpy(route.dgid.raw + 12, &address, sizeof address);
    return way;
}

}  // namespace

RdmaPort::RdmaPort(const RdmaPlace &place, std::uint32_t message_bytes)
    : place_(place), owner_pid_(::getpid()) {
    try {
        open(message_bytes);
    } catch (...) {
        let_go();
        throw;
    }
}

void RdmaPort::open(std::uint32_t message_bytes) {
    const verbs::Library &its = verbs::library();
    context_ = verbs::open(place_.device);
    const std::string where = place_.device + " port " + std::to_string(place_.port);
    verbs::PortAttr port{};
    const int error = its.query_port(context_, place_.port, &port);
    if (error != 0) refuse("RDMA device " + where, error);
    if (port.state != verbs::kPortActive) throw std::runtime_error(where + " is not active");
    path_mtu_ = port.active_mtu;
    path_mtu_bytes_ = verbs::mtu_bytes_of(path_mtu_);
    if (message_bytes > path_mtu_bytes_) {
        throw std::runtime_error(where + " takes " + std::to_string(path_mtu_bytes_) +
                                 " bytes a packet (its active" + " MTU), and the job's have " +
                                 std::to_string(message_bytes) +
                                 ": raise the interface's MTU, or take fewer values a packet");
    }
    pd_ = made(its.alloc_pd(context_), "a protection domain");
    events_ = made(its.create_comp_channel(context_), "a completion channel");
    const int flags = ::fcntl(events_->fd, F_GETFL);
    if (flags < 0 || ::fcntl(events_->fd, F_SETFL, flags | O_NONBLOCK) < 0) {
        refuse("a completion channel", errno);
    }
}

std::uint8_t *RdmaPort::map(std::size_t bytes) {
    // Pages of its own: libibverbs keeps them from forked children.
    void *const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) refuse("memory for packets", errno);
    memory_ = static_cast<std::uint8_t *>(memory);
    memory_bytes_ = bytes;
    mr_ = made(verbs::library().reg_mr(pd_, memory_, bytes, verbs::kAccessLocalWrite),
               std::to_string(bytes) + " bytes for " + place_.device);
    return memory_;
}

verbs::Cq *RdmaPort::make_cq(std::uint32_t entries, bool tells) {
    cqs_.push_back(made(verbs::library().create_cq(context_, static_cast<int>(entries), nullptr,
                                                   tells ? events_ : nullptr, 0),
                        "a completion queue of " + place_.device));
    return cqs_.back();
}

verbs::Qp *RdmaPort::make_qp(const verbs::QpInitAttr &wanted, const std::string &what) {
    const verbs::Library &its = verbs::library();
    verbs::QpInitAttr said = wanted;
    verbs::Qp *const qp = made(its.create_qp(pd_, &said), what + " on " + place_.device);
    qps_.push_back(qp);
    verbs::QpAttr ready{};
    ready.qp_state = verbs::kStateInit;
    ready.port_num = place_.port;
    const int error = its.modify_qp(qp, &ready,
                                    verbs::kAttrState | verbs::kAttrPkeyIndex | verbs::kAttrPort |
                                        verbs::kAttrAccessFlags);
    if (error != 0) refuse(what + " on " + place_.device, error);
    return qp;
}

void RdmaPort::connect(verbs::Qp *qp, const RdmaPath &path, const RdmaPatience *patience) const {
    const verbs::Library &its = verbs::library();
    const std::string who = dotted(path.ipv4) + " from " + place_.device;
    verbs::QpAttr wanted{};
    wanted.qp_state = verbs::kStateRtr;
    wanted.path_mtu = path_mtu_;
    wanted.dest_qp_num = path.number;
    wanted.rq_psn = path.expected_psn & kPsnMask;
    wanted.ah_attr = way_to(path.ipv4, place_, path.traffic_class);
    int mask = verbs::kAttrState | verbs::kAttrAv | verbs::kAttrPathMtu | verbs::kAttrDestQpn |
               verbs::kAttrRqPsn;
    if (patience != nullptr) {
        wanted.max_dest_rd_atomic = kReads;
        wanted.min_rnr_timer = kNotReadyTimer;
        mask |= verbs::kAttrMaxDestRdAtomic | verbs::kAttrMinRnrTimer;
    }
    int error = its.modify_qp(qp, &wanted, mask);
    if (error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH) {
        refuse("nobody answers for the MAC address of " + who +
                   ": nothing is there, or it does not answer ARP (ip neigh add ... permanent"
                   " says it by hand)",
               error);
    }
    if (error != 0) refuse("no way to " + who, error);
    wanted.qp_state = verbs::kStateRts;
    wanted.sq_psn = path.first_psn & kPsnMask;
    mask = verbs::kAttrState | verbs::kAttrSqPsn;
    if (patience != nullptr) {
        wanted.timeout = patience->timeout;
        wanted.retry_cnt = patience->retries;
        wanted.rnr_retry = kForEver;
        wanted.max_rd_atomic = kReads;
        mask |= verbs::kAttrTimeout | verbs::kAttrRetryCnt | verbs::kAttrRnrRetry |
                verbs::kAttrMaxRdAtomic;
    }
    error = its.modify_qp(qp, &wanted, mask);
    if (error != 0) refuse("no way to " + who, error);
}

void RdmaPort::take_events() const {
    const verbs::Library &its = verbs::library();
    verbs::Cq *cq = nullptr;
    void *ignored = nullptr;
    while (its.get_cq_event(events_, &cq, &ignored) == 0) its.ack_cq_events(cq, 1);
}

void RdmaPort::close() {
    if (::getpid() == owner_pid_) {
        let_go();
        return;
    }
    // What it would destroy is the parent's: both have the device's one descriptor.
    context_ = nullptr;
    events_ = nullptr;
}

void RdmaPort::let_go() {
    if (context_ == nullptr) return;
    const verbs::Library &its = verbs::library();
    for (verbs::Qp *const qp : qps_) its.destroy_qp(qp);
    for (verbs::Cq *const cq : cqs_) its.destroy_cq(cq);
    if (events_ != nullptr) its.destroy_comp_channel(events_);
    if (mr_ != nullptr) its.dereg_mr(mr_);
    if (pd_ != nullptr) its.dealloc_pd(pd_);
    its.close_device(context_);
    if (memory_ != nullptr) ::munmap(memory_, memory_bytes_);
    qps_.clear();
    cqs_.clear();
    events_ = nullptr;
    mr_ = nullptr;
    pd_ = nullptr;
    context_ = nullptr;
    memory_ = nullptr;
}

void post_buffer(verbs::Qp *qp, std::uint64_t id, const verbs::Sge &piece) {
    verbs::Sge said = piece;
    verbs::RecvWr wanted{id, nullptr, &said, 1};
    verbs::RecvWr *bad = nullptr;
    const int error = post_receive(qp, &wanted, &bad);
    if (error != 0) refuse("a receive buffer of " + std::to_string(piece.length) + " bytes", error);
}

}  // namespace ina::host
