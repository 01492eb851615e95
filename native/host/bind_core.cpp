// Python bindings of the sans-I/O parts, WorkerCore first, for tests and simulations.
// Tensors are passed as addresses; the Python side keeps the arrays alive and checks their layout.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <utility>

#include "congestion/algorithms.hpp"
#include "host/bind.hpp"
#include "host/core/worker_core.hpp"
#include "host/engine/pacing.hpp"

namespace nb = nanobind;

namespace ina::host {
namespace {

// A core that has all of a worker's lanes, or stands for a share of them, with what a transport
// has besides: where tensors are placed, and pacing.
struct LoneCore : WorkerCore {
    LoneCore(const WorkerConfig &config, const congestion::Choice &congestion, std::uint32_t most)
        : WorkerCore(config, congestion::make_control(congestion, room_of(config, most))),
          order(config), pacing(most), room(room_of(config, most)) {}

    SubmissionOrder order;
    Pacing pacing;
    congestion::Room room;  // of its window
};

auto recovery(std::uint64_t RecoveryCounters::*counter) {
    return [counter](const WorkerCounters &self) { return self.recovery.*counter; };
}

std::vector<nb::bytes> poll_transmit(LoneCore &core, std::int64_t now_ns, std::size_t capacity) {
    std::vector<PacketView> batch(capacity);
    batch.resize(core.poll_transmit(now_ns, batch.data(), capacity));
    std::vector<nb::bytes> packets;
    packets.reserve(batch.size());
    for (const PacketView &view : batch) packets.emplace_back(view.data, view.bytes);
    return packets;
}

std::vector<std::uint8_t> octets(const nb::bytes &said) {
    const auto *const first = static_cast<const std::uint8_t *>(said.data());
    return {first, first + said.size()};
}

std::optional<std::int64_t> next_deadline_ns(const LoneCore &core, std::int64_t now_ns) {
    const std::int64_t deadline_ns = core.next_deadline_ns(now_ns);
    if (deadline_ns == kNever) return std::nullopt;
    return deadline_ns;
}

}  // namespace

void bind_core(nb::module_ &m) {
    bind_recovery(m);
    bind_verify(m);

    nb::class_<Peer>(m, "Peer")
        .def("__init__", &init_by_name<Peer>)
        .def_rw("ipv4", &Peer::ipv4)
        .def_rw("udp_port", &Peer::udp_port);

    nb::class_<Tree>(m, "Tree")
        .def("__init__", &init_by_name<Tree>)
        .def_rw("job", &Tree::job)
        .def_rw("worker", &Tree::worker)
        .def_rw("path", &Tree::path)
        .def_rw("expected_bitmap", &Tree::expected_bitmap)
        .def_rw("first_lane", &Tree::first_lane)
        .def_rw("lanes", &Tree::lanes)
        .def_rw("node", &Tree::node)
        .def_rw("owners", &Tree::owners);

    nb::class_<Framing>(m, "Framing")
        .def(
            "__init__",
            [](Framing *self, const nb::bytes &prefix, const nb::bytes &suffix) {
                new (self) Framing{octets(prefix), octets(suffix)};
            },
            nb::arg("prefix") = nb::bytes(""), nb::arg("suffix") = nb::bytes(""))
        .def_prop_ro("bytes", &Framing::bytes);

    nb::class_<WorkerConfig>(m, "WorkerConfig")
        .def("__init__", &init_by_name<WorkerConfig>)
        .def_rw("job", &WorkerConfig::job)
        .def_rw("epoch", &WorkerConfig::epoch)
        .def_rw("rank", &WorkerConfig::rank)
        .def_rw("world_size", &WorkerConfig::world_size)
        .def_rw("expected_bitmap", &WorkerConfig::expected_bitmap)
        .def_rw("summands", &WorkerConfig::summands)
        .def_rw("divisor", &WorkerConfig::divisor)
        .def_rw("slots", &WorkerConfig::slots)
        .def_rw("values_per_packet", &WorkerConfig::values_per_packet)
        .def_rw("stall_timeout_ns", &WorkerConfig::stall_timeout_ns)
        .def_rw("rto", &WorkerConfig::rto)
        .def_rw("first_seq", &WorkerConfig::first_seq)
        .def_rw("keep_results", &WorkerConfig::keep_results)
        .def_rw("verify", &WorkerConfig::verify)
        .def_prop_rw(
            "check_key",
            [](const WorkerConfig &self) {
                return nb::bytes(self.check_key.data(), self.check_key.size());
            },
            [](WorkerConfig &self, const nb::bytes &key) { self.check_key = secret_key(key); })
        .def_rw("trees", &WorkerConfig::trees)
        .def_rw("first_lane", &WorkerConfig::first_lane)
        .def_rw("lanes", &WorkerConfig::lanes)
        .def_rw("framing", &WorkerConfig::framing)
        .def_rw("is_stream", &WorkerConfig::is_stream);

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
        .def_ro("unclaimed", &WorkerCounters::unclaimed)
        .def_ro("packets_received", &WorkerCounters::packets_received)
        .def_ro("payload_bytes_sent", &WorkerCounters::payload_bytes_sent)
        .def_ro("payload_bytes_received", &WorkerCounters::payload_bytes_received)
        .def_prop_ro("retransmissions", recovery(&RecoveryCounters::retransmissions))
        .def_prop_ro("losses", recovery(&RecoveryCounters::losses))
        .def_prop_ro("spurious", recovery(&RecoveryCounters::spurious))
        .def_prop_ro("probes", recovery(&RecoveryCounters::probes))
        .def_prop_ro("overtaken", recovery(&RecoveryCounters::overtaken))
        .def_prop_ro("timeouts", recovery(&RecoveryCounters::timeouts))
        .def_ro("duplicates", &WorkerCounters::duplicates)
        .def_ro("stale", &WorkerCounters::stale)
        .def_ro("malformed", &WorkerCounters::malformed)
        .def_ro("foreign", &WorkerCounters::foreign)
        .def_ro("mismatched", &WorkerCounters::mismatched)
        .def_ro("corrupted", &WorkerCounters::corrupted)
        .def_prop_ro("ecn_marked", recovery(&RecoveryCounters::ecn_marked))
        .def_prop_ro("last", recovery(&RecoveryCounters::last))
        .def_ro("exponent_rounds", &WorkerCounters::exponent_rounds)
        .def_ro("guessed_chunks", &WorkerCounters::guessed_chunks)
        .def_ro("missed_guesses", &WorkerCounters::missed_guesses)
        .def_ro("chunks_done", &WorkerCounters::chunks_done)
        .def_ro("bytes_done", &WorkerCounters::bytes_done)
        .def_ro("tensors_submitted", &WorkerCounters::tensors_submitted)
        .def_ro("tensors_done", &WorkerCounters::tensors_done)
        .def_ro("last_seq", &WorkerCounters::last_seq);

    bind_handover(m);

    nb::class_<Submission>(m, "Submission");
    nb::class_<SubmissionOrder>(m, "SubmissionOrder")
        .def(nb::init<const WorkerConfig &>(), nb::arg("config"))
        .def(
            "next",
            [](SubmissionOrder &self, std::uint64_t id, std::uintptr_t in, std::uintptr_t out,
               const nb::tuple &collective) {
                return self.next(tensor_request(id, in, out, collective));
            },
            nb::arg("id"), nb::arg("address_in"), nb::arg("address_out"), nb::arg("collective"));

    nb::class_<LoneCore>(m, "WorkerCore")
        .def(
            "__init__",
            [](LoneCore *self, const WorkerConfig &config, std::uint32_t max_in_flight,
               const congestion::Choice &congestion) {
                const std::uint32_t most = max_in_flight == 0 ? config.slots / 2 : max_in_flight;
                new (self) LoneCore(config, congestion, most);
            },
            nb::arg("config"), nb::arg("max_in_flight") = 0,
            nb::arg("congestion") = congestion::Choice{})
        .def(
            "submit",
            [](LoneCore &self, std::uint64_t id, std::uintptr_t in, std::uintptr_t out,
               const nb::tuple &collective, std::int64_t now_ns) {
                const auto request = tensor_request(id, in, out, collective);
                self.submit(self.order.next(request), now_ns);
            },
            nb::arg("id"), nb::arg("address_in"), nb::arg("address_out"), nb::arg("collective"),
            nb::arg("now_ns"))
        .def(
            "submit_placed",
            [](LoneCore &self, const Submission &placed, std::int64_t now_ns) {
                self.submit(placed, now_ns);
            },
            nb::arg("placed"), nb::arg("now_ns"))
        .def(
            "set_congestion",
            [](LoneCore &self, const std::optional<congestion::Choice> &choice,
               std::uint32_t most_packets) {
                if (choice) self.set_control(congestion::make_control(*choice, self.room));
                self.set_most(most_packets == 0 ? UINT32_MAX : most_packets);
            },
            nb::arg("choice").none(), nb::arg("most_packets"))
        .def("withdraw_from", &WorkerCore::withdraw_from, nb::arg("id"))
        .def("poll_transmit", &poll_transmit, nb::arg("now_ns"), nb::arg("capacity") = 64)
        .def(
            "on_result",
            [](LoneCore &self, const nb::bytes &payload, std::int64_t now_ns, bool ip_marked) {
                self.on_result(static_cast<const std::uint8_t *>(payload.data()), payload.size(),
                               now_ns, ip_marked);
            },
            nb::arg("payload"), nb::arg("now_ns"), nb::arg("ip_marked") = false)
        .def("next_deadline_ns", &next_deadline_ns, nb::arg("now_ns"))
        .def_prop_ro("moderation_ns",
                     [](const LoneCore &self) { return self.pacing.moderation_ns(self); })
        .def_prop_ro("longest_train",
                     [](const LoneCore &self) { return self.pacing.longest_train(self); })
        .def("note_progress", &WorkerCore::note_progress, nb::arg("at_ns"))
        .def("take_completions", &WorkerCore::take_completions)
        .def("lanes", &WorkerCore::lanes, nb::arg("now_ns"))
        .def("lane_result", &WorkerCore::lane_result, nb::arg("lane"))
        .def("pending", &WorkerCore::pending)
        .def(
            "own_part",
            [](LoneCore &self, std::uint32_t lane, std::uint32_t seq) {
                return bytes_of(self.own_part(lane, seq));
            },
            nb::arg("lane"), nb::arg("seq"))
        .def(
            "put_result",
            [](LoneCore &self, std::uint32_t lane, std::uint32_t seq, const nb::bytes &data,
               bool non_finite) {
                self.put_result(lane, seq, data.data(), data.size(), non_finite);
            },
            nb::arg("lane"), nb::arg("seq"), nb::arg("data"), nb::arg("non_finite") = false)
        .def_prop_ro("stall", [](const LoneCore &self) { return self.stall(); })
        .def("settle_resends", &WorkerCore::settle_resends, nb::arg("now_ns"))
        .def_prop_ro("mismatch", [](const LoneCore &self) { return self.mismatch(); })
        .def_prop_ro("corruption", [](const LoneCore &self) { return self.corruption(); })
        .def_prop_ro("agreed", &WorkerCore::agreed)
        .def_prop_ro("counters", [](const LoneCore &self) { return self.counters(); })
        .def_prop_ro("srtt_ns",
                     [](const LoneCore &self) { return self.recovery().rtt().srtt_ns(); })
        .def_prop_ro("rto_ns",
                     [](const LoneCore &self) { return self.recovery().rtt().timeout_ns(); })
        .def_prop_ro("window", &WorkerCore::window)
        .def_prop_ro("first_lane", &WorkerCore::first_lane)
        .def_prop_ro("lane_count", &WorkerCore::lane_count)
        .def_prop_ro("in_flight", &WorkerCore::in_flight)
        .def_prop_ro("in_flight_limit", &WorkerCore::in_flight_limit);
}

}  // namespace ina::host
