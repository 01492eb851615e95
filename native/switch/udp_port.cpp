#include "switch/udp_port.hpp"

#include <errno.h>
#include <fcntl.h>
#include <netinet/udp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstring>
#include <system_error>

#include "common/peer_socket.hpp"
#include "common/roce.hpp"

#ifndef UDP_GRO
#define UDP_GRO 104
#endif
#ifndef SO_MEMINFO
#define SO_MEMINFO 55
#endif

namespace ina::sw {

namespace {
// A hundred super-datagrams: some thousand packets from tens of workers, before the loop comes
// round.
constexpr uint64_t kEnoughBytes = 8 << 20;
constexpr size_t kMaxSockets = 24;
constexpr size_t kSuperDatagramBytes = 65536;
constexpr size_t kMeminfoDrops = 8;  // SK_MEMINFO_DROPS of linux/sock_diag.h
constexpr size_t kMeminfoWords = 9;

void set_option(int fd, int level, int name, int value) {
    setsockopt(fd, level, name, &value, sizeof value);
}

uint64_t get_option(int fd, int level, int name) {
    int value = 0;
    socklen_t bytes = sizeof value;
    getsockopt(fd, level, name, &value, &bytes);
    return static_cast<uint64_t>(value);
}

int open_socket() { return socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); }
}  // namespace

UdpPort::UdpPort(uint32_t number, uint32_t address, uint16_t udp_port, uint16_t frame_udp_port,
                 double loss_probability, uint64_t loss_seed, int socket_buffer_bytes)
    : Port(number, loss_probability, loss_seed), frame_udp_port_(frame_udp_port),
      socket_buffer_bytes_(socket_buffer_bytes), received_(new uint8_t[kSuperDatagramBytes]) {
    const int fd = open_socket();
    if (fd < 0) throw std::system_error(errno, std::generic_category(), "socket");
    sockaddr_in local = socket_address({address, udp_port});
    socklen_t local_bytes = sizeof local;
    if (bind(fd, reinterpret_cast<sockaddr *>(&local), sizeof local) < 0 ||
        getsockname(fd, reinterpret_cast<sockaddr *>(&local), &local_bytes) < 0) {
        const int error = errno;
        ::close(fd);
        throw std::system_error(error, std::generic_category(), "bind");
    }
    sockets_.push_back(fd);
    bound_ = {ntohl(local.sin_addr.s_addr), ntohs(local.sin_port)};
    configure(fd);
    send_buffer_bytes_ = get_option(fd, SOL_SOCKET, SO_SNDBUF);
    if (receive_buffer_bytes_ < kEnoughBytes) share();
    sender_ =
        std::make_unique<UdpSender>(fd, bound_, frame_udp_port_ == roce::kUdpPort, &counters_);
}

UdpPort::~UdpPort() { UdpPort::close(); }

void UdpPort::close() {
    for (int &fd : sockets_) {
        if (fd >= 0) ::close(fd);
        fd = -1;
    }
    if (epoll_fd_ >= 0) ::close(epoll_fd_);
    epoll_fd_ = -1;
}

void UdpPort::configure(int fd) {
    for (const auto &[force, plain] :
         {std::pair{SO_RCVBUFFORCE, SO_RCVBUF}, std::pair{SO_SNDBUFFORCE, SO_SNDBUF}}) {
        const int bytes = socket_buffer_bytes_;
        if (setsockopt(fd, SOL_SOCKET, force, &bytes, sizeof bytes) < 0)
            set_option(fd, SOL_SOCKET, plain, bytes);
    }
    receive_buffer_bytes_ += get_option(fd, SOL_SOCKET, SO_RCVBUF);
    set_option(fd, IPPROTO_IP, IP_RECVTOS, 1);
    if (bound_.ipv4 == INADDR_ANY) set_option(fd, IPPROTO_IP, IP_PKTINFO, 1);
    const int on = 1;
    gro_ = setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof on) == 0;
}

void UdpPort::share() {
    // The first socket was bound without SO_REUSEPORT, so the address is nobody else's.
    epoll_fd_ = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_fd_ < 0) return;
    set_option(sockets_.front(), SOL_SOCKET, SO_REUSEPORT, 1);
    const sockaddr_in local = socket_address(bound_);
    while (receive_buffer_bytes_ < kEnoughBytes && sockets_.size() < kMaxSockets) {
        const int fd = open_socket();
        if (fd < 0) break;  // fewer will do
        set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1);
        if (bind(fd, reinterpret_cast<const sockaddr *>(&local), sizeof local) < 0) {
            ::close(fd);
            break;
        }
        sockets_.push_back(fd);
        configure(fd);
    }
    for (const int fd : sockets_) {
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.fd = fd;
        epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event);
    }
}

void UdpPort::receive(FrameBatch *batch) {
    if (epoll_fd_ < 0) {
        receive_from(sockets_.front(), batch);
        return;
    }
    epoll_event ready[kMaxSockets];
    const int count = epoll_wait(epoll_fd_, ready, kMaxSockets, 0);
    for (int i = 0; i < count; ++i) receive_from(ready[i].data.fd, batch);
}

void UdpPort::receive_from(int fd, FrameBatch *batch) {
    while (batch->has_room()) {
        // One piece, and a copy of each segment: the kernel takes longer to fill a piece for each
        // segment, where its frame will be, than the copies take from the cache.
        iovec whole{received_.get(), kSuperDatagramBytes};
        sockaddr_in from;
        alignas(cmsghdr) uint8_t control[256];
        msghdr message{};
        message.msg_name = &from;
        message.msg_namelen = sizeof from;
        message.msg_iov = &whole;
        message.msg_iovlen = 1;
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        const ssize_t bytes = recvmsg(fd, &message, 0);
        if (bytes < 0) {
            if (errno == EINTR) continue;
            return;  // EAGAIN: drained; anything else is about a datagram sent earlier
        }
        accept(message, static_cast<size_t>(bytes), batch);
    }
}

void UdpPort::accept(const msghdr &message, size_t bytes, FrameBatch *batch) {
    const auto *from = static_cast<const sockaddr_in *>(message.msg_name);
    size_t segment_bytes = bytes;
    uint8_t tos = 0;
    uint32_t address = bound_.ipv4;
    for (cmsghdr *c = CMSG_FIRSTHDR(&message); c;
         c = CMSG_NXTHDR(const_cast<msghdr *>(&message), c)) {
        if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
            int gro_bytes;
            std::memcpy(&gro_bytes, CMSG_DATA(c), sizeof gro_bytes);
            if (gro_bytes > 0) segment_bytes = static_cast<size_t>(gro_bytes);
        } else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) {
            tos = *CMSG_DATA(c);
        } else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
            in_pktinfo info;
            std::memcpy(&info, CMSG_DATA(c), sizeof info);
            address = ntohl(info.ipi_addr.s_addr);
        }
    }
    if (message.msg_flags & MSG_TRUNC) {
        counters_.malformed_packets.add(1);
        return;
    }
    const Peer source = peer_at(*from);
    const Peer destination{address, frame_udp_port_};
    uint8_t header[kFrameHeaderBytes];
    size_t header_for_bytes = SIZE_MAX;
    size_t offset = 0;
    size_t packets = 0;
    do {  // once for an empty datagram, too
        const size_t payload_bytes = std::min(segment_bytes, bytes - offset);
        const uint8_t *payload = received_.get() + offset;
        offset += payload_bytes;
        ++packets;
        if (loses_arrival()) continue;
        uint8_t *frame = batch->reserve(kFrameHeaderBytes + payload_bytes);
        if (!frame) {  // only if the kernel made more segments than it may
            counters_.malformed_packets.add(1);
            continue;
        }
        if (payload_bytes != header_for_bytes) {
            write_frame_header(header, source, destination, tos, payload_bytes);
            header_for_bytes = payload_bytes;
        }
        std::memcpy(frame, header, kFrameHeaderBytes);
        std::memcpy(frame + kFrameHeaderBytes, payload, payload_bytes);
        batch->commit(kFrameHeaderBytes + payload_bytes, number(), batch->now_ns);
    } while (offset < bytes);
    counters_.rx_packets.add(packets);
    counters_.rx_bytes.add(bytes + packets * kFrameHeaderBytes);
}

void UdpPort::transmit(const std::vector<ina_packet_out> &packets) { sender_->send(packets); }

void UdpPort::extra_stats(std::vector<std::pair<std::string, uint64_t>> *stats) const {
    uint64_t drops = 0;
    for (const int fd : sockets_) {
        uint32_t meminfo[kMeminfoWords] = {};
        socklen_t bytes = sizeof meminfo;
        getsockopt(fd, SOL_SOCKET, SO_MEMINFO, meminfo, &bytes);
        drops += meminfo[kMeminfoDrops];
    }
    stats->emplace_back("kernel_drop_packets", drops);
    stats->emplace_back("receive_buffer_bytes", receive_buffer_bytes_);
    stats->emplace_back("send_buffer_bytes", send_buffer_bytes_);
    stats->emplace_back("gro", gro_);
    stats->emplace_back("gso", sender_->segments());
}

}  // namespace ina::sw
