// Python bindings of the kernels between tensors and packets, for tests and `ina bench quantize`.
// Tensors are passed as addresses; the Python side keeps the arrays alive and checks their layout.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "host/bind.hpp"
#include "host/core/packed.hpp"
#include "host/core/quantize.hpp"

namespace nb = nanobind;

namespace ina::host {
namespace {

const Kernels &kernels_named(const std::string &name) {
    for (const Kernels *kernels : available_kernels()) {
        if (name == kernels->name) return *kernels;
    }
    throw std::invalid_argument("this processor has no kernels named '" + name + "'");
}

std::vector<std::string> kernel_names() {
    std::vector<std::string> names;
    for (const Kernels *kernels : available_kernels()) names.emplace_back(kernels->name);
    return names;
}

std::pair<int, bool> scan(const std::string &kernels, int type, std::uintptr_t tensor,
                          std::size_t elems) {
    const BlockScan found = kernels_named(kernels).scan(
        value_type_of(type), reinterpret_cast<const void *>(tensor), elems);
    return {found.exponent, found.non_finite};
}

nb::bytes quantize(const std::string &kernels, int type, std::uintptr_t tensor, std::size_t elems,
                   float scale) {
    std::vector<std::uint8_t> wire(elems * wire::kValueBytes);
    kernels_named(kernels).quantize(value_type_of(type), reinterpret_cast<const void *>(tensor),
                                    elems, scale, wire.data());
    return nb::bytes(wire.data(), wire.size());
}

void dequantize(const std::string &kernels, int type, const nb::bytes &wire, float inverse_scale,
                int divisor, std::uintptr_t tensor) {
    kernels_named(kernels).dequantize(value_type_of(type),
                                      static_cast<const std::uint8_t *>(wire.data()),
                                      wire.size() / wire::kValueBytes, {inverse_scale, divisor},
                                      reinterpret_cast<void *>(tensor));
}

const PackedKernels &packed_kernels_named(const std::string &name) {
    for (const PackedKernels *kernels : available_packed_kernels()) {
        if (name == kernels->name) return *kernels;
    }
    throw std::invalid_argument("this processor has no kernels named '" + name + "'");
}

// `type` says how many are in a word; `key`: of stochastic rounding, negative: to the nearest.
nb::bytes pack(const std::string &kernels, int type, std::uintptr_t tensor, std::size_t elems,
               int exponent, int summands, std::int64_t key) {
    const ValueType packed = value_type_of(type);
    Packing how = packing_of(packed, static_cast<std::uint8_t>(exponent), summands);
    if (key >= 0) {
        how.rounding = Rounding::kStochastic;
        how.key = static_cast<std::uint32_t>(key);
    }
    const std::size_t columns = values_per_word(packed);
    std::vector<std::uint8_t> words((elems + columns - 1) / columns * wire::kValueBytes);
    packed_kernels_named(kernels).pack(element_of(packed), reinterpret_cast<const void *>(tensor),
                                       elems, how, words.data());
    return nb::bytes(words.data(), words.size());
}

void unpack(const std::string &kernels, int type, const nb::bytes &words, int exponent,
            int summands, int divisor, std::uintptr_t tensor, std::size_t elems) {
    const ValueType packed = value_type_of(type);
    const std::size_t columns = values_per_word(packed);
    if (words.size() != (elems + columns - 1) / columns * wire::kValueBytes) {
        throw std::invalid_argument(std::to_string(elems) + " values of " +
                                    std::to_string(words.size()) + " bytes");
    }
    const Packing how = packing_of(packed, static_cast<std::uint8_t>(exponent), summands);
    packed_kernels_named(kernels).unpack(
        element_of(packed), static_cast<const std::uint8_t *>(words.data()), elems, how.bits,
        {1.0f / how.scale, divisor}, reinterpret_cast<void *>(tensor));
}

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

void bind_quantize(nb::module_ &m) {
    bind_block_words(m);
    m.def("kernel_names", &kernel_names);
    m.def("scan", &scan, nb::arg("kernels"), nb::arg("value_type"), nb::arg("tensor"),
          nb::arg("elems"));
    m.def("quantize", &quantize, nb::arg("kernels"), nb::arg("value_type"), nb::arg("tensor"),
          nb::arg("elems"), nb::arg("scale"));
    m.def("dequantize", &dequantize, nb::arg("kernels"), nb::arg("value_type"), nb::arg("wire"),
          nb::arg("inverse_scale"), nb::arg("divisor"), nb::arg("tensor"));
    m.def("pack", &pack, nb::arg("kernels"), nb::arg("value_type"), nb::arg("tensor"),
          nb::arg("elems"), nb::arg("exponent"), nb::arg("summands"), nb::arg("key"));
    m.def("unpack", &unpack, nb::arg("kernels"), nb::arg("value_type"), nb::arg("words"),
          nb::arg("exponent"), nb::arg("summands"), nb::arg("divisor"), nb::arg("tensor"),
          nb::arg("elems"));
    m.def("rounding_key", &rounding_key, nb::arg("tensor"), nb::arg("first_elem"), nb::arg("rank"));
    m.def("column_limit", &column_limit, nb::arg("bits"), nb::arg("summands"));
    m.def("block_scale", &block_scale, nb::arg("exponent"), nb::arg("workers"));
    m.def("convert_blocks", &convert_blocks, nb::arg("what"), nb::arg("value_type"),
          nb::arg("tensor"), nb::arg("wire"), nb::arg("elems"), nb::arg("block_elems"),
          nb::arg("rounds"), nb::call_guard<nb::gil_scoped_release>());
    m.def("copy_bytes", &copy_bytes, nb::arg("source"), nb::arg("target"), nb::arg("bytes"),
          nb::arg("rounds"), nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace ina::host
