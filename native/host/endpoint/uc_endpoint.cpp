#include "host/endpoint/uc_endpoint.hpp"

#include <cstring>

namespace ina::host {

UcEndpoint::UcEndpoint(const SoftRoceEnds &ends)
    : sent_icrc_(ends.own, {ends.node.ipv4, roce::kUdpPort}),
      received_icrc_({ends.node.ipv4, ends.own.udp_port}, {ends.own.ipv4, roce::kUdpPort}),
      own_qp_(ends.own_qp), node_qp_(ends.node_qp) {}

std::size_t UcEndpoint::put(const PacketView &packet, std::uint8_t *at) {
    roce::Bth bth;
    bth.dest_qp = node_qp_;
    bth.psn = next_psn_++;
    roce::put_bth(at, bth);
    std::memcpy(at + roce::kBthBytes, packet.data, packet.bytes);
    const std::size_t covered = roce::kBthBytes + packet.bytes;
    const std::uint32_t icrc = sent_icrc_.of(at, covered);
    std::memcpy(at + covered, &icrc, sizeof icrc);  // little-endian hosts only
    return covered + roce::kIcrcBytes;
}

bool UcEndpoint::take(const Arrival &datagram, Arrival *inside) {
    if (!is_ours(datagram)) {
        ++damaged_;
        return false;
    }
    *inside = {datagram.data + roce::kBthBytes, datagram.bytes - kAroundBytes, datagram.ip_marked};
    return true;
}

bool UcEndpoint::is_ours(const Arrival &datagram) const {
    if (datagram.bytes < kAroundBytes) return false;
    const roce::Bth bth = roce::bth_at(datagram.data);
    if (bth.opcode != roce::kUcSendOnly || bth.dest_qp != own_qp_ || bth.pkey != roce::kPkey ||
        (bth.flags & roce::kPadAndVersion) != 0) {
        return false;
    }
    const std::size_t covered = datagram.bytes - roce::kIcrcBytes;
    std::uint32_t said = 0;
    std::memcpy(&said, datagram.data + covered, sizeof said);
    return said == received_icrc_.of(datagram.data, covered);
}

}  // namespace ina::host
