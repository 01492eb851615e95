// One direction of a cable: a queue, the link behind it, and who is at the other end.
//
// Nothing happens at a port but arrivals: when a frame's first bit goes is found out when somebody
// looks, or the next arrival is due. That is exact, since a frame that waits is chosen when the
// link is free, among those that had come by then; and so a frame costs one event a hop.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/engine.hpp"
#include "sim/link.hpp"
#include "sim/queue.hpp"
#include "sim/ring.hpp"
#include "sim/trace.hpp"

namespace ina::sim {

class Port;

// Where frames arrive.
class Node {
  public:
    Node() = default;
    virtual ~Node() = default;
    Node(const Node &) = delete;
    Node &operator=(const Node &) = delete;
    // By `port`, a number of the node's own, frames leave through this one.
    virtual void attach(std::uint32_t port, Port *leaving) = 0;
    virtual void receive(Frame frame, std::uint32_t port) = 0;
};

// Is shown each frame that a link does not lose, and may change it. False: it is lost.
using Tap = std::function<bool(Frame *)>;

struct PortCounters {
    // Each has arrived, was dropped or lost, or waits, or is on its way.
    std::uint64_t offered_packets = 0;
    std::uint64_t arrived_packets = 0;
    std::uint64_t sent_packets = 0;  // that have left the queue
    std::uint64_t sent_bytes = 0;    // of them, as on the wire
    std::int64_t waited_ns = 0;      // of them, together, before their first bit went
    std::int64_t longest_bytes = 0;  // the queue, at most
    std::uint64_t marked_packets = 0;
    std::uint64_t full_packets = 0;       // dropped: no room in the queue, or by RED
    std::uint64_t lost_packets = 0;       // on the link, by chance, corrupted or since it was down
    std::uint64_t corrupted_packets = 0;  // some of them lost
    std::uint64_t duplicated_packets = 0;
};

class Port final : public Element {
  public:
    // `node` and `node_port`: where frames arrive.
    Port(Engine *engine, std::string name, std::uint64_t seed, const QueueConfig &queue,
         const LinkConfig &link, Node *node, std::uint32_t node_port);

    // At the end of the queue, now.
    void send(Frame frame);
    // Those that go as one (a super-packet of the kernel): a queue without room for all drops all.
    // A wire takes them one by one all the same, a token bucket as one.
    void send_train(std::vector<Frame> *frames);
    void on_event(std::uint64_t what) override;

    // Whose last bit has not been sent yet.
    std::uint32_t waiting_packets();
    // When there will be one less of them, unless something else happens; kNever: there are none.
    std::int64_t next_sent_ns() const {
        return busy_until_ns_ > engine_->now_ns() ? busy_until_ns_ : kNever;
    }
    std::int64_t waiting_bytes();  // without the one that is being sent
    // Frames that are on the link when it goes down are lost.
    void set_up(bool up);
    bool is_up() const { return link_.is_up(); }
    // What waits is lost: the node that sends has lost its power.
    void clear();
    void set_link(const LinkConfig &config);
    void set_queue(const QueueConfig &config);
    const LinkConfig &link() const { return link_.config(); }
    const QueueConfig &queue() const { return queue_.config(); }

    // For frames that leave the queue from now on; null: none.
    void set_tap(Tap tap) { tap_ = tap ? std::make_unique<Tap>(std::move(tap)) : nullptr; }

    const std::string &name() const { return name_; }
    const PortCounters &counters() const { return counters_; }
    // Told of each frame; null: nobody is.
    void set_trace(Trace *trace) {
        trace_ = trace;
        if (trace != nullptr) trace_port_ = trace->add_port(name_);
    }

  private:
    struct Arrival {
        std::int64_t at_ns = 0;
        std::uint64_t number = 0;
        Frame frame;
        bool operator<(const Arrival &other) const {  // for a heap with the first on top
            return at_ns != other.at_ns ? at_ns > other.at_ns : number > other.number;
        }
    };

    void put(Frame frame);
    void put_whole(Frame *frames, std::size_t count);
    void drop_full(const Frame &frame);
    void catch_up();
    void transmit(Frame frame, std::int64_t from_ns);
    void transmit_whole(Queue::Waiting first);
    void carry(Frame frame, std::int64_t left_ns);
    bool is_sending() const { return busy_until_ns_ > engine_->now_ns(); }
    void arrives(Frame frame, std::int64_t at_ns, bool overtaken);
    void note(const Frame &frame, Fate fate, std::int64_t sent_ns, std::int64_t arrives_ns = 0) {
        if (trace_ != nullptr) trace_->add(trace_port_, frame, fate, sent_ns, arrives_ns);
    }
    std::int64_t next_arrival_ns() const;
    void wake();

    // What each frame needs comes first: a thousand hosts have thousands of ports.
    Engine *const engine_;
    Node *const node_;
    const std::uint32_t node_port_;
    std::uint32_t trace_port_ = 0;
    Trace *trace_ = nullptr;
    std::unique_ptr<Tap> tap_;
    std::int64_t busy_until_ns_ = INT64_MIN / 2;  // so a bucket is full at first
    std::int64_t wake_ns_ = kNever;               // when an event of ours is due
    std::uint64_t wake_number_ = 0;               // which one; earlier ones are void
    std::int64_t last_arrival_ns_ = 0;            // of those that keep their order
    std::int64_t sending_bytes_ = 0;  // of a bucket: what waits for the last of its tokens
    std::uint32_t sending_packets_ = 1;
    std::uint64_t next_number_ = 0;
    Ring<Arrival> in_order_;           // by time
    std::vector<Arrival> overtaking_;  // a heap: those that arrive before one sent earlier
    Queue queue_;
    Link link_;
    PortCounters counters_;
    const std::string name_;
};

}  // namespace ina::sim
