// A switch that runs a compiled P4 program, as the soft switch does. Its registers and tables are
// in a state of the pipeline, which Python has made and fills; it stays Python's.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/port.hpp"
#include "switch/pipeline_abi.h"

namespace ina::sim {

struct P4SwitchCounters {
    std::uint64_t received_packets = 0;
    std::uint64_t off_packets = 0;           // received without power, or without a program
    std::uint64_t sent_packets = 0;          // copies that were handed to ports
    std::uint64_t unknown_port_packets = 0;  // for a port that this switch does not have
    std::uint64_t to_controller_packets = 0;
};

class P4Switch final : public Node {
  public:
    P4Switch(Engine *engine, FramePool *frames, std::uint32_t cpu_port);

    void attach(std::uint32_t port, Port *leaving) override;
    // Both live until the next call. Null: it has no power, or no program; frames are dropped.
    void set_pipeline(const ina_pipeline *pipeline, void *state);
    void receive(Frame frame, std::uint32_t port) override;
    // What waits in its queues is lost, as when its power fails.
    void clear_queues();

    const P4SwitchCounters &counters() const { return counters_; }

  private:
    static constexpr std::size_t kArenaBytes = 1 << 21;  // 32 copies of the largest frame
    static constexpr std::size_t kMostCopies = 1024;

    void look_at(std::uint32_t number);
    void look_at_all();

    Engine *const engine_;
    FramePool *const frames_;
    const std::uint32_t cpu_port_;
    const ina_pipeline *pipeline_ = nullptr;
    void *state_ = nullptr;
    std::vector<Port *> ports_;              // by number
    std::vector<std::uint32_t> attached_;    // numbers of those that there are
    std::unique_ptr<std::uint8_t[]> arena_;  // of output_, as the next two
    std::vector<ina_packet_out> packets_;
    std::vector<std::uint32_t> depth_packets_;
    ina_output output_{};
    // When a depth is right no more. So a packet costs a look at those ports alone that have sent
    // one since the last, instead of one at each.
    std::vector<std::int64_t> right_until_ns_;  // by port; what it has sent by then, it has sent
    std::int64_t all_right_until_ns_ = kNever;  // the first of them
    P4SwitchCounters counters_;
};

}  // namespace ina::sim
