// One worker of a shared-memory port: its connection and, once it has said Hello, its rings and the
// address that the P4 program knows it by. Nothing that the worker can write is trusted.
#pragma once

#include <cstdint>
#include <vector>

#include "common/shm_ring.hpp"
#include "common/shm_segment.hpp"
#include "switch/frame.hpp"
#include "switch/frame_batch.hpp"
#include "switch/port.hpp"
#include "switch/shm_results.hpp"

namespace ina::sw {

class ShmPeer {
  public:
    // Takes over `fd`, a connection from the worker. `results` must outlive this.
    ShmPeer(int fd, ShmResults *results) : fd_(fd), results_(results) {}
    ~ShmPeer();
    ShmPeer(const ShmPeer &) = delete;
    ShmPeer &operator=(const ShmPeer &) = delete;

    int fd() const { return fd_; }
    bool is_attached() const { return static_cast<bool>(segment_); }
    Peer source() const { return source_; }

    enum class Heard { kNothing, kHello, kEnd };
    // Reads what the connection has: bytes that wake, or a Hello, see hello().
    Heard hear();
    const shm::Hello &hello() const { return hello_; }

    // Makes the rings and says Welcome. `source`: what the program is to see as the worker's
    // address; `switch_end`: as the switch's. The status says what went wrong, the worker knows.
    shm::Status attach(uint32_t port, Peer source, Peer switch_end);
    void refuse(shm::Status status);

    // Of the frames' IP headers from now on; they are ECN-capable whatever it is.
    void set_dscp(uint8_t dscp);
    // Appends a frame for each packet, until none is waiting, the batch is full, or `limit` is
    // reached. Its values stay in the worker's memory, which is this peer's to keep mapped. False:
    // the rings hold nonsense, the worker has to go.
    bool receive(FrameBatch *batch, Port *port, uint32_t limit);
    // Into the worker's ring, seen after publish(); false: it is full.
    bool send(const Datagram &datagram);
    // Lets go of the results that the worker is done with.
    void reclaim();
    // Asks the worker to stay off this core: 1 + its number, 0: none.
    void ask_to_leave(uint32_t core) { to_worker_.ask_to_leave(core); }
    // Wakes the worker if it sleeps and enough is there; `all`: if anything is.
    void publish();
    void wake(bool all);

    bool has_packets() { return from_worker_.waiting() != 0; }  // or nonsense
    // Asks the worker to wake us; false: there are packets.
    bool prepare_sleep() { return from_worker_.prepare_sleep(1); }
    void wake_up() { from_worker_.wake_up(); }

  private:
    shm::Status make_rings();
    void append(const shm::Consumer::Packet &packet, FrameBatch *batch, uint32_t port);
    bool send_gathered(const Datagram &datagram, bool marked);
    void let_go_until(uint32_t position);
    bool say(shm::Status status, uint32_t port, int memory_fd);

    int fd_;
    ShmResults *const results_;
    size_t heard_bytes_ = 0;  // of hello_
    shm::Hello hello_;
    shm::Segment segment_;
    shm::Consumer from_worker_;
    shm::Producer to_worker_;
    int memory_fd_ = -1;            // until it has been sent
    std::vector<uint32_t> blocks_;  // of the results, by cell to the worker
    uint32_t reclaimed_ = 0;        // of that ring's positions
    Peer source_, switch_end_;
    uint8_t header_[kFrameHeaderBytes] = {};
    size_t header_for_bytes_ = SIZE_MAX;  // payload bytes that header_ is for
    uint8_t dscp_ = 0;
};

}  // namespace ina::sw
