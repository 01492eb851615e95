#include "sim/bridge.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "switch/frame.hpp"

namespace ina::sim {
namespace {

std::uint64_t mac_of(const Frame &frame) {
    return static_cast<std::uint64_t>(sw::load_be16(frame.data())) << 32 |
           sw::load_be32(frame.data() + 2);
}

std::uint64_t mixed(std::uint64_t word) {  // the finaliser of SplitMix64
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9;
    word = (word ^ (word >> 27)) * 0x94d049bb133111eb;
    return word ^ (word >> 31);
}

}  // namespace

std::uint64_t flow_hash(const Frame &frame) {
    if (!is_ipv4(frame)) return 0;
    const std::uint8_t *const ip = frame.data() + sw::kEthernetBytes;
    std::uint64_t hash = static_cast<std::uint64_t>(sw::load_be32(ip + 12)) << 32;
    hash = mixed(hash | sw::load_be32(ip + 16));
    const bool has_ports = frame.bytes() >= sw::kFrameHeaderBytes;  // as long for UDP as for TCP
    return has_ports ? mixed(hash ^ sw::load_be32(ip + sw::kIpv4Bytes)) : hash;
}

void Bridge::attach(std::uint32_t port, Port *leaving) {
    if (ports_.size() <= port) ports_.resize(port + 1);
    ports_[port] = leaving;
}

void Bridge::set_route(std::uint64_t mac, std::vector<std::uint32_t> ports) {
    for (const std::uint32_t port : ports) {
        if (port >= ports_.size() || ports_[port] == nullptr) {
            throw std::invalid_argument("there is no port " + std::to_string(port));
        }
    }
    auto ways = std::find(ways_.begin(), ways_.end(), ports);
    if (ways == ways_.end()) {
        if (ways_.size() >> kWaysBits != 0) throw std::invalid_argument("too many sets of ports");
        ways = ways_.insert(ways_.end(), std::move(ports));
    }
    if (2 * known_ >= routes_.size()) grow();
    Route &route = routes_[place_of(mac)];
    known_ += route == 0;
    route = mac << kWaysBits | static_cast<std::uint64_t>(ways - ways_.begin());
}

std::size_t Bridge::place_of(std::uint64_t mac) const {
    const std::size_t last = routes_.size() - 1;
    std::size_t place = mixed(mac) & last;
    while (routes_[place] != 0 && routes_[place] >> kWaysBits != mac) place = (place + 1) & last;
    return place;
}

void Bridge::grow() {
    std::vector<Route> before(2 * routes_.size());
    before.swap(routes_);
    for (const Route route : before) {
        if (route != 0) routes_[place_of(route >> kWaysBits)] = route;
    }
}

void Bridge::receive(Frame frame, std::uint32_t port) {
    if (frame.bytes() < sw::kEthernetBytes) return;
    const std::uint64_t mac = mac_of(frame);
    const Ways &ways = ways_[routes_[place_of(mac)] & ((1u << kWaysBits) - 1)];
    if (ways.empty()) {
        ++unrouted_packets_;
        return;
    }
    const bool is_group = (mac >> 40 & 1) != 0;
    if (!is_group) {
        const std::size_t way =
            ways.size() == 1 ? 0 : mixed(flow_hash(frame) ^ salt_) % ways.size();
        return ports_[ways[way]]->send(std::move(frame));
    }
    for (const std::uint32_t way : ways) {
        if (way != port) ports_[way]->send(frame.copy());
    }
}

}  // namespace ina::sim
