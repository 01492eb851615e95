// The thread that moves packets: ports -> pipeline -> ports. It never touches Python.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "switch/port.hpp"

namespace ina::sw {

class PortLoop {
  public:
    // Packets that leave by cpu_port are kept for next_cpu_packet().
    explicit PortLoop(uint32_t cpu_port);
    ~PortLoop();
    PortLoop(const PortLoop &) = delete;
    PortLoop &operator=(const PortLoop &) = delete;

    void add(std::shared_ptr<Port> port);  // before start()
    void start();                          // throws std::system_error
    void stop();                           // idempotent; joins the thread

    // The pipeline and its state must live until the next call (or stop()) returns: after that the
    // old one is not touched again. nullptr: packets are dropped and counted.
    void set_pipeline(const ina_pipeline *pipeline, void *state);

    // Hands one packet to the pipeline as if it had arrived at `port`; false: the queue is full.
    bool inject(uint32_t port, std::string packet);
    // Waits for a packet to the CPU port; false: timeout, or the loop has stopped.
    bool next_cpu_packet(uint64_t timeout_ns, std::string *packet);

    struct Stats {
        uint64_t unknown_port_packets;  // emitted for a port that this switch does not have
        uint64_t oversize_packets;      // a packet whose copies do not fit in the output arena
        uint64_t cpu_packets, cpu_dropped_packets;  // to the CPU port; queue was full
        uint64_t injected_packets;
    };
    Stats stats() const;

  private:
    void run();
    void wake();
    bool always_ready() const;
    void set_alarm();
    void send_due();
    void collect_injected();
    void process();
    void distribute();

    const uint32_t cpu_port_;
    std::vector<std::shared_ptr<Port>> ports_;
    std::array<Port *, INA_MAX_PORTS> by_number_{};
    int epoll_fd_ = -1, wake_fd_ = -1;
    int alarm_fd_ = -1;             // where a port has a delay
    uint64_t alarm_ns_ = kNeverNs;  // when it rings
    std::thread thread_;
    std::atomic<bool> stopping_{false};
    std::atomic<bool> has_pipeline_{false};

    std::mutex pipeline_mutex_;                  // held while the pipeline runs a batch
    std::atomic<uint32_t> pipeline_waiters_{0};  // let them in before the next batch
    const ina_pipeline *pipeline_ = nullptr;
    void *state_ = nullptr;

    FrameBatch batch_;
    ina_output output_{};
    std::unique_ptr<uint8_t[]> output_arena_;
    std::vector<ina_packet_out> output_packets_;
    std::vector<uint32_t> depth_pkts_;
    std::array<std::vector<ina_packet_out>, INA_MAX_PORTS> outgoing_;
    std::vector<uint32_t> outgoing_ports_;

    mutable std::mutex queue_mutex_;
    std::condition_variable cpu_ready_;
    std::deque<std::pair<uint32_t, std::string>> injected_;
    std::deque<std::string> to_cpu_;
    Counter unknown_port_, oversize_, cpu_, cpu_dropped_, injected_count_;
};

}  // namespace ina::sw
