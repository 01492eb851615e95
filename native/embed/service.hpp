// A node with a UDP socket and a thread of its own: what stands for a SmartNIC on a laptop, and
// runs on the Arm cores of a DPU. Threads of the host ask it; nobody's turn is needed in between.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "common/datagrams.hpp"
#include "common/peer.hpp"
#include "embed/batch.hpp"
#include "embed/node.hpp"
#include "host/channel/descriptor.hpp"

namespace ina::embed {

struct Traffic {
    std::uint64_t sent_packets = 0;  // with those that the kernel did not take
    std::uint64_t sent_bytes = 0;    // of UDP payloads, as the next
    std::uint64_t received_packets = 0;
    std::uint64_t received_bytes = 0;
    std::uint64_t strangers = 0;  // packets of addresses that are no host's
    std::uint64_t send_drops = 0;
    std::uint64_t lost = 0;  // on purpose
};

// Of a table, what this host has asked for.
struct TableCounters {
    std::uint64_t rows = 0;      // of batches that are asked for by row
    std::uint64_t bags = 0;      // of batches that are asked for by bag
    std::uint64_t hot_hits = 0;  // rows of look-ups and bags that are replicas here
    std::uint64_t cache_hits = 0;
    std::uint64_t cache_misses = 0;
};

// Packets that are dropped on their way out, for tests and demonstrations.
struct Losses {
    double rate = 0.0;  // 0 to below 1
    std::uint64_t seed = 0;
};

enum class Outcome : std::uint8_t { kDone, kNotYet, kFailed };

class Service {
  public:
    // Works on its own duplicate of `fd`, a UDP socket that is bound to this host's address.
    // peers: where the hosts are, by number. Throws std::invalid_argument, std::system_error.
    Service(int fd, const GroupConfig &config, const ClientConfig &own, std::vector<Peer> peers,
            const Losses &losses);
    ~Service();
    Service(const Service &) = delete;
    Service &operator=(const Service &) = delete;

    // As Client's of the same names. Look-ups are sent where they are waited for.
    Client::Ticket look_up(std::uint32_t step, std::uint16_t table, const BagSource &bags,
                           bool with_state);
    void take(Client::Ticket ticket, float *vectors);
    void add_gradients(std::uint32_t step, std::uint16_t table, const BagSource &bags,
                       const float *vectors);
    void end_step(std::uint32_t step, float rate);

    // Of all tables of a batch; sent at once.
    std::vector<Client::Ticket> look_up(std::uint32_t step, const Batch &batch);
    // Where they go, of each table: the vectors of its bags; those of its rows, if it is by row
    // and not plain.
    void take(const Batch &batch, const std::vector<Client::Ticket> &tickets,
              const std::vector<float *> &vectors);
    // Of the bags of each table; null: it has none.
    void add_gradients(std::uint32_t step, const Batch &batch,
                       const std::vector<const float *> &gradients);

    // At most so long.
    Outcome wait(const std::vector<Client::Ticket> &tickets, std::int64_t timeout_ns);
    Outcome wait_for_gradients(std::int64_t timeout_ns);
    // Until the gradients of all steps before this one are in this host's rows.
    Outcome wait_for_version(std::uint32_t version, std::int64_t timeout_ns);

    // With the thread held up meanwhile; what the node then has to say is sent.
    template <class Work>
    auto with_node(Work work) {
        const std::lock_guard lock(mutex_);
        struct Flush {
            Service *service;
            ~Flush() { service->flush(); }
        } flush{this};
        return work(node_);
    }
    Failure failure();
    Traffic traffic();
    TableCounters table_counters(std::size_t table);  // Throws std::out_of_range.
    void close();                                     // idempotent; what waits has failed

  private:
    template <class IsDone>
    Outcome wait_until(std::int64_t timeout_ns, IsDone is_done);
    void run();
    bool read();
    void flush();  // with the mutex held
    std::vector<Packet> leaving();
    void wake();
    void wake_in_time();  // with the mutex held

    host::Descriptor socket_;
    host::Descriptor bell_;  // an eventfd
    const std::vector<Peer> peers_;
    Datagrams received_;
    std::mutex mutex_;
    std::condition_variable changed_;
    Node node_;
    Losses losses_;
    std::mt19937_64 chance_;
    Traffic traffic_;
    std::vector<TableCounters> asked_;  // by table; what others count is 0 here
    std::int64_t sleeps_until_ns_ = 0;  // the thread
    bool is_closed_ = false;
    std::thread thread_;
};

}  // namespace ina::embed
