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
#include "common/peer_socket.hpp"
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

Peer peer_of(int (*ask)(int, sockaddr *, socklen_t *), int fd, const char *what) {
    sockaddr_in address{};
    socklen_t bytes = sizeof address;
    if (ask(fd, reinterpret_cast<sockaddr *>(&address), &bytes) != 0) fail(what);
    if (address.sin_family != AF_INET) fail(what, EAFNOSUPPORT);
    return peer_at(address);
}

// What lies before the UDP header is reached through SKF_NET_OFF. Loads are of big-endian numbers.
void add_source(std::vector<sock_filter> *code, const Peer &peer, std::uint8_t else_skip) {
    const std::vector<sock_filter> more = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                 static_cast<std::uint32_t>(SKF_NET_OFF) + kIpSourceOffset),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, peer.ipv4, 0, static_cast<std::uint8_t>(else_skip + 2)),
        BPF_STMT(BPF_LD | BPF_H | BPF_ABS, kUdpSourceOffset),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, peer.udp_port, 0, else_skip),
    };
    code->insert(code->end(), more.begin(), more.end());
}

// From the only node all comes; of several nodes, from each what is of its jobs. What is too short
// to say is dropped.
void admit_only(int fd, const std::vector<Peer> &peers, const std::vector<Way> &ways,
                std::uint32_t prefix_bytes) {
    const sock_filter take = BPF_STMT(BPF_RET | BPF_K, kWholePacket);
    std::vector<sock_filter> code;
    for (std::size_t i = 0; i < peers.size(); ++i) {
        if (peers.size() == 1) {
            add_source(&code, peers[i], 1);
            code.push_back(take);
            break;
        }
        add_source(&code, peers[i], static_cast<std::uint8_t>(1 + 2 * ways[i].jobs.size()));
        code.push_back(
            BPF_STMT(BPF_LD | BPF_H | BPF_ABS, kUdpHeaderBytes + prefix_bytes +
                                                   static_cast<std::uint32_t>(wire::kJobOffset)));
        for (const std::uint16_t job : ways[i].jobs) {
            code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, job, 0, 1));
            code.push_back(take);
        }
    }
    code.push_back(BPF_STMT(BPF_RET | BPF_K, 0));
    attach(fd, SO_ATTACH_FILTER, code, "SO_ATTACH_FILTER");
}

std::vector<Peer> peers_of(int connected, const std::vector<Way> &ways) {
    const Peer only = peer_of(::getpeername, connected, "getpeername");
    std::vector<Peer> peers;
    for (const Way &way : ways) {
        peers.push_back(ways.size() == 1 || !way.node.is_known() ? only : way.node);
    }
    return peers;
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

Descriptor open_one(int connected, const Peer &own, const std::vector<Peer> &peers,
                    const std::vector<Way> &ways, const LaneParts &parts,
                    const std::function<void(int fd)> &configure) {
    Descriptor opened(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const int fd = opened.get();
    if (fd < 0) fail("socket");
    check_plain(connected, fd);
    admit_only(fd, peers, ways, parts.prefix_bytes);
    configure(fd);
    set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1, "SO_REUSEPORT");
    set_option(fd, IPPROTO_IP, IP_RECVERR, 1, "IP_RECVERR");
    const sockaddr_in at = socket_address(own);
    if (::bind(fd, reinterpret_cast<const sockaddr *>(&at), sizeof at) != 0) fail("bind");
    return opened;
}

}  // namespace

// This program sees a datagram from its payload on. It returns the number of a socket, in the order
// of their bind(); what is too short for a load goes to number 0.
void deal_lanes(int fd, const LaneParts &parts) {
    const std::vector<sock_filter> code{
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                 parts.prefix_bytes + static_cast<std::uint32_t>(wire::kSeqOffset)),
        BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, lane_shift(parts)),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, parts.threads - 1),
        BPF_STMT(BPF_RET | BPF_A, 0),
    };
    attach(fd, kAttachReuseportCbpf, code, "SO_ATTACH_REUSEPORT_CBPF");
}

std::vector<Peer> admit_ways(int fd, const std::vector<Peer> &peers, const std::vector<Way> &ways,
                             const LaneParts &parts) {
    std::vector<Peer> all = peers;
    all.resize(std::min(peers.size(), ways.size()));
    for (std::size_t i = all.size(); i < ways.size(); ++i) all.push_back(ways[i].node);
    admit_only(fd, all, ways, parts.prefix_bytes);
    return all;
}

LaneSockets open_lane_sockets(int connected, const LaneParts &parts, const std::vector<Way> &ways,
                              const std::function<void(int fd)> &configure) {
    const Peer own = peer_of(::getsockname, connected, "getsockname");
    const std::vector<Peer> peers = peers_of(connected, ways);
    // The address was bound without it, so it is nobody else's. From now on other processes of this
    // user might join the group, but the program never selects what came after its own sockets.
    set_option(connected, SOL_SOCKET, SO_REUSEPORT, 1, "SO_REUSEPORT");
    try {
        LaneSockets group{{}, peers};
        std::vector<Descriptor> &opened = group.sockets;
        for (std::uint32_t i = 0; i < parts.threads; ++i) {
            opened.push_back(open_one(connected, own, peers, ways, parts, configure));
        }
        deal_lanes(opened[0].get(), parts);
        Descriptor first(::fcntl(connected, F_DUPFD_CLOEXEC, 0));
        if (first.get() < 0) fail("dup of the UDP socket");
        admit_only(connected, peers, ways, parts.prefix_bytes);
        set_option(connected, IPPROTO_IP, IP_RECVERR, 1, "IP_RECVERR");
        disconnect(connected);
        // `connected` is number 0 of the group, the others follow. Where the kernel chose its port
        // or its address, it has lost them now, and the group's last has taken its place; else that
        // one is the one too many (socket(7), SO_ATTACH_REUSEPORT_CBPF).
        if (peer_of(::getsockname, connected, "getsockname") == own) {
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
