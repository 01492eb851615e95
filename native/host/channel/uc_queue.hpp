// A queue pair on an unreliable connection (UC), with the memory that its device reads and writes.
//
// It is made before anybody knows who is at the other end, since the controller is told its number;
// messages may come from then on, and are taken from connect() on.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "host/channel/verbs.hpp"

namespace ina::host {

// Where a queue pair is, and for which messages.
struct UcPlace {
    std::string device;
    std::uint8_t port = 1;
    std::uint8_t gid_index = 0;
    std::uint32_t packets = 0;        // in flight
    std::uint32_t message_bytes = 0;  // the longest, header and values: in one packet of the path
};

class UcQueue {
  public:
    // Throws std::runtime_error: one line that says what is refused.
    explicit UcQueue(const UcPlace &place);
    ~UcQueue();
    UcQueue(const UcQueue &) = delete;
    UcQueue &operator=(const UcQueue &) = delete;

    // To queue pair `number` of who has this IPv4 address. Messages carry `traffic_class` as TOS,
    // and the numbers from `first_psn` on. Its neighbour's MAC address must be known to this host,
    // or be found out within a second or so. Once. Throws std::runtime_error.
    void connect(std::uint32_t ipv4, std::uint32_t number, std::uint32_t first_psn,
                 std::uint8_t traffic_class);
    // Lets go of everything. Idempotent; nothing else may be called afterwards. In a forked child,
    // whose parent goes on with it, nothing happens.
    void close();

    std::uint32_t number() const { return number_; }
    bool is_open() const { return qp_ != nullptr; }
    bool is_connected() const { return is_connected_; }
    const UcPlace &place() const { return place_; }
    std::uint32_t path_mtu_bytes() const { return path_mtu_bytes_; }

    // Frames for messages, one for each packet in flight: a line of 64 bytes with the header at its
    // end, then the values.
    std::uint8_t *frame(std::uint32_t index) const { return memory_ + frame_bytes_ * index; }
    std::size_t frame_bytes() const { return frame_bytes_; }
    // A copy of the header of each message that is being sent, one for each place in the queue.
    std::uint8_t *header(std::uint32_t index) const { return headers_ + kHeaderStride * index; }
    std::uint32_t send_depth() const { return send_depth_; }
    // Where messages come to.
    std::uint8_t *buffer(std::uint32_t index) const { return buffers_ + buffer_bytes_ * index; }
    std::uint32_t buffers() const { return buffer_count_; }
    std::uint32_t buffer_bytes() const { return buffer_bytes_; }
    std::uint32_t memory_key() const { return mr_->lkey; }

    // As the library has them: 0, or what went wrong (errno).
    int post_send(verbs::SendWr *first, verbs::SendWr **bad) const {
        return qp_->context->ops.post_send(qp_, first, bad);
    }
    int post_receive(verbs::RecvWr *first, verbs::RecvWr **bad) const {
        return qp_->context->ops.post_recv(qp_, first, bad);
    }
    // How many have ended, at most `most`; below 0: it failed.
    int poll_sent(verbs::Wc *ended, int most) const {
        return sent_->context->ops.poll_cq(sent_, most, ended);
    }
    int poll_received(verbs::Wc *ended, int most) const {
        return received_->context->ops.poll_cq(received_, most, ended);
    }
    // event_fd() is readable once another message has come after this.
    bool ask_for_event() const { return received_->context->ops.req_notify_cq(received_, 0) == 0; }
    int event_fd() const { return events_ == nullptr ? -1 : events_->fd; }
    // Makes event_fd() unreadable again; never blocks.
    void take_events() const;

  private:
    static constexpr std::size_t kHeaderStride = 64;

    void set_up();
    void map_memory();
    void make_queues();
    void post_buffers() const;

    UcPlace place_;
    pid_t owner_pid_;
    std::uint32_t number_ = 0;
    std::uint32_t path_mtu_bytes_ = 0;
    int path_mtu_ = 0;  // as the library says it
    std::size_t frame_bytes_ = 0;
    std::uint32_t send_depth_ = 0;
    std::uint32_t buffer_count_ = 0;
    std::uint32_t buffer_bytes_ = 0;
    std::size_t memory_bytes_ = 0;
    std::uint8_t *memory_ = nullptr;
    std::uint8_t *headers_ = nullptr;
    std::uint8_t *buffers_ = nullptr;
    bool is_connected_ = false;

    verbs::Context *context_ = nullptr;
    verbs::Pd *pd_ = nullptr;
    verbs::Mr *mr_ = nullptr;
    verbs::CompChannel *events_ = nullptr;
    verbs::Cq *sent_ = nullptr;
    verbs::Cq *received_ = nullptr;
    verbs::Qp *qp_ = nullptr;
};

}  // namespace ina::host
