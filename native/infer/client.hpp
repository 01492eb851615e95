// Who asks a plan: cuts requests into blocks, sends as many as its window admits to the plan's
// entry, asks again for what is not answered, and puts answers together. Without sockets and
// clocks. All that a plan does is a function of what is asked, so a block may be asked for as often
// as it takes, and whoever answers says the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "host/recovery/rtt_estimator.hpp"
#include "infer/entry.hpp"
#include "infer/message.hpp"
#include "infer/outbox.hpp"
#include "infer/program.hpp"

namespace ina::infer {

struct ClientConfig {
    std::uint64_t key = 0;
    std::uint32_t plan = 0;
    std::uint32_t nonce = 0;
    Peer entry;
    std::uint32_t packet_values = 256;
    std::uint32_t window = 32;  // blocks on their way, at most
    std::uint32_t rows_in = 0;  // of a block, as the next
    std::uint32_t columns_in = 0;
    std::uint32_t rows_out = 0;
    std::uint32_t columns_out = 0;
    // Of whom answers come: each node's columns. Several nodes with all columns: one of them.
    std::vector<Peer> nodes;
    std::vector<Columns> answers;
    host::RtoLimits rto{100'000'000, 20'000'000, 400'000'000};
};

enum class Outcome : std::uint8_t { kPending, kDone, kFailed, kTooLate };

struct ClientCounters {
    std::uint64_t blocks = 0;
    std::uint64_t again = 0;    // blocks asked for again
    std::uint64_t strays = 0;   // answers that nobody waits for
    std::uint64_t damaged = 0;  // packets that are not whole, or not of the plan
};

// What the entry has said last of a block that takes its time.
struct Status {
    std::int64_t at_ns = 0;        // when; 0: nothing
    std::uint16_t node = kClient;  // who has been silent
    std::uint32_t silent_ms = 0;
};

class Client {
  public:
    // Throws std::invalid_argument: a number out of range.
    Client(ClientConfig config, Outbox *outbox);

    // Of whole blocks; both memories stay until the request is forgotten.
    std::uint32_t ask(const std::int32_t *in, std::size_t blocks, std::int32_t *out,
                      std::int64_t deadline_ns);
    Outcome outcome(std::uint32_t request) const;
    void forget(std::uint32_t request);

    void receive(const Peer &from, const std::uint8_t *packet, std::size_t bytes,
                 std::int64_t now_ns);
    void poll(std::int64_t now_ns);
    std::int64_t next_deadline_ns() const;  // INT64_MAX: none

    // Of a request that has failed.
    const Failure &failure() const { return failure_; }
    const Status &status() const { return status_; }
    std::int64_t heard_ns() const { return heard_ns_; }  // of anybody; 0: never
    const ClientCounters &counters() const { return counters_; }

  private:
    struct Request {
        const std::int32_t *in = nullptr;
        std::int32_t *out = nullptr;
        std::size_t blocks = 0;
        std::size_t sent = 0;
        std::size_t left = 0;  // to be answered
        std::int64_t deadline_ns = 0;
        Outcome outcome = Outcome::kPending;
    };
    struct Flight {
        std::uint32_t request = 0;
        std::uint32_t block = 0;
        Pieces pieces;
        std::uint16_t attempt = 0;
        std::int64_t sent_ns = 0;
        std::int64_t deadline_ns = 0;
    };

    void send(Flight *flight, std::int64_t now_ns);
    void fill_window(std::int64_t now_ns);
    void on_answer(const Header &header, const std::uint8_t *payload, std::size_t bytes,
                   std::int64_t now_ns);
    void on_fault(const Header &header);
    void end(std::uint32_t request, Outcome outcome);
    void arm();

    const ClientConfig config_;
    Outbox *const outbox_;
    const Place input_;
    std::vector<std::uint32_t> first_piece_;  // by node
    std::uint32_t pieces_ = 0;                // of an answer
    std::unordered_map<std::uint32_t, Request> requests_;
    std::deque<std::uint32_t> order_;  // of those that have blocks to send
    std::vector<Flight> flights_;
    std::uint32_t next_request_ = 1;
    std::int64_t next_ns_ = INT64_MAX;
    host::RttEstimator rtt_;
    Failure failure_;
    Status status_;
    std::int64_t heard_ns_ = 0;
    ClientCounters counters_;
};

}  // namespace ina::infer
