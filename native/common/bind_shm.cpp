// Python bindings of how a worker attaches to shared memory: ina._native.shm, described in
// ina/_native/shm.pyi. The layout is shm_ring.hpp's and nobody else's.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>

#include <cstring>
#include <optional>

#include "common/shm_ring.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace ina::shm {

namespace {

nb::bytes hello(std::uint32_t cells, std::uint32_t payload_bytes) {
    Hello said;
    said.cells = cells;
    said.payload_bytes = payload_bytes;
    return nb::bytes(&said, sizeof said);
}

std::optional<Welcome> read_welcome(const nb::bytes &data) {
    Welcome said;
    if (data.size() != sizeof said) throw nb::value_error("this is no Welcome: its length");
    std::memcpy(&said, data.c_str(), sizeof said);
    if (said.magic != kMagic || said.version != kVersion) return std::nullopt;
    return said;
}

}  // namespace

void bind(nb::module_ &m) {
    nb::enum_<Status>(m, "Status", nb::is_arithmetic())
        .value("ATTACHED", Status::kAttached)
        .value("BAD_HELLO", Status::kBadHello)
        .value("NOT_ALLOWED", Status::kNotAllowed)
        .value("FULL", Status::kFull)
        .value("NO_MEMORY", Status::kNoMemory);
    nb::class_<Welcome>(m, "Welcome")
        // A number: a switch may say what this build has no name for.
        .def_prop_ro("status",
                     [](const Welcome &w) { return static_cast<std::uint32_t>(w.status); })
        .def_ro("switch_port", &Welcome::switch_port)
        .def_ro("address", &Welcome::address)
        .def_ro("udp_port", &Welcome::udp_port);
    m.attr("MAX_CELLS") = kMaxCells;
    m.attr("WELCOME_BYTES") = sizeof(Welcome);
    m.def("hello", &hello, "cells"_a, "payload_bytes"_a);
    m.def("read_welcome", &read_welcome, "data"_a);
}

}  // namespace ina::shm
