// Python bindings of the window algorithms: their names and options, and the choice of one.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <utility>

#include "congestion/algorithms.hpp"
#include "congestion/lane_claims.hpp"
#include "congestion/python_window.hpp"

namespace nb = nanobind;

namespace ina::congestion {

void bind(nb::module_ &m) {
    m.doc() = "Window algorithms of ina.congestion.";

    nb::class_<Option>(m, "Option")
        .def_ro("name", &Option::name)
        .def_ro("usual", &Option::usual)
        .def_ro("least", &Option::least)
        .def_ro("most", &Option::most)
        .def_ro("what", &Option::what);
    nb::class_<Algorithm>(m, "Algorithm")
        .def_ro("name", &Algorithm::name)
        .def_ro("what", &Algorithm::what)
        .def_ro("options", &Algorithm::options);
    nb::class_<Choice>(m, "Choice")
        .def(
            "__init__",
            [](Choice *self, const std::string &algorithm,
               const std::vector<std::pair<std::string, double>> &options, nb::object own) {
                Choice choice{algorithm, options};
                if (!own.is_none()) choice.own = python_maker(std::move(own));
                make_control(choice, {1, 1});  // throws if there is no such one
                new (self) Choice(std::move(choice));
            },
            nb::arg("algorithm") = kUsualAlgorithm,
            nb::arg("options") = std::vector<std::pair<std::string, double>>{},
            nb::arg("own") = nb::none())
        .def_ro("algorithm", &Choice::algorithm)
        .def_ro("options", &Choice::options)
        .def_prop_ro("own", [](const Choice &self) { return python_object(self); });
    nb::class_<LaneClaims>(m, "LaneClaims")
        .def(nb::init<std::uint32_t>(), nb::arg("limit") = 6)
        .def("claims", &LaneClaims::claims, nb::arg("lane"))
        .def("answered", &LaneClaims::answered, nb::arg("lane"), nb::arg("wanted"));
    m.def("algorithms", &algorithms);
    watch_python();
}

}  // namespace ina::congestion
