// A UDP socket for each thread of a worker, all at the worker's one address and port. The kernel
// puts a packet into the receive queue of the thread that owns its lane.
//
// The sockets are a group with SO_REUSEPORT, whose classic BPF program finds a packet's lane in its
// sequence number (socket(7), SO_ATTACH_REUSEPORT_CBPF; Linux 4.5; no privilege needed). A train
// that the kernel has put together (UDP_GRO) goes to one socket whole, by its first packet.
//
// A connected socket would be preferred to the group, and get all packets. So none is connected,
// and what that did for one socket is done by other means: each send names the switch, a socket
// filter admits nobody else's packets, and IP_RECVERR reports ICMP errors (udp_error_queue.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "host/channel/channel.hpp"
#include "host/channel/descriptor.hpp"

namespace ina::host {

struct LaneSockets {
    std::vector<Descriptor> sockets;  // thread k's is sockets[k]
    std::vector<Peer> peers;          // by way
};

// Replaces `connected`, a UDP socket that is connected to the switch, by one socket for each
// thread. With one way, it is to that switch; with several, each is to its node, where only packets
// of the jobs there are taken. `configure` sets a new socket's options before packets can come to
// it. `connected` is then unconnected: it has lost its address, or is another descriptor of the
// first of these sockets. To be called before anything is sent: what `connected` has received it
// may keep.
//
// Throws std::system_error, which says what the kernel refused; `connected` is then as before.
LaneSockets open_lane_sockets(int connected, const LaneParts &parts, const std::vector<Way> &ways,
                              const std::function<void(int fd)> &configure);

// For such a socket of ways, whose nodes were at `peers`: from now on it takes what is of their
// jobs now, and of more ways, if there are more. Returns where those are. Throws std::system_error.
std::vector<Peer> admit_ways(int fd, const std::vector<Peer> &peers, const std::vector<Way> &ways,
                             const LaneParts &parts);

// From now on packets are dealt to the group's sockets by these parts. Throws std::system_error.
void deal_lanes(int fd, const LaneParts &parts);

}  // namespace ina::host
