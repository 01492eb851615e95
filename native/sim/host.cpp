#include "sim/host.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "common/roce.hpp"
#include "sim/queue.hpp"

namespace ina::sim {

void Host::listen(std::uint8_t protocol, std::uint16_t port, Endpoint *endpoint) {
    listen(key(address_, protocol, port), endpoint);
}

void Host::listen_at(const Peer &at, Endpoint *endpoint) {
    listen(key(at.ipv4, kUdp, at.udp_port), endpoint);
}

void Host::listen(std::uint64_t key, Endpoint *endpoint) {
    if (endpoint == nullptr) {
        endpoints_.erase(key);
    } else {
        endpoints_[key] = {endpoint};
    }
}

void Host::listen_queue_pair(std::uint32_t number, Endpoint *endpoint) {
    if (endpoint == nullptr) {
        queue_pairs_.erase(number);
    } else {
        queue_pairs_[number] = endpoint;
    }
}

// Of a whole IPv4 frame.
Endpoint *Host::pair_of(const Frame &frame) const {
    const std::uint8_t *const ip = frame.data() + sw::kEthernetBytes;
    if (queue_pairs_.empty() || sw::load_be32(ip + 16) != address_ || ip[9] != kUdp ||
        sw::load_be16(ip + sw::kIpv4Bytes + 2) != roce::kUdpPort ||
        frame.bytes() < sw::kFrameHeaderBytes + roce::kBthBytes) {
        return nullptr;
    }
    const auto found =
        queue_pairs_.find(roce::bth_at(frame.data() + sw::kFrameHeaderBytes).dest_qp);
    return found == queue_pairs_.end() ? nullptr : found->second;
}

std::uint16_t Host::free_port(std::uint8_t protocol) {
    for (int tries = kFirstFreePort; tries <= kLastFreePort; ++tries) {
        const std::uint16_t port = next_port_;
        next_port_ = port == kLastFreePort ? kFirstFreePort : static_cast<std::uint16_t>(port + 1);
        if (endpoints_.count(key(address_, protocol, port)) == 0) return port;
    }
    throw std::runtime_error("a host has no port free for one more flow");
}

void Host::join_group(const Peer &group, Endpoint *endpoint) {
    endpoints_[key(group.ipv4, kUdp, group.udp_port)].push_back(endpoint);
}

void Host::leave_groups(Endpoint *endpoint) {
    for (auto &[key, listening] : endpoints_) {
        if (static_cast<std::uint32_t>(key >> 32) == address_) continue;
        listening.erase(std::remove(listening.begin(), listening.end(), endpoint), listening.end());
    }
}

void Host::receive(Frame frame, std::uint32_t) {
    const bool is_whole = is_ipv4(frame) && frame.bytes() >= sw::kFrameHeaderBytes;
    const std::uint8_t *const ip = frame.data() + sw::kEthernetBytes;
    const auto found = is_whole ? endpoints_.find(key(sw::load_be32(ip + 16), ip[9],
                                                      sw::load_be16(ip + sw::kIpv4Bytes + 2)))
                                : endpoints_.end();
    if (found == endpoints_.end() || found->second.empty()) {
        Endpoint *const pair = is_whole ? pair_of(frame) : nullptr;
        if (pair != nullptr) return pair->receive(std::move(frame));
        ++unwanted_packets_;
        return;
    }
    const std::vector<Endpoint *> &listening = found->second;
    for (std::size_t i = 1; i < listening.size(); ++i) listening[i]->receive(frame.copy());
    listening[0]->receive(std::move(frame));
}

}  // namespace ina::sim
