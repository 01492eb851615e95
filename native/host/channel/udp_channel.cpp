#include "host/channel/udp_channel.hpp"

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
#include <stdexcept>
#include <system_error>
#include <utility>

#include "common/peer_socket.hpp"
#include "host/channel/udp_error_queue.hpp"
#include "host/channel/udp_group.hpp"

namespace ina::host {
namespace {

// From linux/udp.h, which older libc headers do not carry.
constexpr int kUdpSegment = 103;

constexpr std::size_t kMaxSegments = 64;       // the kernel's UDP_MAX_SEGMENTS (128 since 6.9)
constexpr std::size_t kMaxTrainBytes = 65000;  // a UDP datagram's limit less IP and UDP headers
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

// `tos`: whose DSCP its packets carry. They are ECN-capable: switches mark instead of dropping.
void configure(int fd, int buffer_bytes, int tos) {
    set_option(fd, SOL_SOCKET, SO_RCVBUF, buffer_bytes);
    set_option(fd, SOL_SOCKET, SO_SNDBUF, buffer_bytes);
    set_option(fd, IPPROTO_IP, IP_TOS, (tos & ~IPTOS_ECN_MASK) | IPTOS_ECN_ECT0);
    set_option(fd, IPPROTO_IP, IP_RECVTOS, 1);
}

int tos_of(int fd) {
    int tos = 0;
    socklen_t length = sizeof tos;
    (void)::getsockopt(fd, IPPROTO_IP, IP_TOS, &tos, &length);
    return tos;
}

bool is_unreachable(int error) {
    return error == EHOSTUNREACH || error == ENETUNREACH || error == EHOSTDOWN;
}

bool wait_writable(int fd) {
    pollfd entry{fd, POLLOUT, 0};
    return ::poll(&entry, 1, kSendWaitMs) == 1;
}

}  // namespace

UdpChannel::UdpChannel(Descriptor socket) : socket_(std::move(socket)), gso_(false) {}

UdpChannel::UdpChannel(int fd, int receive_buffer_bytes, bool trains, int group_fd)
    : UdpChannel(duplicate(fd)) {
    asked_bytes_ = receive_buffer_bytes;
    gso_ = trains;
    configure(socket_.get(), asked_bytes_, tos_of(fd));
    socklen_t length = sizeof receive_buffer_bytes_;
    (void)::getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes_, &length);
    gro_ = trains && UdpReceiver::ask_for_trains(fd);
    if (group_fd < 0) return;
    configure_like_this(group_fd);
    listen(duplicate(group_fd));
}

UdpChannel::~UdpChannel() = default;

void UdpChannel::configure_like_this(int fd) const {
    configure(fd, asked_bytes_, tos_of(socket_.get()));
    if (gro_) UdpReceiver::ask_for_trains(fd);
}

void UdpChannel::listen(Descriptor group) {
    both_ = watch_both(socket_.get(), group.get());
    group_ = std::move(group);
}

std::unique_ptr<UdpChannel> UdpChannel::another(Descriptor socket, Descriptor group) const {
    std::unique_ptr<UdpChannel> channel(new UdpChannel(std::move(socket)));
    channel->peers_ = peers_;
    channel->is_dealt_ = is_dealt_;
    channel->receive_buffer_bytes_ = receive_buffer_bytes_;
    channel->gso_ = gso_;
    channel->gro_ = gro_;
    channel->one_queue_why_ = one_queue_why_;
    if (group.get() >= 0) channel->listen(std::move(group));
    return channel;
}

std::vector<std::unique_ptr<Channel>> UdpChannel::divide(const LaneParts &parts,
                                                         const std::vector<Way> &ways) {
    std::vector<Descriptor> sockets;
    std::vector<Descriptor> groups;
    const auto configure_fresh = [this](int fd) { configure_like_this(fd); };
    const bool has_group = group_.get() >= 0;
    try {
        if (has_group) groups = divide_group(group_.get(), parts, configure_fresh);
        LaneSockets lanes = open_lane_sockets(socket_.get(), parts, ways, configure_fresh);
        sockets = std::move(lanes.sockets);
        peers_ = std::move(lanes.peers);
        socket_ = std::move(sockets[0]);
    } catch (const std::system_error &error) {
        if (ways.size() > 1) throw;
        one_queue_why_ = error.what();
        groups.clear();
        if (has_group) take_all_lanes(group_.get());
    }
    const bool divided = one_queue_why_.empty();
    is_dealt_ = divided && parts.threads > 1;
    if (divided && has_group) listen(std::move(group_));  // and to the new socket
    std::vector<std::unique_ptr<Channel>> others;
    for (std::uint32_t i = 1; i < parts.threads; ++i) {
        Descriptor group;
        if (has_group) group = divided ? std::move(groups[i - 1]) : duplicate(group_.get());
        others.push_back(
            another(divided ? std::move(sockets[i]) : duplicate(socket_.get()), std::move(group)));
    }
    return others;
}

void UdpChannel::redirect(const LaneParts &parts, std::size_t thread,
                          const std::vector<Way> &ways) {
    if (!peers_.empty()) {
        peers_ = admit_ways(socket_.get(), peers_, ways, parts);
    } else if (ways.size() > 1) {
        if (!one_queue_why_.empty()) {
            throw std::runtime_error("one socket for all threads leads to one switch, not to " +
                                     std::to_string(ways.size()));
        }
        LaneSockets fresh = open_lane_sockets(socket_.get(), {parts.lanes, 1, parts.prefix_bytes},
                                              ways, [this](int fd) { configure_like_this(fd); });
        peers_ = std::move(fresh.peers);
        socket_ = std::move(fresh.sockets[0]);
        if (group_.get() >= 0) listen(std::move(group_));
    }
    if (!is_dealt_) return;
    // Where the kernel refuses that, threads pass on what is others'.
    try {
        if (thread == 0) deal_lanes(socket_.get(), parts);
        if (group_.get() >= 0) {
            take_lanes(group_.get(), parts, static_cast<std::uint32_t>(thread));
        }
    } catch (const std::system_error &) {
        return;
    }
}

void UdpChannel::take_own_results() {
    if (group_.get() >= 0) take_nothing(group_.get());
}

void UdpChannel::close() {
    both_.close();
    group_.close();
    socket_.close();
}

void UdpChannel::to_node(msghdr *message, std::size_t way) {
    if (peers_.empty()) return;
    to_ = socket_address(peers_[way]);
    message->msg_name = &to_;
    message->msg_namelen = sizeof to_;
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

void UdpChannel::send(const PacketView *packets, std::size_t count, std::size_t longest_train,
                      std::size_t way) {
    packets = by_size(packets, count);
    std::size_t done = 0;
    while (done < count) {
        const std::size_t bytes = packets[done].bytes;
        const std::size_t limit =
            std::min({kMaxSegments, longest_train, std::max<std::size_t>(kMaxTrainBytes / bytes, 1),
                      count - done});
        std::size_t run = 1;
        while (run < limit && packets[done + run].bytes == bytes) ++run;
        const bool train = gso_ && run > 1;
        done += train ? send_train(packets + done, run, way) : send_each(packets + done, run, way);
    }
}

// Headers alone behind packets with values, where there are both: those of a train are of one size.
const PacketView *UdpChannel::by_size(const PacketView *packets, std::size_t count) {
    const auto is_like_first = [&](const PacketView &one) { return one.bytes == packets[0].bytes; };
    if (!gso_ || std::all_of(packets, packets + count, is_like_first)) return packets;
    sorted_.assign(packets, packets + count);
    std::stable_sort(sorted_.begin(), sorted_.end(),
                     [](const PacketView &a, const PacketView &b) { return a.bytes > b.bytes; });
    return sorted_.data();
}

// Returns the packets dealt with; 0 after a switch to single packets.
std::size_t UdpChannel::send_train(const PacketView *packets, std::size_t count, std::size_t way) {
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
    to_node(&message, way);
    cmsghdr *const entry = CMSG_FIRSTHDR(&message);
    entry->cmsg_level = IPPROTO_UDP;
    entry->cmsg_type = kUdpSegment;
    entry->cmsg_len = CMSG_LEN(sizeof(std::uint16_t));
    const auto segment_bytes = static_cast<std::uint16_t>(packets[0].bytes);
    std::memcpy(CMSG_DATA(entry), &segment_bytes, sizeof segment_bytes);
    for (int attempt = 0; attempt < 3; ++attempt) {
        ++counters_.send_calls;
        if (::sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return count;
        const int error = errno;
        if (error == EINVAL || error == EIO || error == EOPNOTSUPP || error == EMSGSIZE) {
            gso_ = false;  // no checksum offload, or packets beyond the link's MTU
            return 0;
        }
        if (error == EAGAIN && wait_writable(socket_.get())) continue;
        if (!count_error(error)) break;
    }
    counters_.send_drops += count;
    return count;
}

std::size_t UdpChannel::send_each(const PacketView *packets, std::size_t count, std::size_t way) {
    std::array<iovec, kMaxSegments> vectors;
    std::array<mmsghdr, kMaxSegments> messages{};
    for (std::size_t i = 0; i < count; ++i) {
        vectors[i] = {const_cast<std::uint8_t *>(packets[i].data), packets[i].bytes};
        messages[i].msg_hdr.msg_iov = &vectors[i];
        messages[i].msg_hdr.msg_iovlen = 1;
        to_node(&messages[i].msg_hdr, way);
    }
    std::size_t done = 0;
    int failures = 0;
    while (done < count && failures < 3) {
        ++counters_.send_calls;
        const int sent =
            ::sendmmsg(socket_.get(), messages.data() + done, static_cast<unsigned>(count - done),
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
        if (error == EAGAIN && wait_writable(socket_.get())) continue;
        if (!count_error(error)) break;
    }
    counters_.send_drops += count - done;
    return count;
}

void UdpChannel::read(int fd, std::vector<Arrival> *arrivals) {
    for (int attempt = 0; attempt < 3; ++attempt) {
        ++counters_.receive_calls;
        if (receiver_.read(fd, arrivals)) return;
        if (!count_error(errno)) break;
    }
    if (!peers_.empty() &&
        fd == socket_.get()) {  // a thread that sleeps next is woken by the error queue
        const UdpErrors errors = take_udp_errors(fd);
        if (!std::exchange(has_told_, false)) {
            counters_.refused += errors.refused;
            counters_.unreachable += errors.unreachable;
        }
    }
}

void UdpChannel::read_group(std::vector<Arrival> *arrivals) {
    const std::size_t before = arrivals->size();
    read(group_.get(), arrivals);
    counters_.shared_packets += arrivals->size() - before;
}

bool UdpChannel::receive(std::vector<Arrival> *arrivals) {
    arrivals->clear();
    receiver_.clear();
    // The group's packets are most; so that they keep no answer waiting for ever, in turns.
    const bool own_first = std::exchange(own_waits_, false) || group_.get() < 0;
    if (own_first) read(socket_.get(), arrivals);
    if (group_.get() >= 0 && !receiver_.is_full()) read_group(arrivals);
    if (!own_first) {
        own_waits_ = receiver_.is_full();
        if (!own_waits_) read(socket_.get(), arrivals);
    }
    return receiver_.is_full();
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
