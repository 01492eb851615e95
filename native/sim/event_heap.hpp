// What is due, the earliest on top: a heap in which each has four below it, so that a step down
// touches two cache lines instead of going down two levels.
//
// An event that happens mostly puts down one more. So what is taken from the top leaves a hole, and
// the next that is put down fills it: one way through the heap instead of two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ina::sim {

class Element;

struct Event {
    std::int64_t at_ns;
    std::uint64_t number;
    Element *element;
    std::uint64_t what;

    // As one number, which is compared without a branch: which of two is earlier cannot be guessed.
    __int128 order() const { return static_cast<__int128>(at_ns) << 64 | number; }
    bool operator<(const Event &other) const { return order() < other.order(); }
};

class EventHeap {
  public:
    bool empty() const { return events_.size() == static_cast<std::size_t>(has_hole_); }

    void put(const Event &event) {
        if (has_hole_) {
            has_hole_ = false;
            sink(event);
            return;
        }
        std::size_t at = events_.size();
        events_.push_back(event);
        while (at > 0 && event < events_[(at - 1) / kBelow]) {
            events_[at] = events_[(at - 1) / kBelow];
            at = (at - 1) / kBelow;
        }
        events_[at] = event;
    }

    // The earliest; there is one.
    const Event &top() {
        close();
        return events_.front();
    }
    Event take() {
        close();
        has_hole_ = true;
        return events_.front();
    }

  private:
    static constexpr std::size_t kBelow = 4;

    void close() {
        if (!has_hole_) return;
        has_hole_ = false;
        const Event last = events_.back();
        events_.pop_back();
        if (!events_.empty()) sink(last);
    }

    // Down from the top.
    void sink(const Event &event) {
        const std::size_t size = events_.size();
        std::size_t at = 0;
        for (;;) {
            const std::size_t first = at * kBelow + 1;
            if (first >= size) break;
            const std::size_t end = first + kBelow < size ? first + kBelow : size;
            std::size_t least = first;
            for (std::size_t i = first + 1; i < end; ++i) {
                least = events_[i] < events_[least] ? i : least;
            }
            if (event < events_[least]) break;
            events_[at] = events_[least];
            at = least;
        }
        events_[at] = event;
    }

    std::vector<Event> events_;  // the first is the hole, if there is one
    bool has_hole_ = false;
};

}  // namespace ina::sim
