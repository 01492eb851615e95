// A queue pair on an unreliable connection (UC), with the memory that its device reads and writes.
//
// It is made before anybody knows who is at the other end, since the controller is told its number;
// messages may come from then on, and are taken from connect() on.
#pragma once

#include <cstddef>
#include <cstdint>

#include "host/channel/rdma_port.hpp"

namespace ina::host {

// Where a queue pair is, and for which messages.
struct UcPlace {
    RdmaPlace at;
    std::uint32_t packets = 0;        // in flight
    std::uint32_t message_bytes = 0;  // the longest, header and values: in one packet of the path
};

class UcQueue {
  public:
    // Throws std::runtime_error: one line that says what is refused.
    explicit UcQueue(const UcPlace &place);

    // Once. Throws std::runtime_error.
    void connect(const RdmaPath &path);
    // Lets go of everything. Idempotent; nothing else may be called afterwards. In a forked child,
    // whose parent goes on with it, nothing happens.
    void close();

    std::uint32_t number() const { return number_; }
    bool is_open() const { return port_.is_open(); }
    bool is_connected() const { return is_connected_; }
    const UcPlace &place() const { return place_; }
    std::uint32_t path_mtu_bytes() const { return port_.path_mtu_bytes(); }

    // Frames for messages, one for each packet in flight: a line of 64 bytes with the header at its
    // end, then the values.
    std::uint8_t *frame(std::uint32_t index) const { return memory_ + frame_bytes_ * index; }
    std::size_t frame_bytes() const { return frame_bytes_; }
    // A copy of the header of each message that is being sent, one for each place in the queue.
    std::uint8_t *header(std::uint32_t index) const { return headers_ + kHeaderStride * index; }
    std::uint32_t send_depth() const { return send_depth_; }
    // Where messages come to.
    std::uint8_t *buffer(std::uint32_t index) const { return buffers_ + buffer_bytes() * index; }
    std::uint32_t buffers() const { return buffer_count_; }
    // The longest message of one packet that anybody can send: a longer one would be the end of
    // this queue pair.
    std::uint32_t buffer_bytes() const { return port_.path_mtu_bytes(); }
    std::uint32_t memory_key() const { return port_.memory_key(); }

    // As RdmaPort's, of its own.
    int post_send(verbs::SendWr *first, verbs::SendWr **bad) const {
        return host::post_send(qp_, first, bad);
    }
    int post_receive(verbs::RecvWr *first, verbs::RecvWr **bad) const {
        return host::post_receive(qp_, first, bad);
    }
    int poll_sent(verbs::Wc *ended, int most) const { return poll_ended(sent_, ended, most); }
    int poll_received(verbs::Wc *ended, int most) const {
        return poll_ended(received_, ended, most);
    }
    bool ask_for_event() const { return host::ask_for_event(received_); }
    int event_fd() const { return port_.event_fd(); }
    void take_events() const { port_.take_events(); }

  private:
    static constexpr std::size_t kHeaderStride = 64;

    void map_memory();
    void make_queues();

    UcPlace place_;
    RdmaPort port_;
    std::uint32_t number_ = 0;
    std::size_t frame_bytes_ = 0;
    std::uint32_t send_depth_ = 0;
    std::uint32_t buffer_count_ = 0;
    std::uint8_t *memory_ = nullptr;
    std::uint8_t *headers_ = nullptr;
    std::uint8_t *buffers_ = nullptr;
    bool is_connected_ = false;
    verbs::Cq *sent_ = nullptr;
    verbs::Cq *received_ = nullptr;
    verbs::Qp *qp_ = nullptr;
};

}  // namespace ina::host
