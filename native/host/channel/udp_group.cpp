#include "host/channel/udp_group.hpp"

#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

#include "common/ina_wire.hpp"
#include "host/channel/socket_filter.hpp"

namespace ina::host {
namespace {

[[noreturn]] void fail(const char *what) {
    throw std::system_error(errno, std::generic_category(), what);
}

Descriptor listen_too(const sockaddr_in &group, const sockaddr_in &peer, const LaneParts &parts,
                      std::uint32_t thread, const std::function<void(int fd)> &configure) {
    Descriptor opened(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const int fd = opened.get();
    if (fd < 0) fail("socket");
    take_nothing(fd);  // before the kernel knows whom to admit
    configure(fd);
    const int on = 1;
    if (::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0) fail("SO_REUSEADDR");
    if (::bind(fd, reinterpret_cast<const sockaddr *>(&group), sizeof group) != 0) fail("bind");
    if (::connect(fd, reinterpret_cast<const sockaddr *>(&peer), sizeof peer) != 0) fail("connect");
    take_lanes(fd, parts, thread);
    return opened;
}

void watch(int epoll_fd, int fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    if (::epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) fail("epoll_ctl");
}

}  // namespace

// Trains that the kernel has put together come whole, by their first packet; what is too short for
// the load is dropped.
void take_lanes(int fd, const LaneParts &parts, std::uint32_t thread) {
    const std::vector<sock_filter> code{
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kUdpHeaderBytes + parts.prefix_bytes +
                                               static_cast<std::uint32_t>(wire::kSeqOffset)),
        BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, lane_shift(parts)),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, parts.threads - 1),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, thread, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, kWholePacket),
        BPF_STMT(BPF_RET | BPF_K, 0),
    };
    attach(fd, SO_ATTACH_FILTER, code, "SO_ATTACH_FILTER");
}

std::vector<Descriptor> divide_group(int listening, const LaneParts &parts,
                                     const std::function<void(int fd)> &configure) {
    sockaddr_in group{};
    sockaddr_in peer{};
    socklen_t bytes = sizeof group;
    if (::getsockname(listening, reinterpret_cast<sockaddr *>(&group), &bytes) != 0) {
        fail("getsockname");
    }
    bytes = sizeof peer;
    if (::getpeername(listening, reinterpret_cast<sockaddr *>(&peer), &bytes) != 0) {
        fail("getpeername");
    }
    std::vector<Descriptor> opened;
    for (std::uint32_t thread = 1; thread < parts.threads; ++thread) {
        opened.push_back(listen_too(group, peer, parts, thread, configure));
    }
    take_lanes(listening, parts, 0);
    return opened;
}

void take_all_lanes(int listening) {
    const int ignored = 0;  // the kernel reads it, and no more
    (void)::setsockopt(listening, SOL_SOCKET, SO_DETACH_FILTER, &ignored, sizeof ignored);
}

void take_nothing(int listening) {
    attach(listening, SO_ATTACH_FILTER, {BPF_STMT(BPF_RET | BPF_K, 0)}, "SO_ATTACH_FILTER");
}

Descriptor watch_both(int own, int listening) {
    Descriptor both(::epoll_create1(EPOLL_CLOEXEC));
    if (both.get() < 0) fail("epoll_create");
    watch(both.get(), own);
    watch(both.get(), listening);
    return both;
}

}  // namespace ina::host
