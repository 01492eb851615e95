#include "switch/frame.hpp"

#include <cstring>

#include "common/ina_wire.hpp"

namespace ina::sw {

namespace {
constexpr uint16_t kEtherTypeIpv4 = 0x0800;
constexpr uint8_t kProtocolUdp = 17;

void write_mac(uint8_t *mac, uint32_t address) {
    mac[0] = 0x02;
    mac[1] = 0x00;
    store_be32(mac + 2, address);
}
}  // namespace

uint32_t add_checksum(uint32_t sum, const uint8_t *data, size_t bytes) {
    for (; bytes >= 2; data += 2, bytes -= 2) sum += load_be16(data);
    if (bytes) sum += static_cast<uint32_t>(*data) << 8;
    return sum;  // at most 64 KiB: 32768 * 0xffff fits in 32 bits
}

uint16_t fold_checksum(uint32_t sum) {
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return static_cast<uint16_t>(~sum);
}

void write_frame_header(uint8_t *frame, Peer source, Peer destination, uint8_t tos,
                        size_t payload_bytes) {
    write_mac(frame, destination.ipv4);
    write_mac(frame + 6, source.ipv4);
    store_be16(frame + 12, kEtherTypeIpv4);
    uint8_t *ip = frame + kEthernetBytes;
    std::memset(ip, 0, kIpv4Bytes);
    ip[0] = 0x45;
    ip[1] = tos;
    store_be16(ip + 2, static_cast<uint16_t>(kIpv4Bytes + kUdpBytes + payload_bytes));
    ip[6] = 0x40;  // DF
    ip[8] = 64;    // TTL
    ip[9] = kProtocolUdp;
    store_be32(ip + 12, source.ipv4);
    store_be32(ip + 16, destination.ipv4);
    store_be16(ip + 10, fold_checksum(add_checksum(0, ip, kIpv4Bytes)));
    uint8_t *udp = ip + kIpv4Bytes;
    store_be16(udp, source.udp_port);
    store_be16(udp + 2, destination.udp_port);
    store_be16(udp + 4, static_cast<uint16_t>(kUdpBytes + payload_bytes));
    store_be16(udp + 6, 0);
}

bool parse_udp_frame(const uint8_t *frame, size_t length, Datagram *datagram, const uint8_t *tail,
                     size_t tail_bytes) {
    if (length < kFrameHeaderBytes || load_be16(frame + 12) != kEtherTypeIpv4) return false;
    const uint8_t *ip = frame + kEthernetBytes;
    const size_t ip_header_bytes = static_cast<size_t>(ip[0] & 0x0f) * 4;
    const size_t ip_total_bytes = load_be16(ip + 2);
    if (ip[0] >> 4 != 4 || ip_header_bytes < kIpv4Bytes || ip[9] != kProtocolUdp ||
        (load_be16(ip + 6) & 0x3fff) != 0 ||  // MF or an offset: a fragment
        ip_total_bytes < ip_header_bytes + kUdpBytes ||
        ip_total_bytes > length - kEthernetBytes + tail_bytes ||
        ip_header_bytes + kUdpBytes > length - kEthernetBytes)
        return false;
    const uint8_t *udp = ip + ip_header_bytes;
    const size_t udp_bytes = load_be16(udp + 4);
    if (udp_bytes < kUdpBytes || udp_bytes > ip_total_bytes - ip_header_bytes) return false;
    datagram->source = {load_be32(ip + 12), load_be16(udp)};
    datagram->destination = {load_be32(ip + 16), load_be16(udp + 2)};
    datagram->tos = ip[1];
    datagram->payload = udp + kUdpBytes;
    const size_t payload_bytes = udp_bytes - kUdpBytes;
    const size_t here = length - kEthernetBytes - ip_header_bytes - kUdpBytes;
    datagram->payload_bytes = payload_bytes < here ? payload_bytes : here;
    datagram->tail = tail;
    datagram->tail_bytes = payload_bytes - datagram->payload_bytes;
    return true;
}

bool has_wrong_checksum(const uint8_t *frame, size_t length) {
    Datagram datagram;
    if (!parse_udp_frame(frame, length, &datagram) ||
        datagram.destination.udp_port != wire::kUdpPort)
        return false;
    const uint8_t *udp = datagram.payload - kUdpBytes;
    if (load_be16(udp + 6) == 0) return false;  // none
    const size_t bytes = kUdpBytes + datagram.payload_bytes;
    const uint32_t sum = add_checksum(kProtocolUdp + static_cast<uint32_t>(bytes),
                                      frame + kEthernetBytes + 12, 8);  // the pseudo-header
    return fold_checksum(add_checksum(sum, udp, bytes)) != 0;
}

}  // namespace ina::sw
