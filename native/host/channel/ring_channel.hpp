// Mode transparent without a NIC: a worker's place in a ring of reliable connections, in user
// space (ring_endpoint.hpp). Its frames are whole, in the datagrams of a UDP socket to a switch's
// port for such (switch/frames_port.hpp).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "host/channel/channel.hpp"
#include "host/channel/descriptor.hpp"
#include "host/endpoint/ring_endpoint.hpp"

namespace ina::host {

class RingChannel final : public Channel, private FrameSink {
  public:
    // Works on its own duplicate of `fd`, a UDP socket connected to the switch's port. Throws
    // std::system_error; std::invalid_argument: not a queue pair of each kind for each lane.
    RingChannel(int fd, const RingEnds &ends, std::uint32_t lanes, int receive_buffer_bytes);
    ~RingChannel() override;

    void send(const PacketView *packets, std::size_t count, std::size_t longest_train,
              std::size_t way) override;
    bool receive(std::vector<Arrival> *arrivals) override;
    int fd() const override { return both_.get(); }
    bool prepare_sleep(std::uint32_t in_flight) override;
    bool is_woken_often() const override { return true; }
    bool owes() const override { return owes_; }
    std::uint32_t room_packets(std::uint32_t values_per_packet) const override;
    int receive_buffer_bytes() const override { return receive_buffer_bytes_; }
    const char *kind() const override { return "roce-soft"; }
    void close() override;

  private:
    struct Received;

    std::uint8_t *add(std::size_t bytes) override;
    void flush();
    void tally();

    Descriptor socket_;
    Descriptor timer_;
    Descriptor both_;
    RingEndpoint endpoint_;
    std::atomic<bool> owes_{false};
    int receive_buffer_bytes_ = 0;
    std::uint64_t refused_ = 0;  // sends and receives that the kernel says nobody is there for
    std::unique_ptr<Received> received_;
    std::vector<std::vector<std::uint8_t>> out_;  // the first out_count_ are to be sent
    std::size_t out_count_ = 0;
};

}  // namespace ina::host
