// A worker of a job, on a host: the engine that ships (host/engine), driven by the events of the
// virtual network; a socket buffer, and a core of the host's processor that takes its time for
// packets.
//
// It works as a thread of the transport does: it reads what is there, gives it to the share whose
// lane it is for, sends what they have to send, and waits for the next packet or the next deadline.
// All shares of its lanes are worked on at one station.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "congestion/algorithms.hpp"
#include "host/engine/engine.hpp"
#include "sim/nic.hpp"
#include "sim/ring.hpp"
#include "sim/waking.hpp"
#include "sim/window_audit.hpp"

namespace ina::sim {

struct WorkerSetup : NicSetup {
    std::int64_t packet_cost_ns = 0;       // of the processor, to send or to receive one
    std::int64_t kibibyte_cost_ns = 0;     // and for what is in it
    std::int64_t buffer_bytes = 32 << 20;  // of the socket; a frame that finds it full is dropped
    bool trains = false;              // packets go in trains that no queue divides, as with GSO
    WakeConfig wake;                  // of the processor
    std::uint32_t max_in_flight = 0;  // of all shares; 0: W
    std::uint32_t shares = 1;  // a power of two, W at most; one more for a tree that ends in one
    bool halts = false;        // TransportOptions::halts
};

struct WorkerEvent {
    enum class Kind : std::uint8_t { kDone, kStalled, kMismatch, kCorrupted, kBreach };
    Kind kind;
    std::uint64_t tensor;  // id
};

class Worker final : public host::TransportEngine, public Element, public Endpoint {
  public:
    using Tell = std::function<void(Worker *, const WorkerEvent &)>;

    // Throws std::invalid_argument when a number is out of range.
    Worker(Engine *engine, FramePool *frames, Host *host, std::string name,
           const WorkerSetup &setup, const host::WorkerConfig &config,
           const congestion::Choice &window, Stream random, Tell tell);

    // Nothing is done before then, and what comes waits.
    void pause(std::int64_t until_ns);
    // It is gone, and so is its memory: what was submitted ends as closed, and is told to nobody.
    // Its port is free.
    void crash();
    void leave_group();  // from now on it gets results of its own

    void receive(Frame frame) override;
    void on_event(std::uint64_t what) override;

    const std::string &name() const { return name_; }
    bool is_alive() const { return is_alive_; }
    std::string breach() const { return breach_; }  // by WindowAudit; empty: none
    std::int64_t moderation_ns() const;  // how long results gather now before they are read
    std::uint64_t buffer_full_packets() const { return buffer_full_packets_; }
    std::uint64_t damaged_packets() const { return nic_->damaged(); }  // as ICRC says
    std::int64_t busy_ns() const { return busy_ns_; }
    bool owes() const override { return is_alive_ && !has_ended_ && nic_->owes(); }

  private:
    enum What : std::uint64_t { kWork, kTimer, kSend, kWhats };
    static constexpr std::size_t kBatch = 128;
    static constexpr std::size_t kTrains = 8;  // read at once, as by host::UdpReceiver

    std::int64_t now_ns() const override { return engine_->now_ns(); }
    void wake(std::size_t) override {}  // attend() follows
    void attend() override;

    void take_layout();
    Peer address_of(const host::Share &share) const;
    void work_at(std::int64_t at_ns);
    void work();
    bool is_batch(std::size_t packets, std::size_t trains) const;
    std::int64_t read();
    void accept(const host::Work &work, const host::Arrival &packet);
    void work_on(const host::Work &work);
    void put_out(std::vector<Frame> *frames, std::uint32_t longest_train);
    void send(std::vector<Frame> *frames, std::uint32_t longest_train);
    void set_timer();
    void tell();
    void end();
    std::int64_t cost_ns(const Frame &frame) const {
        return setup_.packet_cost_ns +
               setup_.kibibyte_cost_ns * static_cast<std::int64_t>(frame.bytes()) / 1024;
    }

    sim::Engine *const engine_;
    Host *const host_;
    const std::string name_;
    const WorkerSetup setup_;
    const Tell tell_;
    const std::unique_ptr<Nic> nic_;
    std::vector<Frame> replies_;  // the NIC's own, until they are sent
    Waking waking_;
    host::Station station_;
    std::unordered_map<const host::Share *, WindowAudit> audits_;

    Ring<Frame> buffer_;
    std::int64_t buffered_bytes_ = 0;
    std::vector<Frame> outbox_;  // written, until the processor has done with them
    std::uint32_t outbox_train_ = 0;
    std::int64_t free_ns_ = 0;  // the processor
    std::int64_t read_ns_ = 0;  // results gather until then
    std::int64_t paused_until_ns_ = 0;
    std::int64_t work_at_ns_ = kNever;  // what has been put down
    std::int64_t timer_at_ns_ = kNever;
    std::uint64_t work_number_ = 0;
    std::uint64_t timer_number_ = 0;
    bool is_alive_ = true;
    bool has_ended_ = false;  // it works no more, but is there
    bool told_failure_ = false;
    bool told_refused_ = false;  // that the NIC has failed
    std::string breach_;
    std::uint64_t buffer_full_packets_ = 0;
    std::int64_t busy_ns_ = 0;
};

}  // namespace ina::sim
