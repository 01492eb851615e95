// A port that is one unprivileged UDP socket whose datagrams are Ethernet frames, whole: for hosts
// that make their own (QEMU's `-netdev dgram`, endpoints of RoCEv2 in user space). Any number of
// them; each is where frames with its source address came from last, as behind an Ethernet switch.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "switch/frame.hpp"
#include "switch/port.hpp"

namespace ina::sw {

class FramesPort final : public Port {
  public:
    // address in host byte order; udp_port 0 = ephemeral. Throws std::system_error.
    FramesPort(uint32_t number, uint32_t address, uint16_t udp_port, double loss_probability,
               uint64_t loss_seed);
    ~FramesPort() override;

    Peer bound() const { return bound_; }
    int fd() const override { return fd_; }
    void close() override;
    void receive(FrameBatch *batch) override;

  protected:
    void transmit(const std::vector<ina_packet_out> &packets) override;

  private:
    void learn(const uint8_t *frame, const Peer &from);
    void deliver(const ina_packet_out &packet, const Peer &to);

    int fd_ = -1;
    Peer bound_;
    std::unique_ptr<uint8_t[]> received_;
    std::unordered_map<uint64_t, Peer> by_mac_;
    std::vector<Peer> peers_;  // each once
};

}  // namespace ina::sw
