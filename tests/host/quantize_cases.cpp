// Runs one set of kernels over cases from stdin, for a processor that the extension is not built
// for. `names` prints the sets, one a line; otherwise argv[1] is a set and results go to stdout.
//
// A case: operation (0 scan, 1 quantize, 2 dequantize), value type, elems, divisor (each uint32),
// scale (float32), and the input; all in this processor's byte order. Results: two bytes of a scan,
// big-endian integers, or values.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "host/core/quantize.hpp"

namespace {

struct Case {
    std::uint32_t operation;
    std::uint32_t type;
    std::uint32_t elems;
    std::uint32_t divisor;
    float scale;
};

int run(const ina::host::Kernels &kernels) {
    Case next;
    std::vector<std::uint8_t> input;
    std::vector<std::uint8_t> output;
    while (std::fread(&next, sizeof next, 1, stdin) == 1) {
        const auto type = static_cast<ina::host::ValueType>(next.type);
        const std::size_t values = next.elems * ina::host::bytes_per_elem(type);
        const std::size_t wire = next.elems * std::size_t{4};
        input.resize(next.operation == 2 ? wire : values);
        if (std::fread(input.data(), 1, input.size(), stdin) != input.size()) return 3;
        output.assign(next.operation == 0 ? 2 : next.operation == 1 ? wire : values, 0);
        if (next.operation == 0) {
            const auto found = kernels.scan(type, input.data(), next.elems);
            output[0] = found.exponent;
            output[1] = found.non_finite;
        } else if (next.operation == 1) {
            kernels.quantize(type, input.data(), next.elems, next.scale, output.data());
        } else {
            kernels.dequantize(type, input.data(), next.elems,
                               {next.scale, static_cast<int>(next.divisor)}, output.data());
        }
        std::fwrite(output.data(), 1, output.size(), stdout);
    }
    return 0;
}

}  // namespace

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    const bool list = std::strcmp(argv[1], "names") == 0;
    for (const auto *kernels : ina::host::available_kernels()) {
        if (list) std::puts(kernels->name);
        if (std::strcmp(argv[1], kernels->name) == 0) return run(*kernels);
    }
    return list ? 0 : 2;
}
