// Python bindings of LossRecovery by itself, for tests.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "congestion/algorithms.hpp"
#include "host/bind.hpp"
#include "host/recovery/loss_recovery.hpp"

namespace nb = nanobind;

namespace ina::host {
namespace {

constexpr std::uint32_t kPacketBytes = 330;  // with 64 values
constexpr double kSmallShare = 74.0 / 330.0;

// With what claims slots beside its window.
struct LoneRecovery : LossRecovery {
    LoneRecovery(std::uint32_t lanes, const RtoLimits &rto, const congestion::Control &control)
        : LossRecovery(lanes, rto, control.window, kSmallShare), claims(control.claims) {}

    std::shared_ptr<congestion::SlotClaims> claims;
};

// nanobind looks for the class that a method is of.
template <typename Returned, typename... Given>
auto lone(Returned (LossRecovery::*method)(Given...)) {
    return [method](LoneRecovery &self, Given... given) { return (self.*method)(given...); };
}
template <typename Returned, typename... Given>
auto lone(Returned (LossRecovery::*method)(Given...) const) {
    return [method](const LoneRecovery &self, Given... given) { return (self.*method)(given...); };
}

// Pairs of a lane and the number of its copy.
std::vector<std::pair<std::uint32_t, std::uint32_t>> due(LoneRecovery &self, std::int64_t now_ns,
                                                         std::size_t capacity) {
    std::vector<Resend> found(capacity);
    found.resize(self.due(now_ns, found.data(), capacity));
    std::vector<std::pair<std::uint32_t, std::uint32_t>> told;
    for (const Resend &resend : found) told.emplace_back(resend.lane, resend.copy);
    return told;
}

std::optional<std::int64_t> deadline_ns(const LoneRecovery &self) {
    if (self.deadline_ns() == kNever) return std::nullopt;
    return self.deadline_ns();
}

void bind_numbers(nb::module_ &m) {
    nb::class_<RtoLimits>(m, "RtoLimits")
        .def("__init__", &init_by_name<RtoLimits>)
        .def_rw("initial_ns", &RtoLimits::initial_ns)
        .def_rw("min_ns", &RtoLimits::min_ns)
        .def_rw("max_ns", &RtoLimits::max_ns);

    nb::class_<RecoveryCounters>(m, "RecoveryCounters")
        .def_ro("retransmissions", &RecoveryCounters::retransmissions)
        .def_ro("losses", &RecoveryCounters::losses)
        .def_ro("spurious", &RecoveryCounters::spurious)
        .def_ro("probes", &RecoveryCounters::probes)
        .def_ro("overtaken", &RecoveryCounters::overtaken)
        .def_ro("timeouts", &RecoveryCounters::timeouts)
        .def_ro("ecn_marked", &RecoveryCounters::ecn_marked)
        .def_ro("last", &RecoveryCounters::last);
}

}  // namespace

void bind_recovery(nb::module_ &m) {
    bind_numbers(m);
    nb::class_<LoneRecovery>(m, "LossRecovery")
        .def(
            "__init__",
            [](LoneRecovery *self, std::uint32_t lanes, const RtoLimits &rto,
               const congestion::Choice &congestion) {
                new (self) LoneRecovery(
                    lanes, rto, congestion::make_control(congestion, {lanes, kPacketBytes}));
            },
            nb::arg("lanes"), nb::arg("rto"), nb::arg("congestion") = congestion::Choice{})
        .def(
            "sent",
            [](LoneRecovery &self, std::uint32_t lane, std::uint64_t order, std::uint8_t kind,
               std::int64_t now_ns, bool is_small,
               std::uint8_t flow) { self.sent(lane, {order, kind, flow, is_small}, now_ns); },
            nb::arg("lane"), nb::arg("order"), nb::arg("kind"), nb::arg("now_ns"),
            nb::arg("is_small") = false, nb::arg("flow") = 0)
        .def(
            "answered",
            [](LoneRecovery &self, std::uint32_t lane, std::int64_t now_ns, std::uint32_t copy,
               bool others_loss, bool marked, bool marked_here, bool is_own, bool wanted) {
                if (self.claims && !self.flights()[lane].is_small) {
                    self.claims->answered(lane, wanted);
                }
                self.answered(lane, {copy, others_loss, marked, marked_here, is_own}, now_ns);
            },
            nb::arg("lane"), nb::arg("now_ns"), nb::arg("copy") = 0, nb::arg("others_loss") = false,
            nb::arg("marked") = false, nb::arg("marked_here") = false, nb::arg("is_own") = false,
            nb::arg("wanted") = false)
        .def("duplicate", lone(&LossRecovery::duplicate), nb::arg("lane"), nb::arg("copy"),
             nb::arg("now_ns"))
        .def("withdrawn", lone(&LossRecovery::withdrawn), nb::arg("lane"))
        .def("due", &due, nb::arg("now_ns"), nb::arg("capacity") = 64)
        .def_prop_ro("deadline_ns", &deadline_ns)
        .def_prop_ro("paced_ns", lone(&LossRecovery::paced_ns))
        .def("note_paced", lone(&LossRecovery::note_paced), nb::arg("waits"))
        .def(
            "claims",
            [](const LoneRecovery &self, std::uint32_t lane) {
                return !self.claims || self.claims->claims(lane);
            },
            nb::arg("lane"))
        .def("has_room_for", lone(&LossRecovery::has_room_for), nb::arg("order"),
             nb::arg("flow") = 0, nb::arg("is_shared") = false)
        .def("settle", lone(&LossRecovery::settle), nb::arg("now_ns"))
        .def_prop_ro("in_flight", [](const LoneRecovery &self) { return self.flights().size(); })
        .def_prop_ro("window_packets", lone(&LossRecovery::window_packets))
        .def_prop_ro("counters", [](const LoneRecovery &self) { return self.counters(); });
}

}  // namespace ina::host
