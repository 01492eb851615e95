// Drives an engine over one way to the switch, by threads. A thread sleeps whenever there is
// nothing to send or read: several workers may share a processor.
//
// Each thread is a station of the engine (engine.hpp). What comes from a switch comes to the thread
// that owns the share it is for, or to any of them where the channel cannot tell, and now and then
// to another one: whoever receives it hands it to its share.
//
// No wake-up is lost. A thread tells when it will look at its share again (Share::attended_ns) in
// the same hold of the share's lock in which it has done all that was due; whoever then makes
// something due earlier wakes it. It counts as asleep from the same hold of the engine's lock in
// which its inboxes were found empty. And a wake counts even if it comes before the sleep.
//
// While a thread sleeps, another one may do its work, who holds its turn (Worker::turn): who
// submits a few packets sends them, and who waits for an operation waits for what comes, sends it
// again, and takes it. A small operation then needs no thread but the caller's: to wake one and to
// be woken by it takes longer than the rest. Of much, the session's own threads do all: they let
// others run first (give_way()), and the caller goes on.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "host/channel/channel.hpp"
#include "host/engine/engine.hpp"
#include "host/transport/sleeper.hpp"

namespace ina::host {

struct TransportStats : EngineStats {
    ChannelCounters channel;
    int receive_buffer_bytes = 0;  // of all queues
    bool gso = false;
    bool gro = false;
    const char *kind = "";  // the channel's
    std::uint32_t threads = 1;
    std::uint32_t queues = 1;     // for what comes: one for each thread, or one for all
    std::string one_queue_why;    // if there are several threads
    std::uint64_t passed_on = 0;  // packets that came to another thread than their share's
};

class Transport : public TransportEngine, private Hands {
  public:
    static constexpr std::uint32_t kMaxThreads = 8;

    // Throws std::system_error, std::invalid_argument.
    Transport(std::unique_ptr<Channel> channel, const WorkerConfig &config,
              const TransportOptions &options);
    ~Transport() override;
    // Its threads begin. Once, from the most derived class's constructor on: they call its virtual
    // functions.
    void start();

    TransportStats stats() const;
    bool owes() const override;
    // From now on takes no results that are for several workers. No effect once closed.
    void take_own_results();
    // Ends what is pending as closed and joins the threads. Idempotent. In a forked child, where
    // the threads do not exist, only marks the transport as closed.
    void close();

  private:
    using Channels = std::vector<std::unique_ptr<Channel>>;

    struct Worker {  // one thread, and what it alone uses
        explicit Worker(std::unique_ptr<Channel> own)
            : channel(std::move(own)),
              sleeper(channel->one_queue_why().empty() ? -1 : channel->fd()),
              batch(channel->burst_packets()) {}

        std::mutex turn;  // guards what follows, but for `thread` and what has told_mutex
        const std::unique_ptr<Channel> channel;
        Sleeper sleeper;
        Station station;
        std::vector<Way> ways;  // that its channel leads to
        LaneParts parts{};      // by which it gets packets

        std::vector<PacketView> batch;
        std::vector<Arrival> arrivals;
        std::vector<std::uint8_t> owners;   // among its Work, the share that each arrival is for
        std::uint64_t touched = 0;          // others' shares with arrivals, as bits
        std::uint64_t passed_on = 0;        // arrivals for other threads' shares
        std::uint64_t refused = 0;          // of the channel's count, what the engine has
        std::int64_t deadline_ns = kNever;  // of its shares, the earliest
        std::int64_t moderation_ns = 0;     // of its shares, the least, if something has come
        std::uint32_t in_flight = 0;        // of its shares
        std::int64_t sleeps_until_ns = 0;   // the thread, if it sleeps
        std::thread thread;

        std::mutex told_mutex;
        struct Told {  // as of its last round
            ChannelCounters channel;
            bool gso = true;
            bool gro = true;
            std::uint64_t passed_on = 0;
        } told;
    };

    Transport(Channels channels, const WorkerConfig &config, const TransportOptions &options);

    std::int64_t now_ns() const override;
    void wake(std::size_t thread) override { workers_[thread]->sleeper.wake(); }
    void work_once(std::size_t thread) override;
    void work_for(const Operation &operation, std::int64_t until_ns) override;

    void tell_channels(TransportStats *stats) const;
    void close_descriptors();
    void close_when_unused();

    // With the turn of the worker held.
    void adopt_layout(Worker &worker);
    bool receive(Worker &worker);
    void sort_arrivals(Worker &worker) const;
    void attend_others(Worker &worker, std::int64_t received_ns);
    bool attend_own(Worker &worker, std::int64_t received_ns);
    bool attend_share(Worker &worker, std::uint32_t index, std::int64_t received_ns);
    void accept(Worker &worker, std::size_t index, std::int64_t received_ns);
    void send(Worker &worker, const Work &work);
    void tell(Worker &worker);
    bool may_rest(Worker &worker);

    void run(Worker &worker);
    void sleep(Worker &worker, std::unique_lock<std::mutex> &turn);
    // In other threads.
    bool work_in_place(Worker &worker, const Operation &operation, std::int64_t until_ns);
    void leave_turn(Worker &worker);

    const int owner_pid_;
    std::vector<std::unique_ptr<Worker>> workers_;
    std::mutex close_mutex_;
};

}  // namespace ina::host
