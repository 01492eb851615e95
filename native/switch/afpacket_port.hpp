// A port that is a network interface, through a packet socket (root, or CAP_NET_RAW): for veth
// pairs, network namespaces and Mininet. The interface is made promiscuous while the port is open.
#pragma once

#include <memory>

#include "switch/port.hpp"

struct msghdr;

namespace ina::sw {

struct VnetHeader;

class AfPacketPort final : public Port {
  public:
    AfPacketPort(uint32_t number, const std::string &interface, double loss_probability,
                 uint64_t loss_seed);  // throws std::system_error
    ~AfPacketPort() override;

    int fd() const override { return fd_; }
    void close() override;
    void receive(FrameBatch *batch) override;
    void extra_stats(std::vector<std::pair<std::string, uint64_t>> *stats) const override;

  protected:
    void transmit(const std::vector<ina_packet_out> &packets) override;

  private:
    void configure(int interface_index);
    void accept(const msghdr &message, const VnetHeader &offload, size_t bytes, FrameBatch *batch);

    int fd_ = -1;
    std::unique_ptr<uint8_t[]> scratch_;  // one super-frame, with room for a VLAN tag before it
    mutable std::atomic<uint64_t> kernel_drop_packets_{0};
};

}  // namespace ina::sw
