#include "host/channel/udp_lanes.hpp"

#include <fcntl.h>
#include <linux/filter.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <system_error>
#include <utility>

#include "common/ina_wire.hpp"
#include "host/channel/socket_filter.hpp"

namespace ina::host {
namespace {

// From asm-generic/socket.h, which older libc headers do not carry in full.
constexpr int kAttachReuseportCbpf = 51;
constexpr int kNetnsCookie = 71;

constexpr std::uint32_t kIpSourceOffset = 12;  // in the IPv4 header (RFC 791)
constexpr std::uint32_t kUdpSourceOffset = 0;  // in the UDP header (RFC 768)

[[noreturn]] void fail(const char *what, int error = errno) {
    throw std::system_error(error, std::generic_category(), what);
}

void set_option(int fd, int level, int name, int value, const char *what) {
    if (::setsockopt(fd, level, name, &value, sizeof value) != 0) fail(what);
}

sockaddr_in address_of(int (*ask)(int, sockaddr *, socklen_t *), int fd, const char *what) {
    sockaddr_in address{};
    socklen_t bytes = sizeof address;
    if (ask(fd, reinterpret_cast<sockaddr *>(&address), &bytes) != 0) fail(what);
    if (address.sin_family != AF_INET) fail(what, EAFNOSUPPORT);
    return address;
}

bool same(const sockaddr_in &a, const sockaddr_in &b) {
    return a.sin_addr.s_addr == b.sin_addr.s_addr && a.sin_port == b.sin_port;
}

// A filter sees a datagram from its UDP header on; what lies before is reached through SKF_NET_OFF.
// Loads are of big-endian numbers.
void admit_only(int fd, const sockaddr_in &peer) {
    const std::array<sock_filter, 6> code{{
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                 static_cast<std::uint32_t>(SKF_NET_OFF) + kIpSourceOffset),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ntohl(peer.sin_addr.s_addr), 0, 3),
        BPF_STMT(BPF_LD | BPF_H | BPF_ABS, kUdpSourceOffset),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ntohs(peer.sin_port), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, kWholePacket),
        BPF_STMT(BPF_RET | BPF_K, 0),
    }};
    attach(fd, SO_ATTACH_FILTER, code, "SO_ATTACH_FILTER");
}

// This program sees a datagram from its payload on. It returns the number of a socket, in the order
// of their bind(); what is too short for a load goes to number 0.
void select_by_lane(int fd, const LaneParts &parts) {
    const std::array<sock_filter, 4> code{{
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(wire::kSeqOffset)),
        BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, lane_shift(parts)),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, parts.threads - 1),
        BPF_STMT(BPF_RET | BPF_A, 0),
    }};
    attach(fd, kAttachReuseportCbpf, code, "SO_ATTACH_REUSEPORT_CBPF");
}

// A new socket must send over the same way as the caller's: what it was told to use beside its
// address is not copied, and a thread may have changed its network namespace since it made it.
void check_plain(int connected, int fresh) {
    std::array<char, 64> device{};
    socklen_t bytes = device.size();
    if (::getsockopt(connected, SOL_SOCKET, SO_BINDTODEVICE, device.data(), &bytes) == 0 &&
        device[0] != '\0') {
        fail("the socket is bound to a device", EOPNOTSUPP);
    }
    std::uint64_t theirs = 0;
    std::uint64_t ours = 0;
    socklen_t theirs_bytes = sizeof theirs;
    socklen_t ours_bytes = sizeof ours;
    // Since Linux 5.14; before, nothing tells.
    if (::getsockopt(connected, SOL_SOCKET, kNetnsCookie, &theirs, &theirs_bytes) == 0 &&
        ::getsockopt(fresh, SOL_SOCKET, kNetnsCookie, &ours, &ours_bytes) == 0 && theirs != ours) {
        fail("the socket is of another network namespace", EOPNOTSUPP);
    }
}

void disconnect(int fd) {
    sockaddr_in nobody{};
    nobody.sin_family = AF_UNSPEC;
    if (::connect(fd, reinterpret_cast<const sockaddr *>(&nobody), sizeof nobody) != 0) {
        fail("connect to AF_UNSPEC");
    }
}

Descriptor open_one(int connected, const sockaddr_in &own, const sockaddr_in &peer,
                    const std::function<void(int fd)> &configure) {
    Descriptor opened(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const int fd = opened.get();
    if (fd < 0) fail("socket");
    check_plain(connected, fd);
    admit_only(fd, peer);
    configure(fd);
    set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1, "SO_REUSEPORT");
    set_option(fd, IPPROTO_IP, IP_RECVERR, 1, "IP_RECVERR");
    if (::bind(fd, reinterpret_cast<const sockaddr *>(&own), sizeof own) != 0) fail("bind");
    return opened;
}

}  // namespace

LaneSockets open_lane_sockets(int connected, const LaneParts &parts,
                              const std::function<void(int fd)> &configure) {
    const sockaddr_in own = address_of(::getsockname, connected, "getsockname");
    const sockaddr_in peer = address_of(::getpeername, connected, "getpeername");
    // The address was bound without it, so it is nobody else's. From now on other processes of this
    // user might join the group, but the program never selects what came after its own sockets.
    set_option(connected, SOL_SOCKET, SO_REUSEPORT, 1, "SO_REUSEPORT");
    try {
        LaneSockets group{{}, peer};
        std::vector<Descriptor> &opened = group.sockets;
        for (std::uint32_t i = 0; i < parts.threads; ++i) {
            opened.push_back(open_one(connected, own, peer, configure));
        }
        select_by_lane(opened[0].get(), parts);
        Descriptor first(::fcntl(connected, F_DUPFD_CLOEXEC, 0));
        if (first.get() < 0) fail("dup of the UDP socket");
        admit_only(connected, peer);
        set_option(connected, IPPROTO_IP, IP_RECVERR, 1, "IP_RECVERR");
        disconnect(connected);
        // `connected` is number 0 of the group, the others follow. Where the kernel chose its port
        // or its address, it has lost them now, and the group's last has taken its place; else that
        // one is the one too many (socket(7), SO_ATTACH_REUSEPORT_CBPF).
        if (same(address_of(::getsockname, connected, "getsockname"), own)) {
            opened.back() = std::move(first);
        }
        std::rotate(opened.begin(), opened.end() - 1, opened.end());
        return group;
    } catch (...) {
        const int off = 0;
        (void)::setsockopt(connected, SOL_SOCKET, SO_REUSEPORT, &off, sizeof off);
        (void)::setsockopt(connected, IPPROTO_IP, IP_RECVERR, &off, sizeof off);
        throw;
    }
}

}  // namespace ina::host
