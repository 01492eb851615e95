// Whether a worker keeps to its window, by what it sends and takes alone: which of its packets have
// no result yet, in which slots. It shares no state with what it judges, LossRecovery and the
// lanes.
//
// A new packet may go where fewer are in flight than the window says, those without values by the
// share of one that they are; and a chunk among the window's first ones always. A lane has one
// packet in flight, and it is in the slot after the one that holds its last result.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "host/core/submission.hpp"
#include "host/core/worker_config.hpp"

namespace ina::sim {

class WindowAudit {
  public:
    // config: of one share of the lanes. most: packets that its windows may be at most.
    WindowAudit(const host::WorkerConfig &config, std::uint32_t most);

    // The share was given it.
    void submitted(const host::Submission &placed);
    // Tensors from this one on are not the share's any more.
    void withdrawn_from(std::uint64_t id);
    // A packet with this header and values leaves, while the window says so many.
    void sent(const host::PacketView &packet, std::uint32_t window);
    // The share has taken a result with this sequence number; has_sums: it was done with the chunk.
    // `values`: the result's, where a stream is told what comes next.
    void answered(std::uint32_t seq, bool has_sums, const std::uint8_t *values);
    // From now on no more than so many, whatever windows say.
    void set_most(std::uint32_t packets) { most_ = packets; }

    // What was not kept first; empty: all was.
    const std::string &breach() const { return breach_; }

  private:
    struct Part {  // of a tensor, on a lane
        std::uint64_t id;
        std::uint64_t first_order;  // of the tensor's chunk 0
        std::uint64_t order;        // of the chunk that is next
        std::uint64_t chunks_left;  // of a stream: more than 0
        std::uint32_t step;         // to the chunk behind, on its lane
        std::uint8_t flow;
    };
    struct Lane {
        std::uint32_t seq;  // of the packet in flight, or the next one
        bool in_flight = false;
        bool is_small = false;
        std::uint8_t flow = 0;    // of what is in flight
        std::uint64_t order = 0;  // of what is in flight
        std::deque<Part> parts;
    };

    bool has_room(const Part &part, std::uint32_t window) const;
    void leave(Lane &lane);
    void note(std::uint32_t seq, const std::string &what);

    const std::uint32_t all_lanes_;  // W
    const std::uint32_t first_lane_;
    const host::Tree tree_;
    const double small_share_;
    const std::uint32_t stream_values_;  // of a stream's packets; 0: it is none
    std::uint32_t most_;
    std::vector<Lane> lanes_;
    std::array<std::uint32_t, host::kFlows> in_flight_{};  // by flow
    std::array<std::uint32_t, host::kFlows> small_{};      // of them
    std::string breach_;
};

}  // namespace ina::sim
