#include "infer/program.hpp"

#include <stdexcept>
#include <string>

namespace ina::infer {
namespace {

// Of rows and columns, in a block: more is a mistake, and would not fit the memory of a ring.
constexpr std::size_t kMostValues = std::size_t{1} << 24;

class Checker {
  public:
    explicit Checker(const Program &program) : program_(program) {}

    void all() {
        require(program_.nodes.size() >= 1 && program_.nodes.size() <= kMaxNodes,
                "want 1 to 64 nodes");
        require(program_.node < program_.nodes.size() && program_.entry < program_.nodes.size(),
                "node and entry must be among the nodes");
        require((program_.members >> program_.entry & 1) != 0 &&
                    (program_.nodes.size() == kMaxNodes ||
                     program_.members >> program_.nodes.size() == 0),
                "the entry is a member, and members are nodes");
        require(program_.ring >= 64 && program_.ring <= 4096 && program_.ring % 64 == 0,
                "ring must be 64 to 4096, a multiple of 64");
        require(program_.packet_values >= 1 && program_.packet_values <= 16'000,
                "packet_values must be 1 to 16000");
        require(program_.stages.size() >= 2 && program_.stages.size() < kClient,
                "want a stage besides the input");
        require(program_.stages.front().kernel == Kernel::kInput, "the first stage is the input");
        for (at_ = 0; at_ < program_.stages.size(); ++at_) {
            if (program_.stages[at_].is_mine) stage(program_.stages[at_]);
        }
    }

  private:
    void require(bool holds, const char *what) const {
        if (holds) return;
        throw std::invalid_argument("stage " + std::to_string(at_) + ": " + what);
    }
    static bool is_within(const Columns &part, const Columns &whole) {
        return part.low <= part.high && part.low >= whole.low && part.high <= whole.high;
    }
    void edges(const std::vector<Edge> &edges, const Columns &whole) const {
        for (const Edge &edge : edges) {
            require(edge.node < program_.nodes.size() && edge.node != program_.node,
                    "an edge leads to another node");
            require(!edge.columns.is_empty() && is_within(edge.columns, whole),
                    "an edge's columns are within the stage's");
        }
    }
    void stage(const Stage &stage) const {
        require(stage.in.low < stage.in.high && stage.out.low < stage.out.high, "no columns");
        require(stage.rows_in > 0 && stage.rows_out > 0, "no rows");
        require(stage.rows_in <= kMostValues && stage.rows_out <= kMostValues &&
                    stage.values_in() <= kMostValues && stage.values_out() <= kMostValues,
                "a block has too many values");
        require(stage.own.is_empty() || is_within(stage.own, stage.in),
                "own columns are within the stage's");
        edges(stage.inbound, stage.in);
        edges(stage.outbound, stage.out);
        require(stage.turns >= 1 && stage.turn < stage.turns, "turn is below turns");
        if (at_ > 0 && !stage.own.is_empty()) {
            const Stage &before = program_.stages[at_ - 1];
            require(before.is_mine && is_within(stage.own, before.out) &&
                        before.rows_out == stage.rows_in,
                    "own columns are made here");
        }
        kernel(stage);
    }
    void kernel(const Stage &stage) const {
        const std::size_t in = stage.in.width();
        const std::size_t out = stage.out.width();
        const bool same_rows = stage.rows_in == stage.rows_out;
        switch (stage.kernel) {
            case Kernel::kInput: require(at_ == 0, "only the first is the input"); [[fallthrough]];
            case Kernel::kRelu: require(same_rows && in == out, "as many out as in"); return;
            case Kernel::kAdd:
                require(same_rows && in == out, "as many out as in");
                with(stage);
                return;
            case Kernel::kLinear:
                require(same_rows && stage.weights.size() == in * out && stage.bias.size() == out,
                        "weights and bias fit the columns");
                require(stage.shift < 32 && stage.low <= stage.high, "shift below 32, low to high");
                return;
            case Kernel::kEmbed:
                require(same_rows && in == 1 && out == stage.table_width, "one number a row");
                return table(stage);
            case Kernel::kNeighbours:
                require(same_rows && in == 1 &&
                            out == std::size_t{stage.table_width} * (stage.with_self ? 2 : 1),
                        "one vertex a row");
                graph(stage);
                return table(stage);
            case Kernel::kFrontier:
                require(in == 1 && out == 1 &&
                            stage.rows_out == std::uint64_t{stage.rows_in} * (stage.fanout + 1ULL),
                        "one vertex a row");
                return graph(stage);
            case Kernel::kFold:
                require(stage.rows_in % stage.rows_out == 0 && out == 2 * in, "groups of rows");
                return;
            case Kernel::kArgmax: require(same_rows && out == 1, "one column"); return;
        }
        require(false, "there is no such kernel");
    }
    void with(const Stage &stage) const {
        require(stage.with >= 0 && static_cast<std::size_t>(stage.with) < at_, "an earlier stage");
        const Stage &other = program_.stages[static_cast<std::size_t>(stage.with)];
        require(other.is_mine && other.out == stage.in && other.rows_out == stage.rows_in,
                "what is added has the same columns, here");
    }
    void table(const Stage &stage) const {
        require(stage.table_width > 0 && stage.table.size() % stage.table_width == 0,
                "whole rows of the table");
        const std::size_t rows = stage.table.size() / stage.table_width;
        for (const std::int32_t place : stage.places) {
            require(place < 0 || static_cast<std::size_t>(place) < rows, "places are rows here");
        }
    }
    void graph(const Stage &stage) const {
        require(stage.graph != nullptr && !stage.graph->first.empty() && stage.fanout > 0,
                "a graph, and a fanout");
        const Graph &graph = *stage.graph;
        require(graph.first.front() == 0 && graph.first.back() == graph.to.size(),
                "the graph's neighbours are all somebody's");
        for (std::size_t i = 1; i < graph.first.size(); ++i) {
            require(graph.first[i - 1] <= graph.first[i], "the graph's vertices are in order");
        }
    }

    const Program &program_;
    std::size_t at_ = 0;
};

}  // namespace

void check(const Program &program) { Checker(program).all(); }

}  // namespace ina::infer
