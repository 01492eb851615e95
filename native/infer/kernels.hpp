// What stages make of values: int32 in, int32 out. `ina infer check` has proven that no sum of
// theirs leaves int32, so the order of addition does not count, and every node, and one process
// that does it all (ina/infer/reference.py), come to the same bits.
#pragma once

#include <cstdint>
#include <vector>

#include "infer/program.hpp"

namespace ina::infer {

// The `index`-th of at most `fanout` neighbours of a vertex; -1: there are not so many. Where there
// are more than `fanout`, they are drawn by `seed`, the same everywhere, each at most once.
std::int32_t neighbour(const Graph &graph, std::uint32_t fanout, std::uint64_t seed,
                       std::int32_t vertex, std::uint32_t index);

// `in`: rows_in of in.width() values; `out`: rows_out of out.width(). `with`: kAdd. Of a stage that
// is summed a part comes out, for which finish() is to follow on the sum.
void run(const Stage &stage, const std::int32_t *in, const std::int32_t *with, std::int32_t *out);

// kLinear: bias, shift and bounds, in place. Of others nothing.
void finish(const Stage &stage, std::int32_t *values);

}  // namespace ina::infer
