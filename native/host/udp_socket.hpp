// A connected UDP socket with batched I/O: UDP_SEGMENT (GSO) for runs of equal packets, UDP_GRO for
// receiving, with sendmmsg and single datagrams where the kernel or the device lacks them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "host/worker_types.hpp"

namespace ina::host {

struct SocketCounters {
    std::uint64_t send_calls = 0;
    std::uint64_t receive_calls = 0;
    std::uint64_t refused = 0;  // ICMP port unreachable: nothing listens at the switch's address
    std::uint64_t unreachable = 0;  // other ICMP errors
    std::uint64_t send_drops =
        0;  // packets that the kernel did not take; retransmission repairs it
};

class UdpSocket {
  public:
    // Works on its own duplicate of `fd`, a UDP socket that is connected to the switch; asks for
    // receive_buffer_bytes. Without `trains` it uses neither GSO nor GRO. Throws std::system_error.
    UdpSocket(int fd, int receive_buffer_bytes, bool trains = true);
    ~UdpSocket();
    UdpSocket(const UdpSocket &) = delete;
    UdpSocket &operator=(const UdpSocket &) = delete;

    // Closes the duplicate. Idempotent; nothing may be sent or received afterwards.
    void close();

    int fd() const { return fd_; }
    // What the kernel granted, in its own accounting (payload and bookkeeping).
    int receive_buffer_bytes() const { return receive_buffer_bytes_; }
    bool uses_gso() const { return gso_; }
    bool uses_gro() const { return gro_; }
    const SocketCounters &counters() const { return counters_; }

    // Sends all, in order. What the kernel refuses is dropped and counted.
    void send(const PacketView *packets, std::size_t count);

    // Reads what has arrived without blocking, up to a fixed number of datagrams or GRO trains, and
    // calls sink(payload, bytes, ip_marked) for each packet. True when more may be waiting.
    template <class Sink>
    bool receive(Sink &&sink);

  private:
    struct Train {  // equal packets, the last one may be shorter
        const std::uint8_t *data;
        std::size_t bytes;
        std::size_t packet_bytes;
        bool ip_marked;
    };
    struct ReceiveArea;

    std::size_t send_train(const PacketView *packets, std::size_t count);
    std::size_t send_each(const PacketView *packets, std::size_t count);
    bool count_error(int error);
    std::size_t receive_trains();

    int fd_;
    int receive_buffer_bytes_ = 0;
    bool gso_;
    bool gro_ = false;
    SocketCounters counters_;
    std::vector<Train> trains_;
    std::unique_ptr<ReceiveArea> area_;
};

template <class Sink>
bool UdpSocket::receive(Sink &&sink) {
    const std::size_t capacity = trains_.size();
    const std::size_t count = receive_trains();
    for (std::size_t i = 0; i < count; ++i) {
        const Train &train = trains_[i];
        std::size_t offset = 0;
        do {  // an empty datagram is one packet, too
            const std::size_t left = train.bytes - offset;
            const std::size_t bytes = left < train.packet_bytes ? left : train.packet_bytes;
            sink(train.data + offset, bytes, train.ip_marked);
            offset += bytes;
        } while (offset < train.bytes);
    }
    return count == capacity;
}

}  // namespace ina::host
