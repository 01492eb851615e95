// RoCEv2 without a NIC for it: an endpoint of an unreliable connection in user space, over a UDP
// socket. Each packet is a SEND of its own (ONLY), whose BTH and ICRC are made and looked at here.
//
// It takes what a NIC would take: a SEND ONLY of any number to its own queue pair, whole, in the
// one partition. What else comes is dropped and counted.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "common/roce.hpp"
#include "host/channel/channel.hpp"
#include "host/channel/udp_channel.hpp"

namespace ina::host {

// One connection's two ends. UDP ports are those that frames have.
struct SoftRoceEnds {
    Peer own;
    std::uint32_t own_qp = 0;
    Peer node;
    std::uint32_t node_qp = 0;
};

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
    bool is_for_us(const Arrival &arrival) const;
    void tally();

    std::unique_ptr<UdpChannel> inner_;
    roce::Icrc sent_icrc_;
    roce::Icrc received_icrc_;
    std::uint32_t own_qp_;
    std::uint32_t node_qp_;
    std::uint32_t next_psn_ = 0;
    std::uint64_t oversized_ = 0;
    std::uint64_t damaged_ = 0;
    std::vector<std::uint8_t> frames_;
    std::vector<PacketView> views_;
    std::vector<Arrival> came_;
};

}  // namespace ina::host
