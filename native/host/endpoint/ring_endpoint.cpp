#include "host/endpoint/ring_endpoint.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "common/ina_wire.hpp"
#include "common/roce.hpp"
#include "switch/frame.hpp"

namespace ina::host {
namespace {

constexpr std::size_t kPacketOffset = sw::kEthernetBytes;
constexpr std::size_t kBthOffset = roce::kIpv4Bytes + roce::kUdpBytes;  // in the IPv4 packet
constexpr std::size_t kInsideOffset = kBthOffset + roce::kBthBytes;
constexpr std::uint8_t kAsks = 0x80;  // BTH's ninth byte: for an acknowledgement
constexpr std::uint8_t kEcnBits = 3;
constexpr std::uint8_t kCongestionExperienced = 3;
constexpr std::uint32_t kNoLane = UINT32_MAX;

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

// A frame with such a payload, in `out`.
void put_frame(const Peer &from, const Peer &to, std::uint8_t tos, const roce::Bth &bth, bool asks,
               const PacketView &payload, FrameSink *out) {
    const std::size_t datagram_bytes = roce::kBthBytes + payload.bytes + roce::kIcrcBytes;
    const std::size_t frame_bytes = sw::kFrameHeaderBytes + datagram_bytes;
    std::uint8_t *const frame = out->add(frame_bytes);
    sw::write_frame_header(frame, from, {to.ipv4, roce::kUdpPort}, tos, datagram_bytes);
    std::uint8_t *const at = frame + sw::kFrameHeaderBytes;
    roce::put_bth(at, bth);
    if (asks) at[8] |= kAsks;
    std::memcpy(at + roce::kBthBytes, payload.data, payload.bytes);
    const std::size_t covered = frame_bytes - kPacketOffset - roce::kIcrcBytes;
    const std::uint32_t icrc = roce::icrc_of_packet(frame + kPacketOffset, covered);
    std::memcpy(frame + frame_bytes - sizeof icrc, &icrc, sizeof icrc);
}

}  // namespace

RingEndpoint::RingEndpoint(const RingEnds &ends, std::uint32_t lanes, std::uint8_t tos)
    : ends_(ends), tos_(tos) {
    for (const auto *pairs : {&ends.own_out, &ends.own_in, &ends.next_in, &ends.previous_out}) {
        if (pairs->size() != lanes) {
            throw std::invalid_argument("a ring needs a queue pair of each kind for each lane");
        }
    }
    lanes_.assign(lanes, Lane(ends.first_psn, ends.limits));
}

std::uint32_t RingEndpoint::lane_of(const std::vector<std::uint32_t> &pairs, std::uint32_t qp) {
    const auto found = std::find(pairs.begin(), pairs.end(), qp);
    return found == pairs.end() ? kNoLane : static_cast<std::uint32_t>(found - pairs.begin());
}

void RingEndpoint::send(const PacketView *packets, std::size_t count, std::int64_t now_ns,
                        FrameSink *out) {
    for (std::size_t i = 0; i < count && !has_failed_; ++i) {
        const PacketView &packet = packets[i];
        if (packet.bytes < wire::kHeaderBytes) continue;
        const std::uint32_t seq = wire::load_be32(packet.data + wire::kSeqOffset);
        const auto number = seq & (static_cast<std::uint32_t>(lanes_.size()) - 1);
        Lane &lane = lanes_[number];
        if (lane.has_sent && lane.last_seq == seq) continue;  // the connection sees to that
        lane.has_sent = true;
        lane.last_seq = seq;
        if (!post(number, packet.data, packet.bytes, now_ns, out)) {
            lane.waiting.assign(packet.data, packet.data + packet.bytes);
        }
    }
}

bool RingEndpoint::post(std::uint32_t lane, const std::uint8_t *payload, std::size_t bytes,
                        std::int64_t now_ns, FrameSink *out) {
    const Requester::Message *const message = lanes_[lane].requester.post(payload, bytes, now_ns);
    if (message == nullptr) return false;
    ++owed_;
    put_message(lane, *message, out);
    return true;
}

void RingEndpoint::post_waiting(std::uint32_t lane, std::int64_t now_ns, FrameSink *out) {
    std::vector<std::uint8_t> &waiting = lanes_[lane].waiting;
    if (!waiting.empty() && post(lane, waiting.data(), waiting.size(), now_ns, out)) {
        waiting.clear();
    }
}

void RingEndpoint::take(const std::uint8_t *frame, std::size_t bytes, std::int64_t now_ns,
                        std::vector<Arrival> *arrivals, FrameSink *out) {
    const std::uint8_t *const packet = frame + kPacketOffset;
    if (is_whole(frame, bytes) && roce::big_endian(packet + 16, 4) == ends_.own.ipv4 &&
        (take_send(packet, bytes - kPacketOffset, arrivals, out) ||
         take_reply(packet, bytes - kPacketOffset, now_ns, out))) {
        return;
    }
    ++damaged_;
}

// A message from the worker before, as it seems.
bool RingEndpoint::take_send(const std::uint8_t *packet, std::size_t bytes,
                             std::vector<Arrival> *arrivals, FrameSink *out) {
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
                                 (packet[1] & kEcnBits) == kCongestionExperienced});
            put_reply(number, roce::kAckSyndrome, responder.last(), out);
            break;
        case Reply::kAgain: put_reply(number, roce::kAckSyndrome, responder.last(), out); break;
        case Reply::kMissing:
            put_reply(number, roce::kSequenceSyndrome, responder.expected(), out);
            break;
        case Reply::kNothing: break;
    }
    return true;
}

bool RingEndpoint::take_reply(const std::uint8_t *packet, std::size_t bytes, std::int64_t now_ns,
                              FrameSink *out) {
    const roce::Bth bth = roce::bth_at(packet + kBthOffset);
    const std::uint32_t number = lane_of(ends_.own_out, bth.dest_qp);
    if (bth.opcode != roce::kAcknowledge || number == kNoLane ||
        roce::big_endian(packet + 12, 4) != ends_.next.ipv4 ||
        bytes != kInsideOffset + roce::kAethBytes + roce::kIcrcBytes) {
        return false;
    }
    Requester &requester = lanes_[number].requester;
    const std::size_t pending = requester.pending();
    const std::uint8_t syndrome = packet[kInsideOffset];
    if (syndrome == roce::kSequenceSyndrome) {
        if (requester.missed(bth.psn, now_ns)) repeat(number, out);
    } else if (syndrome <= roce::kAckSyndrome) {
        requester.acknowledged(bth.psn, now_ns);
    }
    owed_ -= pending - requester.pending();
    post_waiting(number, now_ns, out);
    return true;
}

void RingEndpoint::repeat(std::uint32_t lane, FrameSink *out) const {
    const Requester &requester = lanes_[lane].requester;
    for (std::size_t i = 0; i < requester.pending(); ++i) {
        put_message(lane, requester.message(i), out);
    }
}

void RingEndpoint::look_at_timers(std::int64_t now_ns, FrameSink *out) {
    for (std::uint32_t i = 0; i < lanes_.size() && !has_failed_; ++i) {
        Requester &requester = lanes_[i].requester;
        if (requester.is_due(now_ns)) repeat(i, out);
        has_failed_ = requester.has_failed();
    }
}

std::int64_t RingEndpoint::deadline_ns() const {
    std::int64_t earliest = INT64_MAX;
    if (has_failed_) return earliest;
    for (const Lane &lane : lanes_) earliest = std::min(earliest, lane.requester.deadline_ns());
    return earliest;
}

void RingEndpoint::put_message(std::uint32_t lane, const Requester::Message &message,
                               FrameSink *out) const {
    const roce::Bth bth{roce::kRcSendOnly, roce::kMigrated, roce::kPkey, ends_.next_in[lane],
                        message.psn};
    put_frame(ends_.own, ends_.next, tos_, bth, true,
              {message.payload.data(), message.payload.size()}, out);
}

void RingEndpoint::put_reply(std::uint32_t lane, std::uint8_t syndrome, std::uint32_t psn,
                             FrameSink *out) const {
    std::uint8_t aeth[roce::kAethBytes];
    roce::put_big_endian(aeth, lanes_[lane].responder.messages(), sizeof aeth);
    aeth[0] = syndrome;
    const roce::Bth bth{roce::kAcknowledge, roce::kMigrated, roce::kPkey, ends_.previous_out[lane],
                        psn};
    put_frame(ends_.own, ends_.previous, tos_, bth, false, {aeth, sizeof aeth}, out);
}

}  // namespace ina::host
