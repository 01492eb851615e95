// When what happened to blocks at a node, where somebody wants to know.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace ina::infer {

enum class Mark : std::uint8_t {
    kCame = 1,      // a block's input is whole, at the entry
    kRan = 2,       // a stage's kernel has run
    kSummed = 3,    // a stage's sum is here
    kAnswered = 4,  // the answer left
};

struct Moment {
    std::int64_t at_ns;  // of the machine's monotonic clock
    Mark mark;
    std::uint16_t stage;
    std::uint32_t request;
    std::uint32_t block;
};

class Trace {
  public:
    // At most so many moments, the first ones; 0: none are kept.
    explicit Trace(std::size_t most) : most_(most) {}

    void set_time(std::int64_t now_ns) { now_ns_ = now_ns; }
    void note(Mark mark, std::size_t stage, std::uint32_t request, std::uint32_t block) {
        if (moments_.size() >= most_) return;
        moments_.push_back({now_ns_, mark, static_cast<std::uint16_t>(stage), request, block});
    }
    std::vector<Moment> take() { return std::exchange(moments_, {}); }

  private:
    const std::size_t most_;
    std::int64_t now_ns_ = 0;
    std::vector<Moment> moments_;
};

}  // namespace ina::infer
