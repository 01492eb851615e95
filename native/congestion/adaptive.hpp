// A window that begins as large as it may be, gives way to queues that overflow, and grows back.
//
// Each lane waits for its result, so a job's window is a fixed amount of data in flight: where the
// path holds it, nothing is gained by less. Where a queue or a receive buffer does not, packets are
// lost in every round trip, or results come marked. Then the window shrinks, once a round trip at
// most, but never below twice the bandwidth-delay product: that much is in flight on a path whose
// queues are empty, and keeps it busy. A loss on such a path has other causes than our window, and
// so has one that comes while round trips are short. Additive increase undoes it all.
//
// Round trips include the time that other workers are late. That makes estimates of the delay too
// long, so the window shrinks too late rather than too early.
#pragma once

#include <algorithm>
#include <cstdint>

#include "congestion/algorithms.hpp"

namespace ina::congestion {

class AdaptiveWindow final : public Window {
  public:
    static constexpr Option kOptions[] = {
        {"shrink", 0.8, 0.1, 0.99, "what is left of the window after a loss or a mark"},
        // Fewer starve trains, and with many workers a few losses hold up all that there are.
        {"smallest", 32.0, 1.0, 65536.0, "packets that it does not shrink below"},
        {"products", 2.0, 0.0, 100.0, "bandwidth-delay products that it does not shrink below"},
    };

    AdaptiveWindow(const Room &room, const OptionValues &options)
        : largest_(room.packets), shrink_(options[0]), smallest_(options[1]), products_(options[2]),
          window_(static_cast<double>(room.packets)) {}

    void on_answer(std::int64_t now_ns, const Answer &answer) override {
        if (answer.round_trips.latest_ns > 0) measure(now_ns, answer.round_trips);
        ++delivered_;
        if (answer.marked) return shrink(now_ns, answer.round_trips);
        if (window_ < static_cast<double>(largest_) && now_ns >= calm_from_ns_) {
            window_ = std::min(window_ + 1.0 / window_, static_cast<double>(largest_));
        }
    }

    void on_loss(std::int64_t now_ns, const RoundTrips &round_trips) override {
        shrink(now_ns, round_trips);
    }

    // A late worker looks the same, and then the window is not to blame.
    void on_timeout(std::int64_t, const RoundTrips &) override {}

    std::uint32_t packets() const override { return static_cast<std::uint32_t>(window_); }

  private:
    static constexpr double kQueuedShare = 1.5;  // of the shortest round trip: a queue stands
    static constexpr double kRateDecay = 0.95;   // an interval
    static constexpr std::int64_t kMinIntervalNs = 1'000'000;

    void measure(std::int64_t now_ns, const RoundTrips &round_trips) {
        const std::int64_t elapsed_ns = now_ns - interval_from_ns_;
        if (elapsed_ns < std::max(round_trips.mean_ns, kMinIntervalNs)) return;
        const double rate = static_cast<double>(delivered_) / static_cast<double>(elapsed_ns);
        rate_ = std::max(rate, rate_ * kRateDecay);
        interval_from_ns_ = now_ns;
        delivered_ = 0;
    }

    void shrink(std::int64_t now_ns, const RoundTrips &round_trips) {
        if (now_ns < calm_from_ns_) return;
        const auto shortest_ns = static_cast<double>(round_trips.shortest_ns);
        if (static_cast<double>(round_trips.mean_ns) < kQueuedShare * shortest_ns) return;
        // What was sent before now still meets the queue as it was.
        calm_from_ns_ = now_ns + round_trips.mean_ns;
        const double floor = std::max(smallest_, products_ * rate_ * shortest_ns);
        window_ = std::max(window_ * shrink_, std::min(floor, window_));
    }

    const std::uint32_t largest_;
    const double shrink_;
    const double smallest_;
    const double products_;
    double window_;
    double rate_ = 0.0;  // results a ns; the largest of late
    std::int64_t interval_from_ns_ = 0;
    std::uint64_t delivered_ = 0;
    std::int64_t calm_from_ns_ = 0;
};

}  // namespace ina::congestion
