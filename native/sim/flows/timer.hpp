// A timer that is set again much more often than it goes off: setting it later puts down no event.
#pragma once

#include <cstdint>

#include "sim/engine.hpp"

namespace ina::sim {

// Flows end while events of theirs are still due, so events come to whoever keeps the flows. They
// carry the flow's place, which of its timers it is, and a number that tells old events apart.
struct TimerEvent {
    static constexpr std::uint32_t kPlaceBits = 24;
    static constexpr std::uint32_t kWhichBits = 2;

    std::uint32_t place = 0;
    std::uint32_t which = 0;
    std::uint64_t number = 0;

    std::uint64_t what() const { return (number << kWhichBits | which) << kPlaceBits | place; }
    static TimerEvent of(std::uint64_t what) {
        return {static_cast<std::uint32_t>(what & ((1u << kPlaceBits) - 1)),
                static_cast<std::uint32_t>(what >> kPlaceBits & ((1u << kWhichBits) - 1)),
                what >> (kPlaceBits + kWhichBits)};
    }
};

// What the timers of one keeper share.
struct TimerBase {
    Engine *engine;
    Element *keeper;
    std::uint64_t next_number = 1;
};

class Timer {
  public:
    Timer(TimerBase *base, std::uint32_t place, std::uint32_t which)
        : base_(base), event_{place, which, 0} {}

    void set(std::int64_t due_ns) {
        due_ns_ = due_ns;
        if (due_ns < put_ns_) put(due_ns);
    }
    void stop() { due_ns_ = kNever; }
    std::int64_t now_ns() const { return base_->engine->now_ns(); }
    bool is_set() const { return due_ns_ != kNever; }

    // Of an event of this timer's: whether it goes off. Then it is no longer set.
    bool goes_off(std::uint64_t number) {
        if (number != event_.number) return false;
        put_ns_ = kNever;
        if (due_ns_ > base_->engine->now_ns()) {
            if (is_set()) put(due_ns_);
            return false;
        }
        due_ns_ = kNever;
        return true;
    }

  private:
    void put(std::int64_t at_ns) {
        put_ns_ = at_ns;
        event_.number = base_->next_number++;
        base_->engine->at(at_ns, base_->keeper, event_.what());
    }

    TimerBase *const base_;
    TimerEvent event_;  // the last that was put down
    std::int64_t due_ns_ = kNever;
    std::int64_t put_ns_ = kNever;  // when it comes
};

}  // namespace ina::sim
