// A stage's place in the job that sums its parts: a worker of mode `pool`, as it ships
// (host/engine), that a node works on in its own thread. Other threads, which keep the membership,
// may ask it what an engine can be asked.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "common/clock.hpp"
#include "host/engine/engine.hpp"

namespace ina::infer {

class SumEngine : public host::TransportEngine {
  public:
    // room_packets: results for which the socket has room. is_virtual: time is what work() was told
    // last. Throws std::invalid_argument: a number is out of range, or the job has several switches
    // for its workers.
    SumEngine(const host::WorkerConfig &config, std::uint32_t max_in_flight,
              const congestion::Choice &congestion, std::uint32_t room_packets, bool is_virtual);
    ~SumEngine() override { close(); }

    // Called from any thread when there is something to look at; it must not block.
    void set_bell(std::function<void()> bell) {
        const std::lock_guard lock(bell_mutex_);
        bell_ = std::move(bell);
    }
    // All parts have as many values at all workers.
    void sum(std::uint64_t seq, const std::int32_t *part, std::int32_t *sum, std::size_t values);
    void receive(const std::uint8_t *packet, std::size_t bytes, std::int64_t now_ns,
                 bool ip_marked);
    // Calls send(packets, count) with what is to go to the switch now.
    template <typename Send>
    void work(std::int64_t now_ns, const Send &send) {
        at_ns_ = now_ns;
        if (has_left_) return;
        if (!has_adopted(station_)) take_layout();
        for (const host::Work &work : station_.work) {
            host::Share &share = *work.share;
            const std::lock_guard lock(share.mutex);
            share.time_ns = std::max(share.time_ns, now_ns);
            if (!take_inbox(work, 0)) break;
            transmit(station_, work, batch_.data(), batch_.size(),
                     [&](std::size_t count) { send(batch_.data(), count); });
            accepted(work);
        }
        if (is_ending()) leave_once();
    }
    // Numbers of sums that are here, in the order in which they came.
    std::vector<std::uint64_t> take_done();
    std::int64_t next_deadline_ns();
    // Whether its thread may wait for the bell: nothing has come since work().
    bool may_wait() { return has_left_ || may_sleep(station_); }
    void awake() { look(0); }
    // It works no more: it has failed, or was closed.
    bool has_left() const { return has_left_; }
    // By the node's thread, or once there is none.
    void leave_once();
    void close();
    Peer node() const { return to_; }  // where its packets go

  protected:
    std::int64_t now_ns() const override { return is_virtual_ ? at_ns_.load() : host::now_ns(); }
    void wake(std::size_t thread) override;

  private:
    void take_layout();

    static constexpr std::size_t kBatch = 64;
    const bool is_virtual_;
    Peer to_;
    std::atomic<std::int64_t> at_ns_{0};
    host::Station station_;
    std::vector<host::PacketView> batch_;
    std::deque<std::pair<std::uint64_t, std::uint64_t>> submitted_;  // operation and number
    std::atomic<bool> has_left_{false};
    bool is_closed_ = false;
    std::mutex bell_mutex_;
    std::function<void()> bell_;
};

}  // namespace ina::infer
