// Python bindings of what WorkerCore tells about lanes and pending tensors.
#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <utility>
#include <vector>

#include "host/bind.hpp"
#include "host/engine/share.hpp"

namespace nb = nanobind;

namespace ina::host {
namespace {

std::vector<std::uint32_t> seqs(const LaneSnapshot &self) { return self.seqs; }

nb::bytes waiting(const LaneSnapshot &self) {
    return nb::bytes(self.waiting.data(), self.waiting.size());
}

nb::object oldest(const LaneSnapshot &self) {  // None: nothing is pending
    return self.oldest.id == 0 ? nb::none() : described(self.oldest);
}

nb::bytes data(const LaneResult &self) { return bytes_of(self.data); }

std::uintptr_t address_in(const PendingTensor &self) {
    return reinterpret_cast<std::uintptr_t>(self.request.in);
}

std::uintptr_t address_out(const PendingTensor &self) {
    return reinterpret_cast<std::uintptr_t>(self.request.out);
}

nb::list undone(const PendingTensor &self) {
    nb::list ranges;
    for (const ChunkRange &range : self.undone) {
        ranges.append(nb::make_tuple(range.begin, range.end));
    }
    return ranges;
}

}  // namespace

void bind_handover(nb::module_ &m) {
    nb::class_<LaneSnapshot>(m, "LaneSnapshot")
        .def_ro("epoch", &LaneSnapshot::epoch)
        .def_prop_ro("seqs", &seqs)
        .def_prop_ro("waiting", &waiting)
        .def_ro("in_flight", &LaneSnapshot::in_flight)
        .def_ro("silent_ns", &LaneSnapshot::silent_ns)
        .def_ro("oldest_seq", &LaneSnapshot::oldest_seq)
        .def_ro("oldest_waited_ns", &LaneSnapshot::oldest_waited_ns)
        .def_prop_ro("oldest_operation", &oldest);

    nb::class_<LaneResult>(m, "LaneResult")
        .def_ro("accepted", &LaneResult::accepted)
        .def_ro("exponent_only", &LaneResult::exponent_only)
        .def_ro("non_finite", &LaneResult::non_finite)
        .def_ro("seq", &LaneResult::seq)
        .def_ro("operation", &LaneResult::tensor)
        .def_ro("chunk", &LaneResult::chunk)
        .def_prop_ro("data", &data);

    nb::class_<PendingTensor>(m, "PendingTensor")
        .def_prop_ro("operation", [](const PendingTensor &self) { return self.request.id; })
        .def_prop_ro("address_in", &address_in)
        .def_prop_ro("address_out", &address_out)
        .def_prop_ro("collective",
                     [](const PendingTensor &self) { return numbers_of(self.request); })
        .def_prop_ro("undone", &undone);

    m.def("merge_lanes", &merge_lanes, nb::arg("shares"));
    m.def("merge_pending", &merge_pending, nb::arg("shares"));
}

}  // namespace ina::host
