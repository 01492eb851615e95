// A plan as one node sees it: which stages it has a part in, what it holds for them, from whom
// values come and where they go. Python makes it of the plan (ina/infer/placing.py); all nodes of a
// plan have the same stages with the same numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/peer.hpp"
#include "infer/wire.hpp"

namespace ina::infer {

enum class Kernel : std::uint8_t {
    kInput,       // what was asked, at the entry
    kLinear,      // rows times weights
    kRelu,        // negative values become 0
    kAdd,         // the values of an earlier stage, besides
    kEmbed,       // rows of a table, by their numbers
    kNeighbours,  // sums of a table's rows over neighbours in a graph, by vertices
    kFrontier,    // vertices and their neighbours
    kFold,        // of each group of rows the first, and the sum of the others
    kArgmax,      // of each row, the first column with the largest value
};

struct Columns {
    std::uint32_t low = 0;
    std::uint32_t high = 0;  // the first that is not in it

    std::uint32_t width() const { return high - low; }
    bool is_empty() const { return low == high; }
    bool operator==(const Columns &other) const { return low == other.low && high == other.high; }
};

// Values that go from node to node for a stage, of all rows these columns. In a message they lie
// row by row.
struct Edge {
    std::uint16_t node = 0;  // of inbound ones: who sends; else who gets
    Columns columns;
};

struct Graph {
    std::vector<std::uint64_t> first;  // of each vertex, in `to`; and where the last one's end
    std::vector<std::uint32_t> to;
};

struct Stage {
    Kernel kernel = Kernel::kInput;
    bool is_mine = false;
    bool is_summed = false;     // what is made is a part, whose sum over the stage's nodes counts
    std::uint32_t rows_in = 0;  // of a block, as the next
    std::uint32_t rows_out = 0;
    Columns in;   // held here
    Columns out;  // made here
    // Columns that come from this node's own values of the stage before. Empty: none.
    Columns own;
    std::vector<Edge> inbound;          // from others
    std::vector<Edge> outbound;         // to others, for the stage behind
    int with = -1;                      // kAdd: the stage whose values are added
    std::vector<std::int32_t> weights;  // kLinear: of each column in, those of all columns out
    // kLinear. Behind the sum over all columns: added, then shifted down, then bounded.
    std::vector<std::int32_t> bias;
    std::uint32_t shift = 0;
    std::int32_t low = INT32_MIN;
    std::int32_t high = INT32_MAX;
    // kEmbed, kNeighbours: rows that are here, and where each row of the table is among them; below
    // 0: at another node.
    std::vector<std::int32_t> table;
    std::vector<std::int32_t> places;
    std::uint32_t table_width = 0;
    std::shared_ptr<const Graph> graph;  // kNeighbours, kFrontier
    std::uint32_t fanout = 0;            // at most so many neighbours of each vertex
    std::uint64_t seed = 0;              // by which they are drawn
    bool with_self = false;              // kNeighbours: the vertex's own row in front of the sum
    // Of the last stage: who answers block s, where several have the same: s mod turns is turn.
    bool is_last = false;
    std::uint32_t turn = 0;
    std::uint32_t turns = 1;

    std::size_t values_in() const { return std::size_t{rows_in} * in.width(); }
    std::size_t values_out() const { return std::size_t{rows_out} * out.width(); }
};

struct Program {
    std::uint64_t key = 0;
    std::uint32_t plan = 0;
    std::uint16_t node = 0;
    std::uint16_t entry = 0;
    std::uint64_t members = 1;          // nodes that have a part in some stage, as bits
    std::uint32_t ring = 64;            // blocks under way, at most; a multiple of 64
    std::uint32_t packet_values = 256;  // in a packet, at most
    std::int32_t low = INT32_MIN;       // of what is asked
    std::int32_t high = INT32_MAX;
    std::vector<Peer> nodes;
    std::vector<Stage> stages;  // the first is the input's
};

// Packets of so many values.
inline std::uint32_t pieces_of(std::size_t values, std::uint32_t packet_values) {
    return static_cast<std::uint32_t>((values + packet_values - 1) / packet_values);
}

// Throws std::invalid_argument: its numbers do not fit each other, so that a kernel would read or
// write what is not there.
void check(const Program &program);

}  // namespace ina::infer
