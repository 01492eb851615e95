#include "sim/flows/tcp_segment.hpp"

#include "sim/flows/checksum.hpp"
#include "sim/host.hpp"
#include "sim/queue.hpp"

namespace ina::sim {
namespace {

constexpr std::uint8_t kNop = 1;
constexpr std::uint8_t kSackOption = 5;
constexpr std::size_t kSackBytes = 8;

}  // namespace

Frame write_segment(FramePool *frames, const TcpSegment &segment) {
    const std::size_t option_bytes = segment.sacks == 0 ? 0 : 4 + segment.sacks * kSackBytes;
    const std::size_t header_bytes = kTcpBytes + option_bytes;
    const std::size_t tcp_bytes = header_bytes + segment.payload_bytes;
    Frame frame = frames->make(sw::kEthernetBytes + sw::kIpv4Bytes + tcp_bytes);
    std::uint8_t *const ip = frame.data() + sw::kEthernetBytes;
    // All but the protocol is as in a frame with a datagram as long.
    sw::write_frame_header(frame.data(), segment.source, segment.destination, segment.tos,
                           tcp_bytes - sw::kUdpBytes);
    ip[9] = kTcp;
    sw::store_be16(ip + 10, 0);
    sw::store_be16(ip + 10, sw::fold_checksum(sw::add_checksum(0, ip, sw::kIpv4Bytes)));

    std::uint8_t *const tcp = ip + sw::kIpv4Bytes;
    std::memset(tcp, 0, tcp_bytes);
    sw::store_be16(tcp, segment.source.udp_port);
    sw::store_be16(tcp + 2, segment.destination.udp_port);
    sw::store_be32(tcp + 4, segment.sequence);
    sw::store_be32(tcp + 8, segment.acknowledged);
    tcp[12] = static_cast<std::uint8_t>(header_bytes / 4 << 4);
    tcp[13] = segment.flags;
    sw::store_be16(tcp + 14, segment.window);
    if (segment.sacks > 0) {
        std::uint8_t *to = tcp + kTcpBytes;
        *to++ = kNop;
        *to++ = kNop;
        *to++ = kSackOption;
        *to++ = static_cast<std::uint8_t>(2 + segment.sacks * kSackBytes);
        for (std::uint32_t i = 0; i < segment.sacks; ++i, to += kSackBytes) {
            sw::store_be32(to, segment.sack[i].begin);
            sw::store_be32(to + 4, segment.sack[i].end);
        }
    }
    sw::store_be16(tcp + 16, transport_checksum(ip, header_bytes));
    return frame;
}

bool parse_segment(const Frame &frame, TcpSegment *segment) {
    if (!is_ipv4(frame) || frame.bytes() < kTcpFrameHeaderBytes) return false;
    const std::uint8_t *const ip = frame.data() + sw::kEthernetBytes;
    const std::size_t ip_bytes = sw::load_be16(ip + 2);
    if (ip[0] != 0x45 || ip[9] != kTcp || ip_bytes < sw::kIpv4Bytes + kTcpBytes ||
        sw::kEthernetBytes + ip_bytes > frame.bytes() ||
        sw::fold_checksum(sw::add_checksum(0, ip, sw::kIpv4Bytes)) != 0) {
        return false;
    }
    const std::uint8_t *const tcp = ip + sw::kIpv4Bytes;
    const std::size_t tcp_bytes = ip_bytes - sw::kIpv4Bytes;
    const std::size_t header_bytes = std::size_t{tcp[12]} / 16 * 4;
    if (header_bytes < kTcpBytes || header_bytes > tcp_bytes ||
        transport_checksum(ip, tcp_bytes) != 0) {
        return false;
    }
    segment->source = {sw::load_be32(ip + 12), sw::load_be16(tcp)};
    segment->destination = {sw::load_be32(ip + 16), sw::load_be16(tcp + 2)};
    segment->sequence = sw::load_be32(tcp + 4);
    segment->acknowledged = sw::load_be32(tcp + 8);
    segment->flags = tcp[13];
    segment->window = sw::load_be16(tcp + 14);
    segment->tos = ip[1];
    segment->payload_bytes = static_cast<std::uint32_t>(tcp_bytes - header_bytes);
    segment->sacks = 0;
    for (std::size_t at = kTcpBytes; at < header_bytes && tcp[at] != 0;) {
        if (tcp[at] == kNop) {
            ++at;
            continue;
        }
        if (at + 1 >= header_bytes || tcp[at + 1] < 2 || at + tcp[at + 1] > header_bytes) break;
        if (tcp[at] == kSackOption) {
            const std::size_t count = (tcp[at + 1] - 2u) / kSackBytes;
            for (std::size_t i = 0; i < count && i < TcpSegment::kMostSacks; ++i) {
                const std::uint8_t *const from = tcp + at + 2 + i * kSackBytes;
                segment->sack[segment->sacks++] = {sw::load_be32(from), sw::load_be32(from + 4)};
            }
        }
        at += tcp[at + 1];
    }
    return true;
}

}  // namespace ina::sim
