// The entry of a plan, at one of its nodes: it puts what is asked together, gives each block its
// number among all, and keeps at it until all nodes are done. It decides nothing else: which kernel
// runs where and when follows from the packets.
//
// Blocks under way are as many as the ring has places; those that come then wait, so many more, and
// what does not find room there is dropped, to be asked again. What is lost between nodes shows in
// their progress: the block's input is sent again, with a new attempt, upon which each node sends
// again what it has made of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "host/recovery/rtt_estimator.hpp"
#include "infer/stages.hpp"

namespace ina::infer {

struct EntryConfig {
    // Until a block is through all nodes, which tell of it with some delay.
    host::RtoLimits rto{100'000'000, 30'000'000, 400'000'000};
    std::int64_t patience_ns = 3'000'000'000;  // without a word of a node that is asked for one
    std::int64_t least_gap_ns = 2'000'000;     // between attempts at a block
};

struct Failure {
    Fault fault = Fault::kNone;
    std::uint16_t node = kClient;  // who is lost
    std::uint16_t stage = 0;       // whose sums are
};

struct EntryCounters {
    std::uint64_t blocks = 0;  // begun
    std::uint64_t again = 0;   // asked for again while under way
    std::uint64_t timeouts = 0;
    std::uint64_t refused = 0;  // packets for which there was no room
    std::uint64_t strays = 0;   // packets that cannot be
};

class Entry {
  public:
    Entry(const Program &program, const EntryConfig &config, Stages *stages, Outbox *outbox);

    // Values for the input, of who asks at this address.
    void on_input(Header header, const std::uint8_t *payload, std::size_t bytes, const Peer &from,
                  std::int64_t now_ns);
    void on_progress(const Header &header, const std::uint8_t *payload, std::size_t bytes,
                     std::int64_t now_ns);
    void heard(std::uint16_t node, std::int64_t now_ns) { heard_ns_[node] = now_ns; }
    // To be called after whatever else is.
    void poll(std::int64_t now_ns);
    std::int64_t next_deadline_ns() const;  // INT64_MAX: none
    // Nothing will be done any more; all who ask are told, now and later.
    void fail(const Failure &failure);

    const Failure &failure() const { return failure_; }
    const EntryCounters &counters() const { return counters_; }
    std::uint64_t under_way() const { return next_ - base_; }

  private:
    struct Hash {
        std::size_t operator()(const Origin &origin) const {
            const std::uint64_t low = std::uint64_t{origin.request} << 32 | origin.block;
            return std::hash<std::uint64_t>()(low ^ std::uint64_t{origin.nonce} << 20);
        }
    };
    struct Assembly {
        Pieces pieces;
        std::vector<std::int32_t> values;
        std::int64_t at_ns = 0;  // when the newest came
    };
    struct Begun {
        Origin origin;
        std::int64_t at_ns = 0;
        std::int64_t sent_ns = 0;  // the newest attempt
        std::uint16_t attempt = 0;
        std::uint64_t done = 0;  // nodes
    };
    struct Waiting {
        Origin origin;
        std::vector<std::int32_t> values;
    };

    Begun &at(std::uint64_t seq) { return begun_[seq % program_.ring]; }
    bool is_known(const Header &header, const Origin &origin, std::int64_t now_ns);
    void take(const Origin &origin, std::vector<std::int32_t> values, std::int64_t now_ns);
    bool is_admitted(const std::vector<std::int32_t> &values) const;
    void begin(const Origin &origin, const std::vector<std::int32_t> &values, std::int64_t now_ns);
    void advance(std::int64_t now_ns);
    void try_again(std::uint64_t seq, std::int64_t now_ns);
    void look_at_time(std::int64_t now_ns);
    std::uint64_t lacking(std::uint64_t seq) const;
    void tell_status(const Origin &origin, std::uint64_t seq, std::int64_t now_ns);
    void tell_fault(const Origin &origin, const Failure &failure);
    void tell_nodes();
    Header header_for(const Origin &origin, Kind kind) const;
    std::int64_t silence_ns(std::uint16_t node, std::uint64_t seq, std::int64_t now_ns) const;

    const Program &program_;
    const EntryConfig config_;
    Stages *const stages_;
    Outbox *const outbox_;
    const Place input_;
    std::unordered_map<Origin, Assembly, Hash> assemblies_;
    std::unordered_map<Origin, std::uint64_t, Hash> numbers_;  // of blocks under way
    std::deque<Waiting> waiting_;
    std::unordered_map<Origin, bool, Hash> waits_;
    std::vector<Begun> begun_;  // by number, in the ring
    std::vector<std::int64_t> heard_ns_;
    std::uint64_t base_ = 0;
    std::uint64_t next_ = 0;
    host::RttEstimator rtt_;
    int backoff_ = 0;
    std::int64_t look_at_ns_ = INT64_MAX;
    Failure failure_;
    int told_ = 0;  // so often the nodes, of a failure
    std::int64_t tell_at_ns_ = 0;
    EntryCounters counters_;
};

}  // namespace ina::infer
