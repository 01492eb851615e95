// Two rings of packets in memory that the worker shares with a switch on the same host, and the
// Unix connection over which they were set up: a byte there wakes, its end means that the switch is
// gone (ina/host/shm.py attaches, native/switch/shm_port.hpp is the other side).
#pragma once

#include <cstdint>

#include "common/shm_ring.hpp"
#include "common/shm_segment.hpp"
#include "host/channel/channel.hpp"
#include "host/channel/left_core.hpp"

namespace ina::host {

class ShmChannel final : public Channel {
  public:
    // Works on its own duplicate of `fd`, the connection, and maps `memory_fd` and `results_fd`,
    // the segment and the results' area that came over it for a Hello of these numbers. Throws
    // std::system_error, std::invalid_argument: the segment has another size.
    ShmChannel(int fd, int memory_fd, int results_fd, const shm::Shape &shape);
    ~ShmChannel() override;

    void close() override;
    int fd() const override { return is_gone_ ? -1 : fd_; }
    std::uint32_t room_packets(std::uint32_t) const override { return shape_.cells; }
    int receive_buffer_bytes() const override { return static_cast<int>(shape_.frames_bytes()); }
    const char *kind() const override { return "shm"; }
    std::size_t burst_packets() const override;

    PacketMemory packet_memory() override;
    void send(const PacketView *packets, std::size_t count, std::size_t longest_train,
              std::size_t way) override;
    bool receive(std::vector<Arrival> *arrivals) override;
    void release() override { from_switch_.release(); }
    bool prepare_sleep(std::uint32_t in_flight) override;

  private:
    void wake_switch(bool patient);
    void drain();
    void note_gone();

    int fd_;
    shm::Shape shape_;
    shm::Segment segment_;
    shm::Segment results_;
    shm::Producer to_switch_;
    shm::Consumer from_switch_;
    LeftCore left_core_;
    bool has_slept_ = false;
    bool is_gone_ = false;
};

}  // namespace ina::host
