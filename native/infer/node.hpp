// A node of a plan, without sockets and clocks: datagrams and results in, datagrams and
// contributions out, time passed in.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "infer/entry.hpp"
#include "infer/outbox.hpp"
#include "infer/stages.hpp"
#include "infer/sum_engine.hpp"
#include "infer/trace.hpp"

namespace ina::infer {

// What sums the parts of a stage.
struct StageSums {
    std::size_t stage;
    std::shared_ptr<SumEngine> engine;
};

class Node : private Sums {
  public:
    // Each stage of this node's that is summed has an engine. Throws std::invalid_argument.
    Node(Program program, const EntryConfig &entry, std::vector<StageSums> sums,
         std::size_t most_moments);

    // A datagram that came from there.
    void receive(const Peer &from, const std::uint8_t *packet, std::size_t bytes,
                 std::int64_t now_ns);
    // A packet from the switch of sums()[at].
    void receive_result(std::size_t at, const std::uint8_t *packet, std::size_t bytes,
                        std::int64_t now_ns, bool ip_marked) {
        sums_[at].engine->receive(packet, bytes, now_ns, ip_marked);
        take_sums();
    }
    // To be called after whatever else is, before outbox() is sent and emptied. Calls
    // send(at, packets, count) with contributions for the switch of sums()[at].
    template <typename Send>
    void work(std::int64_t now_ns, const Send &send) {
        trace_.set_time(now_ns);
        std::uint64_t before = 0;
        do {  // what is done may bring more to sum
            take_sums();
            poll(now_ns);
            before = submitted_;
            for (std::size_t at = 0; at < sums_.size(); ++at) {
                sums_[at].engine->work(now_ns,
                                       [&](const host::PacketView *packets, std::size_t count) {
                                           send(at, packets, count);
                                       });
            }
            take_sums();
        } while (submitted_ != before);
    }
    // Its thread does not wait for the bell any more.
    void awake() {
        for (const StageSums &one : sums_) one.engine->awake();
    }
    bool may_wait() {
        return std::all_of(sums_.begin(), sums_.end(),
                           [](const StageSums &one) { return one.engine->may_wait(); });
    }
    std::int64_t next_deadline_ns() const;  // INT64_MAX: none
    Outbox &outbox() { return outbox_; }

    // It, or the plan, does not work any more. Idempotent.
    void fail(const Failure &failure);
    const Failure &failure() const { return failure_; }

    const Program &program() const { return program_; }
    const std::vector<StageSums> &sums() const { return sums_; }
    const StagesCounters &counters() const { return stages_.counters(); }
    const Entry *entry() const { return entry_.get(); }  // null: it is another node
    std::uint64_t damaged() const { return damaged_; }   // packets that are not whole, or not ours
    Trace &trace() { return trace_; }

  private:
    void submit(std::size_t stage, std::uint64_t seq, const std::int32_t *part, std::int32_t *sum,
                std::size_t values) override;
    void take_sums();
    void poll(std::int64_t now_ns);
    void on_fault(const Header &header);
    void note_progress(std::int64_t now_ns);
    void tell_progress();
    bool is_of(const Header &header, const Peer &from) const {
        return header.sender < program_.nodes.size() && program_.nodes[header.sender] == from;
    }
    Header header(Kind kind) const;

    const Program program_;
    std::vector<StageSums> sums_;
    Trace trace_;
    Outbox outbox_;
    Stages stages_;
    std::unique_ptr<Entry> entry_;
    Failure failure_;
    int told_ = 0;  // so often the entry, of a failure
    std::int64_t tell_at_ns_ = INT64_MAX;
    std::uint64_t told_blocks_ = 0;         // of those that this node is done with
    std::int64_t progress_ns_ = INT64_MAX;  // when to tell of the others
    std::uint64_t damaged_ = 0;
    std::uint64_t submitted_ = 0;  // parts, to be summed
};

}  // namespace ina::infer
