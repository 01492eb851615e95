#include "switch/shm_port.hpp"

#include <errno.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <system_error>
#include <utility>

namespace ina::sw {

namespace {
// 127.64.0.0/10 is the addresses of workers: 2^22 addresses with 65535 ports each.
constexpr uint32_t kFirstAddress = 0x7f400000;
constexpr uint64_t kPorts = 65535;
constexpr size_t kMaxAttached = 256;
constexpr size_t kMaxSilent = 128;  // more than join at once on one host
constexpr int kEvents = 64;
constexpr uint32_t kTurnPackets = 32;  // of one worker, before it is the next one's turn
constexpr uint32_t kBusyRounds = 16;   // without sleep, before connections are looked at
// Before it sleeps, this thread lets others have its core for so long: on a machine whose cores are
// all busy the workers' packets come meanwhile, and nobody has to wake anybody.
constexpr uint64_t kLingerNs = 50'000;

bool is_own_user(int fd) {
    ucred peer{};
    socklen_t bytes = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.uid == geteuid();
}

// On which this thread may run; SIZE_MAX: more than can be told (over 1024).
size_t usable_cores() {
    cpu_set_t cores;
    if (sched_getaffinity(0, sizeof cores, &cores) != 0) return SIZE_MAX;
    return static_cast<size_t>(CPU_COUNT(&cores));
}

// The workers that need not leave this thread's core, so that all cores have as much to do. For
// each worker this thread works 0.4 to 0.6 times as long as the worker itself (64 MiB, N = 2 to 8).
size_t workers_beside(size_t workers, size_t cores) {
    if (cores == 1) return workers;
    return cores == 2 ? 3 * workers / 8 : 0;
}

void watch(int epoll_fd, int fd, void *what) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = what;
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
        throw std::system_error(errno, std::generic_category(), "epoll_ctl");
}
}  // namespace

ShmPort::ShmPort(uint32_t number, const std::string &name, uint16_t frame_udp_port,
                 double loss_probability, uint64_t loss_seed)
    : Port(number, loss_probability, loss_seed), switch_end_{kFirstAddress, frame_udp_port},
      cores_(usable_cores()) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (name.empty() || name.size() + 1 > sizeof address.sun_path)
        throw std::system_error(ENAMETOOLONG, std::generic_category(), "shared memory address");
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    listener_ = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    epoll_fd_ = epoll_create1(EPOLL_CLOEXEC);
    try {
        if (listener_ < 0 || epoll_fd_ < 0 ||
            bind(listener_, reinterpret_cast<const sockaddr *>(&address), length) < 0 ||
            listen(listener_, SOMAXCONN) < 0)
            throw std::system_error(errno, std::generic_category(), "shared memory address");
        watch(epoll_fd_, listener_, nullptr);
        results_.open();
    } catch (...) {
        ShmPort::close();
        throw;
    }
}

ShmPort::~ShmPort() { ShmPort::close(); }

void ShmPort::close() {
    attached_.clear();
    silent_.clear();
    dropped_.clear();
    results_.close();
    if (listener_ >= 0) ::close(listener_);
    if (epoll_fd_ >= 0) ::close(epoll_fd_);
    listener_ = epoll_fd_ = -1;
}

bool ShmPort::has_packets() const {
    return std::any_of(attached_.begin(), attached_.end(),
                       [](const auto &peer) { return peer->has_packets(); });
}

bool ShmPort::prepare_sleep() {
    dropped_.clear();  // the batch is empty
    if (has_packets()) return false;
    // Now nobody may be left to wait for more than there is.
    for (const auto &peer : attached_) peer->wake(true);
    if (std::exchange(was_busy_, false)) {
        const uint64_t until_ns = monotonic_ns() + kLingerNs;
        do {
            sched_yield();
            if (has_packets()) return false;
        } while (monotonic_ns() < until_ns);
    }
    is_asleep_ = true;
    bool may_sleep = true;
    for (const auto &peer : attached_) may_sleep = peer->prepare_sleep() && may_sleep;
    return may_sleep;
}

void ShmPort::receive(FrameBatch *batch) {
    if (is_asleep_ || ++busy_rounds_ % kBusyRounds == 0) handle_events();
    if (is_asleep_)
        for (const auto &peer : attached_) peer->wake_up();
    is_asleep_ = false;
    was_busy_ = !attached_.empty();
    const size_t count = attached_.size();
    const uint8_t dscp = dscp_.load(std::memory_order_relaxed);
    std::vector<ShmPeer *> broken;
    // In turns, and not always from the same one on: nobody's packets wait for ever.
    for (size_t i = 0; i < count && batch->has_room(); ++i) {
        ShmPeer *const peer = attached_[first_++ % count].get();
        peer->set_dscp(dscp);
        if (!peer->receive(batch, this, kTurnPackets)) broken.push_back(peer);
    }
    first_ %= std::max<size_t>(count, 1);
    for (ShmPeer *const peer : broken) {
        broken_.add(1);
        drop(peer);
    }
}

void ShmPort::handle_events() {
    epoll_event events[kEvents];
    const int count = epoll_wait(epoll_fd_, events, kEvents, 0);
    for (int i = 0; i < count; ++i) {
        auto *const peer = static_cast<ShmPeer *>(events[i].data.ptr);
        if (!peer) {
            accept_all();
            continue;
        }
        switch (peer->hear()) {
            case ShmPeer::Heard::kNothing: break;
            case ShmPeer::Heard::kHello: admit(peer); break;
            case ShmPeer::Heard::kEnd: drop(peer); break;
        }
    }
    while (silent_.size() > kMaxSilent) drop(silent_.front().get());
}

void ShmPort::accept_all() {
    for (;;) {
        const int fd = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) return;  // none, or gone again
        auto peer = std::make_unique<ShmPeer>(fd, &results_);
        if (!is_own_user(fd)) {
            peer->refuse(shm::Status::kNotAllowed);
            refused_.add(1);
            continue;
        }
        watch(epoll_fd_, fd, peer.get());
        silent_.push_back(std::move(peer));
    }
}

void ShmPort::admit(ShmPeer *peer) {
    const Peer source{kFirstAddress + 1 + static_cast<uint32_t>(next_source_ / kPorts),
                      static_cast<uint16_t>(1 + next_source_ % kPorts)};
    const shm::Status status = attached_.size() < kMaxAttached
                                   ? peer->attach(number(), source, switch_end_)
                                   : shm::Status::kFull;
    if (status == shm::Status::kFull) peer->refuse(status);
    if (!peer->is_attached()) {
        refused_.add(1);
        drop(peer);
        return;
    }
    ++next_source_;
    attachments_.add(1);
    const auto found = std::find_if(silent_.begin(), silent_.end(),
                                    [&](const auto &other) { return other.get() == peer; });
    attached_.push_back(std::move(*found));
    silent_.erase(found);
}

void ShmPort::drop(ShmPeer *peer) {
    const auto is_it = [&](const auto &other) { return other.get() == peer; };
    if (peer->is_attached()) detached_.add(1);
    epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, peer->fd(), nullptr);  // it stays open for a while
    for (auto *peers : {&attached_, &silent_}) {
        const auto found = std::find_if(peers->begin(), peers->end(), is_it);
        if (found == peers->end()) continue;
        dropped_.push_back(std::move(*found));
        peers->erase(found);
        return;
    }
}

ShmPeer *ShmPort::find(Peer destination) {
    // A multicast visits its members in turn: the next is most often the one after the last.
    for (size_t tried = 0; tried < attached_.size(); ++tried) {
        if (++last_ >= attached_.size()) last_ = 0;
        if (attached_[last_]->source() == destination) return attached_[last_].get();
    }
    return nullptr;
}

void ShmPort::transmit(const std::vector<ina_packet_out> &packets) {
    size_t bytes = 0, sent = 0;
    results_.forget();
    for (const auto &peer : attached_) peer->reclaim();
    for (const ina_packet_out &packet : packets) {
        Datagram datagram;
        ShmPeer *peer = nullptr;
        if (parse_udp_frame(packet.data, packet.length, &datagram, packet.tail, packet.tail_length))
            peer = find(datagram.destination);
        if (!peer) {
            counters_.undeliverable_packets.add(1);
        } else if (!peer->send(datagram)) {
            counters_.blocked_packets.add(1);
        } else {
            ++sent;
            bytes += kFrameHeaderBytes + datagram.payload_bytes + datagram.tail_bytes;
        }
    }
    count_sent(sent, bytes);
    ask_for_core();
    for (const auto &peer : attached_) peer->publish();
}

void ShmPort::ask_for_core() {
    const auto core = static_cast<uint32_t>(sched_getcpu() + 1);  // without getcpu(2): 0, none
    const size_t beside = workers_beside(attached_.size(), cores_);
    for (size_t i = 0; i < attached_.size(); ++i) attached_[i]->ask_to_leave(i < beside ? 0 : core);
}

void ShmPort::extra_stats(std::vector<std::pair<std::string, uint64_t>> *stats) const {
    stats->emplace_back("attached", attachments_.get() - detached_.get());
    stats->emplace_back("refused_attachments", refused_.get());
    stats->emplace_back("broken_rings", broken_.get());
}

}  // namespace ina::sw
