// The worker's side of mode `pool`, without sockets or clocks: tensors and result packets in,
// contribution packets and completions out, time passed in (any monotonic clock, ns).
//
// W = window = slots / 2, rounded down to a power of two. Lane i owns the sequence numbers
// i, i + W, i + 2W ...: it sends one and waits for its result before the next (stop and wait), so
// it alternates between slots i and i + W. Why two versions are enough: a worker sends s + 2W only
// after the result of s + W, to which every worker has contributed, and none does so before it has
// the result of s; nobody needs slot s mod 2W any more. That is also why a lane never skips a
// number.
//
// Chunk i of a tensor runs on lane (first_lane + i) mod W, and the next tensor's first lane follows
// the last chunk's, but for small float tensors (exponent_history.hpp). Tensors queue up in each
// lane by themselves: a lane that is done with one goes on to the next while others still wait.
// Which chunk a lane sends next depends on the sizes and types of the tensors in the order of
// submission, and on the lane's results, which all workers have alike; never on timing.
//
// Workers must have agreed on a float chunk's exponent to sum it. Each packet with values carries
// the exponent of the lane's next chunk, also of the next tensor's first one; a worker to which
// that tensor has not been submitted yet says so (kUnknownExponent), and then all know that it is
// not known. If so, the lane guesses, for a small tensor, or the workers agree in a round without
// values. A packet with a guess carries the chunk's own exponent; if the maximum is not the guess,
// the same chunk is sent once more, with what is now agreed.
//
// A worker may divide its lanes between several cores, each with a share of them in a row. Each is
// given every tensor and is done with it when its own lanes are. On the wire nothing tells.
//
// Not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "congestion/window.hpp"
#include "host/core/digest.hpp"
#include "host/core/placement.hpp"
#include "host/core/worker_types.hpp"
#include "host/recovery/resends.hpp"

namespace ina::host {

inline constexpr std::int64_t kNever = INT64_MAX;

// As the exponent of a tensor's first chunk on a lane: some worker does not know it. A block of
// values from 2^127 on has the same exponent, and just takes a round of its own.
inline constexpr std::uint8_t kUnknownExponent = 255;

// W. Throws std::invalid_argument.
std::uint32_t window_of(const WorkerConfig &config);

class WorkerCore {
  public:
    // Throws std::invalid_argument when a number is out of range.
    // `memory`: at least W frames, for packets that another process reads from there; by default
    // its own memory.
    WorkerCore(const WorkerConfig &config, std::unique_ptr<CongestionWindow> congestion,
               const PacketMemory &memory = {});

    // Appends a tensor to the job's sequence. An empty one completes at once. All workers must
    // submit tensors of the same sizes, types and operations in the same order; see mismatch().
    void submit(const TensorRequest &request, std::int64_t now_ns);

    // Fills `batch` with packets to send now; call again while it comes back full. The views hold
    // until the next call of on_result. A packet that the caller fails to send counts as lost.
    std::size_t poll_transmit(std::int64_t now_ns, PacketView *batch, std::size_t capacity);

    // One received UDP payload. Whatever is not the result that a lane waits for is counted and
    // ignored. `ip_marked`: the IP header had Congestion Experienced. `values`: where the payload
    // goes on behind the header, if not there.
    void on_result(const std::uint8_t *payload, std::size_t bytes, std::int64_t now_ns,
                   bool ip_marked = false, const std::uint8_t *values = nullptr);

    // When to call poll_transmit next if nothing arrives; in the past when packets are ready;
    // kNever when idle.
    std::int64_t next_deadline_ns(std::int64_t now_ns) const;
    // How long to let results gather before they are read, once those that are here have been: the
    // network has enough to do meanwhile. 0: read each as it comes.
    std::int64_t moderation_ns() const;
    // So many packets at most should go as one train.
    std::uint32_t longest_train() const { return congestion_->longest_train(); }

    // Ids of the tensors completed since the last call: as far as this core has a part in them.
    std::vector<std::uint64_t> take_completions();

    // Another share of the worker accepted a result: it is not stalled, whatever this one waits
    // for.
    void note_progress(std::int64_t at_ns) {
        last_progress_ns_ = std::max(last_progress_ns_, at_ns);
    }

    // Set once no chunk has completed for the stall timeout; the core then stays silent.
    const std::optional<StallReport> &stall() const { return stall_; }

    // Set once a result shows that other workers have submitted other things. Nothing of it was
    // taken; the core then stays silent.
    const std::optional<Mismatch> &mismatch() const { return mismatch_; }
    // Of the tensors with a result so far, the one submitted last: all workers have submitted the
    // same up to it. 0: none.
    std::uint64_t agreed() const { return agreed_; }

    // Of this core's lanes, as are the next three.
    LaneSnapshot lanes(std::int64_t now_ns) const;

    // For recovery, once nothing is sent or received any more (worker_recovery.cpp).
    LaneResult lane_result(std::uint32_t lane) const;
    std::vector<PendingTensor> pending() const;  // in the order of submission
    // Takes the values that another worker's lane_result has for the packet that this lane waits
    // for. Throws std::invalid_argument when the lane does not wait for them.
    void put_result(std::uint32_t lane, std::uint32_t seq, const void *data, std::size_t bytes);

    const WorkerCounters &counters() const { return counters_; }
    // Decides which of the last packets sent again were lost, after a timeout in which another
    // answer might have come. A lane that goes on decides by itself.
    void settle_resends(std::int64_t now_ns);
    std::int64_t srtt_ns() const { return rtt_.srtt_ns(); }
    std::int64_t rto_ns() const { return rtt_.timeout_ns(0); }
    std::uint32_t window() const { return window_; }  // W, of all shares
    std::uint32_t first_lane() const { return first_own_; }
    std::uint32_t lane_count() const { return static_cast<std::uint32_t>(lanes_.size()); }
    std::uint32_t in_flight() const { return in_flight_; }
    // Of the congestion window, and this core's lanes.
    std::uint32_t in_flight_limit() const { return std::min(lane_count(), congestion_->packets()); }
    std::uint64_t tensors_pending() const { return tensors_.size(); }

  private:
    struct Tensor {
        TensorRequest request;
        Place place;
        std::uint64_t first_order;  // chunk 0's; see Lane::order
        std::uint64_t digest;       // of all submissions up to this one
        std::uint64_t chunks_left;  // on this core's lanes
    };
    struct Assignment {  // a lane's part of a tensor: chunks first_chunk, + W, + 2W ...
        Tensor *tensor;
        std::uint64_t first_chunk;
    };
    struct Accepted {  // a lane's last result
        std::uint64_t tensor = 0;
        std::uint64_t chunk = 0;
        std::uint32_t bytes = 0;  // in the tensor; 0: the round brought no sums
        bool kept = false;        // its values are in kept_memory_, not only in the tensor
    };
    static constexpr std::uint32_t kNoLane = UINT32_MAX;  // others are indices in lanes_
    enum class LaneState : std::uint8_t { kIdle, kReady, kWaiting };
    enum class Round : std::uint8_t {
        kValues,
        kExponent,  // no values
        kGuess,     // values, by an exponent that is not agreed
    };
    struct Lane {
        std::uint32_t seq = 0;  // of the packet being prepared or in flight
        LaneState state = LaneState::kIdle;
        Round round = Round::kValues;
        bool non_finite = false;    // the chunk to send holds Inf or NaN
        std::uint8_t exponent = 0;  // agreed, or guessed, for the chunk to send
        // Agreed for the next tensor's first chunk.
        std::uint8_t next_tensor_exponent = kUnknownExponent;
        std::uint8_t retries = 0;   // times that the packet in flight was sent again
        std::uint8_t timeouts = 0;  // so many of them because its timer ran out
        bool has_history = false;   // at least one result was accepted on this lane
        Tensor *tensor = nullptr;
        std::uint64_t chunk = 0;
        std::uint64_t order = 0;  // of the chunk, among all chunks submitted: the same on all ranks
        std::uint32_t newer = kNoLane;  // neighbours in order of sent_ns while kWaiting
        std::uint32_t older = kNoLane;
        std::int64_t sent_ns = 0;        // last time
        std::int64_t first_sent_ns = 0;  // of this packet
        // Of the packet before, if it was sent again once: how much later a packet was sent whose
        // result came before. 0: it was not, or it is known already whether it was lost.
        std::int64_t overtaken_by_ns = 0;
        std::size_t packet_bytes = 0;
        Resends resends;
        Accepted accepted;
        std::deque<Assignment> queue;
    };

    // In lanes_, of the lane with such a sequence number: lanes_.size() or more if not ours.
    std::uint32_t own_index(std::uint32_t seq) const { return (seq & (window_ - 1)) - first_own_; }
    std::uint8_t *packet(const Lane &lane);
    std::uint8_t *kept(std::size_t lane);
    // Of a chunk, in its tensor's history.
    static std::uint32_t block(const Tensor &tensor, std::uint64_t chunk) {
        return tensor.place.first_block + static_cast<std::uint32_t>(chunk);
    }
    std::size_t chunk_elems(const Tensor &tensor, std::uint64_t chunk) const;
    std::size_t chunk_bytes(const Tensor &tensor, std::uint64_t chunk) const;
    std::size_t chunk_offset_bytes(const Tensor &tensor, std::uint64_t chunk) const;
    void complete(std::uint64_t id);
    void start_next_assignment(Lane &lane);
    void make_ready(Lane &lane);
    void build_packet(Lane &lane);
    void announce_next(Lane &lane, wire::Header &header);
    BlockScan scan(const Tensor &tensor, std::uint64_t chunk) const;
    void note_overtaken(Lane &lane);
    void note_answer(const Lane &lane, std::int64_t now_ns);
    void note_duplicate(Lane &lane, std::int64_t now_ns);
    std::int64_t tolerance_ns(std::int64_t now_ns);
    static bool guess_holds(const Lane &lane, const wire::Header &header);
    bool is_whole(const Lane &lane, const wire::Header &header) const;
    bool all_agree(const Lane &lane, const wire::Header &header) const;
    bool fits(const Lane &lane, const wire::Header &header);
    void write_result(const Lane &lane, const wire::Header &header, const std::uint8_t *values);
    void remember(Lane &lane, bool has_sums);
    void advance(Lane &lane, bool has_sums, std::uint8_t next_exponent);
    bool may_send_next() const;
    std::uint64_t lowest_order() const;  // of the lanes in flight, of which there is one
    void link_newest(Lane &lane);
    void unlink(Lane &lane);
    std::size_t resend_overtaken(std::int64_t now_ns, PacketView *batch, std::size_t capacity);
    std::size_t resend_expired(std::int64_t now_ns, PacketView *batch, std::size_t capacity);
    std::size_t resend_probes(std::int64_t now_ns, PacketView *batch, std::size_t capacity);
    PacketView resend(Lane &lane, ResendReason reason, std::int64_t now_ns);
    PacketView emit(Lane &lane, std::int64_t now_ns);
    std::int64_t lane_deadline_ns(const Lane &lane) const;
    std::int64_t quiet_deadline_ns() const;
    std::int64_t tail_deadline_ns() const;
    std::int64_t probe_deadline_ns() const;
    // The copy of this worker's packet that a result answers; 0: the first, or another worker's.
    std::uint32_t needed_copy(const wire::Header &header) const;
    bool stalled(std::int64_t now_ns);
    const Lane *longest_waiting() const;  // null: nothing is in flight

    WorkerConfig config_;
    std::uint32_t window_;
    std::uint32_t first_own_;  // the first of this core's lanes
    std::uint32_t full_bitmap_;
    std::size_t values_bytes_;  // of a packet
    std::vector<std::uint8_t> own_memory_;
    PacketMemory memory_;                    // a packet stays in its frame for retransmission
    std::vector<std::uint8_t> kept_memory_;  // one result a lane, where they are to be kept
    const Kernels &kernels_;
    std::unique_ptr<CongestionWindow> congestion_;
    RttEstimator rtt_;

    std::vector<Lane> lanes_;
    Placement placement_;
    std::unordered_map<std::uint64_t, Tensor> tensors_;  // by id; pointers to elements stay valid
    std::uint64_t next_order_ = 0;                       // of the next tensor's chunk 0
    std::deque<std::uint32_t> ready_;  // indices of lanes in state kReady, by Lane::order
    std::uint32_t in_flight_ = 0;      // lanes in state kWaiting, linked from oldest_ to newest_
    std::uint32_t oldest_ = kNoLane;
    std::uint32_t newest_ = kNoLane;
    std::vector<std::uint64_t> completions_;
    SubmissionDigest digest_;
    std::uint64_t agreed_ = 0;
    std::optional<StallReport> stall_;
    std::optional<Mismatch> mismatch_;
    WorkerCounters counters_;

    // Loss recovery. In the flow, a packet counts as lost when the result of one that was sent a
    // little later is here (as in RACK, RFC 8985): a late worker delays all results alike, so this
    // does not mistake lateness for loss. Nothing overtakes the last packets: after two round trips
    // without a result a few are sent again, as probes, and once more after twice as long. Once
    // nothing has been heard for a timeout, the most likely cause is a worker that is late with
    // everything: then probes go at doubling intervals, only a few at a time. Each lane's timer
    // covers what is left.
    std::int64_t overtaken_ns_ = 0;     // latest sent_ns of an answered packet that was sent once
    bool overtaken_moved_ = false;      // since the lanes were last checked against it
    std::int64_t reordering_ns_ = 0;    // the largest that turned out to be no loss
    std::int64_t reordered_at_ns_ = 0;  // when that was found, or last halved
    double in_vain_ = 0;  // share of late: packets sent again because overtaken, and not lost
    std::int64_t scan_at_ns_ = kNever;   // no timer runs out before
    std::int64_t scan_rto_ns_ = 0;       // the largest timeout that scan_at_ns_ was computed with
    std::int64_t last_progress_ns_ = 0;  // a result was accepted, or a tensor came to an idle core
    std::int64_t heard_ns_ = 0;          // a result was accepted, or the first packet went out
    std::int64_t last_resend_ns_ = 0;
    std::int64_t resumed_ns_ = 0;  // results came again after a quiet time: lane timers start anew
    bool quiet_ = false;
    int tail_probes_ = 0;           // rounds since something was heard
    std::uint32_t probes_ = 0;      // of the last round
    bool more_probes_ = false;      // all of them were answered, and nothing else
    std::uint32_t unanswered_ = 0;  // of them, as long as no other result came
};

}  // namespace ina::host
