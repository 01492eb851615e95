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

constexpr std::size_t kBatch = 64;  // packets built at a time: what a core's cache holds
constexpr std::size_t kMostPacketBytes = 9000;

}  // namespace

SoftRoceChannel::SoftRoceChannel(std::unique_ptr<UdpChannel> inner, const SoftRoceEnds &ends,
                                 bool is_on_wire)
    : inner_(std::move(inner)), endpoint_(ends), frames_(kBatch * kMostPacketBytes) {
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
    return inner_->room_packets(values_per_packet +
                                UcEndpoint::kAroundBytes / sizeof(std::uint32_t));
}

void SoftRoceChannel::send(const PacketView *packets, std::size_t count, std::size_t longest_train,
                           std::size_t way) {
    for (std::size_t done = 0; done < count;) {
        views_.clear();
        std::uint8_t *at = frames_.data();
        for (; done < count && views_.size() < kBatch; ++done) {
            const PacketView &packet = packets[done];
            if (packet.bytes + UcEndpoint::kAroundBytes > kMostPacketBytes) {
                ++oversized_;
                continue;
            }
            const std::size_t bytes = endpoint_.put(packet, at);
            views_.push_back({at, bytes});
            at += bytes;
        }
        inner_->send(views_.data(), views_.size(), longest_train, way);
    }
    tally();
}

void SoftRoceChannel::tally() {
    counters_ = inner_->counters();
    counters_.send_drops += oversized_;
    counters_.damaged = endpoint_.damaged();
}

bool SoftRoceChannel::receive(std::vector<Arrival> *arrivals) {
    const bool more = inner_->receive(&came_);
    arrivals->clear();
    Arrival inside{};
    for (const Arrival &arrival : came_) {
        if (endpoint_.take(arrival, &inside)) arrivals->push_back(inside);
    }
    tally();
    return more;
}

}  // namespace ina::host
