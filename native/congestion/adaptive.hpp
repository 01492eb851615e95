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

#include "congestion/window.hpp"

namespace ina::host {

class AdaptiveWindow final : public CongestionWindow {
  public:
    // largest: packets, at least 1; what the job's slots and the receive buffer allow.
    explicit AdaptiveWindow(std::uint32_t largest)
        : largest_(largest), window_(static_cast<double>(largest)) {}

    void on_result(std::int64_t now_ns, std::int64_t rtt_ns, bool ecn_marked) override {
        if (rtt_ns > 0) measure(now_ns, rtt_ns);
        ++delivered_;
        if (ecn_marked) return shrink(now_ns);
        if (window_ < static_cast<double>(largest_) && now_ns >= calm_from_ns_) {
            window_ = std::min(window_ + 1.0 / window_, static_cast<double>(largest_));
        }
    }

    void on_loss(std::int64_t now_ns) override { shrink(now_ns); }

    // A late worker looks the same, and then the window is not to blame.
    void on_timeout(std::int64_t) override {}

    std::uint32_t packets() const override { return static_cast<std::uint32_t>(window_); }
    // A queue without room for a train drops all of it. Where queues have made the window small, it
    // goes in two trains or more (TCP, too, has shorter ones at lower rates).
    std::uint32_t longest_train() const override {
        return packets() < largest_ ? packets() / kTrainsInWindow : largest_;
    }
    std::int64_t queued_ns() const override { return smoothed_ns_ - shortest_ns_; }
    std::int64_t shortest_ns() const override { return shortest_ns_; }

  private:
    static constexpr double kShrink = 0.8;
    static constexpr double kProducts = 2.0;  // bandwidth-delay products that are left alone
    // Packets. Fewer starve trains, and with many workers a few losses hold up all that there are.
    static constexpr double kSmallest = 32.0;
    static constexpr std::uint32_t kTrainsInWindow = 2;
    static constexpr double kQueuedShare = 1.5;  // of the shortest round trip: a queue stands
    static constexpr double kRateDecay = 0.95;   // an interval
    static constexpr std::int64_t kForgetNs = 10'000'000'000;  // routes change
    static constexpr std::int64_t kMinIntervalNs = 1'000'000;

    void measure(std::int64_t now_ns, std::int64_t rtt_ns) {
        smoothed_ns_ = smoothed_ns_ == 0 ? rtt_ns : smoothed_ns_ + (rtt_ns - smoothed_ns_) / 8;
        if (now_ns - shortest_at_ns_ > kForgetNs || shortest_ns_ == 0 || rtt_ns <= shortest_ns_) {
            shortest_ns_ = rtt_ns;
            shortest_at_ns_ = now_ns;
        }
        const std::int64_t elapsed_ns = now_ns - interval_from_ns_;
        if (elapsed_ns < std::max(smoothed_ns_, kMinIntervalNs)) return;
        const double rate = static_cast<double>(delivered_) / static_cast<double>(elapsed_ns);
        rate_ = std::max(rate, rate_ * kRateDecay);
        interval_from_ns_ = now_ns;
        delivered_ = 0;
    }

    void shrink(std::int64_t now_ns) {
        if (now_ns < calm_from_ns_) return;
        if (static_cast<double>(smoothed_ns_) < kQueuedShare * static_cast<double>(shortest_ns_)) {
            return;
        }
        // What was sent before now still meets the queue as it was.
        calm_from_ns_ = now_ns + smoothed_ns_;
        const double product = rate_ * static_cast<double>(shortest_ns_);
        const double floor = std::min(std::max(kSmallest, kProducts * product), window_);
        window_ = std::max(window_ * kShrink, floor);
    }

    const std::uint32_t largest_;
    double window_;
    double rate_ = 0.0;  // results a ns; the largest of late
    std::int64_t smoothed_ns_ = 0;
    std::int64_t shortest_ns_ = 0;
    std::int64_t shortest_at_ns_ = 0;
    std::int64_t interval_from_ns_ = 0;
    std::uint64_t delivered_ = 0;
    std::int64_t calm_from_ns_ = 0;
};

}  // namespace ina::host
