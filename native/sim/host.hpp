// A host: an address, a cable, and who listens at which port.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "sim/port.hpp"
#include "switch/frame.hpp"

namespace ina::sim {

inline constexpr std::uint8_t kUdp = 17;
inline constexpr std::uint8_t kTcp = 6;

// A program on a host, at a port of UDP or TCP.
class Endpoint {
  public:
    virtual ~Endpoint() = default;
    // A whole IPv4 frame for it.
    virtual void receive(Frame frame) = 0;
};

class Host final : public Node {
  public:
    explicit Host(std::uint32_t address) : address_(address) {}

    // The one cable to the network; before anything is sent.
    void attach(std::uint32_t, Port *uplink) override { uplink_ = uplink; }
    void send(Frame frame) { uplink_->send(std::move(frame)); }
    void send_train(std::vector<Frame> *frames) { uplink_->send_train(frames); }

    // From now on; null: nobody listens any more.
    void listen(std::uint8_t protocol, std::uint16_t port, Endpoint *endpoint);
    // What comes to another address that this host has; null: nobody listens any more.
    void listen_at(const Peer &at, Endpoint *endpoint);
    // Where RoCEv2's packets for a queue pair of its NIC go, unless somebody listens at their port.
    void listen_queue_pair(std::uint32_t number, Endpoint *endpoint);
    // Also what comes to an IP multicast group.
    void join_group(const Peer &group, Endpoint *endpoint);
    void leave_groups(Endpoint *endpoint);

    // One of the ephemeral ports at which nobody listens, each in turn, so that one that becomes
    // free is not used again soon. Throws std::runtime_error: all are used.
    std::uint16_t free_port(std::uint8_t protocol);

    void receive(Frame frame, std::uint32_t port) override;

    std::uint32_t address() const { return address_; }
    std::uint64_t unwanted_packets() const { return unwanted_packets_; }

  private:
    void listen(std::uint64_t key, Endpoint *endpoint);
    Endpoint *pair_of(const Frame &frame) const;
    static std::uint64_t key(std::uint32_t group, std::uint8_t protocol, std::uint16_t port) {
        return static_cast<std::uint64_t>(group) << 32 | std::uint64_t{protocol} << 16 | port;
    }

    static constexpr std::uint16_t kFirstFreePort = 32768;  // as Linux has them
    static constexpr std::uint16_t kLastFreePort = 60999;

    std::uint32_t address_;
    std::uint16_t next_port_ = kFirstFreePort;
    Port *uplink_ = nullptr;
    std::unordered_map<std::uint64_t, std::vector<Endpoint *>> endpoints_;
    std::unordered_map<std::uint32_t, Endpoint *> queue_pairs_;
    // Not for this host, or for a port or a queue pair where nobody listens.
    std::uint64_t unwanted_packets_ = 0;
};

}  // namespace ina::sim
