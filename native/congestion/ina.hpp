// The window of ina itself. What is its own: a sum waits for its last packet, so of all workers
// only the one that completes sums is held up by the network. Its round trips hold no wait for
// others, and it alone needs to give way. A result says who that was.
//
// It begins small and doubles until a queue shows, or until it is what the way holds: bursts come
// spread as their slowest link lets them through, which tells its rate. From there on it reacts to
// marks as DCTCP does (RFC 8257), so that it shares links with such flows, but no further down than
// keeps its link busy while nobody else is there. If no mark comes for longer than DCTCP would need
// to see one, it probes for more, and doubles again where there is. Where marks do not help, since
// what fills the queue does not heed them, it goes by losses alone, as CUBIC does (RFC 9438). A
// loss that is rare, while round trips are short, has other causes than a queue.
#pragma once

#include <algorithm>
#include <cmath>
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
        {"segment_bytes", 1460.0, 1.0, 1e9, "that it grows by, a round trip"},
        {"weight", 0.0625, 0.001, 1.0, "of the newest round in the share of marked results"},
        {"shrink", 0.7, 0.1, 0.99, "what is left of the window after a loss"},
        {"products", 1.0, 0.0, 100.0, "bandwidth-delay products that marks do not shrink it below"},
        {"pace", 1.05, 0.0, 100.0, "windows that may leave in a shortest round trip; 0: any"},
        {"burst_bytes", 16384.0, 1.0, 1e9, "that may leave at once"},
    };

    InaWindow(const Room &room, const OptionValues &options)
        : most_(room.packets), segment_(options[1] / room.packet_bytes), shrink_(options[3]),
          products_(options[4]), pace_(options[5]), burst_(options[6] / room.packet_bytes),
          least_(std::min(std::max(kLeastSegments * segment_, 1.0), most_)),
          marks_(options[2], 1.0),
          window_(std::clamp(options[0] / room.packet_bytes, least_, most_)) {}

    void on_answer(std::int64_t now_ns, const Answer &answer) override {
        const auto taken_ns = static_cast<double>(answer.round_trips.latest_ns);
        shortest_ns_ = static_cast<double>(answer.round_trips.shortest_ns);
        ++delivered_;
        is_held_up_ |= answer.was_last;
        if (taken_ns > 0.0) {
            least_ns_ = std::min(least_ns_, taken_ns);
            if (answer.was_last) way_ns_ += (taken_ns - way_ns_) / 8;
        }
        trains_.answered(now_ns);
        if (doubles_) look_for_rate();
        if (answer.was_last || answer.marked_here) {
            marks_.answered(answer.marked);
            if (answer.marked) on_mark();
        }
        if (doubles_) {
            window_ = std::min(window_ + 1.0, most_);
        } else if (was_held_up_ && calm_rounds_ == 0) {
            window_ = std::min(window_ + segment_ / window_, most_);
        }
        if (rounds_.answered(answer)) end_round(now_ns, answer.in_flight);
    }

    void on_loss(std::int64_t, const RoundTrips &round_trips) override {
        ++losses_;
        const auto shortest_ns = static_cast<double>(round_trips.shortest_ns);
        const double rare = std::max(kRareLosses * window_, kFewLosses);
        if (way_ns_ < kQueuedShare * shortest_ns && losses_ < rare) return;
        lost_rounds_ = kDeafRounds;
        if (calm_rounds_ == 0) settle(std::max(window_ * shrink_, least_));
    }

    // A late worker looks the same, and then the window is not to blame.
    void on_timeout(std::int64_t, const RoundTrips &) override {}

    std::uint32_t packets() const override { return static_cast<std::uint32_t>(window_); }

    Pace pace() const override {
        if (pace_ <= 0.0 || shortest_ns_ <= 0.0) return {};
        double rate = pace_ * window_ / shortest_ns_;
        if (doubles_) rate = capacity_ > 0.0 ? std::min(2.0 * rate, capacity_) : 2.0 * rate;
        const double burst = std::max(std::min(burst_, window_ / kBursts), kLeastBurst);
        return {static_cast<std::int64_t>(1.0 / rate), static_cast<std::uint32_t>(burst)};
    }

  private:
    static constexpr double kLeastSegments = 2.0;  // as DCTCP and CUBIC have
    static constexpr double kQueuedShare = 1.5;    // of the shortest round trip: a queue stands
    static constexpr double kRareLosses = 0.02;    // of a round's packets (BBRv2's threshold)
    static constexpr double kFewLosses = 2.0;
    static constexpr double kRateDecay = 0.95;      // a round
    static constexpr double kBursts = 8.0;          // in a window, at least
    static constexpr double kLeastBurst = 4.0;      // packets
    static constexpr double kLeastUnmarked = 16.0;  // rounds before it probes
    static constexpr int kUntilEmpty = 2;           // rounds
    static constexpr double kEmptySegments = 2.5;   // a queue of no more is none
    static constexpr double kProbe = 1.25;          // windows
    static constexpr double kFaster = 1.1;          // results: there is more to have
    static constexpr int kDeafRounds =
        50;  // after a loss, while these shares of results are marked
    static constexpr double kAllMarked = 0.8;
    static constexpr double kFewMarked = 0.3;

    void on_mark() {
        // Where the queue has not emptied since it gave way, others are there, who give way, too.
        const double queue_ns = kEmptySegments * segment_ / std::max({capacity_, rate_, 1e-9});
        const bool is_alone = least_ns_ <= shortest_ns_ + queue_ns;
        unmarked_rounds_ = 0.0;
        if (calm_rounds_ > 0 || is_deaf_) return;
        if (doubles_) rate_ = std::max(rate_, std::min(capacity_, window_ / shortest_ns_));
        const double floor = is_alone ? products_ * rate_ * shortest_ns_ + segment_ : least_;
        const double left = std::max(window_ * (1.0 - marks_.share() / 2.0), least_);
        settle(std::max(left, std::min(floor, window_)));
        // What was sent before still meets the queue as it was, and shows no sooner.
        if (window_ > left) calm_rounds_ = kUntilEmpty;
    }

    // Once a round trip.
    void settle(double packets) {
        calm_rounds_ = 1;
        least_ns_ = 1e18;
        doubles_ = false;
        probing_rounds_ = 0;
        window_ = packets;
    }

    void end_round(std::int64_t now_ns, std::uint32_t in_flight) {
        double rate = 0.0;
        if (round_from_ns_ > 0 && now_ns > round_from_ns_) {
            rate = static_cast<double>(delivered_) / static_cast<double>(now_ns - round_from_ns_);
        }
        rate_ = std::max(rate, rate_ * kRateDecay);
        marks_.end_round();
        lost_rounds_ = std::max(lost_rounds_ - 1, 0);
        is_deaf_ = lost_rounds_ > 0 && marks_.share() > (is_deaf_ ? kFewMarked : kAllMarked);
        if (probing_rounds_ > 0 && --probing_rounds_ == 0) end_probe(rate);
        const double patience = std::max(kLeastUnmarked, std::sqrt(2.0 * window_ / segment_));
        const bool is_full = was_held_up_ && 2 * in_flight > packets();
        if (++unmarked_rounds_ > patience && is_full && !doubles_) probe(rate);
        round_from_ns_ = now_ns;
        delivered_ = 0;
        losses_ = 0;
        trains_.begin(in_flight);
        was_held_up_ = std::exchange(is_held_up_, false);
        calm_rounds_ = std::max(calm_rounds_ - 1, 0);
    }

    // Whether others have left the link: with a window a little larger results come faster.
    void probe(double rate) {
        unmarked_rounds_ = 0;
        probing_rounds_ = 2;
        probed_rate_ = rate;
        probed_window_ = window_;
        window_ = std::min(window_ * kProbe, most_);
    }
    void end_probe(double rate) {
        doubles_ = rate > kFaster * probed_rate_;
        if (!doubles_) window_ = std::max(std::min(window_, probed_window_), least_);
    }

    // As HyStart's trains of acknowledgements (Ha and Rhee 2011): a burst comes as its way lets it.
    void look_for_rate() {
        if (trains_.rate() <= 0.0) return;
        capacity_ = std::max(capacity_, trains_.rate());
        const double enough = std::max(capacity_ * shortest_ns_, least_);
        if (window_ < enough) return;
        window_ = enough;
        rate_ = capacity_;
        doubles_ = false;
    }

    const double most_;
    const double segment_;  // packets
    const double shrink_;
    const double products_;
    const double pace_;
    const double burst_;  // packets
    const double least_;
    MarkShare marks_;
    double window_;
    Rounds rounds_;
    Trains trains_;
    double rate_ = 0.0;         // results a ns; the largest of late
    double capacity_ = 0.0;     // results a ns, in trains; found while it doubles; 0: not known
    double shortest_ns_ = 0.0;  // of round trips; 0: none so far
    double way_ns_ = 0.0;       // moving average of those that hold no wait
    double least_ns_ = 0.0;     // that a round trip took, since it gave way
    double unmarked_rounds_ = 0.0;
    double probed_rate_ = 0.0;
    double probed_window_ = 0.0;
    int probing_rounds_ = 0;  // left
    int calm_rounds_ = 0;     // left in which it does not give way again
    int lost_rounds_ = 0;     // so many more rounds count as ones with losses
    std::int64_t round_from_ns_ = 0;
    std::uint64_t delivered_ = 0;  // in this round, as are losses
    double losses_ = 0.0;
    bool doubles_ = true;
    bool is_held_up_ = false;   // a sum of this round waited for us
    bool was_held_up_ = false;  // of the round before
    bool is_deaf_ = false;      // to marks
};

}  // namespace ina::congestion
