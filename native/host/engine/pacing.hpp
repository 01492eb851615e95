// How a share's packets are spread over time: in trains short enough for the queues on their way,
// and with results read in groups where the network has enough to do meanwhile.
#pragma once

#include <cstdint>

#include "host/core/worker_core.hpp"

namespace ina::host {

class Pacing {
  public:
    // most: packets, what the window may be at most.
    explicit Pacing(std::uint32_t most) : most_(most) {}

    // So many packets at most should go as one train. A queue without room for a train drops all of
    // it. Where queues have made the window small, it goes in two trains or more (TCP, too, has
    // shorter ones at lower rates).
    std::uint32_t longest_train(const WorkerCore &core) const {
        const std::uint32_t window = core.recovery().window_packets();
        return window < most_ ? window / kTrainsInWindow : most_;
    }

    // How long to let results gather before they are read, once those that are here have been. 0:
    // read each as it comes. Interrupt moderation: on a slow link every train of packets would wake
    // the thread for itself; while packets stand in queues for two milliseconds or more, a part of
    // that may pass unused. What this worker and the last of the others leave unread counts as
    // queueing for both, so a share of it would keep itself alive: of a third, round trips of three
    // times what they are, with links idle for half of them. As long as a train takes at 1 Gbit/s:
    // more spares no wake-up where links are slower.
    std::int64_t moderation_ns(const WorkerCore &core) const {
        // The last packets of a tensor would only come later.
        if (2 * core.in_flight() < core.in_flight_limit()) return 0;
        const RttEstimator &rtt = core.recovery().rtt();
        const std::int64_t queued_ns = rtt.flowing_ns() - rtt.shortest_ns();
        return queued_ns < kLeastQueuedNs ? 0 : kPauseNs;
    }

  private:
    static constexpr std::uint32_t kTrainsInWindow = 2;
    static constexpr std::int64_t kLeastQueuedNs = 2'000'000;
    static constexpr std::int64_t kPauseNs = 500'000;
    std::uint32_t most_;
};

}  // namespace ina::host
