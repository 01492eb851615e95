// A port that is one unprivileged UDP socket: each datagram becomes an Ethernet frame on arrival,
// and each IPv4/UDP frame that leaves is sent to the address and port written in it, so one socket
// serves any number of hosts. Super-datagrams both ways (UDP_GRO, UDP_SEGMENT) where the kernel has
// them.
#pragma once

#include <netinet/in.h>

#include <memory>
#include <vector>

#include "switch/frame.hpp"
#include "switch/port.hpp"
#include "switch/udp_sender.hpp"

namespace ina::sw {

class UdpPort final : public Port {
  public:
    // address in host byte order, 0 = any (each datagram's own destination is then used);
    // udp_port 0 = ephemeral. Of socket_buffer_bytes the kernel grants a plain user what
    // net.core.[rw]mem_max allows; stats say how much. frame_udp_port: what frames are sent to in
    // place of udp_port; that of RoCEv2 makes it the end of a tunnel (udp_sender.hpp). Throws
    // std::system_error.
    UdpPort(uint32_t number, uint32_t address, uint16_t udp_port, uint16_t frame_udp_port,
            double loss_probability, uint64_t loss_seed, int socket_buffer_bytes);
    ~UdpPort() override;

    Peer bound() const { return bound_; }
    int fd() const override { return epoll_fd_ >= 0 ? epoll_fd_ : sockets_.front(); }
    void close() override;
    bool takes_tails() const override { return true; }
    bool takes_trailers() const override { return true; }
    void receive(FrameBatch *batch) override;
    void extra_stats(std::vector<std::pair<std::string, uint64_t>> *stats) const override;

  protected:
    void transmit(const std::vector<ina_packet_out> &packets) override;

  private:
    void configure(int fd);
    void share();
    void receive_from(int fd, FrameBatch *batch);
    void accept(const msghdr &message, size_t bytes, FrameBatch *batch);

    // One socket; or, where the kernel grants a plain user only small receive buffers, several
    // bound to the same address: it deals the senders out among them (SO_REUSEPORT).
    std::vector<int> sockets_;
    int epoll_fd_ = -1;  // over the sockets, when there are several
    Peer bound_;
    uint16_t frame_udp_port_;
    int socket_buffer_bytes_;  // asked for, each way
    bool gro_ = false;
    uint64_t receive_buffer_bytes_ = 0, send_buffer_bytes_ = 0;  // of all, of the one that sends
    std::unique_ptr<uint8_t[]> received_;                        // one super-datagram
    std::unique_ptr<UdpSender> sender_;
};

}  // namespace ina::sw
