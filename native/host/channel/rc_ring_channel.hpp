// Mode transparent by an RDMA device: a worker's place in a ring of reliable connections. Each
// packet is a SEND of one packet to the next worker, and sums are SENDs of the one before it. What
// is lost the devices send again; the core's own resends go no further.
//
// A device may read a message's memory until it is acknowledged, and that may come later than the
// sum, with which the core writes its frame anew: so messages are copied first.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "host/channel/channel.hpp"
#include "host/channel/rc_ring.hpp"

namespace ina::host {

class RcRingChannel final : public Channel {
  public:
    // Works on queue pairs that are connected, and closes them. Throws std::invalid_argument:
    // they are not, or not so many lanes'.
    RcRingChannel(std::shared_ptr<RcRing> ring, std::uint32_t lanes);
    ~RcRingChannel() override;

    void close() override { ring_->close(); }
    bool is_open() const { return ring_->is_open(); }
    int fd() const override { return is_broken_ ? -1 : ring_->event_fd(); }
    bool is_woken_often() const override { return true; }
    // The next worker gets the sum of what it has not acknowledged only if the device sends again.
    bool owes() const override { return owed_ != 0; }
    std::uint32_t room_packets(std::uint32_t) const override { return ring_->lanes(); }
    int receive_buffer_bytes() const override {
        return static_cast<int>(ring_->lanes() * RcRing::kBuffers * ring_->buffer_bytes());
    }
    const char *kind() const override { return "roce"; }
    std::size_t burst_packets() const override { return kBurst; }

    void send(const PacketView *packets, std::size_t count, std::size_t longest_train,
              std::size_t way) override;
    bool receive(std::vector<Arrival> *arrivals) override;
    void release() override;
    bool prepare_sleep(std::uint32_t in_flight) override;

  private:
    static constexpr std::size_t kBurst = 64;

    // Messages are counted from 0: those below `done` are acknowledged, those below `posted` are
    // the device's, those below `copied` are in frames.
    struct Lane {
        std::uint64_t copied = 0;
        std::uint64_t posted = 0;
        std::uint64_t done = 0;
        std::array<std::uint32_t, RcRing::kFrames> bytes{};
        std::uint32_t last_seq = 0;
        bool has_sent = false;
    };

    bool copy(std::uint32_t number, const PacketView &packet);
    void post(std::uint32_t number);
    void take(const verbs::Wc &ended, std::vector<Arrival> *arrivals);
    void poll();
    void note_broken();

    const std::shared_ptr<RcRing> ring_;
    std::vector<Lane> lanes_;
    std::atomic<std::uint64_t> owed_{0};  // messages that were copied and are not done
    bool asked_ = false;                  // for an event
    bool is_broken_ = false;              // some queue pair takes and gives nothing any more
    std::size_t here_ = 0;                // of `ended_`, not looked at yet
    std::array<verbs::Wc, kBurst> ended_{};
    std::vector<RcRing::Ended> taken_;  // buffers to post again
};

}  // namespace ina::host
