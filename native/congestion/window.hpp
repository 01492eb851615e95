// How many packets may be in flight. An algorithm is a class behind this interface, in a header of
// its own: it is told what happened, with the time passed in, and says a number of packets. It
// decides nothing else. Loss recovery (host/recovery) tells it; how losses are found and what a
// round trip takes is known there, whatever the algorithm.
#pragma once

#include <cstdint>

namespace ina::congestion {

// What packets that were sent once took from their sending to their result, ns. It includes the
// time that other workers were late.
struct RoundTrips {
    std::int64_t latest_ns = 0;    // of the packet just answered; 0: it was sent more than once
    std::int64_t mean_ns = 0;      // moving average, weight 1/8; 0: none so far, as is the next
    std::int64_t shortest_ns = 0;  // of late
};

class Window {
  public:
    virtual ~Window() = default;
    // A result was accepted. `marked`: a queue on its way, or on the way of a contribution in it,
    // was long (ECN).
    virtual void on_answer(std::int64_t now_ns, const RoundTrips &round_trips, bool marked) = 0;
    // The results of packets sent later came before a packet's: it, or its result, was lost.
    virtual void on_loss(std::int64_t now_ns, const RoundTrips &round_trips) = 0;
    // Nothing was heard for a retransmission timeout.
    virtual void on_timeout(std::int64_t now_ns, const RoundTrips &round_trips) = 0;
    // At least 1. A value beyond the job's window W has no effect.
    virtual std::uint32_t packets() const = 0;
};

}  // namespace ina::congestion
