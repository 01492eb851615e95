// How a job's communication alternates with its computation, as its operations come and end: what a
// controller learns from how many slots are of use to it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace ina::host {

struct RhythmCounters {
    std::int64_t busy_ns = 0;  // so long operations were pending
    // Of that, since the last one of those that were pending together had come: the program had
    // nothing more to send, and in a step of training it waits.
    std::int64_t tail_ns = 0;
    std::uint32_t step_operations = 0;  // operations of a step; 0: they do not repeat
};

class Rhythm {
  public:
    void submitted(std::uint64_t elems, std::int64_t now_ns) {
        if (pending_++ == 0) began_ns_ = now_ns;
        last_ns_ = now_ns;
        sizes_[count_++ % kKept] = elems;
    }

    void ended(std::size_t operations, std::int64_t now_ns) {
        if (operations == 0 || pending_ == 0) return;
        pending_ -= operations < pending_ ? operations : pending_;
        if (pending_ != 0) return;
        counters_.busy_ns += now_ns - began_ns_;
        counters_.tail_ns += now_ns - last_ns_;
    }

    // With what is pending now.
    RhythmCounters counters(std::int64_t now_ns) const {
        RhythmCounters counters = counters_;
        if (pending_ != 0) {
            counters.busy_ns += now_ns - began_ns_;
            counters.tail_ns += now_ns - last_ns_;
        }
        counters.step_operations = period();
        return counters;
    }

  private:
    // Steps submit the same sizes in the same order: the shortest run of sizes that came three
    // times in a row, last. Where all are of one size, each is a step.
    std::uint32_t period() const {
        const std::size_t known = count_ < kKept ? count_ : kKept;
        for (std::size_t length = 1; length * kTimes <= known; ++length) {
            std::size_t same = 0;
            const std::size_t wanted = length * (kTimes - 1);
            while (same < wanted && size(same) == size(same + length)) ++same;
            if (same == wanted) return static_cast<std::uint32_t>(length);
        }
        return 0;
    }

    std::uint64_t size(std::size_t back) const { return sizes_[(count_ - 1 - back) % kKept]; }

    static constexpr std::size_t kKept = 1024;  // operations of three steps at most
    static constexpr std::size_t kTimes = 3;

    RhythmCounters counters_;
    std::size_t pending_ = 0;
    std::int64_t began_ns_ = 0;
    std::int64_t last_ns_ = 0;
    std::uint64_t count_ = 0;
    std::array<std::uint64_t, kKept> sizes_{};
};

}  // namespace ina::host
