// How many packets may be in flight. The one seam between WorkerCore and congestion control: an
// algorithm is a class behind this interface, told events with the time passed in.
#pragma once

#include <cstdint>

namespace ina::host {

class CongestionWindow {
  public:
    virtual ~CongestionWindow() = default;
    // A result arrived; rtt_ns is 0 when its packet was sent more than once.
    virtual void on_result(std::int64_t now_ns, std::int64_t rtt_ns, bool ecn_marked) = 0;
    // The results of packets sent later came before this one's: it, or its result, was lost.
    virtual void on_loss(std::int64_t now_ns) = 0;
    virtual void on_timeout(std::int64_t now_ns) = 0;
    // At least 1. A value beyond the job's window W has no effect.
    virtual std::uint32_t packets() const = 0;
    // So many of them at most should go as one train.
    virtual std::uint32_t longest_train() const { return packets(); }
    // How much longer round trips take than the shortest: packets stand in queues for so long, or
    // another worker is late. 0: not known.
    virtual std::int64_t queued_ns() const { return 0; }
    virtual std::int64_t shortest_ns() const { return 0; }  // round trip of late; 0: not known
};

class FixedWindow final : public CongestionWindow {
  public:
    explicit FixedWindow(std::uint32_t packets) : packets_(packets) {}
    void on_result(std::int64_t, std::int64_t, bool) override {}
    void on_loss(std::int64_t) override {}
    void on_timeout(std::int64_t) override {}
    std::uint32_t packets() const override { return packets_; }

  private:
    std::uint32_t packets_;
};

}  // namespace ina::host
