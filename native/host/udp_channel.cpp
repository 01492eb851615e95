#include "host/udp_channel.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "host/udp_error_queue.hpp"

namespace ina::host {
namespace {

// From linux/udp.h, which older libc headers do not carry.
constexpr int kUdpSegment = 103;
constexpr int kUdpGro = 104;

constexpr std::size_t kMaxSegments = 64;       // the kernel's UDP_MAX_SEGMENTS (128 since 6.9)
constexpr std::size_t kMaxTrainBytes = 65000;  // a UDP datagram's limit less IP and UDP headers
constexpr std::size_t kReceiveTrains = 8;
constexpr std::size_t kReceiveBytes = 65536;
constexpr int kSendWaitMs = 5;  // for room in the send buffer, before packets count as lost

void set_option(int fd, int level, int name, int value) {
    // Best effort: all options set here have a fallback.
    (void)::setsockopt(fd, level, name, &value, sizeof value);
}

Descriptor duplicate(int fd) {
    Descriptor copy(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (copy.get() < 0) {
        throw std::system_error(errno, std::generic_category(), "dup of the UDP socket");
    }
    return copy;
}

void configure(int fd, int buffer_bytes) {
    set_option(fd, SOL_SOCKET, SO_RCVBUF, buffer_bytes);
    set_option(fd, SOL_SOCKET, SO_SNDBUF, buffer_bytes);
    set_option(fd, IPPROTO_IP, IP_TOS, IPTOS_ECN_ECT0);  // switches mark instead of dropping
    set_option(fd, IPPROTO_IP, IP_RECVTOS, 1);
}

bool is_unreachable(int error) {
    return error == EHOSTUNREACH || error == ENETUNREACH || error == EHOSTDOWN;
}

bool wait_writable(int fd) {
    pollfd entry{fd, POLLOUT, 0};
    return ::poll(&entry, 1, kSendWaitMs) == 1;
}

}  // namespace

struct UdpChannel::ReceiveArea {
    std::array<std::array<std::uint8_t, kReceiveBytes>, kReceiveTrains> buffers;
    std::array<std::array<std::uint8_t, 64>, kReceiveTrains> controls;
    std::array<iovec, kReceiveTrains> vectors;
    std::array<mmsghdr, kReceiveTrains> messages;
};

UdpChannel::UdpChannel(Descriptor socket)
    : socket_(std::move(socket)), gso_(false), area_(std::make_unique<ReceiveArea>()) {}

UdpChannel::UdpChannel(int fd, int receive_buffer_bytes, bool trains) : UdpChannel(duplicate(fd)) {
    asked_bytes_ = receive_buffer_bytes;
    gso_ = trains;
    configure(UdpChannel::fd(), asked_bytes_);
    socklen_t length = sizeof receive_buffer_bytes_;
    (void)::getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes_, &length);
    const int on = 1;
    gro_ = trains && ::setsockopt(fd, IPPROTO_UDP, kUdpGro, &on, sizeof on) == 0;
}

UdpChannel::~UdpChannel() = default;

std::unique_ptr<UdpChannel> UdpChannel::another(Descriptor socket) const {
    std::unique_ptr<UdpChannel> channel(new UdpChannel(std::move(socket)));
    channel->peer_ = peer_;
    channel->receive_buffer_bytes_ = receive_buffer_bytes_;
    channel->gso_ = gso_;
    channel->gro_ = gro_;
    channel->one_queue_why_ = one_queue_why_;
    return channel;
}

std::vector<std::unique_ptr<Channel>> UdpChannel::divide(const LaneParts &parts) {
    std::vector<Descriptor> sockets;
    try {
        LaneSockets group = open_lane_sockets(fd(), parts, [this](int fd) {
            configure(fd, asked_bytes_);
            if (gro_) set_option(fd, IPPROTO_UDP, kUdpGro, 1);
        });
        sockets = std::move(group.sockets);
        peer_ = group.peer;
        socket_ = std::move(sockets[0]);
    } catch (const std::system_error &error) {
        one_queue_why_ = error.what();
    }
    std::vector<std::unique_ptr<Channel>> others;
    for (std::uint32_t i = 1; i < parts.threads; ++i) {
        others.push_back(another(sockets.empty() ? duplicate(fd()) : std::move(sockets[i])));
    }
    return others;
}

void UdpChannel::close() { socket_.close(); }

void UdpChannel::to_switch(msghdr *message) {
    if (!peer_) return;
    message->msg_name = &*peer_;
    message->msg_namelen = sizeof *peer_;
}

// True when the call is worth repeating: the error was an ICMP message about an earlier packet.
bool UdpChannel::count_error(int error) {
    if (error == ECONNREFUSED) {
        ++counters_.refused;
    } else if (is_unreachable(error)) {
        ++counters_.unreachable;
    } else {
        return error == EINTR;
    }
    has_told_ = true;
    return true;
}

void UdpChannel::send(const PacketView *packets, std::size_t count) {
    std::size_t done = 0;
    while (done < count) {
        const std::size_t bytes = packets[done].bytes;
        const std::size_t limit = std::min(
            {kMaxSegments, std::max<std::size_t>(kMaxTrainBytes / bytes, 1), count - done});
        std::size_t run = 1;
        while (run < limit && packets[done + run].bytes == bytes) ++run;
        const bool train = gso_ && run > 1;
        done += train ? send_train(packets + done, run) : send_each(packets + done, run);
    }
}

// Returns the packets dealt with; 0 after a switch to single packets.
std::size_t UdpChannel::send_train(const PacketView *packets, std::size_t count) {
    std::array<iovec, kMaxSegments> vectors;
    // Packets that lie one behind the other make one piece: the kernel takes its time for each.
    std::size_t pieces = 0;
    const std::uint8_t *end = nullptr;
    for (std::size_t i = 0; i < count; ++i) {
        if (packets[i].data == end) {
            vectors[pieces - 1].iov_len += packets[i].bytes;
        } else {
            vectors[pieces++] = {const_cast<std::uint8_t *>(packets[i].data), packets[i].bytes};
        }
        end = packets[i].data + packets[i].bytes;
    }
    alignas(cmsghdr) std::array<std::uint8_t, CMSG_SPACE(sizeof(std::uint16_t))> control{};
    msghdr message{};
    message.msg_iov = vectors.data();
    message.msg_iovlen = pieces;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    to_switch(&message);
    cmsghdr *const entry = CMSG_FIRSTHDR(&message);
    entry->cmsg_level = IPPROTO_UDP;
    entry->cmsg_type = kUdpSegment;
    entry->cmsg_len = CMSG_LEN(sizeof(std::uint16_t));
    const auto segment_bytes = static_cast<std::uint16_t>(packets[0].bytes);
    std::memcpy(CMSG_DATA(entry), &segment_bytes, sizeof segment_bytes);
    for (int attempt = 0; attempt < 3; ++attempt) {
        ++counters_.send_calls;
        if (::sendmsg(fd(), &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return count;
        const int error = errno;
        if (error == EINVAL || error == EIO || error == EOPNOTSUPP || error == EMSGSIZE) {
            gso_ = false;  // no checksum offload, or packets beyond the link's MTU
            return 0;
        }
        if (error == EAGAIN && wait_writable(fd())) continue;
        if (!count_error(error)) break;
    }
    counters_.send_drops += count;
    return count;
}

std::size_t UdpChannel::send_each(const PacketView *packets, std::size_t count) {
    std::array<iovec, kMaxSegments> vectors;
    std::array<mmsghdr, kMaxSegments> messages{};
    for (std::size_t i = 0; i < count; ++i) {
        vectors[i] = {const_cast<std::uint8_t *>(packets[i].data), packets[i].bytes};
        messages[i].msg_hdr.msg_iov = &vectors[i];
        messages[i].msg_hdr.msg_iovlen = 1;
        to_switch(&messages[i].msg_hdr);
    }
    std::size_t done = 0;
    int failures = 0;
    while (done < count && failures < 3) {
        ++counters_.send_calls;
        const int sent =
            ::sendmmsg(fd(), messages.data() + done, static_cast<unsigned>(count - done),
                       MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent > 0) {
            done += static_cast<std::size_t>(sent);
            continue;
        }
        const int error = errno;
        if (error == ENOBUFS) {  // a queue of this host is full; IP_RECVERR has send() tell
            ++done;
            ++counters_.send_drops;
            continue;
        }
        ++failures;
        if (error == EAGAIN && wait_writable(fd())) continue;
        if (!count_error(error)) break;
    }
    counters_.send_drops += count - done;
    return count;
}

bool UdpChannel::receive(std::vector<Arrival> *arrivals) {
    arrivals->clear();
    ReceiveArea &area = *area_;
    for (std::size_t i = 0; i < kReceiveTrains; ++i) {
        area.vectors[i] = {area.buffers[i].data(), kReceiveBytes};
        msghdr &header = area.messages[i].msg_hdr;
        header = {};
        header.msg_iov = &area.vectors[i];
        header.msg_iovlen = 1;
        header.msg_control = area.controls[i].data();
        header.msg_controllen = area.controls[i].size();
    }
    int count = 0;
    for (int attempt = 0; attempt < 3; ++attempt) {
        ++counters_.receive_calls;
        count = ::recvmmsg(fd(), area.messages.data(), kReceiveTrains, MSG_DONTWAIT, nullptr);
        if (count >= 0 || !count_error(errno)) break;
    }
    if (peer_ && count < 0) {  // a thread that sleeps next is woken by what is in the error queue
        const UdpErrors errors = take_udp_errors(fd());
        if (!std::exchange(has_told_, false)) {
            counters_.refused += errors.refused;
            counters_.unreachable += errors.unreachable;
        }
    }
    for (int i = 0; i < count; ++i) {
        const auto index = static_cast<std::size_t>(i);
        const std::size_t bytes = area.messages[index].msg_len;
        std::size_t packet_bytes = kReceiveBytes;  // of all but the last, which may be shorter
        bool ip_marked = false;
        msghdr &header = area.messages[index].msg_hdr;
        for (cmsghdr *entry = CMSG_FIRSTHDR(&header); entry != nullptr;
             entry = CMSG_NXTHDR(&header, entry)) {
            if (entry->cmsg_level == IPPROTO_UDP && entry->cmsg_type == kUdpGro) {
                int segment_bytes = 0;  // the kernel passes an int
                std::memcpy(&segment_bytes, CMSG_DATA(entry), sizeof segment_bytes);
                if (segment_bytes > 0) packet_bytes = static_cast<std::size_t>(segment_bytes);
            } else if (entry->cmsg_level == IPPROTO_IP && entry->cmsg_type == IP_TOS) {
                ip_marked = (*CMSG_DATA(entry) & IPTOS_ECN_MASK) == IPTOS_ECN_CE;
            }
        }
        std::size_t offset = 0;
        do {  // an empty datagram is one packet, too
            const std::size_t here = std::min(bytes - offset, packet_bytes);
            arrivals->push_back({area.buffers[index].data() + offset, here, ip_marked});
            offset += here;
        } while (offset < bytes);
    }
    return count == static_cast<int>(kReceiveTrains);
}

// The kernel charges a datagram of b bytes up to 2 b for the memory that holds it, and some 512
// bytes for bookkeeping. Each packet in flight brings at most one result, but for duplicates;
// without this bound results are lost in bursts.
std::uint32_t UdpChannel::room_packets(std::uint32_t values_per_packet) const {
    const std::size_t charged = 2 * wire::packet_bytes(values_per_packet) + 512;
    return static_cast<std::uint32_t>(
        std::max<std::size_t>(static_cast<std::size_t>(receive_buffer_bytes_) / charged, 4));
}

}  // namespace ina::host
