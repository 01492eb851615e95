// A worker's queue pairs on reliable connections (RC) in a ring, with the memory that its device
// reads and writes: for each lane one that sends to the next worker, and one that gets from the
// one before it.
//
// Who is at the other ends is known later than that the controller is told their numbers, which
// are the device's to choose: what comes is taken from connect() on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "host/channel/rdma_port.hpp"

namespace ina::host {

struct RcRingPlace {
    RdmaPlace at;
    std::uint32_t lanes = 0;
    std::uint32_t message_bytes = 0;  // the longest, header and values: in one packet of the path
};

// Queue pairs by lane, as many as lanes.
struct RcRingPath {
    std::uint32_t next_ipv4 = 0;
    std::uint32_t previous_ipv4 = 0;
    std::vector<std::uint32_t> next_in;       // where this worker sends
    std::vector<std::uint32_t> previous_out;  // what sends to it
    std::uint32_t first_psn = 0;              // of all connections, either way
    std::uint8_t traffic_class = 0;           // their packets' TOS
    std::uint8_t timeout = 20;                // as RdmaPatience's
    std::uint8_t retries = 7;
};

class RcRing {
  public:
    // Of a lane. A worker sends the next message once the sum of the last has come, so two at most
    // are really under way; of those before, acknowledgements may be lost, until a later one says
    // the same of all. So many are the device's, and one more waits for that: its sum cannot come
    // before it goes, so there is no third kind.
    static constexpr std::uint32_t kPosted = 3;
    static constexpr std::uint32_t kFrames = kPosted + 1;
    // No sum comes before this worker has sent its part, so one is all that comes at a time.
    static constexpr std::uint32_t kBuffers = 2;

    // Throws std::runtime_error: one line that says what is refused.
    explicit RcRing(const RcRingPlace &place);

    // Once. Throws std::runtime_error, std::invalid_argument: not a queue pair for each lane.
    void connect(const RcRingPath &path);
    // As UcQueue's.
    void close();

    // Of queue pairs, by lane.
    const std::vector<std::uint32_t> &out_numbers() const { return out_numbers_; }
    const std::vector<std::uint32_t> &in_numbers() const { return in_numbers_; }
    bool is_open() const { return port_.is_open(); }
    bool is_connected() const { return is_connected_; }
    std::uint32_t lanes() const { return place_.lanes; }
    std::uint32_t message_bytes() const { return place_.message_bytes; }
    std::uint32_t buffer_bytes() const { return port_.path_mtu_bytes(); }

    std::uint8_t *frame(std::uint32_t lane, std::uint32_t index) const {
        return memory_ + std::size_t{place_.message_bytes} * (kFrames * lane + index);
    }
    std::uint8_t *buffer(std::uint32_t lane, std::uint32_t index) const {
        return buffers_ + std::size_t{buffer_bytes()} * (kBuffers * lane + index);
    }

    // What a completion is of, in its id.
    struct Ended {
        std::uint32_t lane;
        std::uint32_t index;  // of its frames, or of its buffers
        bool is_sent;
    };
    static Ended ended_of(std::uint64_t id) {
        return {static_cast<std::uint32_t>(id >> kLaneShift),
                static_cast<std::uint32_t>(id >> 1) & kIndexMask, (id & 1) != 0};
    }
    // 0, or what went wrong (errno).
    int send(std::uint32_t lane, std::uint32_t index, std::uint32_t bytes) const;
    int post(std::uint32_t lane, std::uint32_t index) const;
    // How many have ended, at most `most`; below 0: it failed.
    int poll(verbs::Wc *ended, int most) const { return poll_ended(ended_, ended, most); }
    bool ask_for_event() const { return host::ask_for_event(ended_); }
    int event_fd() const { return port_.event_fd(); }
    void take_events() const { port_.take_events(); }

  private:
    static constexpr std::uint32_t kLaneShift = 16;
    static constexpr std::uint32_t kIndexMask = 0x7FFF;

    static std::uint64_t id_of(std::uint32_t lane, std::uint32_t index, bool is_sent) {
        return std::uint64_t{lane} << kLaneShift | index << 1 | (is_sent ? 1 : 0);
    }
    verbs::Qp *make_qp(bool sends);

    RcRingPlace place_;
    RdmaPort port_;
    std::uint8_t *memory_ = nullptr;
    std::uint8_t *buffers_ = nullptr;
    bool is_connected_ = false;
    verbs::Cq *ended_ = nullptr;
    std::vector<verbs::Qp *> out_;  // by lane
    std::vector<verbs::Qp *> in_;
    std::vector<std::uint32_t> out_numbers_;
    std::vector<std::uint32_t> in_numbers_;
};

}  // namespace ina::host
