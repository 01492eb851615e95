// ATP's window (Lao et al., NSDI 2021): once a window of results it is halved if one of them was
// marked or lost, else it grows by one full-sized Ethernet frame.
#pragma once

#include <algorithm>
#include <cstdint>

#include "congestion/algorithms.hpp"
#include "congestion/rounds.hpp"

namespace ina::congestion {

class AimdWindow final : public Window {
  public:
    static constexpr Option kOptions[] = {
        {"first_bytes", 30800.0, 1.0, 1e9, "that it begins with"},
        {"increase_bytes", 1500.0, 1.0, 1e9, "that it grows by, a round trip"},
        {"shrink", 0.5, 0.01, 0.99, "what is left of the window after a mark or a loss"},
    };

    AimdWindow(const Room &room, const OptionValues &options)
        : most_(static_cast<double>(room.packets)), increase_(options[1] / room.packet_bytes),
          shrink_(options[2]), window_(std::clamp(options[0] / room.packet_bytes, 1.0, most_)) {}

    void on_answer(std::int64_t, const Answer &answer) override {
        gives_way_ |= answer.marked;
        if (!rounds_.answered(answer)) return;
        window_ = gives_way_ ? window_ * shrink_ : window_ + increase_;
        window_ = std::clamp(window_, 1.0, most_);
        gives_way_ = false;
    }
    void on_loss(std::int64_t, const RoundTrips &) override { gives_way_ = true; }
    void on_timeout(std::int64_t, const RoundTrips &) override { gives_way_ = true; }
    std::uint32_t packets() const override { return static_cast<std::uint32_t>(window_); }

  private:
    const double most_;
    const double increase_;  // packets
    const double shrink_;
    double window_;
    Rounds rounds_;
    bool gives_way_ = false;
};

}  // namespace ina::congestion
