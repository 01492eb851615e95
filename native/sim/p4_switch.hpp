// A switch that runs a compiled P4 program. Its registers and tables are in a state of the
// pipeline, which Python has made and fills; it stays Python's.
//
// By default it is hardware: a packet that arrives leaves at once. With a setup it is the soft
// switch: a thread that is woken, takes what has come, up to a batch, needs its time for it, and
// sends what came of it, with what goes to one receiver as super-packets.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "sim/port.hpp"
#include "sim/random.hpp"
#include "sim/ring.hpp"
#include "sim/waking.hpp"
#include "switch/pipeline_abi.h"

namespace ina::sim {

struct SwitchSetup {
    std::int64_t packet_cost_ns = 0;  // of the thread, to take or to send one
    WakeConfig wake;                  // of the thread
    double loss = 0;      // of each packet at each port, as it arrives, and before it is sent
    bool trains = false;  // packets go in trains, as with GSO

    bool is_soft() const { return packet_cost_ns > 0 || !wake.is_instant() || loss > 0 || trains; }
};

struct P4SwitchCounters {
    std::uint64_t received_packets = 0;
    std::uint64_t off_packets = 0;           // received without power, or without a program
    std::uint64_t sent_packets = 0;          // copies that were handed to ports
    std::uint64_t unknown_port_packets = 0;  // for a port that this switch does not have
    std::uint64_t to_controller_packets = 0;
    std::uint64_t loss_in_packets = 0;  // dropped by the setup's loss
    std::uint64_t loss_out_packets = 0;
};

class P4Switch final : public Node, public Element {
  public:
    P4Switch(Engine *engine, FramePool *frames, std::uint32_t cpu_port, const SwitchSetup &setup,
             Stream losses, Stream wakes);

    void attach(std::uint32_t port, Port *leaving) override;
    // Both live until the next call. Null: it has no power, or no program; frames are dropped.
    void set_pipeline(const ina_pipeline *pipeline, void *state);
    void receive(Frame frame, std::uint32_t port) override;
    void on_event(std::uint64_t what) override;
    // What waits in its queues is lost, as when its power fails.
    void clear_queues();

    const P4SwitchCounters &counters() const { return counters_; }

  private:
    static constexpr std::size_t kArenaBytes = 1 << 21;  // 32 copies of the largest frame
    static constexpr std::size_t kMostCopies = 1024;

    enum What : std::uint64_t { kWork, kSend };
    static constexpr std::size_t kBatch = 192;        // packets, as sw::FrameBatch
    static constexpr std::size_t kReceive = 128;      // for so many there must be room in it
    static constexpr std::size_t kTrainPackets = 64;  // as sw::UdpSender, as the next
    static constexpr std::size_t kTrainBytes = 65507;

    void look_at(std::uint32_t number);
    void look_at_all();
    void process(const Frame &frame, std::uint32_t port);
    void work();
    void send_outbox();
    void send_trains(std::uint32_t port, std::vector<Frame> *frames);

    Engine *const engine_;
    FramePool *const frames_;
    const std::uint32_t cpu_port_;
    const SwitchSetup setup_;
    Stream random_;
    Waking waking_;
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

    // Of a soft switch.
    Ring<std::pair<Frame, std::uint32_t>> inbox_;          // with the port of each
    std::vector<std::pair<std::uint32_t, Frame>> outbox_;  // written, until the thread is done
    std::int64_t free_ns_ = 0;                             // when it is
    bool is_put_down_ = false;                             // that it works
};

}  // namespace ina::sim
