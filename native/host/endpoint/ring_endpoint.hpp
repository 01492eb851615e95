// Mode transparent where there is no NIC: a worker's place in a ring of reliable connections. What
// the core sends becomes frames, frames become what the core gets and replies. Without sockets and
// clocks; time is passed in.
//
// A lane of the window is a connection of its own to the next worker, and one from that before:
// lanes go on independently of each other, so no order over all of them is the same on all workers,
// and a lane's is. What is lost is sent again here, as a NIC would; the core's own resends go no
// further.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/peer.hpp"
#include "host/core/worker_types.hpp"
#include "host/endpoint/arrival.hpp"
#include "host/endpoint/reliable_lane.hpp"

namespace ina::host {

// UDP ports are those that flows have as their source. Queue pairs by lane, as many as lanes.
struct RingEnds {
    Peer own, next, previous;
    std::vector<std::uint32_t> own_out, own_in;  // this worker's, towards the next, from the last
    std::vector<std::uint32_t> next_in;          // where it sends
    std::vector<std::uint32_t> previous_out;     // where it says what has come
    std::uint32_t first_psn = 0;
    ReliableLimits limits;
};

// Where frames are written.
class FrameSink {
  public:
    virtual ~FrameSink() = default;
    // Room for one more, which is written there before another call to the sink.
    virtual std::uint8_t *add(std::size_t bytes) = 0;
};

class RingEndpoint {
  public:
    // `tos`: of its frames. Throws std::invalid_argument: not a queue pair of each kind for each
    // lane.
    RingEndpoint(const RingEnds &ends, std::uint32_t lanes, std::uint8_t tos);

    // Packets of the core, each of which was sent first when the sum of its lane's last had come.
    void send(const PacketView *packets, std::size_t count, std::int64_t now_ns, FrameSink *out);
    // A frame from the network. Arrivals point into it.
    void take(const std::uint8_t *frame, std::size_t bytes, std::int64_t now_ns,
              std::vector<Arrival> *arrivals, FrameSink *out);
    void look_at_timers(std::int64_t now_ns, FrameSink *out);

    std::int64_t deadline_ns() const;  // of the timers; INT64_MAX: none is set
    // Whether the next worker has not acknowledged all, so that it may lack something which nobody
    // else will send it.
    bool owes() const { return owed_ > 0 && !has_failed_; }
    // Its retries are spent, and as of a NIC nothing goes any more.
    bool has_failed() const { return has_failed_; }
    std::uint64_t damaged() const {
        return damaged_;
    }  // frames not as their ICRC says, or not to it

  private:
    struct Lane {
        Lane(std::uint32_t first_psn, const ReliableLimits &limits)
            : requester(first_psn, limits), responder(first_psn) {}
        Requester requester;
        Responder responder;
        // What the requester has no room for. There is one at most: the lane's next one waits for
        // this one's sum.
        std::vector<std::uint8_t> waiting;
        std::uint32_t last_seq = 0;
        bool has_sent = false;
    };

    bool take_send(const std::uint8_t *packet, std::size_t bytes, std::vector<Arrival> *arrivals,
                   FrameSink *out);
    bool take_reply(const std::uint8_t *packet, std::size_t bytes, std::int64_t now_ns,
                    FrameSink *out);
    bool post(std::uint32_t lane, const std::uint8_t *payload, std::size_t bytes,
              std::int64_t now_ns, FrameSink *out);
    void post_waiting(std::uint32_t lane, std::int64_t now_ns, FrameSink *out);
    void repeat(std::uint32_t lane, FrameSink *out) const;
    void put_message(std::uint32_t lane, const Requester::Message &message, FrameSink *out) const;
    void put_reply(std::uint32_t lane, std::uint8_t syndrome, std::uint32_t psn,
                   FrameSink *out) const;
    static std::uint32_t lane_of(const std::vector<std::uint32_t> &pairs, std::uint32_t qp);

    RingEnds ends_;
    std::uint8_t tos_;
    std::vector<Lane> lanes_;
    std::size_t owed_ = 0;  // messages that are not acknowledged, of all lanes
    bool has_failed_ = false;
    std::uint64_t damaged_ = 0;
};

}  // namespace ina::host
