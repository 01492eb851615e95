#include "sim/host.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "sim/queue.hpp"

namespace ina::sim {

void Host::listen(std::uint8_t protocol, std::uint16_t port, Endpoint *endpoint) {
    if (endpoint == nullptr) {
        endpoints_.erase(key(address_, protocol, port));
    } else {
        endpoints_[key(address_, protocol, port)] = {endpoint};
    }
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
        ++unwanted_packets_;
        return;
    }
    const std::vector<Endpoint *> &listening = found->second;
    for (std::size_t i = 1; i < listening.size(); ++i) listening[i]->receive(frame.copy());
    listening[0]->receive(std::move(frame));
}

}  // namespace ina::sim
