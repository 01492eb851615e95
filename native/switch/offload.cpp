#include "switch/offload.hpp"

#include "switch/frame.hpp"

namespace ina::sw {

namespace {
constexpr uint16_t kEtherTypeIpv4 = 0x0800, kEtherTypeIpv6 = 0x86dd, kEtherTypeVlan = 0x8100;
constexpr size_t kIpv6Bytes = 40;
constexpr uint8_t kTcp = 6, kUdp = 17;
constexpr uint8_t kTcpFinPsh = 0x09, kTcpCwr = 0x80;

uint32_t pseudo_header_sum(const SegmentLayout &layout, const uint8_t *ip, size_t bytes) {
    const uint32_t sum = static_cast<uint32_t>(bytes) + (layout.tcp ? kTcp : kUdp);
    return layout.ipv4 ? add_checksum(sum, ip + 12, 8) : add_checksum(sum, ip + 8, 32);
}
}  // namespace

bool complete_checksum(const VnetHeader &header, uint8_t *frame, size_t bytes) {
    const size_t start = header.csum_start, field = start + header.csum_offset;
    if (field + 2 > bytes) return false;
    // The field already holds the pseudo-header's sum.
    const uint16_t sum = fold_checksum(add_checksum(0, frame + start, bytes - start));
    store_be16(frame + field, sum ? sum : 0xffff);
    return true;
}

bool find_layout(const VnetHeader &header, const uint8_t *frame, size_t bytes,
                 SegmentLayout *layout) {
    const uint8_t kind = header.gso_type & static_cast<uint8_t>(~kGsoEcn);
    layout->tcp = kind == kGsoTcpV4 || kind == kGsoTcpV6;
    if ((!layout->tcp && kind != kGsoUdpL4) || header.gso_size == 0 || bytes < kEthernetBytes)
        return false;
    layout->network_offset = kEthernetBytes;
    uint16_t ether_type = load_be16(frame + 12);
    while (ether_type == kEtherTypeVlan && layout->network_offset + 4 <= bytes) {
        ether_type = load_be16(frame + layout->network_offset + 2);
        layout->network_offset += 4;
    }
    layout->ipv4 = ether_type == kEtherTypeIpv4;
    if (!layout->ipv4 && ether_type != kEtherTypeIpv6) return false;
    layout->transport_offset = header.csum_start;
    const size_t network_bytes = layout->ipv4 ? kIpv4Bytes : kIpv6Bytes;
    const size_t transport_bytes = layout->tcp ? 20 : kUdpBytes;
    if (layout->transport_offset < layout->network_offset + network_bytes ||
        layout->transport_offset + transport_bytes > bytes)
        return false;
    const uint8_t *transport = frame + layout->transport_offset;
    layout->payload_offset =
        layout->transport_offset + (layout->tcp ? (transport[12] >> 4) * 4u : kUdpBytes);
    return layout->payload_offset >= layout->transport_offset + transport_bytes &&
           layout->payload_offset < bytes;
}

void finish_segment(const SegmentLayout &layout, uint8_t *segment, size_t bytes, size_t index,
                    size_t payload_before, bool last) {
    uint8_t *ip = segment + layout.network_offset;
    uint8_t *transport = segment + layout.transport_offset;
    const size_t transport_bytes = bytes - layout.transport_offset;
    if (layout.ipv4) {
        store_be16(ip + 2, static_cast<uint16_t>(bytes - layout.network_offset));
        store_be16(ip + 4, static_cast<uint16_t>(load_be16(ip + 4) + index));
        store_be16(ip + 10, 0);
        const size_t header_bytes = layout.transport_offset - layout.network_offset;
        store_be16(ip + 10, fold_checksum(add_checksum(0, ip, header_bytes)));
    } else {
        store_be16(ip + 4, static_cast<uint16_t>(bytes - layout.network_offset - kIpv6Bytes));
    }
    uint8_t *checksum = transport + (layout.tcp ? 16 : 6);
    if (layout.tcp) {
        store_be32(transport + 4, static_cast<uint32_t>(load_be32(transport + 4) + payload_before));
        if (!last) transport[13] &= static_cast<uint8_t>(~kTcpFinPsh);
        if (index > 0) transport[13] &= static_cast<uint8_t>(~kTcpCwr);
    } else {
        store_be16(transport + 4, static_cast<uint16_t>(transport_bytes));
    }
    store_be16(checksum, 0);
    const uint16_t sum = fold_checksum(
        add_checksum(pseudo_header_sum(layout, ip, transport_bytes), transport, transport_bytes));
    store_be16(checksum, sum || layout.tcp ? sum : 0xffff);
}

}  // namespace ina::sw
