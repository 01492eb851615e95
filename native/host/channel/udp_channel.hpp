// A UDP socket towards the switch with batched I/O: UDP_SEGMENT (GSO) for runs of equal packets,
// UDP_GRO for receiving, with sendmmsg and single datagrams where the kernel or the device lacks
// them.
#pragma once

#include <netinet/in.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "host/channel/channel.hpp"
#include "host/channel/descriptor.hpp"
#include "host/channel/udp_lanes.hpp"
#include "host/channel/udp_receiver.hpp"

namespace ina::host {

class UdpChannel final : public Channel {
  public:
    // Works on its own duplicate of `fd`, a UDP socket that is connected to the switch; asks for
    // receive_buffer_bytes. Packets carry the DSCP that `fd` has (IP_TOS), and are ECN-capable.
    // Without `trains` it uses neither GSO nor GRO. `group_fd`: a socket that listens for results
    // to several workers (udp_group.hpp); -1: none. Throws std::system_error.
    UdpChannel(int fd, int receive_buffer_bytes, bool trains = true, int group_fd = -1);
    ~UdpChannel() override;

    // Each with a socket of its own (udp_lanes.hpp). Where the kernel refuses that, all with this
    // one's, if there is one way.
    std::vector<std::unique_ptr<Channel>> divide(const LaneParts &parts,
                                                 const std::vector<Way> &ways) override;
    void redirect(const LaneParts &parts, std::size_t thread,
                  const std::vector<Way> &ways) override;
    const std::string &one_queue_why() const override { return one_queue_why_; }
    void close() override;
    int fd() const override { return both_.get() >= 0 ? both_.get() : socket_.get(); }
    bool is_woken_often() const override { return true; }
    void take_own_results() override;
    // What the kernel granted, in its own accounting (payload and bookkeeping).
    int receive_buffer_bytes() const override { return receive_buffer_bytes_; }
    std::uint32_t room_packets(std::uint32_t values_per_packet) const override;
    const char *kind() const override { return "udp"; }
    bool uses_gso() const override { return gso_; }
    bool uses_gro() const override { return gro_; }

    void send(const PacketView *packets, std::size_t count, std::size_t longest_train,
              std::size_t way) override;
    // A fixed number of datagrams or GRO trains.
    bool receive(std::vector<Arrival> *arrivals) override;

  private:
    explicit UdpChannel(Descriptor socket);  // its options are set already

    void configure_like_this(int fd) const;
    void listen(Descriptor group);
    std::unique_ptr<UdpChannel> another(Descriptor socket, Descriptor group) const;
    void to_node(msghdr *message, std::size_t way);
    const PacketView *by_size(const PacketView *packets, std::size_t count);
    std::size_t send_train(const PacketView *packets, std::size_t count, std::size_t way);
    std::size_t send_each(const PacketView *packets, std::size_t count, std::size_t way);
    bool count_error(int error);
    void read(int fd, std::vector<Arrival> *arrivals);
    void read_group(std::vector<Arrival> *arrivals);

    Descriptor socket_;
    Descriptor group_;         // none: the switch sends each worker its own results
    Descriptor both_;          // epoll over the two, if there are two
    std::vector<Peer> peers_;  // by way; none: the socket is connected to the only one
    sockaddr_in to_{};         // the one that a message is for
    bool is_dealt_ = false;    // what comes is dealt among several threads' sockets
    bool has_told_ = false;    // a call failed by what the error queue has, too
    int asked_bytes_ = 0;
    int receive_buffer_bytes_ = 0;
    bool gso_;
    bool gro_ = false;
    std::string one_queue_why_;
    bool own_waits_ = false;  // the group's packets took all the room
    UdpReceiver receiver_;
    std::vector<PacketView> sorted_;  // what is being sent
};

}  // namespace ina::host
