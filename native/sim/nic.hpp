// What a worker of the virtual network has between its packets and frames: a UDP socket, or an RDMA
// NIC's queue pairs. What NICs do is what ships (host/endpoint).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "host/endpoint/ring_endpoint.hpp"
#include "host/endpoint/uc_endpoint.hpp"
#include "sim/engine.hpp"
#include "sim/frame.hpp"
#include "sim/host.hpp"

namespace ina::sim {

// Which one, and where it is. At most one of the last two.
struct NicSetup {
    Peer own;                                // the host's address
    Peer to;                                 // the switch, unless a packet is for another
    Peer results;                            // an IP multicast group; not known: it gets its own
    std::uint8_t tos = 0x02;                 // DSCP and ECN: ECN-capable
    std::optional<host::SoftRoceEnds> pair;  // of an unreliable connection
    std::optional<host::RingEnds> ring;      // of a ring of reliable ones
};

class Nic {
  public:
    // What came for the worker; its packet lies in the frame.
    struct Result {
        host::Arrival packet;
        Peer from;
    };

    virtual ~Nic() = default;

    // Frames that come for it are this one's, from now on; null: nobody's any more.
    virtual void listen(Endpoint *endpoint) = 0;
    virtual void leave_group(Endpoint * /*endpoint*/) {}

    // The frames of packets for a node, and of what follows from a frame that came, and from time.
    virtual void send(const host::PacketView *packets, std::size_t count, const Peer &node,
                      std::int64_t now_ns, std::vector<Frame> *out) = 0;
    virtual std::optional<Result> take(const Frame &frame, std::int64_t now_ns,
                                       std::vector<Frame> *out) = 0;
    virtual void look_at_timers(std::int64_t /*now_ns*/, std::vector<Frame> * /*out*/) {}
    virtual std::int64_t deadline_ns() const { return kNever; }

    virtual bool owes() const { return false; }          // as TransportEngine::owes()
    virtual bool has_failed() const { return false; }    // it sends nothing more
    virtual std::uint64_t damaged() const { return 0; }  // frames that came, and are none of its
};

// `lanes`: of the job's window. Throws std::invalid_argument.
std::unique_ptr<Nic> make_nic(const NicSetup &setup, Host *host, FramePool *frames,
                              std::uint32_t lanes);

}  // namespace ina::sim
