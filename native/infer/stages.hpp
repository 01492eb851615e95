// A node's stages, and the blocks that are under way in them: what comes is put together, and what
// is whole runs at once and goes on, to the next stage here and at other nodes. Nobody is asked.
//
// A block's number decides where it is kept, in a ring, until all nodes are done with it: so
// whatever was sent can be sent again, and what comes twice is seen. Partial sums go to the switch
// in the order of blocks' numbers, since all workers of a job submit in one order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "infer/message.hpp"
#include "infer/outbox.hpp"
#include "infer/program.hpp"
#include "infer/trace.hpp"

namespace ina::infer {

// Who has asked, and for what.
struct Origin {
    std::uint32_t nonce = 0;
    std::uint32_t request = 0;
    std::uint32_t block = 0;
    Peer client;

    static Origin of(const Header &header) {
        return {
            header.nonce, header.request, header.block, {header.client_ipv4, header.client_port}};
    }
    void store(Header *header) const {
        header->nonce = nonce;
        header->request = request;
        header->block = block;
        header->client_ipv4 = client.ipv4;
        header->client_port = client.udp_port;
    }
    bool operator==(const Origin &other) const {
        return nonce == other.nonce && request == other.request && block == other.block &&
               client == other.client;
    }
};

// What sums parts over a stage's nodes.
class Sums {
  public:
    virtual ~Sums() = default;
    // In the order of `seq`. Once all have, on_sum(stage, seq) is to be called; both memories stay.
    virtual void submit(std::size_t stage, std::uint64_t seq, const std::int32_t *part,
                        std::int32_t *sum, std::size_t values) = 0;
};

struct StagesCounters {
    std::uint64_t tasks = 0;       // packets with values that were taken
    std::uint64_t duplicates = 0;  // that had come before
    std::uint64_t stale = 0;       // of blocks that are over, or not begun as far as is known
    std::uint64_t strays = 0;      // that no stage here waits for
    std::uint64_t replays = 0;     // blocks whose values were sent again
    std::uint64_t blocks = 0;      // that this node is done with
};

class Stages {
  public:
    // Throws std::invalid_argument, as check() does.
    Stages(const Program &program, Outbox *outbox, Sums *sums, Trace *trace);

    // At the entry: the next block, of all the input's values.
    void begin(std::uint64_t seq, const Origin &origin, const std::int32_t *values);
    void on_task(const Header &header, const std::uint8_t *payload, std::size_t bytes);
    void on_sum(std::size_t stage, std::uint64_t seq);
    // Sends again what this node has made of the block, unless it has for this attempt.
    void replay(std::uint64_t seq, std::uint16_t attempt);
    // All nodes are done with the blocks before this one.
    void advance(std::uint64_t base) { base_ = base > base_ ? base : base_; }

    std::uint64_t base() const { return base_; }
    bool is_done(std::uint64_t seq) const;  // this node is, with a block from base() on
    const StagesCounters &counters() const { return counters_; }

  private:
    enum class State : std::uint8_t { kWaits, kReady, kSumming, kDone };
    struct Work {  // a block's, at a stage
        State state = State::kWaits;
        Pieces pieces;  // of others' values, and then what comes from here
        std::vector<std::int32_t> in;
        std::vector<std::int32_t> part;  // of a stage that is summed
        std::vector<std::int32_t> out;
    };
    struct Block {
        bool is_used = false;
        std::uint64_t seq = 0;
        Origin origin;
        std::uint16_t attempt = 0;
        std::size_t stages_left = 0;
        std::vector<Work> work;  // by stage
    };

    void make_room();
    Block *block_at(std::uint64_t seq) { return &blocks_[seq % program_.ring]; }
    const Block *block_at(std::uint64_t seq) const { return &blocks_[seq % program_.ring]; }
    Block *block_for(std::uint64_t seq, const Origin &origin);
    void run_stage(Block *block, std::size_t stage);
    void submit_ready(std::size_t stage);
    void made(Block *block, std::size_t stage);
    std::uint32_t piece_with(std::size_t stage) const;
    void took(Block *block, std::size_t stage, std::uint32_t piece);
    void take_own(Block *block, std::size_t stage);
    void send_on(const Block &block, std::size_t stage);
    void send(const Block &block, const Peer &to, Header header, const Place &place,
              const std::int32_t *values);

    const Program &program_;
    Outbox *const outbox_;
    Sums *const sums_;
    Trace *const trace_;
    std::vector<Block> blocks_;
    std::vector<std::vector<std::uint32_t>> first_piece_;  // by stage and inbound edge
    std::vector<std::uint32_t> pieces_;                    // of a stage's inbound edges
    std::vector<std::uint64_t> next_sum_;                  // by stage: the next to submit
    std::size_t stages_here_ = 0;
    std::uint64_t base_ = 0;
    StagesCounters counters_;
};

}  // namespace ina::infer
