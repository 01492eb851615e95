// RoCEv2 without a NIC for it: an endpoint of an unreliable connection in user space
// (uc_endpoint.hpp), over a UDP socket.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "host/channel/channel.hpp"
#include "host/channel/udp_channel.hpp"
#include "host/endpoint/uc_endpoint.hpp"

namespace ina::host {

class SoftRoceChannel final : public Channel {
  public:
    // `inner`: leads to the node. With `is_on_wire` its packets are frames as the kernel makes
    // them, not as a switch's UDP port does: then each needs an IP header that is known here.
    // Throws std::system_error.
    SoftRoceChannel(std::unique_ptr<UdpChannel> inner, const SoftRoceEnds &ends, bool is_on_wire);

    void send(const PacketView *packets, std::size_t count, std::size_t longest_train,
              std::size_t way) override;
    bool receive(std::vector<Arrival> *arrivals) override;
    void release() override { inner_->release(); }
    int fd() const override { return inner_->fd(); }
    bool prepare_sleep(std::uint32_t in_flight) override {
        return inner_->prepare_sleep(in_flight);
    }
    bool is_woken_often() const override { return inner_->is_woken_often(); }
    std::uint32_t room_packets(std::uint32_t values_per_packet) const override;
    int receive_buffer_bytes() const override { return inner_->receive_buffer_bytes(); }
    const char *kind() const override { return "roce-soft"; }
    bool uses_gso() const override { return inner_->uses_gso(); }
    bool uses_gro() const override { return inner_->uses_gro(); }
    void close() override { inner_->close(); }

  private:
    void tally();

    std::unique_ptr<UdpChannel> inner_;
    UcEndpoint endpoint_;
    std::uint64_t oversized_ = 0;
    std::vector<std::uint8_t> frames_;
    std::vector<PacketView> views_;
    std::vector<Arrival> came_;
};

}  // namespace ina::host
