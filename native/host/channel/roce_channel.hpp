// A queue pair of an RDMA NIC towards the switch: each packet is a SEND of one packet on an
// unreliable connection, and the NIC puts BTH and ICRC around it. Results are SENDs, too, into
// buffers that were posted: nobody writes into memory that this side has not given for it.
//
// A frame may be written to again as soon as its result is here, while a copy of it that was sent
// again still waits in the NIC's queue. So the header of each message is copied first and stays as
// it is until the NIC is done: what then goes out has the old number, whatever its values, and a
// switch that has answered this number adds nothing more to it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "host/channel/channel.hpp"
#include "host/channel/uc_queue.hpp"

namespace ina::host {

class RoceChannel final : public Channel {
  public:
    // Works on a queue pair that is connected, and closes it. Throws std::invalid_argument.
    explicit RoceChannel(std::shared_ptr<UcQueue> queue);
    ~RoceChannel() override;

    void close() override { queue_->close(); }
    bool is_open() const { return queue_->is_open(); }
    int fd() const override { return is_broken_ ? -1 : queue_->event_fd(); }
    bool is_woken_often() const override { return true; }
    std::uint32_t room_packets(std::uint32_t) const override { return queue_->buffers(); }
    int receive_buffer_bytes() const override {
        return static_cast<int>(queue_->buffers() * queue_->buffer_bytes());
    }
    const char *kind() const override { return "roce"; }
    std::size_t burst_packets() const override { return kBurst; }

    PacketMemory packet_memory() override;
    // Each in its place in the NIC's queue, of which the NIC tells the end now and then. Where
    // there is none left, packets are dropped: it sends as fast as it may.
    void send(const PacketView *packets, std::size_t count, std::size_t longest_train,
              std::size_t way) override;
    bool receive(std::vector<Arrival> *arrivals) override;
    void release() override;
    bool prepare_sleep(std::uint32_t in_flight) override;

  private:
    static constexpr std::size_t kBurst = 64;
    // So often the NIC tells that it is done with all up to here.
    static constexpr std::uint64_t kSignalEach = 64;

    std::size_t take_places(std::size_t wanted);
    void reap();
    bool fill(const PacketView &packet, std::size_t index);
    void poll();
    void note_broken();

    const std::shared_ptr<UcQueue> queue_;
    std::uint64_t posted_ = 0;
    std::uint64_t done_ = 0;            // of those, the NIC is done with these
    bool asked_ = false;                // for an event
    bool is_broken_ = false;            // the queue pair takes and gives nothing any more
    std::size_t here_ = 0;              // of `ended_`, not given out yet
    std::vector<std::uint32_t> taken_;  // buffers to post again

    std::array<verbs::Wc, kBurst> ended_{};
    std::array<verbs::SendWr, kBurst> sends_{};
    std::array<std::array<verbs::Sge, 2>, kBurst> pieces_{};
    std::array<verbs::RecvWr, kBurst> receives_{};
    std::array<verbs::Sge, kBurst> buffers_{};
};

}  // namespace ina::host
