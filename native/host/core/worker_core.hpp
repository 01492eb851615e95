// The worker's side of mode `pool`, without sockets or clocks: tensors and result packets in,
// contribution packets and completions out, time passed in (any monotonic clock, ns).
//
// W = window = slots / 2, rounded down to a power of two. The slots are those of one switch, or of
// the trees of switches among which the lanes are dealt (tree.hpp). Lane i owns the sequence
// numbers i, i + W, i + 2W ...: it sends one and waits for its result before the next (stop and
// wait), so it alternates between two slots. Why two versions are enough: a worker sends s + 2W
// only after the result of s + W, to which every worker has contributed, and none does so before it
// has the result of s; nobody needs the slot of s any more. That is also why a lane never skips a
// number.
//
// Chunk i of a sum runs on lane (first_lane + i) mod W, and the next tensor's first lane follows
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
// A worker takes part in each round, also where it has nothing to give, or gets nothing: then it
// sends a header alone, or is sent one (submission.hpp). Which of them have values, all workers
// know alike. Scatters run on the even lanes and gathers on the odd ones, and while both wait each
// has half of what may be in flight.
//
// A worker may divide its lanes between several cores, each with a share of them in a row, of one
// tree. Each is given every tensor and is done with it when its own lanes are. On the wire nothing
// tells.
//
// What becomes of a lane's packet on the way, and when it is sent again, is LossRecovery's
// (host/recovery); what is in it, ChunkCodec's; what a lane does next, the table in lane.hpp.
//
// Not thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "congestion/algorithms.hpp"
#include "host/core/chunk_codec.hpp"
#include "host/core/failed_checks.hpp"
#include "host/core/kept_results.hpp"
#include "host/core/lane.hpp"
#include "host/core/packet_frames.hpp"
#include "host/core/schedule.hpp"
#include "host/core/submission.hpp"
#include "host/core/worker_config.hpp"
#include "host/core/worker_types.hpp"
#include "host/recovery/loss_recovery.hpp"

namespace ina::host {

class WorkerCore {
  public:
    // Throws std::invalid_argument when a number is out of range.
    // `memory`: at least W frames, for packets that another process reads from there; by default
    // its own memory.
    WorkerCore(const WorkerConfig &config, congestion::Control control,
               const PacketMemory &memory = {});

    // Appends a tensor to the job's sequence, placed by the worker's SubmissionOrder. An empty one
    // completes at once. All workers must submit tensors of the same sizes, types and operations in
    // the same order; see mismatch().
    void submit(const Submission &submission, std::int64_t now_ns);

    // Takes back the tensors with this id or a later one, sent or not: another core has them from
    // now on, and this one gets no more. Of none of them a result has come, here or on another
    // worker, and none will: some worker has sent nothing of them. Throws std::logic_error when one
    // has come.
    void withdraw_from(std::uint64_t id);

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
    // Set once too many results were not the sums of what the workers had sent. Nothing of those
    // was taken; the core then stays silent.
    const std::optional<Corruption> &corruption() const { return corruption_; }
    bool has_stopped() const { return stall_ || mismatch_ || corruption_; }
    // Of the tensors with a result so far, the one submitted last: all workers have submitted the
    // same up to it. 0: none.
    std::uint64_t agreed() const { return agreed_; }

    // Of this core's lanes, as are the next three.
    LaneSnapshot lanes(std::int64_t now_ns) const;

    // For going on without the switch, once nothing is sent or received any more
    // (kept_results.hpp).
    LaneResult lane_result(std::uint32_t lane);
    std::vector<PendingTensor> pending() const;  // in the order of submission
    // The words, as on the wire, that this worker gives or gave to the lane's round with this
    // number, which is its newest with a result, or waits for one; empty: it gives none. Throws
    // std::invalid_argument: it is neither.
    std::vector<std::uint8_t> own_part(std::uint32_t lane, std::uint32_t seq);
    // Takes for the packet that this lane waits for the values that another worker's lane_result
    // has; nothing, where this worker gets none; or, where it owns the chunk of a scatter, the sum
    // of all own_part, of a round that was told to be non_finite or was not. Throws
    // std::invalid_argument when the lane does not wait for them.
    void put_result(std::uint32_t lane, std::uint32_t seq, const void *data, std::size_t bytes,
                    bool non_finite = false);

    const WorkerConfig &config() const { return config_; }
    WorkerCounters counters() const;
    // So many rounds brought a result.
    std::uint64_t results() const { return counters_.chunks_done + counters_.exponent_rounds; }
    std::uint64_t chunks() const { return counters_.chunks_done; }  // of them, with sums
    const LossRecovery &recovery() const { return recovery_; }
    void settle_resends(std::int64_t now_ns) { recovery_.settle(now_ns); }
    // From now on another algorithm says, or no more are in flight than so many: of this core's
    // lanes. What is in flight stays; no lane's next packet depends on either.
    void set_control(congestion::Control control) {
        recovery_.set_window(std::move(control.window));
        claims_ = std::move(control.claims);
    }
    void set_most(std::uint32_t packets) { recovery_.set_most(packets); }
    std::uint32_t window() const { return window_; }  // W, of all shares
    std::uint32_t first_lane() const { return first_own_; }
    std::uint32_t lane_count() const { return static_cast<std::uint32_t>(lanes_.size()); }
    std::uint32_t in_flight() const { return recovery_.flights().size(); }
    // Of the congestion window, and this core's lanes.
    std::uint32_t in_flight_limit() const {
        return std::min(lane_count(), recovery_.window_packets());
    }

  private:
    // In lanes_, of the lane with such a sequence number: lanes_.size() or more if not ours.
    std::uint32_t own_index(std::uint32_t seq) const { return (seq & (window_ - 1)) - first_own_; }
    void complete(std::uint64_t id);
    void start_next_assignment(Lane &lane);
    void make_integers_ready(Lane &lane);
    void make_ready(Lane &lane, LaneEvent event);
    std::optional<std::uint8_t> next_flow() const;
    PacketView view_of(std::uint32_t lane);
    void pass_slots_by(std::uint32_t lane);
    PacketView send_again(const Resend &resend);
    Lane *lane_for(const wire::Header &header, std::int64_t now_ns);
    bool accepts(Lane &lane, const wire::Header &header, const std::uint8_t *values);
    void count(const Lane &lane, bool has_sums, bool was_guess);
    void advance(Lane &lane, KeptResults::Brought brought, const wire::Header &result,
                 std::uint64_t next);
    Lane &lane_numbered(std::uint32_t number);
    bool stalled(std::int64_t now_ns);
    std::size_t values_bytes() const { return wire::kValueBytes * config_.values_per_packet; }

    WorkerConfig config_;
    Tree tree_;
    std::uint32_t window_;
    std::uint32_t first_own_;  // the first of this core's lanes
    Schedule schedule_;
    ChunkCodec codec_;
    LossRecovery recovery_;
    std::shared_ptr<congestion::SlotClaims> claims_;  // null: all lanes claim slots
    std::vector<Lane> lanes_;
    PacketFrames frames_;
    KeptResults kept_;

    Tensors tensors_;
    // By flow: indices of lanes that are ready, by Lane::order().
    std::array<std::deque<std::uint32_t>, kFlows> ready_;
    std::vector<std::uint64_t> completions_;
    std::uint64_t agreed_ = 0;
    std::int64_t last_progress_ns_ = 0;  // a result was accepted, or a tensor came to an idle core
    std::optional<StallReport> stall_;
    std::optional<Mismatch> mismatch_;
    FailedChecks failed_checks_;
    std::optional<Corruption> corruption_;
    WorkerCounters counters_;  // but for what recovery_ counts
};

}  // namespace ina::host
