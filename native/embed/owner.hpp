// The owner's side of embeddings: rows that this host owns, which it reads for others, and updates
// once a step by the gradients of all. Without sockets and clocks: packets in, packets out.
//
// Versions. The tables have version s once the gradients of all steps before s are in them, from
// every host. A look-up says which version it reads. One that is ahead waits here (or is asked
// again, if there is no room); one that is behind is a late copy, whose asker has its answer, and
// is dropped. So no step reads what another has written half.
//
// Gradients. Each host numbers its messages of a step and marks the last one; a host that has none
// sends one without bags. Messages are kept until those of all hosts are there, and are then added
// host by host, in order of number: the same bits, whatever was lost, repeated or late. A message
// that comes again is acknowledged and not added. Those of the next step may come already, for a
// host that needs nothing from here does not wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "embed/bags.hpp"
#include "embed/config.hpp"
#include "embed/packets.hpp"
#include "embed/row_gradients.hpp"
#include "embed/shard.hpp"

namespace ina::embed {

struct OwnerCounters {
    std::uint64_t lookups = 0;  // messages; also those that were asked again
    std::uint64_t rows_read = 0;
    std::uint64_t gradients = 0;  // messages, each once
    std::uint64_t repeated = 0;   // parts of gradients that had come before
    std::uint64_t late = 0;       // look-ups of versions that are gone
    std::uint64_t refused = 0;    // that make no sense: rows or tables that there are not
    std::uint64_t unheld = 0;     // look-ups ahead of their time that there was no room for
};

class Owner {
  public:
    Owner(const GroupConfig &config, Outbox *outbox);

    // Before any gradients have been applied. Throws std::logic_error: some have.
    void set_optimizer(const Optimizer &optimizer);

    // Versions from this one on are not read yet, but by those who ask with kFlagState: rows are
    // to be set before. It never falls.
    void open_before(std::uint32_t version);

    // A whole packet of the group: a look-up or gradients.
    void on_packet(const Header &header, const std::uint8_t *payload, std::size_t bytes);

    std::uint32_t version() const { return version_; }
    // Whose gradients the version after this one waits for, a bit each.
    std::uint64_t missing() const;
    // Hosts that disagree, say. It answers nothing any more. Empty: none.
    const std::string &fault() const { return fault_; }
    const OwnerCounters &counters() const { return counters_; }
    Shard &shard(std::size_t table) { return shards_[table]; }
    const Placement &placement(std::size_t table) const { return placements_[table]; }

  private:
    static constexpr std::size_t kMostHeld = 65536;
    static constexpr std::uint32_t kMostMessages = 1 << 20;  // of a host and step

    struct Held {
        Header header;
        std::uint64_t wanted;
        std::vector<std::uint8_t> body;
    };
    struct FromHost {  // gradients of a step
        std::map<std::uint32_t, Assembly> messages;
        std::map<std::uint32_t, Header> headers;
        std::uint32_t complete = 0;
        std::uint32_t last = UINT32_MAX;  // its number; not known yet
        bool is_complete() const { return last != UINT32_MAX && complete == last + 1; }
    };
    using Step = std::vector<FromHost>;

    void on_lookup(const Header &header, const std::uint8_t *payload, std::size_t bytes);
    void hold(const Header &header, std::uint64_t wanted, const std::uint8_t *body,
              std::size_t bytes);
    bool is_open(const Header &header) const {
        return (header.flags & kFlagState) != 0 || header.step < closed_from_;
    }
    void say_wait(const Header &header);
    void answer(const Header &header, std::uint64_t wanted, const std::uint8_t *body,
                std::size_t bytes);
    bool are_here(const Header &header, const BagReader &bags) const;
    void pool(const Header &header, const BagReader &bags, std::uint64_t wanted);
    void on_gradient(const Header &header, const std::uint8_t *payload, std::size_t bytes);
    void acknowledge(const Header &header, std::uint64_t have);
    void advance();
    bool apply_step(const Step &step);
    void apply_message(const Header &header, const std::vector<std::uint8_t> &message);
    void answer_held();
    void give_up(std::string why);
    Header reply_to(const Header &header, Kind kind) const;

    const GroupConfig config_;
    const std::vector<Placement> placements_;
    Optimizer optimizer_;
    Outbox *const outbox_;
    std::vector<Shard> shards_;
    std::vector<RowGradients> gradients_;
    std::uint32_t version_ = 0;
    std::uint32_t closed_from_ = UINT32_MAX;
    Step steps_[2];  // of the version's step, and of the one behind it
    std::map<std::pair<std::uint16_t, std::uint32_t>, Held> held_;  // by host and message
    std::vector<float> pooled_;
    std::string fault_;
    OwnerCounters counters_;
};

}  // namespace ina::embed
