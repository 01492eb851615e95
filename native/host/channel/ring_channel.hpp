// Mode transparent without a NIC: a worker's place in a ring of reliable connections, in user
// space. Its frames are whole, in the datagrams of a UDP socket to a switch's port for such
// (switch/frames_port.hpp).
//
// A lane of the window is a connection of its own to the next worker, and one from that before:
// lanes go on independently of each other, so no order over all of them is the same on all workers,
// and a lane's is. What is lost is sent again here, as a NIC would; the core's own resends go no
// further.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "common/peer.hpp"
#include "host/channel/channel.hpp"
#include "host/channel/descriptor.hpp"
#include "host/channel/reliable_lane.hpp"

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

class RingChannel final : public Channel {
  public:
    // Works on its own duplicate of `fd`, a UDP socket connected to the switch's port. Throws
    // std::system_error; std::invalid_argument: not a queue pair of each kind for each lane.
    RingChannel(int fd, const RingEnds &ends, std::uint32_t lanes, int receive_buffer_bytes);
    ~RingChannel() override;

    void send(const PacketView *packets, std::size_t count, std::size_t longest_train,
              std::size_t way) override;
    bool receive(std::vector<Arrival> *arrivals) override;
    int fd() const override { return both_.get(); }
    bool prepare_sleep(std::uint32_t in_flight) override;
    bool is_woken_often() const override { return true; }
    std::uint32_t room_packets(std::uint32_t values_per_packet) const override;
    int receive_buffer_bytes() const override { return receive_buffer_bytes_; }
    const char *kind() const override { return "roce-soft"; }
    void close() override;

  private:
    struct Lane {
        Lane(std::uint32_t first_psn, const ReliableLimits &limits)
            : requester(first_psn, limits), responder(first_psn) {}
        Requester requester;
        Responder responder;
        std::uint32_t last_seq = 0;
        bool has_sent = false;
    };
    struct Received;

    void take(const std::uint8_t *frame, std::size_t bytes, std::vector<Arrival> *arrivals);
    bool take_send(const std::uint8_t *packet, std::size_t bytes, std::vector<Arrival> *arrivals);
    bool take_reply(const std::uint8_t *packet, std::size_t bytes);
    void repeat(std::uint32_t lane);
    void look_at_timers();
    std::int64_t earliest_ns() const;
    void put_message(std::uint32_t lane, const Requester::Message &message);
    void put_reply(std::uint32_t lane, std::uint8_t syndrome, std::uint32_t psn);
    void put(const Peer &to, std::uint32_t qp, std::uint8_t opcode, bool asks, std::uint32_t psn,
             const std::uint8_t *payload, std::size_t bytes);
    void flush();
    std::uint32_t lane_of(const std::vector<std::uint32_t> &pairs, std::uint32_t qp) const;

    Descriptor socket_;
    Descriptor timer_;
    Descriptor both_;
    RingEnds ends_;
    std::vector<Lane> lanes_;
    int receive_buffer_bytes_ = 0;
    std::uint8_t tos_ = 0;
    bool has_failed_ = false;
    std::int64_t now_ns_ = 0;
    std::unique_ptr<Received> received_;
    std::vector<std::vector<std::uint8_t>> out_;  // the first out_count_ are to be sent
    std::size_t out_count_ = 0;
};

}  // namespace ina::host
