#include "switch/udp_sender.hpp"

#include <errno.h>
#include <netinet/udp.h>

#include <algorithm>
#include <cstring>

#include "common/peer_socket.hpp"
#include "common/roce.hpp"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

namespace ina::sw {

namespace {
constexpr size_t kMaxSegments = 64;  // UDP_MAX_SEGMENTS of kernels before 6.9
constexpr size_t kMaxMessages = 64;  // a sendmmsg
// Room for the runs of one sendmmsg, in one piece each: what is copied there is still in a core's
// cache when the kernel copies it once more.
constexpr size_t kStageBytes = 4 * 65536;
constexpr size_t kControlBytes =
    CMSG_SPACE(sizeof(uint16_t)) + CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(in_pktinfo));

template <typename T>
uint8_t *put_control(uint8_t *at, int level, int type, const T &value) {
    auto *header = reinterpret_cast<cmsghdr *>(at);
    header->cmsg_level = level;
    header->cmsg_type = type;
    header->cmsg_len = CMSG_LEN(sizeof value);
    std::memcpy(CMSG_DATA(header), &value, sizeof value);
    return at + CMSG_SPACE(sizeof value);
}

// parse_udp_frame() of a frame in up to three parts.
bool parse_parts(const ina_packet_out &packet, Datagram *datagram) {
    const size_t head_bytes = packet.length - packet.trailer_length;
    if (!parse_udp_frame(packet.data, head_bytes, datagram, packet.tail,
                         size_t{packet.tail_length} + packet.trailer_length))
        return false;
    const size_t rest_bytes = datagram->tail_bytes;
    datagram->tail_bytes = std::min<size_t>(rest_bytes, packet.tail_length);
    datagram->trailer = packet.data + head_bytes;
    datagram->trailer_bytes = rest_bytes - datagram->tail_bytes;
    return true;
}

void add_parts(const Datagram &datagram, std::vector<iovec> *parts) {
    const auto add = [parts](const uint8_t *data, size_t bytes) {
        parts->push_back({const_cast<uint8_t *>(data), bytes});
    };
    add(datagram.payload, datagram.payload_bytes);
    if (datagram.tail_bytes) add(datagram.tail, datagram.tail_bytes);
    if (datagram.trailer_bytes) add(datagram.trailer, datagram.trailer_bytes);
}
}  // namespace

UdpSender::UdpSender(int fd, Peer bound, bool is_tunnel, PortCounters *counters)
    : fd_(fd), bound_(bound), is_tunnel_(is_tunnel), counters_(counters),
      stage_(new uint8_t[kStageBytes]) {
    int segment_bytes = 0;
    socklen_t bytes = sizeof segment_bytes;
    gso_ = getsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &segment_bytes, &bytes) == 0;
}

void UdpSender::send(const std::vector<ina_packet_out> &packets) {
    for (const ina_packet_out &packet : packets) {
        Datagram datagram;
        const bool is_whole = parse_parts(packet, &datagram);
        if (is_whole && is_tunnel_ && datagram.destination.udp_port == roce::kUdpPort)
            datagram.destination.udp_port = datagram.source.udp_port;
        if (!is_whole || datagram.destination.udp_port == 0 || is_own(datagram)) {
            counters_->undeliverable_packets.add(1);
            continue;
        }
        add(datagram);
    }
    flush();
}

bool UdpSender::is_own(const Datagram &datagram) const {
    const uint32_t own = bound_.ipv4 == INADDR_ANY ? datagram.source.ipv4 : bound_.ipv4;
    return datagram.destination == Peer{own, bound_.udp_port};
}

UdpSender::Run *UdpSender::open_run(const Datagram &datagram) {
    // A multicast visits its members in turn: the next flow is most often the one after the last.
    for (size_t tried = 0; tried < open_.size(); ++tried) {
        if (++last_flow_ >= open_.size()) last_flow_ = 0;
        Run &run = runs_[open_[last_flow_]];
        if (run.destination == datagram.destination && run.tos == datagram.tos &&
            run.source.ipv4 == datagram.source.ipv4)
            return &run;
    }
    return nullptr;
}

void UdpSender::add(const Datagram &datagram) {
    const size_t bytes = datagram.payload_bytes + datagram.tail_bytes + datagram.trailer_bytes;
    Run *run = open_run(datagram);
    if (run && gso_ && run->segments < kMaxSegments &&
        run->bytes == run->segment_bytes * run->segments &&  // no short one so far
        bytes > 0 && bytes <= run->segment_bytes && run->bytes + bytes <= kMaxPayloadBytes) {
        add_parts(datagram, &run->parts);
        run->bytes += bytes;
        ++run->segments;
        return;
    }
    if (run_count_ == runs_.size()) {
        runs_.emplace_back();  // moves them: run is only a flag from here on
    }
    const size_t index = run_count_++;
    Run &fresh = runs_[index];
    fresh.source = datagram.source;
    fresh.destination = datagram.destination;
    fresh.tos = datagram.tos;
    fresh.segment_bytes = fresh.bytes = bytes;
    fresh.segments = 1;
    fresh.parts.clear();
    add_parts(datagram, &fresh.parts);
    if (!run) {
        open_.push_back(index);
        return;
    }
    open_[last_flow_] = index;
}

size_t UdpSender::fill_control(const Run &run, bool segment, uint8_t *control) const {
    uint8_t *end = control;
    if (segment)
        end = put_control(end, IPPROTO_UDP, UDP_SEGMENT, static_cast<uint16_t>(run.segment_bytes));
    if (run.tos) end = put_control(end, IPPROTO_IP, IP_TOS, static_cast<int>(run.tos));
    if (bound_.ipv4 == INADDR_ANY && run.source.ipv4 != INADDR_ANY) {
        in_pktinfo info{};
        info.ipi_spec_dst.s_addr = htonl(run.source.ipv4);
        end = put_control(end, IPPROTO_IP, IP_PKTINFO, info);
    }
    return static_cast<size_t>(end - control);
}

// Puts runs from `first` on into one piece each, for the kernel takes longer to collect two pieces
// a segment than the copy takes. Returns for how many runs there was room, at least 1.
size_t UdpSender::stage(size_t first) {
    size_t used = 0, index = first;
    for (; index < run_count_ && index - first < kMaxMessages; ++index) {
        Run &run = runs_[index];
        run.whole = run.parts.front();
        if (run.parts.size() == 1) continue;
        if (used + run.bytes > kStageBytes) break;
        uint8_t *at = stage_.get() + used;
        run.whole = {at, run.bytes};
        for (const iovec &part : run.parts) {
            std::memcpy(at, part.iov_base, part.iov_len);
            at += part.iov_len;
        }
        used += run.bytes;
    }
    return index - first;
}

void UdpSender::flush() {
    const uint64_t deadline_ns = monotonic_ns() + kSendPatienceNs;
    bool blocked = false;
    size_t sent = 0;
    while (sent < run_count_) {
        mmsghdr messages[kMaxMessages] = {};
        sockaddr_in addresses[kMaxMessages];
        alignas(cmsghdr) uint8_t controls[kMaxMessages][kControlBytes];
        const size_t count = stage(sent);
        for (size_t i = 0; i < count; ++i) {
            Run &run = runs_[sent + i];
            addresses[i] = socket_address(run.destination);
            msghdr &message = messages[i].msg_hdr;
            message.msg_name = &addresses[i];
            message.msg_namelen = sizeof addresses[i];
            message.msg_iov = &run.whole;
            message.msg_iovlen = 1;
            message.msg_control = controls[i];
            message.msg_controllen = fill_control(run, run.segments > 1, controls[i]);
        }
        const int done = sendmmsg(fd_, messages, static_cast<unsigned>(count), MSG_DONTWAIT);
        for (int i = 0; i < done; ++i) {
            const Run &run = runs_[sent + static_cast<size_t>(i)];
            counters_->tx_packets.add(run.segments);
            counters_->tx_bytes.add(run.bytes + run.segments * kFrameHeaderBytes);
        }
        if (done > 0) {
            sent += static_cast<size_t>(done);
            continue;
        }
        const Run &first = runs_[sent];
        if (errno == EINTR) continue;
        if (errno == EAGAIN || errno == ENOBUFS) {
            blocked = blocked || !wait_writable(fd_, deadline_ns);
            if (!blocked) continue;
            counters_->blocked_packets.add(first.segments);
        } else if (first.segments > 1) {
            // The route cannot segment (EIO: no checksum offload; EINVAL, EMSGSIZE: over the MTU).
            if (errno == EIO) gso_ = false;
            send_singly(first, deadline_ns);
        } else {
            counters_->failed_packets.add(1);
        }
        ++sent;
    }
    run_count_ = 0;
    open_.clear();
}

void UdpSender::send_singly(const Run &run, uint64_t deadline_ns) {
    sockaddr_in address = socket_address(run.destination);
    alignas(cmsghdr) uint8_t control[kControlBytes];
    auto *const begin = static_cast<uint8_t *>(run.whole.iov_base);
    for (size_t offset = 0; offset < run.bytes; offset += run.segment_bytes) {
        const size_t bytes = std::min(run.segment_bytes, run.bytes - offset);
        iovec segment{begin + offset, bytes};
        msghdr message{};
        message.msg_name = &address;
        message.msg_namelen = sizeof address;
        message.msg_iov = &segment;
        message.msg_iovlen = 1;
        message.msg_control = control;
        message.msg_controllen = fill_control(run, false, control);
        ssize_t done;
        do {
            done = sendmsg(fd_, &message, MSG_DONTWAIT);
        } while (done < 0 && (errno == EINTR || ((errno == EAGAIN || errno == ENOBUFS) &&
                                                 wait_writable(fd_, deadline_ns))));
        if (done >= 0) {
            counters_->tx_packets.add(1);
            counters_->tx_bytes.add(bytes + kFrameHeaderBytes);
        } else {
            const bool full = errno == EAGAIN || errno == ENOBUFS;
            (full ? counters_->blocked_packets : counters_->failed_packets).add(1);
        }
    }
}

}  // namespace ina::sw
