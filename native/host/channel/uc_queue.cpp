#include "host/channel/uc_queue.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>

namespace ina::host {
namespace {

constexpr std::size_t kLineBytes = 64;
constexpr std::uint32_t kSpareBuffers = 64;
constexpr std::uint32_t kLeastDepth = 256;
constexpr std::uint8_t kHopLimit = 64;

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

std::size_t whole_lines(std::size_t bytes) {
    return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
}

std::string dotted(std::uint32_t ipv4) {
    in_addr address{htonl(ipv4)};
    char text[INET_ADDRSTRLEN] = {};
    ::inet_ntop(AF_INET, &address, text, sizeof text);
    return text;
}

}  // namespace

UcQueue::UcQueue(const UcPlace &place) : place_(place), owner_pid_(::getpid()) {
    try {
        set_up();
    } catch (...) {
        close();
        throw;
    }
}

UcQueue::~UcQueue() { close(); }

void UcQueue::set_up() {
    const verbs::Library &its = verbs::library();
    context_ = verbs::open(place_.device);
    const std::string where = place_.device + " port " + std::to_string(place_.port);
    verbs::PortAttr port{};
    const int error = its.query_port(context_, place_.port, &port);
    if (error != 0) refuse("RDMA device " + where, error);
    if (port.state != verbs::kPortActive) throw std::runtime_error(where + " is not active");
    path_mtu_ = port.active_mtu;
    path_mtu_bytes_ = verbs::mtu_bytes_of(path_mtu_);
    if (place_.message_bytes > path_mtu_bytes_) {
        throw std::runtime_error(where + " takes " + std::to_string(path_mtu_bytes_) +
                                 " bytes a packet (its active" + " MTU), and the job's have " +
                                 std::to_string(place_.message_bytes) +
                                 ": raise the interface's MTU, or take fewer values a packet");
    }
    map_memory();
    make_queues();
    post_buffers();
}

void UcQueue::map_memory() {
    frame_bytes_ = whole_lines(kLineBytes + place_.message_bytes);
    // Resends among them: each packet twice.
    send_depth_ = std::max(kLeastDepth, 2 * place_.packets);
    buffer_count_ = 2 * place_.packets + kSpareBuffers;
    // The longest message of one packet that anybody can send: a longer one would be the end of
    // this queue pair.
    buffer_bytes_ = path_mtu_bytes_;
    const std::size_t frames = frame_bytes_ * place_.packets;
    const std::size_t headers = kHeaderStride * send_depth_;
    memory_bytes_ = frames + headers + std::size_t{buffer_bytes_} * buffer_count_;
    // Pages of its own: libibverbs keeps them from forked children.
    void *const memory = ::mmap(nullptr, memory_bytes_, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) refuse("memory for packets", errno);
    memory_ = static_cast<std::uint8_t *>(memory);
    headers_ = memory_ + frames;
    buffers_ = headers_ + headers;
}

void UcQueue::make_queues() {
    const verbs::Library &its = verbs::library();
    pd_ = made(its.alloc_pd(context_), "a protection domain");
    mr_ = made(its.reg_mr(pd_, memory_, memory_bytes_, verbs::kAccessLocalWrite),
               std::to_string(memory_bytes_) + " bytes for " + place_.device);
    events_ = made(its.create_comp_channel(context_), "a completion channel");
    const int flags = ::fcntl(events_->fd, F_GETFL);
    if (flags < 0 || ::fcntl(events_->fd, F_SETFL, flags | O_NONBLOCK) < 0) {
        refuse("a completion channel", errno);
    }
    // When a queue pair breaks, all that was posted ends there.
    sent_ = made(its.create_cq(context_, static_cast<int>(send_depth_) + 1, nullptr, nullptr, 0),
                 "a completion queue");
    received_ =
        made(its.create_cq(context_, static_cast<int>(buffer_count_) + 1, nullptr, events_, 0),
             "a completion queue");
    verbs::QpInitAttr wanted{};
    wanted.send_cq = sent_;
    wanted.recv_cq = received_;
    wanted.cap = {send_depth_, buffer_count_, 2, 1, 0};
    wanted.qp_type = verbs::kQpUc;
    qp_ = made(its.create_qp(pd_, &wanted), "a queue pair for " + std::to_string(place_.packets) +
                                                " packets on " + place_.device);
    number_ = qp_->qp_num;
    verbs::QpAttr ready{};
    ready.qp_state = verbs::kStateInit;
    ready.port_num = place_.port;
    const int error = its.modify_qp(qp_, &ready,
                                    verbs::kAttrState | verbs::kAttrPkeyIndex | verbs::kAttrPort |
                                        verbs::kAttrAccessFlags);
    if (error != 0) refuse("a queue pair on " + place_.device, error);
}

void UcQueue::post_buffers() const {
    for (std::uint32_t i = 0; i < buffer_count_; ++i) {
        verbs::Sge piece{reinterpret_cast<std::uintptr_t>(buffer(i)), buffer_bytes_, mr_->lkey};
        verbs::RecvWr wanted{i, nullptr, &piece, 1};
        verbs::RecvWr *bad = nullptr;
        const int error = post_receive(&wanted, &bad);
        if (error != 0) refuse("receive buffers of " + place_.device, error);
    }
}

void UcQueue::connect(std::uint32_t ipv4, std::uint32_t number, std::uint32_t first_psn,
                      std::uint8_t traffic_class) {
    if (qp_ == nullptr) throw std::runtime_error("the queue pair is closed");
    const verbs::Library &its = verbs::library();
    verbs::QpAttr wanted{};
    wanted.qp_state = verbs::kStateRtr;
    wanted.path_mtu = path_mtu_;
    wanted.dest_qp_num = number;
    wanted.rq_psn = 0;  // of messages of one packet any number is taken
    wanted.ah_attr.is_global = 1;
    wanted.ah_attr.port_num = place_.port;
    verbs::GlobalRoute &route = wanted.ah_attr.grh;
    route.sgid_index = place_.gid_index;
    route.hop_limit = kHopLimit;
    route.traffic_class = traffic_class;
    route.dgid.raw[10] = route.dgid.raw[11] = 0xFF;
    const std::uint32_t address = htonl(ipv4);
    std::memcpy(route.dgid.raw + 12, &address, sizeof address);
    const std::string who = dotted(ipv4) + " from " + place_.device;
    int error = its.modify_qp(qp_, &wanted,
                              verbs::kAttrState | verbs::kAttrAv | verbs::kAttrPathMtu |
                                  verbs::kAttrDestQpn | verbs::kAttrRqPsn);
    if (error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH) {
        refuse("nobody answers for the MAC address of " + who +
                   ": nothing is there, or it does not answer ARP (ip neigh add ... permanent"
                   " says it by hand)",
               error);
    }
    if (error != 0) refuse("no way to " + who, error);
    wanted.qp_state = verbs::kStateRts;
    wanted.sq_psn = first_psn & 0xFF'FFFF;
    error = its.modify_qp(qp_, &wanted, verbs::kAttrState | verbs::kAttrSqPsn);
    if (error != 0) refuse("no way to " + who, error);
    is_connected_ = true;
}

void UcQueue::take_events() const {
    const verbs::Library &its = verbs::library();
    verbs::Cq *cq = nullptr;
    void *ignored = nullptr;
    unsigned count = 0;
    while (its.get_cq_event(events_, &cq, &ignored) == 0) ++count;
    if (count > 0) its.ack_cq_events(received_, count);
}

void UcQueue::close() {
    if (::getpid() != owner_pid_) {
        // What it would destroy is the parent's: both have the device's one descriptor.
        qp_ = nullptr;
        events_ = nullptr;
        return;
    }
    if (context_ == nullptr) return;
    const verbs::Library &its = verbs::library();
    if (qp_ != nullptr) its.destroy_qp(qp_);
    if (received_ != nullptr) its.destroy_cq(received_);
    if (sent_ != nullptr) its.destroy_cq(sent_);
    if (events_ != nullptr) its.destroy_comp_channel(events_);
    if (mr_ != nullptr) its.dereg_mr(mr_);
    if (pd_ != nullptr) its.dealloc_pd(pd_);
    its.close_device(context_);
    if (memory_ != nullptr) ::munmap(memory_, memory_bytes_);
    qp_ = nullptr;
    received_ = sent_ = nullptr;
    events_ = nullptr;
    mr_ = nullptr;
    pd_ = nullptr;
    context_ = nullptr;
    memory_ = nullptr;
    is_connected_ = false;
}

}  // namespace ina::host
