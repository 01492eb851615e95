#include "host/channel/soft_roce_channel.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace ina::host {
namespace {

constexpr std::size_t kAroundBytes = roce::kBthBytes + roce::kIcrcBytes;
constexpr std::size_t kBatch = 64;  // packets built at a time: what a core's cache holds
constexpr std::size_t kMostPacketBytes = 9000;

}  // namespace

SoftRoceChannel::SoftRoceChannel(std::unique_ptr<UdpChannel> inner, const SoftRoceEnds &ends,
                                 bool is_on_wire)
    : inner_(std::move(inner)), sent_icrc_(ends.own, {ends.node.ipv4, roce::kUdpPort}),
      received_icrc_({ends.node.ipv4, ends.own.udp_port}, {ends.own.ipv4, roce::kUdpPort}),
      own_qp_(ends.own_qp), node_qp_(ends.node_qp), frames_(kBatch * kMostPacketBytes) {
    if (!is_on_wire) return;
    // The kernel numbers no packets of a socket that is not connected and may not cut them
    // (ip_select_ident of Linux).
    inner_->divide({1, 1, static_cast<std::uint32_t>(roce::kBthBytes)}, {Way{}});
    if (!inner_->one_queue_why().empty()) throw std::runtime_error(inner_->one_queue_why());
    const int whole = IP_PMTUDISC_DO;
    if (::setsockopt(inner_->fd(), IPPROTO_IP, IP_MTU_DISCOVER, &whole, sizeof whole) != 0) {
        throw std::system_error(errno, std::generic_category(), "IP_MTU_DISCOVER");
    }
}

std::uint32_t SoftRoceChannel::room_packets(std::uint32_t values_per_packet) const {
    return inner_->room_packets(values_per_packet + kAroundBytes / sizeof(std::uint32_t));
}

void SoftRoceChannel::send(const PacketView *packets, std::size_t count, std::size_t longest_train,
                           std::size_t way) {
    for (std::size_t done = 0; done < count;) {
        views_.clear();
        std::uint8_t *at = frames_.data();
        for (; done < count && views_.size() < kBatch; ++done) {
            const PacketView &packet = packets[done];
            if (packet.bytes + kAroundBytes > kMostPacketBytes) {
                ++oversized_;
                continue;
            }
            roce::Bth bth;
            bth.dest_qp = node_qp_;
            bth.psn = next_psn_++;
            roce::put_bth(at, bth);
            std::memcpy(at + roce::kBthBytes, packet.data, packet.bytes);
            const std::size_t covered = roce::kBthBytes + packet.bytes;
            const std::uint32_t icrc = sent_icrc_.of(at, covered);
            std::memcpy(at + covered, &icrc, sizeof icrc);  // little-endian hosts only
            views_.push_back({at, covered + roce::kIcrcBytes});
            at += covered + roce::kIcrcBytes;
        }
        inner_->send(views_.data(), views_.size(), longest_train, way);
    }
    tally();
}

void SoftRoceChannel::tally() {
    counters_ = inner_->counters();
    counters_.send_drops += oversized_;
    counters_.damaged = damaged_;
}

bool SoftRoceChannel::is_for_us(const Arrival &arrival) const {
    if (arrival.bytes < kAroundBytes) return false;
    const roce::Bth bth = roce::bth_at(arrival.data);
    if (bth.opcode != roce::kUcSendOnly || bth.dest_qp != own_qp_ || bth.pkey != roce::kPkey ||
        (bth.flags & roce::kPadAndVersion) != 0) {
        return false;
    }
    const std::size_t covered = arrival.bytes - roce::kIcrcBytes;
    std::uint32_t said = 0;
    std::memcpy(&said, arrival.data + covered, sizeof said);
    return said == received_icrc_.of(arrival.data, covered);
}

bool SoftRoceChannel::receive(std::vector<Arrival> *arrivals) {
    const bool more = inner_->receive(&came_);
    arrivals->clear();
    for (const Arrival &arrival : came_) {
        if (!is_for_us(arrival)) {
            ++damaged_;
            continue;
        }
        arrivals->push_back(
            {arrival.data + roce::kBthBytes, arrival.bytes - kAroundBytes, arrival.ip_marked});
    }
    tally();
    return more;
}

}  // namespace ina::host
