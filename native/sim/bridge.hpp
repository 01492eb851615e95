// A switch that forwards and does no more: by the destination's MAC address, over one port or over
// several of equal cost, among which a flow keeps to one.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/port.hpp"

namespace ina::sim {

// Frames of one flow have one hash: source and destination of IPv4, and of UDP or TCP.
std::uint64_t flow_hash(const Frame &frame);

class Bridge final : public Node {
  public:
    explicit Bridge(std::uint64_t salt) : salt_(salt) {}

    void attach(std::uint32_t port, Port *leaving) override;
    // To an address by one of these ports. A multicast address: by all of them, but for the one
    // where a frame came from. Throws std::invalid_argument: there is no such port.
    void set_route(std::uint64_t mac, std::vector<std::uint32_t> ports);
    void receive(Frame frame, std::uint32_t port) override;

    std::uint64_t unrouted_packets() const { return unrouted_packets_; }

  private:
    using Ways = std::vector<std::uint32_t>;
    // An address, and which of ways_ leads to it, in one word; 0: none. A network of a thousand
    // hosts has hundreds of tables of a thousand routes, so a look at one touches one cache line.
    using Route = std::uint64_t;
    static constexpr std::uint32_t kWaysBits = 16;

    // Where an address is, or would be put.
    std::size_t place_of(std::uint64_t mac) const;
    void grow();

    std::uint64_t salt_;  // so that bridges behind each other choose by different hashes
    std::vector<Port *> ports_;
    std::vector<Route> routes_ = std::vector<Route>(16);  // at most half full
    std::size_t known_ = 0;                               // addresses
    std::vector<Ways> ways_ = std::vector<Ways>(1);       // each once; the first is of none
    std::uint64_t unrouted_packets_ = 0;
};

}  // namespace ina::sim
