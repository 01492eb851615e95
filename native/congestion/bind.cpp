// Python bindings of the window algorithms: their names and options, and the choice of one.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "congestion/algorithms.hpp"

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
               const std::vector<std::pair<std::string, double>> &options) {
                make_window({algorithm, options}, {1, 1});  // throws if there is no such one
                new (self) Choice{algorithm, options};
            },
            nb::arg("algorithm") = kUsualAlgorithm,
            nb::arg("options") = std::vector<std::pair<std::string, double>>{})
        .def_ro("algorithm", &Choice::algorithm)
        .def_ro("options", &Choice::options);
    m.def("algorithms", &algorithms);
}

}  // namespace ina::congestion
