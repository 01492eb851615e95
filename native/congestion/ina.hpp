// The window of ina itself. What is its own: a sum waits for its last packet, so of all workers
// only the one that completes sums is held up by the network; its round trips hold no wait for
// others, and it alone needs to give way. A result says who that was.
//
// It begins small and doubles, paced, until a queue shows. Then it reacts to marks as DCTCP does
// (RFC 8257), so that it shares links with such flows, but no further down than keeps its link busy
// while nobody else is there: a bandwidth-delay product at the rate that results come at. Where
// marks do not help, since what fills the queue does not heed them, it goes by losses alone, with
// CUBIC's factor (RFC 9438), so that it is not starved. A loss while round trips are short, and
// rare, has other causes than a queue.
#pragma once

#include <algorithm>
#include <cstdint>

#include "congestion/algorithms.hpp"
#include "congestion/rounds.hpp"

namespace ina::congestion {

class InaWindow final : public Window {
  public:
    static constexpr Option kOptions[] = {
        {"first_bytes", 14600.0, 1.0, 1e9, "that it begins with (RFC 6928)"},
        {"segment_bytes", 1460.0, 1.0, 1e9, "that it grows by, a round trip"},
        {"weight", 0.0625, 0.001, 1.0, "of the newest round in the share of marked results"},
        {"shrink", 0.7, 0.1, 0.99, "what is left of the window after a loss"},
        {"products", 1.0, 0.0, 100.0, "bandwidth-delay products that marks do not shrink it below"},
        {"pace", 1.25, 0.0, 100.0, "windows that may leave in a shortest round trip; 0: any"},
    };

    InaWindow(const Room &room, const OptionValues &options)
        : most_(static_cast<double>(room.packets)), segment_(options[1] / room.packet_bytes),
          shrink_(options[3]), products_(options[4]), pace_(options[5]), marks_(options[2], 1.0),
          window_(std::clamp(options[0] / room.packet_bytes, 1.0, most_)), threshold_(most_) {}

    void on_answer(std::int64_t now_ns, const Answer &answer) override {
        shortest_ns_ = answer.round_trips.shortest_ns;
        ++delivered_;
        if (answer.was_last) note_way(answer);
        const bool marked = answer.marked && (answer.was_last || answer.marked_here);
        marks_.answered(marked);
        if (marked && !is_deaf_) {
            give_way(1.0 - marks_.share() / 2.0);
        } else if (!marked && 2.0 * answer.in_flight >= window_) {
            window_ += window_ < threshold_ ? 1.0 : segment_ / window_;
            window_ = std::min(window_, most_);
        }
        if (rounds_.answered(answer)) end_round(now_ns);
    }

    void on_loss(std::int64_t, const RoundTrips &round_trips) override {
        ++losses_;
        const double rare = kRareLosses * static_cast<double>(delivered_ + 1);
        const bool is_queued = static_cast<double>(way_ns_) >=
                               kQueuedShare * static_cast<double>(round_trips.shortest_ns);
        if (!is_queued && static_cast<double>(losses_) < std::max(rare, 2.0)) return;
        if (is_calm_) return;
        is_calm_ = true;
        window_ = threshold_ = std::max(window_ * shrink_, 1.0);
    }

    // A late worker looks the same, and then the window is not to blame.
    void on_timeout(std::int64_t, const RoundTrips &) override {}

    std::uint32_t packets() const override { return static_cast<std::uint32_t>(window_); }

    Pace pace() const override {
        if (pace_ <= 0.0 || shortest_ns_ == 0) return {};
        const double gain = window_ < threshold_ ? 2.0 * pace_ : pace_;
        const double gap_ns = static_cast<double>(shortest_ns_) / (gain * window_);
        const auto burst = static_cast<std::uint32_t>(window_ / kBursts);
        return {static_cast<std::int64_t>(gap_ns), std::max(burst, kLeastBurst)};
    }

  private:
    static constexpr double kQueuedShare = 1.5;  // of the shortest round trip: a queue stands
    static constexpr double kRareLosses = 0.02;  // of a round's packets (BBRv2's threshold)
    static constexpr double kRateDecay = 0.9;    // a round
    static constexpr double kBursts = 8.0;       // in a window
    static constexpr std::uint32_t kLeastBurst = 4;

    void note_way(const Answer &answer) {
        const std::int64_t way_ns = answer.round_trips.latest_ns;
        if (way_ns > 0) way_ns_ = way_ns_ == 0 ? way_ns : way_ns_ + (way_ns - way_ns_) / 8;
    }

    // Once a round trip.
    void give_way(double left) {
        if (is_calm_) return;
        is_calm_ = true;
        const double floor = products_ * rate_ * static_cast<double>(shortest_ns_);
        window_ = std::max({window_ * left, std::min(floor, window_), 1.0});
        threshold_ = window_;
    }

    void end_round(std::int64_t now_ns) {
        if (round_from_ns_ > 0 && now_ns > round_from_ns_) {
            const double rate =
                static_cast<double>(delivered_) / static_cast<double>(now_ns - round_from_ns_);
            rate_ = std::max(rate, rate_ * kRateDecay);
        }
        round_from_ns_ = now_ns;
        delivered_ = losses_ = 0;
        marks_.end_round();
        is_calm_ = false;
    }

    const double most_;
    const double segment_;  // packets
    const double shrink_;
    const double products_;
    const double pace_;
    MarkShare marks_;
    double window_;
    double threshold_;  // slow start below it
    Rounds rounds_;
    double rate_ = 0.0;  // results a ns; the largest of late
    std::int64_t shortest_ns_ = 0;
    std::int64_t way_ns_ = 0;  // moving average of round trips without waits; 0: none so far
    std::int64_t round_from_ns_ = 0;
    std::uint64_t delivered_ = 0;  // in this round, as are losses
    std::uint64_t losses_ = 0;
    bool is_calm_ = false;  // it has shrunk in this round
    bool is_deaf_ = false;  // to marks
};

}  // namespace ina::congestion
