// The asker's side of embeddings: cuts look-ups and gradients into messages to the rows' owners,
// asks again for what does not come, and puts sums together. Without sockets and clocks.
//
// A bag whose rows are of several owners, or that is long, is asked for in pieces, whose sums are
// added in the order of owners and then of rows: the same bits in every run.
//
// Look-ups and gradients have a window each, in parts of messages: what is looked up ahead waits at
// its owner until gradients have come, so these must not wait for it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "embed/bags.hpp"
#include "embed/config.hpp"
#include "embed/cutter.hpp"
#include "embed/hot_rows.hpp"
#include "embed/packets.hpp"
#include "embed/row_cache.hpp"
#include "host/recovery/rtt_estimator.hpp"

namespace ina::embed {

struct ClientConfig {
    // Of each kind: so many may be on their way. All owners answer one host, over one link.
    std::size_t window_parts = 64;
    // Owners answer between other work: their host's, and that of all who ask.
    host::RtoLimits rto{50'000'000, 10'000'000, 400'000'000};
    std::int64_t patience_ns = 300'000'000'000;  // without a word of a host
};

struct ClientCounters {
    std::uint64_t messages = 0;  // each once
    std::uint64_t sent_again = 0;
    std::uint64_t stray = 0;  // answers that nobody waits for any more
};

struct Failure {
    std::uint16_t host = 0;  // who is to blame
    std::uint32_t step = 0;
    std::string what;
};

class Client {
  public:
    using Ticket = std::uint64_t;

    // Throws std::invalid_argument: a number out of range.
    Client(const GroupConfig &config, const ClientConfig &own, Outbox *outbox);

    void set_optimizer(const Optimizer &optimizer) { optimizer_ = optimizer; }

    // The sums of bags in the tables' version `step`; `with_state`: of single rows, with what the
    // optimiser keeps of them. Throws std::out_of_range: a row or a table that there is not, before
    // anything is sent.
    Ticket look_up(std::uint32_t step, std::uint16_t table, const BagSource &bags,
                   bool with_state = false);
    bool is_done(Ticket ticket) const;
    // Writes a vector for each bag, zeros for an empty one, and forgets the ticket, which must be
    // done.
    void take(Ticket ticket, float *vectors);

    // What is to be added to the gradient of each row of these bags, in order. Throws as look_up().
    void add_gradients(std::uint32_t step, std::uint16_t table, const BagSource &bags,
                       const float *vectors);
    // No more of this step. Rows change by this rate times what the optimiser makes of gradients.
    void end_step(std::uint32_t step, float rate);
    // Rows that are here: look-ups find them when their vectors are taken, and so in the version of
    // that time; gradients gather in them. They may change while nothing is looked up.
    HotRows &hot() { return hot_; }
    const HotRows &hot() const { return hot_; }
    const Optimizer &optimizer() const { return optimizer_; }
    RowCache &cache() { return cache_; }
    const RowCache &cache() const { return cache_; }

    bool are_gradients_received() const { return gradients_.empty() && !has_queued(kGradients); }

    void on_packet(const Header &header, const std::uint8_t *payload, std::size_t bytes,
                   std::int64_t now_ns);
    // Sends what may be sent now.
    void poll(std::int64_t now_ns);
    std::int64_t next_deadline_ns() const;  // INT64_MAX: none

    // Null: none. After one, what is under way will not be done.
    const Failure *failure() const { return failure_.get(); }
    void fail(std::uint16_t host, std::uint32_t step, std::string what);
    std::uint32_t ended_steps() const { return ended_steps_; }
    const ClientCounters &counters() const { return counters_; }
    const host::RttEstimator &round_trips() const { return rtt_; }

  private:
    enum Way : std::size_t { kLookups, kGradients, kWays };
    enum class Again : std::uint8_t { kFirst, kProbe, kAll };
    // In place of an owner, behind all of them: a hot row, and one of the cache.
    static constexpr std::uint16_t kHot = UINT16_MAX;
    static constexpr std::uint16_t kKept = UINT16_MAX - 1;

    struct Piece {
        std::size_t bag;
        std::uint16_t owner;
        std::size_t offset;   // of its vector, among what is asked for; of a hot row, its place
        float weight = 1.0F;  // of a hot row
    };
    struct Asked {
        std::uint16_t table = 0;
        std::size_t vector_values = 0;
        std::vector<Piece> pieces;
        std::vector<float> values;  // that come
        std::vector<float> kept;    // that the cache had
        std::size_t bags = 0;
        std::size_t open = 0;  // messages
    };
    struct Message {
        Header header;
        std::uint16_t owner = 0;
        Way way = kLookups;
        std::vector<std::uint8_t> body;
        Asked *asked = nullptr;
        std::size_t offset = 0;  // of the answer, in asked->values
        std::size_t bytes = 0;   // of the answer, or of the body
        std::uint64_t done = 0;  // parts
        int tries = 0;           // sent again so often
        std::int64_t sent_ns = 0;
        std::int64_t first_sent_ns = 0;
        std::int64_t deadline_ns = 0;
        std::int64_t waits_since_ns = 0;
        std::uint64_t waits_for = 0;  // hosts
        bool is_probing = false;      // one part was sent again, or asked for
        std::size_t parts_left() const;
    };
    using Messages = std::map<std::uint64_t, std::unique_ptr<Message>>;

    void check(std::uint16_t table, const BagSource &bags) const;
    template <class IsHere>
    BagSource left_of(const BagSource &bags, IsHere is_here);
    BagSource not_here(std::uint16_t table, const BagSource &bags, Asked *asked);
    const float *part_of(const Asked &asked, const Piece &piece) const;
    void keep(const Message &message);
    std::unique_ptr<Message> message_of(Kind kind, std::uint32_t step, std::uint16_t table,
                                        const Sheet *sheet) const;
    void queue(std::unique_ptr<Message> message, std::uint16_t owner);
    std::uint32_t next_gradient(std::uint32_t step, std::uint16_t owner);
    static std::uint64_t key_of(const Header &header, std::uint16_t owner);
    Message *find(Messages *messages, const Header &header) const;
    bool has_queued(Way way) const;
    void start(Way way, std::int64_t now_ns);
    void send(Message *message, Again again, std::int64_t now_ns);
    void send_parts(Message *message, std::uint64_t parts, Again again);
    void send_due(Messages *messages, std::int64_t now_ns);
    void on_rows(const Header &header, const std::uint8_t *payload, std::size_t bytes,
                 std::int64_t now_ns);
    void on_received(const Header &header, std::uint64_t mask, std::int64_t now_ns);
    void on_wait(const Header &header, std::uint64_t mask, std::int64_t now_ns);
    void note_done(Message *message, std::uint64_t parts, const Header &answer,
                   std::int64_t now_ns);
    void finish(Message *message);
    void look_for_failure(const Message &message, std::int64_t now_ns);

    const GroupConfig config_;
    const ClientConfig own_;
    const std::vector<Placement> placements_;
    Optimizer optimizer_;
    HotRows hot_;
    RowCache cache_;
    std::vector<std::int64_t> left_offsets_;  // of bags without what is here, as the next two
    std::vector<std::uint32_t> left_rows_;
    std::vector<float> left_weights_;
    Outbox *const outbox_;
    host::RttEstimator rtt_;
    std::unordered_map<Ticket, std::unique_ptr<Asked>> asked_;
    Ticket next_ticket_ = 1;
    std::uint32_t next_number_ = 0;                                                // of a look-up
    std::array<std::vector<std::deque<std::unique_ptr<Message>>>, kWays> queues_;  // by owner
    std::array<std::size_t, kWays> next_owner_{};
    std::array<std::size_t, kWays> parts_in_flight_{};
    Messages lookups_;
    Messages gradients_;
    std::uint32_t step_ = 0;  // whose gradients are being numbered
    std::uint32_t ended_steps_ = 0;
    std::vector<std::uint32_t> gradient_numbers_;  // by owner
    std::vector<std::int64_t> heard_ns_;
    std::unique_ptr<Failure> failure_;
    ClientCounters counters_;
};

}  // namespace ina::embed
