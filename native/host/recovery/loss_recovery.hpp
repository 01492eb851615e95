// Finds out which packets were lost, says when to send them again, and tells the congestion window.
// Events in, lanes out; it knows neither tensors nor packets, neither sockets nor clocks (time is
// passed in: any monotonic clock, ns).
//
// In the flow, a packet counts as lost when the result of one that was sent a little later is here
// (as in RACK, RFC 8985): a late worker delays all results alike, so this does not mistake lateness
// for loss. Nothing overtakes the last packets: after two round trips without a result a few are
// sent again, as probes, and once more after twice as long. Once nothing has been heard for a
// timeout, the most likely cause is a worker that is late with everything: then probes go at
// doubling intervals, only a few at a time. How late workers are is learnt (Lateness), and waited
// for before the first probe. Each lane's timer covers what is left.
//
// Not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "congestion/window.hpp"
#include "host/recovery/flight_list.hpp"
#include "host/recovery/lateness.hpp"
#include "host/recovery/overtaking.hpp"
#include "host/recovery/pacer.hpp"
#include "host/recovery/resends.hpp"
#include "host/recovery/rtt_estimator.hpp"

namespace ina::host {

inline constexpr std::int64_t kNever = INT64_MAX;

// A packet to send once more.
struct Resend {
    std::uint32_t lane;
    std::uint32_t copy;  // 1: the first copy after the packet itself; see Origin
};

// What a result tells of its way.
struct Answer {
    std::uint32_t copy = 0;    // of our packet, that it answers; 0: the first, or another worker's
    bool others_loss = false;  // it answers another worker's resend: that had lost its packet
    bool marked = false;       // a queue on its way was long (ECN)
    bool marked_here = false;  // in the IP header: the last contribution's way, or the result's own
    bool is_own = false;       // it was our packet that completed the sum
};

class LossRecovery {
  public:
    // Lanes are numbered from 0. small_share: which part of a packet with values one without is.
    LossRecovery(std::uint32_t lanes, const RtoLimits &limits,
                 std::shared_ptr<congestion::Window> window, double small_share);

    // What is new of a packet to send, of a chunk of such an order among its flow's.
    struct Packet {
        std::uint64_t order;
        std::uint8_t kind;  // of round, below Overtaking::kKinds
        std::uint8_t flow;  // below kFlows
        bool is_small;      // neither it nor its result has values
    };
    // A lane sends a new packet; it has none in flight.
    void sent(std::uint32_t lane, const Packet &packet, std::int64_t now_ns);
    // The result of the packet in flight was accepted.
    void answered(std::uint32_t lane, const Answer &answer, std::int64_t now_ns);
    // The result of the packet answered before came once more.
    void duplicate(std::uint32_t lane, std::uint32_t copy, std::int64_t now_ns);
    // What the lane waits for came from elsewhere than the network.
    void withdrawn(std::uint32_t lane);
    // The packets to send again by now, at most `capacity`, which count as sent; call again while
    // there are as many.
    std::size_t due(std::int64_t now_ns, Resend *resends, std::size_t capacity);
    // When to call due() next if nothing happens. After an event, call it first.
    std::int64_t deadline_ns() const {
        return overtaken_left_ ? std::min(scan_at_ns_, pacer_.next_ns()) : scan_at_ns_;
    }

    // Whether one more packet, of a chunk of this order, may be sent for the first time: now, or
    // once the pace allows it. is_shared: packets of other flows wait or are in flight, too; then
    // the flow has half of the window.
    bool has_room_for(std::uint64_t order, std::uint8_t flow, bool is_shared) const;
    // When the next one may go; in the past where nothing holds it up.
    std::int64_t paced_ns() const { return pacer_.first_copy_ns(); }
    // Whether it is the pace alone that the next one waits for.
    void note_paced(bool waits) { pacer_.holds_up(waits); }
    // From now on no more than so many are in flight, whatever the window says; those that are
    // stay.
    void set_most(std::uint32_t packets) { most_ = packets; }
    // From now on another window says; it knows nothing of what was. Nothing waits for what the
    // former's pace has put off.
    void set_window(std::shared_ptr<congestion::Window> window) {
        window_ = std::move(window);
        pacer_ = {};
    }
    // Decides which of the last packets sent again were lost, after a timeout in which another
    // answer might have come. A lane that goes on decides by itself.
    void settle(std::int64_t now_ns);

    const FlightList &flights() const { return flights_; }
    const RttEstimator &rtt() const { return rtt_; }
    std::uint32_t window_packets() const { return std::min(window_->packets(), most_); }
    const RecoveryCounters &counters() const { return counters_; }
    // When the last result was accepted, or the first packet went out.
    std::int64_t heard_ns() const { return heard_ns_; }

  private:
    void note_overtaken(Flight &flight);
    void note_silence(const Answer &answer, std::int64_t now_ns);
    void note_copies(const Flight &flight, const Answer &answer, std::int64_t now_ns);
    std::int64_t tolerance_ns(std::int64_t now_ns);
    std::size_t resend_overtaken(std::int64_t now_ns, Resend *resends, std::size_t capacity);
    std::size_t resend_expired(std::int64_t now_ns, Resend *resends, std::size_t capacity);
    std::size_t resend_probes(std::int64_t now_ns, Resend *resends, std::size_t capacity);
    std::size_t go_on_probing(std::int64_t now_ns, Resend *resends, std::size_t capacity);
    Resend resend(std::uint32_t lane, ResendReason reason, std::int64_t now_ns);
    double share_of(const Flight &flight) const { return flight.is_small ? small_share_ : 1.0; }
    void leave(std::uint32_t lane);
    std::int64_t lane_deadline_ns(const Flight &flight) const;
    std::int64_t quiet_deadline_ns() const;
    std::int64_t tail_deadline_ns() const;
    std::int64_t silence_limit_ns() const;
    std::int64_t probe_deadline_ns() const;

    std::shared_ptr<congestion::Window> window_;
    std::uint32_t most_ = UINT32_MAX;
    const double small_share_;
    Pacer pacer_;
    bool told_ = false;  // the window, of an answer of this batch
    FlightList flights_;
    RttEstimator rtt_;
    RecoveryCounters counters_;

    Overtaking overtaking_;
    bool overtaken_moved_ = false;      // since the lanes were last checked against it
    bool overtaken_left_ = false;       // some were not sent again yet, for the pace
    std::int64_t reordering_ns_ = 0;    // the largest that turned out to be no loss
    std::int64_t reordered_at_ns_ = 0;  // when that was found, or last halved
    double in_vain_ = 0;  // share of late: packets sent again because overtaken, and not lost
    std::int64_t scan_at_ns_ = kNever;  // no timer runs out before
    std::int64_t scan_rto_ns_ = 0;      // the largest timeout that scan_at_ns_ was computed with
    std::int64_t heard_ns_ = 0;
    std::int64_t last_sent_ns_ = 0;  // of what was not sent before
    Lateness lateness_;
    std::int64_t patience_ns_ = 0;  // of this silence
    std::int64_t last_resend_ns_ = 0;
    std::int64_t resumed_ns_ = 0;  // results came again after a quiet time: lane timers start anew
    bool quiet_ = false;
    int tail_probes_ = 0;              // rounds since something was heard
    std::uint32_t probes_ = 0;         // of the last round
    std::uint32_t probes_left_ = 0;    // of them, to be sent once the pace allows it
    bool have_grown_ = false;          // rounds of this silence, to their largest
    bool longest_unsent_too_ = false;  // the last of them is what was sent longest ago
    std::int64_t sent_by_ns_ = 0;      // what was sent later is not probed
    bool more_probes_ = false;         // all of them were answered, by copies, and nothing else
    std::uint32_t unanswered_ = 0;     // of them, as long as no other result came
};

}  // namespace ina::host
