// A worker of a job, on a host: the cores that ship, one for each share of its lanes, their windows
// and pacing, a socket buffer, and a core of the host's processor that takes its time for packets.
//
// It works as a thread of the transport does: it reads what is there, gives it to the core whose
// lane it is for, sends what they have to send, and waits for the next packet or the next deadline.
// And it changes to another mapping of its job as the transport does (worker_remap.cpp).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "congestion/algorithms.hpp"
#include "host/core/worker_core.hpp"
#include "host/engine/division.hpp"
#include "host/engine/pacing.hpp"
#include "host/engine/share.hpp"
#include "host/engine/submissions.hpp"
#include "sim/host.hpp"
#include "sim/ring.hpp"
#include "sim/waking.hpp"
#include "sim/window_audit.hpp"

namespace ina::sim {

struct WorkerSetup {
    sw::UdpAddress own;                    // the host's address
    sw::UdpAddress to;                     // the switch, unless a tree names another
    std::uint32_t results_group = 0;       // IP multicast; 0: it gets its own results
    std::uint16_t results_udp_port = 0;    // of the group
    std::uint8_t tos = 0x02;               // DSCP and ECN: ECN-capable
    std::int64_t packet_cost_ns = 0;       // of the processor, to send or to receive one
    std::int64_t kibibyte_cost_ns = 0;     // and for what is in it
    std::int64_t buffer_bytes = 32 << 20;  // of the socket; a frame that finds it full is dropped
    bool trains = false;              // packets go in trains that no queue divides, as with GSO
    WakeConfig wake;                  // of the processor
    std::uint32_t max_in_flight = 0;  // of all shares; 0: W
    std::uint32_t shares = 1;  // a power of two, W at most; one more for a tree that ends in one
};

struct WorkerEvent {
    enum class Kind : std::uint8_t { kDone, kStalled, kMismatch, kCorrupted, kBreach };
    Kind kind;
    std::uint64_t tensor;  // id
};

class Worker final : public Element, public Endpoint {
  public:
    using Tell = std::function<void(Worker *, const WorkerEvent &)>;

    // Throws std::invalid_argument when a number is out of range.
    Worker(Engine *engine, FramePool *frames, Host *host, std::string name,
           const WorkerSetup &setup, const host::WorkerConfig &config,
           const congestion::Choice &window, Stream random, Tell tell);

    // Throws std::invalid_argument, std::logic_error after crash().
    void submit(const host::TensorRequest &request);
    // Nothing is done before then, and what comes waits.
    void pause(std::int64_t until_ns);
    // It is gone, with all that it has; its port is free.
    void crash();
    void leave_group();  // from now on it gets results of its own

    // As host::Transport's.
    void set_congestion(const std::optional<congestion::Choice> &choice,
                        std::uint32_t most_packets);

    // A change to another mapping: as of host::Transport, which these steps are named after.
    void begin_remap(const host::WorkerConfig &config, std::uint32_t max_in_flight,
                     const congestion::Choice &window);
    std::uint64_t reserve(std::int64_t news_ns);
    void cut_over(std::uint64_t first, bool may_send);
    bool wait_cut(std::int64_t timeout_ns) const;  // does not wait
    void end_remap();
    void cancel_remap();
    std::vector<std::pair<std::uint32_t, std::uint32_t>> mappings() const;

    void receive(Frame frame) override;
    void on_event(std::uint64_t what) override;

    const std::string &name() const { return name_; }
    bool is_alive() const { return !mappings_.empty(); }
    // Of all shares together. These throw std::logic_error after crash().
    host::WorkerCounters counters() const;
    host::LaneSnapshot lanes() const;
    std::vector<host::PendingTensor> pending() const;
    void settle_resends();
    std::uint64_t agreed() const;
    std::optional<host::StallReport> stall() const;
    std::optional<host::Mismatch> mismatch() const;
    std::optional<host::Corruption> corruption() const;
    std::string breach() const;  // of its window, by WindowAudit; empty: none
    // For ranks that go on without the network: pause() first. Throw std::invalid_argument as the
    // core does.
    host::LaneResult lane_result(std::uint32_t epoch, std::uint32_t lane) const;
    void put_result(std::uint32_t epoch, std::uint32_t lane, std::uint32_t seq, const void *data,
                    std::size_t bytes);
    std::uint32_t window() const { return newest().window; }  // W
    std::uint32_t in_flight() const;
    std::uint32_t in_flight_limit() const;
    std::int64_t shortest_ns() const;    // round trip of late, of all shares; 0: none so far
    std::int64_t mean_ns() const;        // the largest of all shares' moving averages
    std::int64_t moderation_ns() const;  // how long results gather now before they are read
    std::int64_t srtt_ns() const {
        return newest().shares.front()->core.recovery().rtt().srtt_ns();
    }
    std::uint64_t buffer_full_packets() const { return buffer_full_packets_; }
    std::int64_t busy_ns() const { return busy_ns_; }

  private:
    enum What : std::uint64_t { kWork, kTimer, kSend, kWhats };
    static constexpr std::size_t kBatch = 128;
    static constexpr std::size_t kTrains = 8;  // read at once, as by host::UdpReceiver

    struct Share {
        Share(const sw::UdpAddress &node, const host::WorkerConfig &config,
              const congestion::Choice &window, std::uint32_t most)
            : to(node), room(host::room_of(config, most)),
              core(config, congestion::make_window(window, room)), pacing(most),
              audit(config, most) {}
        sw::UdpAddress to;
        congestion::Room room;
        host::WorkerCore core;
        host::Pacing pacing;
        WindowAudit audit;
        std::uint64_t results = 0;
    };

    struct Mapping {  // as host::Mapping
        Mapping(const host::WorkerConfig &config, const WorkerSetup &setup,
                std::uint32_t max_in_flight, const congestion::Choice &choice);
        void set_congestion(const congestion::Choice *choice, std::uint32_t packets) const;
        std::uint32_t epoch;
        std::uint32_t window;
        host::SubmissionOrder order;
        host::ShareFinder finder;
        std::vector<std::unique_ptr<Share>> shares;
        bool is_open = true;
        std::vector<host::Submission> held;  // submitted, while it is not open
    };
    struct Left {
        const Mapping *mapping;
        std::size_t shares;  // that are not done with the tensor
    };

    const Mapping &newest() const;  // in use
    template <typename Function>
    void for_each_share(const Function &function) const {
        for (const auto &mapping : mappings_) {
            for (const auto &share : mapping->shares) function(*share);
        }
    }
    void check_remap(bool has_second, bool is_cut) const;
    void place(Mapping &mapping, const host::TensorRequest &request);
    void place_from(std::uint64_t first, Mapping &mapping);
    void give(Mapping &mapping, const host::Submission &placed);
    void open(Mapping &mapping);
    Share *share_for(const sw::Datagram &datagram);
    host::WorkerCore &core_of(std::uint32_t epoch, std::uint32_t lane) const;
    void work_at(std::int64_t at_ns);
    void work();
    bool is_batch(std::size_t packets, std::size_t trains) const;
    void note_progress();
    void accept(Share &share, const sw::Datagram &datagram);
    void transmit(Share &share);
    void send(std::vector<Frame> *frames, std::uint32_t longest_train);
    void set_timer();
    void tell();
    std::int64_t cost_ns(const Frame &frame) const {
        return setup_.packet_cost_ns +
               setup_.kibibyte_cost_ns * static_cast<std::int64_t>(frame.bytes()) / 1024;
    }

    Engine *const engine_;
    FramePool *const frames_;
    Host *const host_;
    const std::string name_;
    const WorkerSetup setup_;
    const Tell tell_;
    Waking waking_;
    const std::uint32_t values_;  // a packet
    // None: it has crashed. Two: the older and the newer one.
    std::vector<std::unique_ptr<Mapping>> mappings_;
    std::uint64_t first_of_new_ = 0;  // tensor; 0: not known, or there is no second mapping
    bool is_cut_ = false;             // tensors from there on are the newer mapping's
    std::uint32_t most_packets_ = 0;  // of set_congestion()
    host::WorkerCounters retired_;    // of mappings that are gone
    std::map<std::uint64_t, host::TensorRequest> pending_;  // by id
    std::unordered_map<std::uint64_t, Left> shares_left_;   // of those that have been placed
    std::uint64_t next_id_ = 1;
    std::uint64_t submitted_ = 0;
    host::Submissions submissions_;
    host::RecentTimes submit_times_;

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
    bool told_failure_ = false;
    bool told_breach_ = false;
    std::uint64_t buffer_full_packets_ = 0;
    std::int64_t busy_ns_ = 0;
};

}  // namespace ina::sim
