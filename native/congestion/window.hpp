// How many packets may be in flight, and how fast they go. An algorithm is a class behind this
// interface, in a header of its own: it is told what happened, with the time passed in, and says
// numbers of packets. It decides nothing else. Loss recovery (host/recovery) tells it; how losses
// are found and what a round trip takes is known there, whatever the algorithm.
#pragma once

#include <cstdint>

namespace ina::congestion {

// What packets with values that were sent once took from their sending to their result, ns. It
// includes the time that other workers were late.
struct RoundTrips {
    std::int64_t latest_ns = 0;    // of the packet just answered; 0: it was sent more than once
    std::int64_t mean_ns = 0;      // moving average, weight 1/8; 0: none so far, as is the next
    std::int64_t shortest_ns = 0;  // of late
};

// What a result with values that was accepted tells.
struct Answer {
    RoundTrips round_trips;
    std::uint32_t in_flight = 0;  // packets with values, with the one that is answered
    // A queue on its way, or on the way of a contribution in it, was long (ECN).
    bool marked = false;
    // The result's IP header was: the contribution that completed the sum met a queue, whosever it
    // was, or the result did on its way to us.
    bool marked_here = false;
    // It was our packet that completed the sum: latest_ns holds no time that others were late.
    bool was_last = false;
    bool mended = false;  // a copy of ours was needed: one before, or the result, had been lost
};

// At which intervals packets leave.
struct Pace {
    std::int64_t gap_ns = 0;          // from one to the next, on average; 0: as they come
    std::uint32_t burst_packets = 1;  // so many may go together after a pause
};

// What a window has to do with. All are at least 1.
struct Room {
    std::uint32_t packets;       // it may be that large: what the job's slots and the buffers allow
    std::uint32_t packet_bytes;  // of one with values, as an Ethernet frame
    std::uint32_t workers = 2;   // of the job
};

// Windows count packets with values. Those without, by which workers agree on exponents, are small:
// they take up as much of a window as they have bytes, and their results are not told.

class Window {
  public:
    virtual ~Window() = default;
    // A result with values was accepted.
    virtual void on_answer(std::int64_t now_ns, const Answer &answer) = 0;
    // The results of packets sent later came before a packet's: it, or its result, was lost.
    virtual void on_loss(std::int64_t now_ns, const RoundTrips &round_trips) = 0;
    // Nothing was heard for a retransmission timeout.
    virtual void on_timeout(std::int64_t now_ns, const RoundTrips &round_trips) = 0;
    // All results that had come by now have been told.
    virtual void on_batch(std::int64_t) {}
    // At least 1. A value beyond the job's window W has no effect.
    virtual std::uint32_t packets() const = 0;
    virtual Pace pace() const { return {}; }
};

}  // namespace ina::congestion
