// One worker's place in one job, as the controller gave it.
#pragma once

#include <cstdint>
#include <vector>

#include "congestion/window.hpp"
#include "host/core/framing.hpp"
#include "host/core/sum_check.hpp"
#include "host/core/tree.hpp"
#include "host/recovery/rtt_estimator.hpp"

namespace ina::host {

struct WorkerConfig {
    std::uint16_t job = 0;    // its number at the only switch; where there are trees, each has one
    std::uint32_t epoch = 0;  // the header carries the low 16 bits
    int rank = 0;             // among all workers of the job; its index at a node is the tree's
    int world_size = 1;
    // Three numbers that follow from world_size (0) as long as one switch adds up all workers:
    std::uint32_t expected_bitmap = 0;  // contributors that a whole result names; as `job`
    int summands = 0;  // contributions in a sum: what the scale of floats must leave room for
    int divisor = 0;   // of an average
    std::uint32_t slots = 2;                         // both versions; the same on all workers
    std::uint32_t values_per_packet = 0;             // of the P4 build
    std::int64_t stall_timeout_ns = 30'000'000'000;  // fail when no chunk completes for so long
    RtoLimits rto;
    // Where the sequence numbers begin, a multiple of 2 W; the same on all workers.
    std::uint32_t first_seq = 0;
    // Keep a copy of each lane's last result where the tensor may end before the lane goes on; what
    // going on without the switch needs (kept_results.hpp). Costs one packet's values a lane, and
    // copying them.
    bool keep_results = false;
    // How sums are verified, the same on all workers, and the key of mode kKeyed: all workers', and
    // nobody else's.
    VerifyMode verify = VerifyMode::kOff;
    SecretKey check_key{};
    // What sums the job's W lanes, in the order of their lanes. Empty: one switch, whose children
    // are the ranks, sums all.
    std::vector<Tree> trees;
    // This core's lanes, in a row and of one tree; `lanes` 0: all of W. Each worker of a job
    // divides its lanes as it likes.
    std::uint32_t first_lane = 0;
    std::uint32_t lanes = 0;
    Framing framing;  // of all packets; the same on the switch
    // Lanes skip blocks that are zero on all workers, and the last word of a packet says which
    // comes next (block_finder.hpp): mode `stream`. Not with sums that are verified, nor with
    // keep_results: what a worker lacks is then more than its lanes' newest results.
    bool is_stream = false;
};

// W = slots / 2, rounded down to a power of two. Throws std::invalid_argument.
std::uint32_t window_of(const WorkerConfig &config);

// What a window of so many packets at most, of lanes with such a configuration, has to do with.
congestion::Room room_of(const WorkerConfig &config, std::uint32_t packets);
// Of the bytes of such a packet, what one without values has.
double small_share(const WorkerConfig &config);

// The values that a chunk has, whole words.
std::uint32_t values_per_chunk(const WorkerConfig &config);

// Whether all its trees take rounds of other shapes than sums.
bool has_shapes(const WorkerConfig &config);

// With what follows from other numbers filled in. Throws std::invalid_argument when one is out of
// range.
WorkerConfig checked(WorkerConfig config);

// The trees of a configuration, with the only one where it names none. Throws
// std::invalid_argument.
std::vector<Tree> trees_of(const WorkerConfig &config);

// Of a checked configuration: the one that its core's lanes are of.
const Tree &own_tree(const WorkerConfig &config);

}  // namespace ina::host
