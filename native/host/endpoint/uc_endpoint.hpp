// An endpoint of RoCEv2's unreliable connections, where there is no NIC for it: what is around a
// packet in a datagram, and which datagrams are one's own. Without sockets.
//
// Each packet is a SEND of its own (ONLY). It takes what a NIC would take: a SEND ONLY of any
// number to its own queue pair, whole, in the one partition. What else comes is counted.
#pragma once

#include <cstdint>

#include "common/roce.hpp"
#include "host/core/worker_types.hpp"
#include "host/endpoint/arrival.hpp"

namespace ina::host {

// One connection's two ends. UDP ports are those that frames have.
struct SoftRoceEnds {
    Peer own;
    std::uint32_t own_qp = 0;
    Peer node;
    std::uint32_t node_qp = 0;
};

class UcEndpoint {
  public:
    static constexpr std::size_t kAroundBytes = roce::kBthBytes + roce::kIcrcBytes;

    explicit UcEndpoint(const SoftRoceEnds &ends);

    // Writes the datagram of the next SEND, kAroundBytes longer than the packet. Returns its
    // length.
    std::size_t put(const PacketView &packet, std::uint8_t *at);
    // Whether a datagram from the node is for it; then *inside is what was sent.
    bool take(const Arrival &datagram, Arrival *inside);
    std::uint64_t damaged() const { return damaged_; }  // what was not

  private:
    bool is_ours(const Arrival &datagram) const;

    roce::Icrc sent_icrc_;
    roce::Icrc received_icrc_;
    std::uint32_t own_qp_;
    std::uint32_t node_qp_;
    std::uint32_t next_psn_ = 0;
    std::uint64_t damaged_ = 0;
};

}  // namespace ina::host
