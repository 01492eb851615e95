// Virtual time: what happens, in order of (time, number). The number is given when an event is put
// down, so what was put down first happens first, and a run depends on nothing but its input.
#pragma once

#include <cstdint>

#include "sim/event_heap.hpp"

namespace ina::sim {

inline constexpr std::int64_t kNever = INT64_MAX;

// Something to which things happen. Elements live as long as their engine.
class Element {
  public:
    Element() = default;
    virtual ~Element() = default;
    Element(const Element &) = delete;
    Element &operator=(const Element &) = delete;
    // `what`: as it was put down.
    virtual void on_event(std::uint64_t what) = 0;
};

class Engine {
  public:
    std::int64_t now_ns() const { return now_ns_; }

    // Not before now.
    void at(std::int64_t at_ns, Element *element, std::uint64_t what = 0) {
        events_.put({at_ns < now_ns_ ? now_ns_ : at_ns, next_number_++, element, what});
    }

    // Lets happen what is due until then, and is then there; or stops behind the event in which
    // stop() was called. Returns whether it got there.
    bool run(std::int64_t until_ns) {
        stopped_ = false;
        while (!events_.empty() && events_.top().at_ns <= until_ns) {
            const Event event = events_.take();
            now_ns_ = event.at_ns;
            ++happened_;
            event.element->on_event(event.what);
            if (stopped_) return false;
        }
        if (until_ns != kNever && until_ns > now_ns_) now_ns_ = until_ns;
        return true;
    }
    void stop() { stopped_ = true; }

    // When the next event is due; kNever: nothing will happen.
    std::int64_t next_ns() { return events_.empty() ? kNever : events_.top().at_ns; }
    std::uint64_t happened() const { return happened_; }

  private:
    EventHeap events_;
    std::int64_t now_ns_ = 0;
    std::uint64_t next_number_ = 0;
    std::uint64_t happened_ = 0;
    bool stopped_ = false;
};

}  // namespace ina::sim
