// A node with UDP sockets and one thread: what stands for a SmartNIC on a laptop, and runs on the
// Arm cores of a DPU. The arrival of a packet wakes the thread, which runs the kernel and sends on;
// no other thread has a part in a request.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "common/datagrams.hpp"
#include "host/channel/descriptor.hpp"
#include "infer/node.hpp"

namespace ina::infer {

struct Traffic {
    std::uint64_t sent_packets = 0;
    std::uint64_t received_packets = 0;
    std::uint64_t send_drops = 0;
    std::uint64_t lost = 0;   // on purpose
    std::uint64_t wakes = 0;  // of the thread
};

// Packets between nodes, and of answers, that are dropped on their way out, for tests and
// demonstrations.
struct Losses {
    double rate = 0.0;  // 0 to below 1
    std::uint64_t seed = 0;
};

struct StageLink {
    std::size_t stage;
    int fd;  // of the worker's way to the switch
    std::shared_ptr<SumEngine> engine;
};

class Service {
  public:
    // Works on its own duplicates of the descriptors, UDP sockets: `fd` is bound to this node's
    // address, each link's is connected to its switch. Throws std::invalid_argument,
    // std::system_error.
    Service(int fd, Program program, const EntryConfig &entry, const std::vector<StageLink> &links,
            const Losses &losses, std::size_t most_moments);
    ~Service();
    Service(const Service &) = delete;
    Service &operator=(const Service &) = delete;

    // With the thread held up meanwhile.
    template <class Look>
    auto with_node(const Look &look) {
        const std::lock_guard lock(mutex_);
        return look(node_);
    }
    void fail(const Failure &failure);
    // Blocks until the node has failed or is closed (true), or the time is over.
    bool wait_failed(std::int64_t timeout_ns);
    Failure failure() {
        return with_node([](Node &node) { return node.failure(); });
    }
    Traffic traffic() {
        return with_node([this](Node &) { return traffic_; });
    }
    int thread_id() const { return thread_id_; }  // of the kernel's; 0: not running yet
    void close();                                 // idempotent

  private:
    void run();
    void read(int fd, std::size_t link);
    void work();
    void send(int fd, const std::vector<Datagram> &packets);
    bool is_lost();
    void wake();
    std::int64_t sleep_ns();

    host::Descriptor socket_;
    host::Descriptor bell_;  // an eventfd
    std::vector<std::unique_ptr<host::Descriptor>> links_;
    Datagrams received_;
    std::vector<Datagram> leaving_;
    std::mutex mutex_;
    std::condition_variable changed_;
    Node node_;
    Losses losses_;
    std::mt19937_64 chance_;
    Traffic traffic_;
    bool is_closed_ = false;
    std::atomic<int> thread_id_{0};
    std::thread thread_;
};

}  // namespace ina::infer
