// Python binding of BlockWords. Memory is passed as addresses; the Python side keeps it alive and
// checks how large it is.
#include <nanobind/nanobind.h>

#include "host/bind.hpp"
#include "host/core/block_words.hpp"

namespace nb = nanobind;

namespace ina::host {
namespace {

using Unlocked = nb::call_guard<nb::gil_scoped_release>;

std::uint8_t *octets(std::uintptr_t address) { return reinterpret_cast<std::uint8_t *>(address); }

}  // namespace

void bind_block_words(nb::module_ &m) {
    nb::class_<BlockWords>(m, "BlockWords")
        .def(
            "__init__",
            [](BlockWords *self, const nb::tuple &collective, int workers, std::uint32_t rank,
               std::uint64_t number, std::uint32_t values_per_packet) {
                const TensorRequest what = tensor_request(number, 0, 0, collective);
                new (self) BlockWords(what, workers, rank, number, values_per_packet);
            },
            nb::arg("collective"), nb::arg("workers"), nb::arg("rank"), nb::arg("number"),
            nb::arg("values_per_packet"))
        .def("blocks", &BlockWords::blocks, nb::arg("elems"))
        .def("words", &BlockWords::words, nb::arg("elems"))
        .def(
            "find_codes",
            [](const BlockWords &self, std::uintptr_t values, std::size_t elems,
               std::uintptr_t codes) { self.find_codes(octets(values), elems, octets(codes)); },
            nb::arg("values"), nb::arg("elems"), nb::arg("codes"), Unlocked())
        .def(
            "write",
            [](const BlockWords &self, std::uintptr_t values, std::uint64_t first_elem,
               std::size_t elems, std::uintptr_t codes, std::uintptr_t words) {
                self.write(octets(values), first_elem, elems, octets(codes), octets(words));
            },
            nb::arg("values"), nb::arg("first_elem"), nb::arg("elems"), nb::arg("codes"),
            nb::arg("words"), Unlocked())
        .def(
            "read",
            [](const BlockWords &self, std::uintptr_t words, std::size_t elems,
               std::uintptr_t codes, std::uintptr_t values) {
                self.read(octets(words), elems, octets(codes), octets(values));
            },
            nb::arg("words"), nb::arg("elems"), nb::arg("codes"), nb::arg("values"), Unlocked());
}

}  // namespace ina::host
