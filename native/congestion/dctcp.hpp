// DCTCP (Alizadeh et al., SIGCOMM 2010; RFC 8257): gives way to marks by as much as there are. What
// answers a packet is its result, so there are neither acknowledgements nor echoes.
#pragma once

#include <algorithm>
#include <cstdint>

#include "congestion/algorithms.hpp"
#include "congestion/rounds.hpp"

namespace ina::congestion {

class DctcpWindow : public Window {
  public:
    static constexpr Option kOptions[] = {
        {"first_bytes", 14600.0, 1.0, 1e9, "that it begins with (RFC 6928)"},
        {"segment_bytes", 1460.0, 1.0, 1e9, "that it grows by, a round trip"},
        {"weight", 0.0625, 0.001, 1.0, "of the newest round in the share of marked results"},
    };

    DctcpWindow(const Room &room, const OptionValues &options)
        : most_(static_cast<double>(room.packets)), segment_(options[1] / room.packet_bytes),
          marks_(options[2], 1.0), window_(std::clamp(options[0] / room.packet_bytes, 1.0, most_)),
          threshold_(most_) {}

    void on_answer(std::int64_t, const Answer &answer) override {
        marks_.answered(answer.marked);
        if (answer.marked) {
            shrink(1.0 - marks_.share() / 2.0);
        } else if (2.0 * answer.in_flight >= window_) {  // what is not used does not grow
            window_ += window_ < threshold_ ? 1.0 : segment_ / window_;
            window_ = std::min(window_, most_);
        }
        if (!rounds_.answered(answer)) return;
        marks_.end_round();
        is_calm_ = false;
    }
    void on_loss(std::int64_t, const RoundTrips &) override { shrink(0.5); }
    // A late worker looks the same: RFC 5681's window of one segment would let all wait for it.
    void on_timeout(std::int64_t, const RoundTrips &) override {}
    std::uint32_t packets() const override { return static_cast<std::uint32_t>(window_); }

  private:
    // Once a round trip.
    void shrink(double left) {
        if (is_calm_) return;
        is_calm_ = true;
        window_ = threshold_ = std::max(window_ * left, 1.0);
    }

    const double most_;
    const double segment_;  // packets
    MarkShare marks_;
    double window_;
    double threshold_;  // slow start below it
    Rounds rounds_;
    bool is_calm_ = false;  // it has shrunk in this round
};

}  // namespace ina::congestion
