// A port of an RDMA device that was opened, with what is made there: memory that the device reads
// and writes, completion queues, queue pairs. It keeps all of it until it is closed.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "host/channel/verbs.hpp"

namespace ina::host {

struct RdmaPlace {
    std::string device;
    std::uint8_t port = 1;
    std::uint8_t gid_index = 0;  // of an address in RoCEv2
};

// Where a queue pair leads to. Packet numbers have 24 bits.
struct RdmaPath {
    std::uint32_t ipv4 = 0;
    std::uint32_t number = 0;        // of the queue pair there
    std::uint32_t first_psn = 0;     // of what goes there
    std::uint32_t expected_psn = 0;  // of what comes from there; unreliable: any is taken
    std::uint8_t traffic_class = 0;  // its packets' TOS
};

// Of a reliable connection: how long a device waits for an acknowledgement until it sends again,
// and how often it does that until the connection is broken. As InfiniBand says it: 4.096 us times
// 2^timeout, 1 to 31, which is the least that it waits; and 1 to 7.
struct RdmaPatience {
    std::uint8_t timeout;
    std::uint8_t retries;
};

class RdmaPort {
  public:
    // Messages of at most so many bytes are to fit a packet of the path. Throws
    // std::runtime_error: one line that says what is refused; so does all that makes something.
    RdmaPort(const RdmaPlace &place, std::uint32_t message_bytes);
    ~RdmaPort() { close(); }
    RdmaPort(const RdmaPort &) = delete;
    RdmaPort &operator=(const RdmaPort &) = delete;

    // Memory for the device, zeroed. Once.
    std::uint8_t *map(std::size_t bytes);
    std::uint32_t memory_key() const { return mr_->lkey; }
    // Place for so many. tells: event_fd() says when one comes that was asked for.
    verbs::Cq *make_cq(std::uint32_t entries, bool tells);
    // Messages may be posted to be received into, from now on. what: for people.
    verbs::Qp *make_qp(const verbs::QpInitAttr &wanted, const std::string &what);
    // Once for each. Its neighbour's MAC address must be known to this host, or be found out within
    // a second or so. patience: null: of an unreliable connection.
    void connect(verbs::Qp *qp, const RdmaPath &path, const RdmaPatience *patience) const;

    int event_fd() const { return events_ == nullptr ? -1 : events_->fd; }
    // Makes event_fd() unreadable again; never blocks.
    void take_events() const;

    // Lets go of everything. Idempotent; nothing else may be called afterwards. In a forked child,
    // whose parent goes on with it, nothing happens.
    void close();
    bool is_open() const { return context_ != nullptr; }

    const RdmaPlace &place() const { return place_; }
    std::uint32_t path_mtu_bytes() const { return path_mtu_bytes_; }

  private:
    void open(std::uint32_t message_bytes);
    void let_go();

    const RdmaPlace place_;
    const pid_t owner_pid_;
    std::uint32_t path_mtu_bytes_ = 0;
    int path_mtu_ = 0;  // as the library says it
    std::uint8_t *memory_ = nullptr;
    std::size_t memory_bytes_ = 0;
    verbs::Context *context_ = nullptr;
    verbs::Pd *pd_ = nullptr;
    verbs::Mr *mr_ = nullptr;
    verbs::CompChannel *events_ = nullptr;
    std::vector<verbs::Cq *> cqs_;
    std::vector<verbs::Qp *> qps_;
};

// As the library has them: 0, or what went wrong (errno); how many, or below 0: it failed.
inline int post_send(verbs::Qp *qp, verbs::SendWr *first, verbs::SendWr **bad) {
    return qp->context->ops.post_send(qp, first, bad);
}
inline int post_receive(verbs::Qp *qp, verbs::RecvWr *first, verbs::RecvWr **bad) {
    return qp->context->ops.post_recv(qp, first, bad);
}
inline int poll_ended(verbs::Cq *cq, verbs::Wc *ended, int most) {
    return cq->context->ops.poll_cq(cq, most, ended);
}
// The port's event_fd() is readable once another one has come after this.
inline bool ask_for_event(verbs::Cq *cq) { return cq->context->ops.req_notify_cq(cq, 0) == 0; }

// One receive buffer. Throws std::runtime_error.
void post_buffer(verbs::Qp *qp, std::uint64_t id, const verbs::Sge &piece);

}  // namespace ina::host
