// Python binding of the kernels over a whole tensor, block by block, for `ina bench quantize`.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <stdexcept>
#include <string>

#include "host/bind.hpp"
#include "host/core/quantize.hpp"

namespace nb = nanobind;

namespace ina::host {
namespace {

enum class Conversion { kScan, kQuantize, kDequantize };

Conversion conversion_of(const std::string &what) {
    if (what == "scan") return Conversion::kScan;
    if (what == "quantize") return Conversion::kQuantize;
    if (what == "dequantize") return Conversion::kDequantize;
    throw std::invalid_argument("no conversion is called '" + what + "'");
}

// `what`: scan, quantize (from `tensor` to `wire`) or dequantize (back), all of it `rounds` times.
// The scale is 1: values must be finite and below 2^31. The last block may be shorter. Returns what
// keeps the compiler from dropping a scan.
std::uint32_t convert_blocks(const std::string &what, int type, std::uintptr_t tensor_address,
                             std::uintptr_t wire_address, std::size_t elems,
                             std::size_t block_elems, std::size_t rounds) {
    if (block_elems == 0) throw std::invalid_argument("a block has at least one value");
    const Conversion conversion = conversion_of(what);
    const Kernels &kernels = best_kernels();
    const ValueType value_type = value_type_of(type);
    auto *tensor = reinterpret_cast<std::uint8_t *>(tensor_address);
    auto *wire = reinterpret_cast<std::uint8_t *>(wire_address);
    std::uint32_t seen = 0;
    for (std::size_t round = 0; round < rounds; ++round) {
        for (std::size_t first = 0; first < elems; first += block_elems) {
            const std::size_t count = std::min(block_elems, elems - first);
            std::uint8_t *block = tensor + first * bytes_per_elem(value_type);
            std::uint8_t *packed = wire + first * wire::kValueBytes;
            switch (conversion) {
                case Conversion::kScan:
                    seen += kernels.scan(value_type, block, count).exponent;
                    break;
                case Conversion::kQuantize:
                    kernels.quantize(value_type, block, count, 1.0f, packed);
                    break;
                case Conversion::kDequantize:
                    kernels.dequantize(value_type, packed, count, {1.0f, 1}, block);
                    break;
            }
        }
    }
    return seen;
}

// The C library's memcpy, `rounds` times: what a conversion is measured against.
void copy_bytes(std::uintptr_t source_address, std::uintptr_t target_address, std::size_t bytes,
                std::size_t rounds) {
    const auto *source = reinterpret_cast<const std::uint8_t *>(source_address);
    auto *target = reinterpret_cast<std::uint8_t *>(target_address);
    for (std::size_t round = 0; round < rounds; ++round) {
        std::memcpy(target, source, bytes);
        std::atomic_signal_fence(std::memory_order_seq_cst);  // so that none is left out
    }
}

}  // namespace

void bind_blocks(nb::module_ &m) {
    m.def("convert_blocks", &convert_blocks, nb::arg("what"), nb::arg("value_type"),
          nb::arg("tensor"), nb::arg("wire"), nb::arg("elems"), nb::arg("block_elems"),
          nb::arg("rounds"), nb::call_guard<nb::gil_scoped_release>());
    m.def("copy_bytes", &copy_bytes, nb::arg("source"), nb::arg("target"), nb::arg("bytes"),
          nb::arg("rounds"), nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace ina::host
