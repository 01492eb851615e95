// The sending half of a UDP port: frames grouped by destination, runs of equal size handed to the
// kernel as one super-datagram (UDP_SEGMENT), many of those by one sendmmsg.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <atomic>
#include <memory>
#include <vector>

#include "switch/frame.hpp"
#include "switch/port.hpp"

namespace ina::sw {

class UdpSender {
  public:
    // fd: a non-blocking UDP socket bound to `bound`; it stays the caller's. is_tunnel: what leaves
    // to RoCEv2's UDP port goes to the port that its source says: all of a host's sockets would
    // have that one, and each is known by the port that it sends from.
    UdpSender(int fd, Peer bound, bool is_tunnel, PortCounters *counters);

    // Order is kept for each destination. Waits at most kSendPatienceNs for room, then drops.
    void send(const std::vector<ina_packet_out> &packets);
    bool segments() const { return gso_.load(std::memory_order_relaxed); }

  private:
    // Datagrams of one flow that leave as one message.
    struct Run {
        Peer source, destination;
        uint8_t tos;
        size_t segment_bytes;  // of all but the last, which may be shorter
        size_t bytes;
        size_t segments;
        std::vector<iovec> parts;  // one to three a segment
        iovec whole;               // all of them in one piece, once staged
    };

    void add(const Datagram &datagram);
    bool is_own(const Datagram &datagram) const;  // would come straight back to this port
    Run *open_run(const Datagram &datagram);
    void flush();
    size_t stage(size_t first);
    void send_singly(const Run &run, uint64_t deadline_ns);
    size_t fill_control(const Run &run, bool segment, uint8_t *control) const;

    int fd_;
    Peer bound_;
    bool is_tunnel_;
    PortCounters *counters_;
    std::atomic<bool> gso_;
    std::unique_ptr<uint8_t[]> stage_;
    std::vector<Run> runs_;  // reused: the first run_count_ are in use
    size_t run_count_ = 0;
    std::vector<size_t> open_;  // the last run of each flow in this batch
    size_t last_flow_ = 0;      // index into open_
};

}  // namespace ina::sw
