// Python bindings of the sans-I/O parts: quantisers and WorkerCore, for tests and simulations.
// Tensors are passed as addresses; the Python side keeps the arrays alive and checks their layout.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "congestion/adaptive.hpp"
#include "host/bind.hpp"
#include "host/core/worker_core.hpp"

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

std::vector<nb::bytes> poll_transmit(WorkerCore &core, std::int64_t now_ns, std::size_t capacity) {
    std::vector<PacketView> batch(capacity);
    batch.resize(core.poll_transmit(now_ns, batch.data(), capacity));
    std::vector<nb::bytes> packets;
    packets.reserve(batch.size());
    for (const PacketView &view : batch) packets.emplace_back(view.data, view.bytes);
    return packets;
}

std::optional<std::int64_t> next_deadline_ns(const WorkerCore &core, std::int64_t now_ns) {
    const std::int64_t deadline_ns = core.next_deadline_ns(now_ns);
    if (deadline_ns == kNever) return std::nullopt;
    return deadline_ns;
}

}  // namespace

ValueType value_type_of(int type) {
    if (type < 0 || type > wire::kValueTypeBfloat16) {
        throw std::invalid_argument("unknown value type " + std::to_string(type));
    }
    return static_cast<ValueType>(type);
}

TensorRequest tensor_request(std::uint64_t id, std::uintptr_t in, std::uintptr_t out,
                             std::uint64_t elems, int type, bool average) {
    TensorRequest request;
    request.id = id;
    request.in = reinterpret_cast<const void *>(in);
    request.out = reinterpret_cast<void *>(out);
    request.elems = elems;
    request.type = value_type_of(type);
    request.op = average ? ReduceOp::kAverage : ReduceOp::kSum;
    return request;
}

void bind_core(nb::module_ &m) {
    m.def("kernel_names", &kernel_names);
    m.def("scan", &scan, nb::arg("kernels"), nb::arg("value_type"), nb::arg("tensor"),
          nb::arg("elems"));
    m.def("quantize", &quantize, nb::arg("kernels"), nb::arg("value_type"), nb::arg("tensor"),
          nb::arg("elems"), nb::arg("scale"));
    m.def("dequantize", &dequantize, nb::arg("kernels"), nb::arg("value_type"), nb::arg("wire"),
          nb::arg("inverse_scale"), nb::arg("divisor"), nb::arg("tensor"));
    m.def("block_scale", &block_scale, nb::arg("exponent"), nb::arg("workers"));

    nb::class_<RtoLimits>(m, "RtoLimits")
        .def(
            "__init__",
            [](RtoLimits *self, std::int64_t initial_ns, std::int64_t min_ns, std::int64_t max_ns) {
                new (self) RtoLimits{initial_ns, min_ns, max_ns};
            },
            nb::kw_only(), nb::arg("initial_ns") = RtoLimits{}.initial_ns,
            nb::arg("min_ns") = RtoLimits{}.min_ns, nb::arg("max_ns") = RtoLimits{}.max_ns)
        .def_ro("initial_ns", &RtoLimits::initial_ns)
        .def_ro("min_ns", &RtoLimits::min_ns)
        .def_ro("max_ns", &RtoLimits::max_ns);

    nb::class_<WorkerConfig>(m, "WorkerConfig")
        .def(
            "__init__",
            [](WorkerConfig *self, std::uint16_t job, std::uint32_t epoch, int rank, int world_size,
               std::uint32_t slots, std::uint32_t values_per_packet, std::int64_t stall_timeout_ns,
               const RtoLimits &rto, std::uint32_t first_seq, bool keep_results,
               std::uint32_t share, std::uint32_t shares) {
                new (self) WorkerConfig{job,
                                        epoch,
                                        rank,
                                        world_size,
                                        slots,
                                        values_per_packet,
                                        stall_timeout_ns,
                                        rto,
                                        first_seq,
                                        keep_results,
                                        share,
                                        shares};
            },
            nb::kw_only(), nb::arg("job"), nb::arg("epoch"), nb::arg("rank"), nb::arg("world_size"),
            nb::arg("slots"), nb::arg("values_per_packet"), nb::arg("stall_timeout_ns"),
            nb::arg("rto"), nb::arg("first_seq") = 0, nb::arg("keep_results") = false,
            nb::arg("share") = 0, nb::arg("shares") = 1);

    nb::class_<StallReport>(m, "StallReport")
        .def_ro("waited_ns", &StallReport::waited_ns)
        .def_ro("oldest_seq", &StallReport::oldest_seq)
        .def_ro("in_flight", &StallReport::in_flight)
        .def_ro("anything_sent", &StallReport::anything_sent);

    nb::class_<Mismatch>(m, "Mismatch")
        .def_ro("operation", &Mismatch::tensor)
        .def_ro("seq", &Mismatch::seq);

    nb::class_<WorkerCounters>(m, "WorkerCounters")
        .def_ro("packets_sent", &WorkerCounters::packets_sent)
        .def_ro("packets_received", &WorkerCounters::packets_received)
        .def_ro("payload_bytes_sent", &WorkerCounters::payload_bytes_sent)
        .def_ro("payload_bytes_received", &WorkerCounters::payload_bytes_received)
        .def_ro("retransmissions", &WorkerCounters::retransmissions)
        .def_ro("losses", &WorkerCounters::losses)
        .def_ro("spurious", &WorkerCounters::spurious)
        .def_ro("probes", &WorkerCounters::probes)
        .def_ro("overtaken", &WorkerCounters::overtaken)
        .def_ro("timeouts", &WorkerCounters::timeouts)
        .def_ro("duplicates", &WorkerCounters::duplicates)
        .def_ro("stale", &WorkerCounters::stale)
        .def_ro("malformed", &WorkerCounters::malformed)
        .def_ro("foreign", &WorkerCounters::foreign)
        .def_ro("mismatched", &WorkerCounters::mismatched)
        .def_ro("ecn_marked", &WorkerCounters::ecn_marked)
        .def_ro("exponent_rounds", &WorkerCounters::exponent_rounds)
        .def_ro("guessed_chunks", &WorkerCounters::guessed_chunks)
        .def_ro("missed_guesses", &WorkerCounters::missed_guesses)
        .def_ro("chunks_done", &WorkerCounters::chunks_done)
        .def_ro("bytes_done", &WorkerCounters::bytes_done)
        .def_ro("tensors_submitted", &WorkerCounters::tensors_submitted)
        .def_ro("tensors_done", &WorkerCounters::tensors_done)
        .def_ro("last_seq", &WorkerCounters::last_seq);

    bind_recovery(m);

    nb::class_<WorkerCore>(m, "WorkerCore")
        .def(
            "__init__",
            [](WorkerCore *self, const WorkerConfig &config, std::uint32_t max_in_flight,
               bool adaptive) {
                const std::uint32_t limit = max_in_flight == 0 ? config.slots / 2 : max_in_flight;
                std::unique_ptr<CongestionWindow> window = std::make_unique<FixedWindow>(limit);
                if (adaptive) window = std::make_unique<AdaptiveWindow>(limit);
                new (self) WorkerCore(config, std::move(window));
            },
            nb::arg("config"), nb::arg("max_in_flight") = 0, nb::arg("adaptive") = false)
        .def(
            "submit",
            [](WorkerCore &self, std::uint64_t id, std::uintptr_t in, std::uintptr_t out,
               std::uint64_t elems, int type, bool average, std::int64_t now_ns) {
                self.submit(tensor_request(id, in, out, elems, type, average), now_ns);
            },
            nb::arg("id"), nb::arg("address_in"), nb::arg("address_out"), nb::arg("elems"),
            nb::arg("value_type"), nb::arg("average"), nb::arg("now_ns"))
        .def("poll_transmit", &poll_transmit, nb::arg("now_ns"), nb::arg("capacity") = 64)
        .def(
            "on_result",
            [](WorkerCore &self, const nb::bytes &payload, std::int64_t now_ns, bool ip_marked) {
                self.on_result(static_cast<const std::uint8_t *>(payload.data()), payload.size(),
                               now_ns, ip_marked);
            },
            nb::arg("payload"), nb::arg("now_ns"), nb::arg("ip_marked") = false)
        .def("next_deadline_ns", &next_deadline_ns, nb::arg("now_ns"))
        .def_prop_ro("moderation_ns", &WorkerCore::moderation_ns)
        .def_prop_ro("longest_train", &WorkerCore::longest_train)
        .def("note_progress", &WorkerCore::note_progress, nb::arg("at_ns"))
        .def("take_completions", &WorkerCore::take_completions)
        .def("lanes", &WorkerCore::lanes, nb::arg("now_ns"))
        .def("lane_result", &WorkerCore::lane_result, nb::arg("lane"))
        .def("pending", &WorkerCore::pending)
        .def(
            "put_result",
            [](WorkerCore &self, std::uint32_t lane, std::uint32_t seq, const nb::bytes &data) {
                self.put_result(lane, seq, data.data(), data.size());
            },
            nb::arg("lane"), nb::arg("seq"), nb::arg("data"))
        .def_prop_ro("stall", [](const WorkerCore &self) { return self.stall(); })
        .def("settle_resends", &WorkerCore::settle_resends, nb::arg("now_ns"))
        .def_prop_ro("mismatch", [](const WorkerCore &self) { return self.mismatch(); })
        .def_prop_ro("agreed", &WorkerCore::agreed)
        .def_prop_ro("counters", [](const WorkerCore &self) { return self.counters(); })
        .def_prop_ro("srtt_ns", &WorkerCore::srtt_ns)
        .def_prop_ro("rto_ns", &WorkerCore::rto_ns)
        .def_prop_ro("window", &WorkerCore::window)
        .def_prop_ro("first_lane", &WorkerCore::first_lane)
        .def_prop_ro("lane_count", &WorkerCore::lane_count)
        .def_prop_ro("in_flight", &WorkerCore::in_flight)
        .def_prop_ro("in_flight_limit", &WorkerCore::in_flight_limit);
}

}  // namespace ina::host
