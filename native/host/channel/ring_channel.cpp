#include "host/channel/ring_channel.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>

#include "common/clock.hpp"
#include "common/ina_wire.hpp"
#include "common/roce.hpp"
#include "host/channel/udp_group.hpp"
#include "switch/frame.hpp"

namespace ina::host {
namespace {

constexpr std::size_t kFrameBytes = 9216;
constexpr std::size_t kBatch = 64;
constexpr std::size_t kPacketOffset = sw::kEthernetBytes;
constexpr std::size_t kBthOffset = roce::kIpv4Bytes + roce::kUdpBytes;  // in the IPv4 packet
constexpr std::size_t kInsideOffset = kBthOffset + roce::kBthBytes;
constexpr std::uint8_t kAsks = 0x80;  // BTH's ninth byte: for an acknowledgement
constexpr std::uint32_t kNoLane = UINT32_MAX;
constexpr std::int64_t kSecond = 1'000'000'000;

[[noreturn]] void fail(const char *what) {
    throw std::system_error(errno, std::generic_category(), what);
}

// IPv4 without options, whole, UDP to RoCEv2's port, BTH, an ICRC that is right.
bool is_whole(const std::uint8_t *frame, std::size_t bytes) {
    if (bytes < kPacketOffset + kInsideOffset + roce::kIcrcBytes) return false;
    sw::Datagram datagram;
    if (!sw::parse_udp_frame(frame, bytes, &datagram)) return false;
    const std::size_t packet_bytes = bytes - kPacketOffset;
    const std::uint8_t *const packet = frame + kPacketOffset;
    if (datagram.destination.udp_port != roce::kUdpPort || packet[0] != 0x45 ||
        datagram.payload_bytes + kBthOffset != packet_bytes) {
        return false;
    }
    std::uint32_t said = 0;
    std::memcpy(&said, packet + packet_bytes - roce::kIcrcBytes, sizeof said);
    return said == roce::icrc_of_packet(packet, packet_bytes - roce::kIcrcBytes);
}

}  // namespace

struct RingChannel::Received {
    std::array<std::array<std::uint8_t, kFrameBytes>, kBatch> frames;
    std::array<iovec, kBatch> vectors;
    std::array<mmsghdr, kBatch> messages;
};

RingChannel::RingChannel(int fd, const RingEnds &ends, std::uint32_t lanes,
                         int receive_buffer_bytes)
    : socket_(::fcntl(fd, F_DUPFD_CLOEXEC, 0)),
      timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)), ends_(ends),
      received_(std::make_unique<Received>()), out_(4 * kBatch) {
    for (const auto *pairs : {&ends.own_out, &ends.own_in, &ends.next_in, &ends.previous_out}) {
        if (pairs->size() != lanes) {
            throw std::invalid_argument("a ring needs a queue pair of each kind for each lane");
        }
    }
    if (socket_.get() < 0) fail("dup of the UDP socket");
    if (timer_.get() < 0) fail("timerfd_create");
    both_ = watch_both(socket_.get(), timer_.get());
    int tos = 0;
    socklen_t length = sizeof tos;
    (void)::getsockopt(fd, IPPROTO_IP, IP_TOS, &tos, &length);
    tos_ = static_cast<std::uint8_t>((tos & ~IPTOS_ECN_MASK) | IPTOS_ECN_ECT0);
    for (const int name : {SO_RCVBUF, SO_SNDBUF}) {
        (void)::setsockopt(fd, SOL_SOCKET, name, &receive_buffer_bytes,
                           sizeof receive_buffer_bytes);
    }
    length = sizeof receive_buffer_bytes_;
    (void)::getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes_, &length);
    lanes_.assign(lanes, Lane(ends.first_psn, ends.limits));
    now_ns_ = now_ns();
}

RingChannel::~RingChannel() = default;

void RingChannel::close() {
    both_.close();
    timer_.close();
    socket_.close();
}

std::uint32_t RingChannel::room_packets(std::uint32_t values_per_packet) const {
    // Of each packet a sum and an acknowledgement come.
    const std::size_t charged = 2 * wire::packet_bytes(values_per_packet) + 2048;
    return static_cast<std::uint32_t>(
        std::max<std::size_t>(static_cast<std::size_t>(receive_buffer_bytes_) / charged, 4));
}

std::uint32_t RingChannel::lane_of(const std::vector<std::uint32_t> &pairs,
                                   std::uint32_t qp) const {
    const auto found = std::find(pairs.begin(), pairs.end(), qp);
    return found == pairs.end() ? kNoLane : static_cast<std::uint32_t>(found - pairs.begin());
}

void RingChannel::send(const PacketView *packets, std::size_t count, std::size_t /*longest_train*/,
                       std::size_t /*way*/) {
    now_ns_ = now_ns();
    for (std::size_t i = 0; i < count && !has_failed_; ++i) {
        const PacketView &packet = packets[i];
        if (packet.bytes < wire::kHeaderBytes) continue;
        const std::uint32_t seq = wire::load_be32(packet.data + wire::kSeqOffset);
        const auto number = seq & (static_cast<std::uint32_t>(lanes_.size()) - 1);
        Lane &lane = lanes_[number];
        if (lane.has_sent && lane.last_seq == seq) continue;  // the connection sees to that
        const Requester::Message *const message =
            lane.requester.post(packet.data, packet.bytes, now_ns_);
        if (message == nullptr) {  // the core asks again
            ++counters_.send_drops;
            continue;
        }
        lane.has_sent = true;
        lane.last_seq = seq;
        put_message(number, *message);
    }
    flush();
}

bool RingChannel::receive(std::vector<Arrival> *arrivals) {
    arrivals->clear();
    now_ns_ = now_ns();
    Received &area = *received_;
    for (std::size_t i = 0; i < kBatch; ++i) {
        area.vectors[i] = {area.frames[i].data(), kFrameBytes};
        area.messages[i] = {};
        area.messages[i].msg_hdr.msg_iov = &area.vectors[i];
        area.messages[i].msg_hdr.msg_iovlen = 1;
    }
    ++counters_.receive_calls;
    const int count =
        ::recvmmsg(socket_.get(), area.messages.data(), kBatch, MSG_DONTWAIT, nullptr);
    if (count < 0 && errno == ECONNREFUSED) ++counters_.refused;
    for (int i = 0; i < count; ++i) {
        take(area.frames[static_cast<std::size_t>(i)].data(),
             area.messages[static_cast<std::size_t>(i)].msg_len, arrivals);
    }
    look_at_timers();
    flush();
    return count == static_cast<int>(kBatch);
}

void RingChannel::take(const std::uint8_t *frame, std::size_t bytes,
                       std::vector<Arrival> *arrivals) {
    const std::uint8_t *const packet = frame + kPacketOffset;
    if (is_whole(frame, bytes) && roce::big_endian(packet + 16, 4) == ends_.own.ipv4 &&
        (take_send(packet, bytes - kPacketOffset, arrivals) ||
         take_reply(packet, bytes - kPacketOffset))) {
        return;
    }
    ++counters_.damaged;
}

// A message from the worker before, as it seems.
bool RingChannel::take_send(const std::uint8_t *packet, std::size_t bytes,
                            std::vector<Arrival> *arrivals) {
    const roce::Bth bth = roce::bth_at(packet + kBthOffset);
    const std::uint32_t number = lane_of(ends_.own_in, bth.dest_qp);
    if (bth.opcode != roce::kRcSendOnly || bth.pkey != roce::kPkey || number == kNoLane ||
        (bth.flags & roce::kPadAndVersion) != 0 ||
        roce::big_endian(packet + 12, 4) != ends_.previous.ipv4) {
        return false;
    }
    Responder &responder = lanes_[number].responder;
    switch (responder.came(bth.psn)) {
        case Reply::kTake:
            arrivals->push_back({packet + kInsideOffset, bytes - kInsideOffset - roce::kIcrcBytes,
                                 (packet[1] & IPTOS_ECN_MASK) == IPTOS_ECN_CE});
            put_reply(number, roce::kAckSyndrome, responder.last());
            break;
        case Reply::kAgain: put_reply(number, roce::kAckSyndrome, responder.last()); break;
        case Reply::kMissing:
            put_reply(number, roce::kSequenceSyndrome, responder.expected());
            break;
        case Reply::kNothing: break;
    }
    return true;
}

bool RingChannel::take_reply(const std::uint8_t *packet, std::size_t bytes) {
    const roce::Bth bth = roce::bth_at(packet + kBthOffset);
    const std::uint32_t number = lane_of(ends_.own_out, bth.dest_qp);
    if (bth.opcode != roce::kAcknowledge || number == kNoLane ||
        roce::big_endian(packet + 12, 4) != ends_.next.ipv4 ||
        bytes != kInsideOffset + roce::kAethBytes + roce::kIcrcBytes) {
        return false;
    }
    const std::uint8_t syndrome = packet[kInsideOffset];
    if (syndrome == roce::kSequenceSyndrome) {
        if (lanes_[number].requester.missed(bth.psn, now_ns_)) repeat(number);
    } else if (syndrome <= roce::kAckSyndrome) {
        lanes_[number].requester.acknowledged(bth.psn, now_ns_);
    }
    return true;
}

void RingChannel::repeat(std::uint32_t lane) {
    const Requester &requester = lanes_[lane].requester;
    for (std::size_t i = 0; i < requester.pending(); ++i) put_message(lane, requester.message(i));
}

void RingChannel::look_at_timers() {
    for (std::uint32_t i = 0; i < lanes_.size() && !has_failed_; ++i) {
        Requester &requester = lanes_[i].requester;
        if (requester.is_due(now_ns_)) repeat(i);
        if (!requester.has_failed()) continue;
        has_failed_ = true;  // as a NIC whose retries are spent: nothing goes any more
        ++counters_.refused;
    }
}

std::int64_t RingChannel::earliest_ns() const {
    std::int64_t earliest = INT64_MAX;
    for (const Lane &lane : lanes_) earliest = std::min(earliest, lane.requester.deadline_ns());
    return earliest;
}

bool RingChannel::prepare_sleep(std::uint32_t /*in_flight*/) {
    const std::int64_t at_ns = has_failed_ ? INT64_MAX : earliest_ns();
    itimerspec when{};
    if (at_ns != INT64_MAX) {
        when.it_value.tv_sec = at_ns / kSecond;
        when.it_value.tv_nsec = at_ns % kSecond;
    }
    (void)::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
    return true;
}

void RingChannel::put_message(std::uint32_t lane, const Requester::Message &message) {
    put(ends_.next, ends_.next_in[lane], roce::kRcSendOnly, true, message.psn,
        message.payload.data(), message.payload.size());
}

void RingChannel::put_reply(std::uint32_t lane, std::uint8_t syndrome, std::uint32_t psn) {
    std::uint8_t aeth[roce::kAethBytes];
    roce::put_big_endian(aeth, lanes_[lane].responder.messages(), sizeof aeth);
    aeth[0] = syndrome;
    put(ends_.previous, ends_.previous_out[lane], roce::kAcknowledge, false, psn, aeth,
        sizeof aeth);
}

void RingChannel::put(const Peer &to, std::uint32_t qp, std::uint8_t opcode, bool asks,
                      std::uint32_t psn, const std::uint8_t *payload, std::size_t bytes) {
    if (out_count_ == out_.size()) flush();
    std::vector<std::uint8_t> &frame = out_[out_count_++];
    const std::size_t datagram_bytes = roce::kBthBytes + bytes + roce::kIcrcBytes;
    frame.resize(sw::kFrameHeaderBytes + datagram_bytes);
    sw::write_frame_header(frame.data(), ends_.own, {to.ipv4, roce::kUdpPort}, tos_,
                           datagram_bytes);
    std::uint8_t *const bth = frame.data() + sw::kFrameHeaderBytes;
    roce::put_bth(bth, {opcode, roce::kMigrated, roce::kPkey, qp, psn});
    if (asks) bth[8] |= kAsks;
    std::memcpy(bth + roce::kBthBytes, payload, bytes);
    const std::size_t covered = frame.size() - kPacketOffset - roce::kIcrcBytes;
    const std::uint32_t icrc = roce::icrc_of_packet(frame.data() + kPacketOffset, covered);
    std::memcpy(frame.data() + frame.size() - sizeof icrc, &icrc, sizeof icrc);
}

void RingChannel::flush() {
    std::array<mmsghdr, kBatch> messages;
    std::array<iovec, kBatch> vectors;
    for (std::size_t done = 0; done < out_count_;) {
        const std::size_t count = std::min(kBatch, out_count_ - done);
        for (std::size_t i = 0; i < count; ++i) {
            vectors[i] = {out_[done + i].data(), out_[done + i].size()};
            messages[i] = {};
            messages[i].msg_hdr.msg_iov = &vectors[i];
            messages[i].msg_hdr.msg_iovlen = 1;
        }
        ++counters_.send_calls;
        const int sent = ::sendmmsg(socket_.get(), messages.data(), static_cast<unsigned>(count),
                                    MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent > 0) {
            done += static_cast<std::size_t>(sent);
            continue;
        }
        if (errno == EINTR) continue;
        if (errno == ECONNREFUSED) ++counters_.refused;
        ++counters_.send_drops;  // the connection sends it again
        ++done;
    }
    out_count_ = 0;
}

}  // namespace ina::host
