// The window of ina itself. What is its own: a sum waits for its last packet, so of all workers
// only the one that completes sums is held up by the network. Its round trips hold no wait for
// others, and it alone gains by a larger window. A result says who that was.
//
// It begins small and doubles until a queue shows, whosever it is, or until it is what the way
// holds: bursts come spread as their slowest link lets them through, which tells its rate. From
// there on it gives way to marks by their share (RFC 8257), and by twice as much as DCTCP does, but
// never by more than the round trip tells that the queue holds: if all who share the queue do so,
// it empties, and its link stays busy. It grows by a segment a round trip or by less, and after
// some without a mark or a queue by twice as much each: growth and giving way twice as large make
// jobs alike in half the time. Where marks do not help, since what fills the queue does not heed
// them, it goes by losses alone, and grows back as CUBIC does (RFC 9438): fast, and slowly where
// they were.
//
// A result has the marks of all contributions in its flags. It heeds what its IP header says: a
// mark of the contribution that came last, for which all waited, or of the result's own way. And
// what the flags say where its own packet was the last, and took longer than others that met no
// mark. All other results count as unmarked. For whom no sum waits, a mark is of the way of any of
// the others, and it gives way by its part: if all did by as much as the one whose way it is, the
// ways of all would hold up each. Losses are its own where a copy of its own was needed. Few, while
// round trips are short, have other causes than a queue.
//
// It leaves at a pace. Windows that leave as results come clump, and of a short window's clump as
// many are marked as of a long one's: then the short one stays short. A pace costs wake-ups, so
// there is none where for long no mark and no loss has come.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "congestion/algorithms.hpp"
#include "congestion/rounds.hpp"
#include "congestion/trains.hpp"

namespace ina::congestion {

class InaWindow final : public Window {
  public:
    static constexpr Option kOptions[] = {
        {"first_bytes", 14600.0, 1.0, 1e9, "that it begins with (RFC 6928)"},
        {"least_bytes", 2920.0, 1.0, 1e9, "that it keeps: two segments, as DCTCP"},
        {"growth_bytes", 1752.0, 1.0, 1e9, "that it grows by, a round trip"},
        {"weight", 0.0625, 0.001, 1.0, "of the newest round in the share of marked results"},
        {"shrink", 0.7, 0.1, 0.99, "what is left of the window after a loss"},
        {"products", 1.03, 0.0, 100.0, "bandwidth-delay products that marks leave on a link"},
        {"pace", 1.05, 0.0, 100.0,
         "windows that may leave in a round trip, and a third more where a queue stands; 0: any"},
        {"yield", 1.0, 0.0, 1.0, "what it gives up of a window if all is marked (DCTCP: 0.5)"},
        {"small_bytes", 32768.0, 1.0, 1e9, "windows below grow by less, by half of it at least"},
        {"burst_bytes", 65536.0, 1.0, 1e9, "that may leave at once"},
    };

    InaWindow(const Room &room, const OptionValues &options)
        : most_(room.packets),
          least_(std::min(std::max(options[1] / room.packet_bytes, 1.0), most_)),
          usual_growth_(options[2] / room.packet_bytes), shrink_(options[4]), products_(options[5]),
          pace_(options[6]), yield_(options[7]),
          unawaited_(1.0 / std::max(room.workers - 1.0, 1.0)),
          small_(options[8] / room.packet_bytes), burst_(options[9] / room.packet_bytes),
          marks_(options[3], 1.0),
          window_(std::clamp(options[0] / room.packet_bytes, least_, most_)) {}

    void on_answer(std::int64_t now_ns, const Answer &answer) override {
        const auto taken_ns = static_cast<double>(answer.round_trips.latest_ns);
        shortest_ns_ = static_cast<double>(answer.round_trips.shortest_ns);
        if (calm_answers_ > 0) --calm_answers_;
        is_held_up_ |= answer.was_last;
        if (taken_ns > 0.0 && answer.was_last) way_ns_ += (taken_ns - way_ns_) / 8;
        if (answer.mended) lose(answer);
        trains_.answered(now_ns);
        if (doubles_) look_for_rate();
        // Whosever queue it is: faster growth is of no use.
        if (answer.marked) doubles_ = false;
        const bool is_mine =
            answer.marked && (answer.marked_here || (answer.was_last && is_slow(taken_ns)));
        marks_.answered(is_mine);
        heard_.answered(is_mine);
        if (is_mine) on_mark(answer);
        if (!answer.marked && answer.was_last) {
            longest_unmarked_ns_ = std::max(longest_unmarked_ns_, taken_ns);
            unmarked_ns_ += (taken_ns - unmarked_ns_) / 8;
        }
        if (doubles_) {
            window_ = std::min(window_ + 1.0, most_);
            doubles_ = window_ < most_;
        } else if (was_held_up_ && calm_answers_ == 0) {
            grow();
        }
        if (rounds_.answered(answer)) end_round(answer.in_flight);
    }

    // Whose it was shows once it is mended.
    void on_loss(std::int64_t, const RoundTrips &) override { doubles_ = false; }

    // A late worker looks the same, and then the window is not to blame.
    void on_timeout(std::int64_t, const RoundTrips &) override {}

    std::uint32_t packets() const override { return static_cast<std::uint32_t>(window_ + 0.5); }

    Pace pace() const override {
        if (pace_ <= 0.0 || shortest_ns_ <= 0.0 || unmarked_rounds_ > kPacedRounds) return {};
        const bool is_known = was_held_up_ && !doubles_;
        const double round_ns = is_known ? std::max(shortest_ns_, way_ns_ / kSpread) : shortest_ns_;
        // One a round trip at least: round trips tell also of who was late, and a small pace of
        // such a one would hold the whole job up.
        double rate = std::max(pace_ * window_, 1.0) / round_ns;
        if (doubles_) rate = capacity_ > 0.0 ? std::min(2.0 * rate, capacity_) : 2.0 * rate;
        const double grain = std::max(rate * kGrainNs, 1.0);
        const double burst =
            std::min(std::max(std::min(burst_, window_ / kBursts), kLeastBurst), grain);
        return {static_cast<std::int64_t>(1.0 / rate), static_cast<std::uint32_t>(burst)};
    }

  private:
    static constexpr int kPacedRounds = 200;     // after a mark or a loss of its own
    static constexpr double kSpread = 1.3;       // of round trips with a queue, at least
    static constexpr double kBursts = 8.0;       // in a window, at least
    static constexpr double kLeastBurst = 4.0;   // packets, where that is less than
    static constexpr double kGrainNs = 50e3;     // of this time: a host wakes up no sooner
    static constexpr int kPatience = 5;          // rounds without a mark before it grows faster
    static constexpr double kMostGrowth = 0.25;  // windows a round
    static constexpr double kLeastGrowth = 0.5;  // of the usual
    static constexpr double kFastest = 1e6;      // of the usual: no limit
    // Shortest round trips: what took longer has met a queue; where it is that long nobody heeds
    // marks, or it is ours and losses are its doing.
    static constexpr double kSlow = 1.5;
    static constexpr double kDeepQueue = 2.0;
    static constexpr double kRareLosses = 0.05;   // of a round's packets
    static constexpr double kFewLosses = 3.0;     // packets a round
    static constexpr double kLeastByLoss = 16.0;  // packets: fewer hold all up at each loss
    static constexpr double kFull = 0.9;          // of the window that was too large
    static constexpr double kApproach = 8.0;      // rounds, back to that
    // For so many rounds after a loss, while these shares of results are marked, it is deaf to
    // marks: from the larger share on, and down to the smaller.
    static constexpr int kDeafRounds = 50;
    static constexpr double kAllMarked = 0.9;
    static constexpr double kFewMarked = 0.3;
    static constexpr double kHeardWeight = 0.0625;  // of the newest round in that share
    static constexpr double kForgetRounds = 256.0;  // until what it bore is mostly forgotten

    // One of ours was lost. Where losses are rare, and round trips short, no queue is the cause;
    // and what the way bore without a loss is no cause either, but for a part.
    void lose(const Answer &answer) {
        ++losses_;
        const double rare = std::max(kRareLosses * window_, kFewLosses);
        const bool is_short = way_ns_ < kSlow * shortest_ns_;
        if (is_short && losses_ < rare) return;
        lost_rounds_ = kDeafRounds;
        begin_slowly();
        if (calm_answers_ > 0) return;
        full_ = kFull * window_;
        const double least = is_short ? std::max(kLeastByLoss, shrink_ * borne_) : kLeastByLoss;
        settle(std::max(window_ * shrink_, std::min(window_, least)), answer.in_flight);
    }

    // Back towards where packets were lost it slows down, as CUBIC does, and begins slowly there.
    void grow() {
        const double usual = usual_growth_ * std::clamp(window_ / small_, kLeastGrowth, 1.0);
        const double growth =
            window_ < full_ ? std::max((full_ - window_) / kApproach, usual)
                            : std::min(faster_ * usual, std::max(kMostGrowth * window_, usual));
        const bool was_below = window_ < full_;
        window_ = std::min(window_ + std::min(growth / window_, 1.0), most_);
        if (was_below && window_ >= full_) begin_slowly();
    }

    // A result has the marks of all. Whose packet was the last, and has not waited longer than
    // others that met no mark, has met none either. What is longer by much has waited, whatever
    // others did.
    bool is_slow(double taken_ns) const {
        return taken_ns > std::min(longest_unmarked_ns_, kSlow * shortest_ns_);
    }

    void on_mark(const Answer &answer) {
        begin_slowly();
        if (calm_answers_ > 0 || is_deaf_) return;
        const double yields = is_held_up_ || was_held_up_ ? yield_ : unawaited_ * yield_;
        double left = window_ * (1.0 - marks_.share() * yields);
        const auto taken_ns = static_cast<double>(answer.round_trips.latest_ns);
        if (taken_ns > 0.0) left = std::max(left, window_ * products_ * shortest_ns_ / taken_ns);
        settle(std::clamp(left, least_, window_), answer.in_flight);
    }

    void begin_slowly() {
        unmarked_rounds_ = 0;
        faster_ = 1.0;
    }

    // What is in flight now still meets the queue as it was.
    void settle(double packets, std::uint32_t in_flight) {
        calm_answers_ = std::max(in_flight, 1u);
        doubles_ = false;
        window_ = packets;
    }

    void end_round(std::uint32_t in_flight) {
        marks_.end_round();
        heard_.end_round();
        lost_rounds_ = std::max(lost_rounds_ - 1, 0);
        const double deep_ns = kDeepQueue * std::max(unmarked_ns_, shortest_ns_);
        const bool gave_all = window_ < 2.0 * least_;  // and marks stay: they are not of its doing
        const bool is_full = lost_rounds_ > 0 || way_ns_ > deep_ns || gave_all;
        is_deaf_ = is_deaf_ ? heard_.share() > kFewMarked : is_full && heard_.share() > kAllMarked;
        // Where no mark comes for long, there is room for more, and soon for much more.
        // What takes long may be a late core as well as a queue, until one has overflowed.
        const bool is_clear = full_ == 0.0 || way_ns_ < kSlow * shortest_ns_;
        const bool is_used = was_held_up_ && 2 * in_flight > packets() && is_clear;
        if (++unmarked_rounds_ > kPatience && is_used) faster_ = std::min(2.0 * faster_, kFastest);
        const bool is_calm = losses_ == 0.0 && !doubles_;
        borne_ -= borne_ / kForgetRounds;
        if (is_calm) borne_ = std::max(borne_, tried_);  // what a round lost shows in the next
        tried_ = is_calm ? std::min<double>(in_flight, window_) : 0.0;
        losses_ = 0;
        longest_unmarked_ns_ -= (longest_unmarked_ns_ - shortest_ns_) / 8;
        trains_.begin(in_flight);
        was_held_up_ = std::exchange(is_held_up_, false);
    }

    // As HyStart's trains of acknowledgements (Ha and Rhee 2011): a burst comes as its way lets it.
    void look_for_rate() {
        if (trains_.rate() <= 0.0) return;
        capacity_ = std::max(capacity_, trains_.rate());
        const double enough = std::max(capacity_ * shortest_ns_, least_);
        if (window_ < enough) return;
        // Where others are late, or a core is, trains come slower than any link would let them:
        // what was borne a round ago may stay.
        window_ = std::max(enough, window_ / 2);
        doubles_ = false;
    }

    const double most_;  // all packets, or packets a round
    const double least_;
    const double usual_growth_;
    const double shrink_;
    const double products_;
    const double pace_;
    const double yield_;
    const double unawaited_;  // part of that
    const double small_;
    const double burst_;
    MarkShare marks_;
    MarkShare heard_{kHeardWeight, 0.0};  // the same, of long enough to see whether they help
    double window_;
    double faster_ = 1.0;  // than usual it grows
    Rounds rounds_;
    Trains trains_;
    double capacity_ = 0.0;     // results a ns, in trains; found while it doubles; 0: not known
    double shortest_ns_ = 0.0;  // of round trips; 0: none so far
    double way_ns_ = 0.0;       // moving average of those that hold no wait
    double longest_unmarked_ns_ = 0.0;  // of them, of late
    double unmarked_ns_ = 0.0;          // their moving average
    double tried_ = 0.0;                // packets, in the round before
    double borne_ = 0.0;                // packets, in a round without a loss
    double full_ = 0.0;                 // the window when packets were lost last; 0: never
    int unmarked_rounds_ = 0;           // on end
    int lost_rounds_ = 0;               // so many more rounds count as ones with losses
    double losses_ = 0.0;               // in this round
    std::uint32_t calm_answers_ = 0;    // that are still to come before it gives way again
    bool doubles_ = true;
    bool is_held_up_ = false;   // a sum of this round waited for us
    bool was_held_up_ = false;  // of the round before
    bool is_deaf_ = false;      // to marks
};

}  // namespace ina::congestion
