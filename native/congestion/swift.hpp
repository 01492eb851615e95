// Swift (Kumar et al., SIGCOMM 2020): keeps what packets take near a target. What they take is the
// time from sending to the result here, without a host's part of it, and with what others are late.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "congestion/algorithms.hpp"
#include "congestion/rounds.hpp"

namespace ina::congestion {

class SwiftWindow final : public Window {
  public:
    static constexpr Option kOptions[] = {
        {"first_bytes", 14600.0, 1.0, 1e9, "that it begins with"},
        {"queue_us", 25.0, 0.0, 1e6, "of delay that it allows beyond the shortest round trip"},
        {"increase_bytes", 1460.0, 1.0, 1e9, "that it grows by, a round trip (ai)"},
        {"shrink", 0.8, 0.01, 1.0, "by how much it answers delay beyond the target (beta)"},
        {"most_shrink", 0.5, 0.01, 0.99, "of the window that goes at once, at most (max_mdf)"},
        {"flow_us", 100.0, 0.0, 1e6, "of delay more that a small window may take (fs_range)"},
        {"flow_least", 0.1, 0.001, 1e6, "window in full-sized frames with all of that"},
        {"flow_most", 100.0, 0.01, 1e6, "window in full-sized frames with none of that"},
    };

    SwiftWindow(const Room &room, const OptionValues &options)
        : most_(static_cast<double>(room.packets)), queue_ns_(options[1] * 1e3),
          increase_(options[2] / room.packet_bytes), beta_(options[3]), most_shrink_(options[4]),
          frame_(1500.0 / room.packet_bytes), flow_ns_(options[5] * 1e3),
          least_root_(1.0 / std::sqrt(options[6])),
          most_root_(1.0 / std::sqrt(std::max(options[7], options[6] + 1e-6))),
          window_(std::clamp(options[0] / room.packet_bytes, 1.0, most_)) {}

    void on_answer(std::int64_t, const Answer &answer) override {
        const auto delay_ns = static_cast<double>(answer.round_trips.latest_ns);
        if (delay_ns > 0) {
            const double target_ns = this->target_ns(answer.round_trips);
            if (delay_ns < target_ns) {
                window_ = std::min(window_ + increase_ / window_, most_);
            } else {
                shrink(
                    std::max(1.0 - beta_ * (delay_ns - target_ns) / delay_ns, 1.0 - most_shrink_));
            }
        }
        if (rounds_.answered(answer)) is_calm_ = false;
    }
    void on_loss(std::int64_t, const RoundTrips &) override { shrink(1.0 - most_shrink_); }
    void on_timeout(std::int64_t, const RoundTrips &) override { shrink(1.0 - most_shrink_); }
    std::uint32_t packets() const override { return static_cast<std::uint32_t>(window_); }

  private:
    // The paper's section 3.5: flows with small windows are many, so each allows more delay.
    double target_ns(const RoundTrips &round_trips) const {
        const double root = 1.0 / std::sqrt(window_ / frame_);
        const double part = (root - most_root_) / (least_root_ - most_root_);
        return static_cast<double>(round_trips.shortest_ns) + queue_ns_ +
               flow_ns_ * std::clamp(part, 0.0, 1.0);
    }
    // Once a round trip.
    void shrink(double left) {
        if (is_calm_) return;
        is_calm_ = true;
        window_ = std::max(window_ * left, 1.0);
    }

    const double most_;
    const double queue_ns_;
    const double increase_;  // packets
    const double beta_;
    const double most_shrink_;
    const double frame_;  // packets in a full-sized one
    const double flow_ns_;
    const double least_root_;
    const double most_root_;
    double window_;
    Rounds rounds_;
    bool is_calm_ = false;  // it has shrunk in this round
};

}  // namespace ina::congestion
