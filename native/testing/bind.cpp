// Python bindings of the doors: ina._native.testing, described in ina/_native/testing.pyi.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "testing/doors.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace ina::testing {

namespace {

Input input_of(const nb::bytes &data) {
    return {static_cast<const std::uint8_t *>(data.data()), data.size()};
}

std::vector<std::string> door_names() {
    std::vector<std::string> names;
    for (const Door &door : kDoors) names.emplace_back(door.name);
    return names;
}

void enter(const std::string &name, const nb::bytes &data) {
    for (const Door &door : kDoors) {
        if (name == door.name) return door.enter(input_of(data));
    }
    throw nb::value_error(("no door is called '" + name + "'").c_str());
}

void enter_program(std::uintptr_t pipeline, const nb::bytes &setup, const nb::bytes &data) {
    const auto *const bytes = static_cast<const std::uint8_t *>(setup.data());
    enter_pipeline(reinterpret_cast<const ina_pipeline *>(pipeline),
                   Bytes(bytes, bytes + setup.size()), input_of(data));
}

}  // namespace

void bind(nb::module_ &m) {
    nb::exception<BrokenPromise>(m, "BrokenPromise", PyExc_AssertionError);
    m.def("door_names", door_names);
    m.def("enter", enter, "name"_a, "data"_a);
    m.def("enter_pipeline", enter_program, "pipeline"_a, "setup"_a, "data"_a);
}

}  // namespace ina::testing
