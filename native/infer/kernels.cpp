#include "infer/kernels.hpp"

#include <algorithm>
#include <cstddef>

namespace ina::infer {
namespace {

// Steele, Lea and Flood's SplitMix64 finaliser.
std::uint64_t mixed(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

// Without a sign no sum is undefined, whatever a stranger's plan would make of it.
std::int32_t plus(std::int32_t a, std::int32_t b) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
}

void linear(const Stage &stage, const std::int32_t *in, std::int32_t *out) {
    const std::size_t width = stage.in.width();
    const std::size_t made = stage.out.width();
    for (std::size_t row = 0; row < stage.rows_in; ++row, in += width, out += made) {
        std::fill_n(out, made, 0);
        const std::int32_t *weights = stage.weights.data();
        for (std::size_t column = 0; column < width; ++column, weights += made) {
            const auto value = static_cast<std::uint32_t>(in[column]);
            if (value == 0) continue;  // as behind a relu many are
            for (std::size_t i = 0; i < made; ++i) {
                out[i] =
                    plus(out[i],
                         static_cast<std::int32_t>(static_cast<std::uint32_t>(weights[i]) * value));
            }
        }
    }
    if (!stage.is_summed) finish(stage, out - made * stage.rows_in);
}

// Null: the row is at another node, or there is none.
const std::int32_t *row_of(const Stage &stage, std::int32_t number) {
    if (number < 0 || static_cast<std::size_t>(number) >= stage.places.size()) return nullptr;
    const std::int32_t place = stage.places[static_cast<std::size_t>(number)];
    if (place < 0) return nullptr;
    return stage.table.data() + static_cast<std::size_t>(place) * stage.table_width;
}

void embed(const Stage &stage, const std::int32_t *in, std::int32_t *out) {
    for (std::size_t row = 0; row < stage.rows_in; ++row, out += stage.table_width) {
        const std::int32_t *const values = row_of(stage, in[row]);
        if (values == nullptr) {
            std::fill_n(out, stage.table_width, 0);
        } else {
            std::copy_n(values, stage.table_width, out);
        }
    }
}

void neighbours(const Stage &stage, const std::int32_t *in, std::int32_t *out) {
    const std::size_t width = stage.table_width;
    std::fill_n(out, stage.values_out(), 0);
    for (std::size_t row = 0; row < stage.rows_in; ++row, out += stage.out.width()) {
        std::int32_t *sum = out;
        if (stage.with_self) {
            if (const std::int32_t *const own = row_of(stage, in[row])) {
                std::copy_n(own, width, out);
            }
            sum += width;
        }
        for (std::uint32_t index = 0; index < stage.fanout; ++index) {
            const std::int32_t next =
                neighbour(*stage.graph, stage.fanout, stage.seed, in[row], index);
            const std::int32_t *const values = row_of(stage, next);
            if (values == nullptr) continue;
            for (std::size_t i = 0; i < width; ++i) sum[i] = plus(sum[i], values[i]);
        }
    }
}

void frontier(const Stage &stage, const std::int32_t *in, std::int32_t *out) {
    for (std::size_t row = 0; row < stage.rows_in; ++row) {
        *out++ = in[row];
        for (std::uint32_t index = 0; index < stage.fanout; ++index) {
            *out++ = neighbour(*stage.graph, stage.fanout, stage.seed, in[row], index);
        }
    }
}

void fold(const Stage &stage, const std::int32_t *in, std::int32_t *out) {
    const std::size_t width = stage.in.width();
    const std::size_t group = stage.rows_in / stage.rows_out;
    for (std::size_t row = 0; row < stage.rows_out; ++row) {
        std::copy_n(in, width, out);
        in += width;
        out += width;
        std::fill_n(out, width, 0);
        for (std::size_t other = 1; other < group; ++other, in += width) {
            for (std::size_t i = 0; i < width; ++i) out[i] = plus(out[i], in[i]);
        }
        out += width;
    }
}

}  // namespace

std::int32_t neighbour(const Graph &graph, std::uint32_t fanout, std::uint64_t seed,
                       std::int32_t vertex, std::uint32_t index) {
    if (vertex < 0 || static_cast<std::size_t>(vertex) + 1 >= graph.first.size()) return -1;
    const auto at = static_cast<std::size_t>(vertex);
    const std::uint64_t degree = graph.first[at + 1] - graph.first[at];
    if (degree <= fanout) {
        if (index >= degree) return -1;
        return static_cast<std::int32_t>(graph.to[graph.first[at] + index]);
    }
    const std::uint64_t start = mixed(seed ^ at) % degree;
    const std::uint64_t place = (start + index * (degree / fanout)) % degree;
    return static_cast<std::int32_t>(graph.to[graph.first[at] + place]);
}

void finish(const Stage &stage, std::int32_t *values) {
    if (stage.kernel != Kernel::kLinear) return;
    const std::size_t made = stage.out.width();
    for (std::size_t row = 0; row < stage.rows_out; ++row, values += made) {
        for (std::size_t i = 0; i < made; ++i) {
            values[i] =
                std::clamp(plus(values[i], stage.bias[i]) >> stage.shift, stage.low, stage.high);
        }
    }
}

void run(const Stage &stage, const std::int32_t *in, const std::int32_t *with, std::int32_t *out) {
    const std::size_t values = stage.values_in();
    switch (stage.kernel) {
        case Kernel::kInput: std::copy_n(in, values, out); return;
        case Kernel::kLinear: return linear(stage, in, out);
        case Kernel::kRelu:
            for (std::size_t i = 0; i < values; ++i) out[i] = std::max(in[i], 0);
            return;
        case Kernel::kAdd:
            for (std::size_t i = 0; i < values; ++i) out[i] = plus(in[i], with[i]);
            return;
        case Kernel::kEmbed: return embed(stage, in, out);
        case Kernel::kNeighbours: return neighbours(stage, in, out);
        case Kernel::kFrontier: return frontier(stage, in, out);
        case Kernel::kFold: return fold(stage, in, out);
        case Kernel::kArgmax:
            for (std::size_t row = 0; row < stage.rows_in; ++row, in += stage.in.width()) {
                const std::int32_t *const largest = std::max_element(in, in + stage.in.width());
                out[row] = static_cast<std::int32_t>(largest - in);
            }
            return;
    }
}

}  // namespace ina::infer
