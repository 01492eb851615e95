// A window of one size, for links whose queues hold all that a job has in flight, and to compare
// others with.
#pragma once

#include <algorithm>
#include <cstdint>

#include "congestion/algorithms.hpp"

namespace ina::congestion {

class FixedWindow final : public Window {
  public:
    static constexpr Option kOptions[] = {
        {"packets", 0.0, 0.0, 65536.0, "in flight at most; 0: as many as the job's slots allow"},
    };

    FixedWindow(const Room &room, const OptionValues &options) : packets_(room.packets) {
        const auto wanted = static_cast<std::uint32_t>(options[0]);
        if (wanted > 0) packets_ = std::min(room.packets, wanted);
    }

    void on_answer(std::int64_t, const Answer &) override {}
    void on_loss(std::int64_t, const RoundTrips &) override {}
    void on_timeout(std::int64_t, const RoundTrips &) override {}
    std::uint32_t packets() const override { return packets_; }

  private:
    std::uint32_t packets_;
};

}  // namespace ina::congestion
