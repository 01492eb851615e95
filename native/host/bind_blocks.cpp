// Python binding of the kernels over a whole tensor, block by block, for `ina bench quantize`.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "host/bind.hpp"
#include "host/quantize.hpp"

namespace nb = nanobind;

namespace ina::host {
namespace {

// `what`: scan, quantize (from `tensor` to `wire`) or dequantize (back). The scale is 1: values
// must be finite and below 2^31. The last block may be shorter. Returns what keeps the compiler
// from dropping a scan.
std::uint32_t convert_blocks(const std::string &what, int type, std::uintptr_t tensor_address,
                             std::uintptr_t wire_address, std::size_t elems,
                             std::size_t block_elems) {
    if (block_elems == 0) throw std::invalid_argument("a block has at least one value");
    const Kernels &kernels = best_kernels();
    const ValueType value_type = value_type_of(type);
    auto *tensor = reinterpret_cast<std::uint8_t *>(tensor_address);
    auto *wire = reinterpret_cast<std::uint8_t *>(wire_address);
    std::uint32_t seen = 0;
    for (std::size_t first = 0; first < elems; first += block_elems) {
        const std::size_t count = std::min(block_elems, elems - first);
        std::uint8_t *block = tensor + first * bytes_per_elem(value_type);
        std::uint8_t *packed = wire + first * wire::kValueBytes;
        if (what == "scan") {
            seen += kernels.scan(value_type, block, count).exponent;
        } else if (what == "quantize") {
            kernels.quantize(value_type, block, count, 1.0f, packed);
        } else if (what == "dequantize") {
            kernels.dequantize(value_type, packed, count, {1.0f, 1}, block);
        } else {
            throw std::invalid_argument("no conversion is called '" + what + "'");
        }
    }
    return seen;
}

}  // namespace

void bind_blocks(nb::module_ &m) {
    m.def("convert_blocks", &convert_blocks, nb::arg("what"), nb::arg("value_type"),
          nb::arg("tensor"), nb::arg("wire"), nb::arg("elems"), nb::arg("block_elems"),
          nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace ina::host
