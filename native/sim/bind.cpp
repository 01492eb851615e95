// Python bindings of the virtual network: ina._native.sim, described in ina/_native/sim.pyi.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "common/bind_fields.hpp"
#include "host/bind.hpp"
#include "sim/network.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace ina::sim {

void bind_flows(nb::module_ &m);  // sim/flows/bind_flows.cpp

namespace {

// A Python function from a frame's bytes to those that arrive; None: it is lost.
Tap python_tap(nb::callable function) {
    return [function = std::move(function)](Frame *frame) {
        const nb::gil_scoped_acquire locked;
        const nb::object found = function(nb::bytes(frame->data(), frame->bytes()));
        if (found.is_none()) return false;
        const auto bytes = nb::cast<nb::bytes>(found);
        if (bytes.size() > FramePool::kMostBytes) throw nb::value_error("no frame is so long");
        frame->assign(static_cast<const std::uint8_t *>(bytes.data()), bytes.size());
        return true;
    };
}

void bind_configs(nb::module_ &m) {
    nb::enum_<Marking>(m, "Marking")
        .value("NONE", Marking::kNone)
        .value("STEP", Marking::kStep)
        .value("RED", Marking::kRed);
    nb::class_<QueueConfig>(m, "QueueConfig")
        .def("__init__", &init_by_name<QueueConfig>)
        .def_rw("limit_bytes", &QueueConfig::limit_bytes)
        .def_rw("marking", &QueueConfig::marking)
        .def_rw("mark_bytes", &QueueConfig::mark_bytes)
        .def_rw("red_least_bytes", &QueueConfig::red_least_bytes)
        .def_rw("red_most_bytes", &QueueConfig::red_most_bytes)
        .def_rw("red_probability", &QueueConfig::red_probability)
        .def_rw("red_weight", &QueueConfig::red_weight)
        .def_rw("urgent_dscp", &QueueConfig::urgent_dscp);
    nb::class_<LinkConfig>(m, "LinkConfig")
        .def("__init__", &init_by_name<LinkConfig>)
        .def_rw("bits_per_s", &LinkConfig::bits_per_s)
        .def_rw("wire_gap_bytes", &LinkConfig::wire_gap_bytes)
        .def_rw("burst_bytes", &LinkConfig::burst_bytes)
        .def_rw("delay_ns", &LinkConfig::delay_ns)
        .def_rw("jitter_ns", &LinkConfig::jitter_ns)
        .def_rw("loss", &LinkConfig::loss)
        .def_rw("bad_from", &LinkConfig::bad_from)
        .def_rw("bad_to", &LinkConfig::bad_to)
        .def_rw("bad_loss", &LinkConfig::bad_loss)
        .def_rw("duplication", &LinkConfig::duplication)
        .def_rw("reordering", &LinkConfig::reordering)
        .def_rw("reordering_ns", &LinkConfig::reordering_ns)
        .def_rw("corruption", &LinkConfig::corruption)
        .def_rw("frame_check", &LinkConfig::frame_check);
    nb::class_<SwitchSetup>(m, "SwitchSetup")
        .def("__init__", &init_by_name<SwitchSetup>)
        .def_rw("packet_cost_ns", &SwitchSetup::packet_cost_ns)
        .def_prop_rw(
            "wake_ns", [](const SwitchSetup &self) { return self.wake.least_ns; },
            [](SwitchSetup &self, std::int64_t least_ns) { self.wake.least_ns = least_ns; })
        .def_prop_rw(
            "wake_jitter_ns", [](const SwitchSetup &self) { return self.wake.jitter_ns; },
            [](SwitchSetup &self, std::int64_t jitter_ns) { self.wake.jitter_ns = jitter_ns; })
        .def_rw("loss", &SwitchSetup::loss)
        .def_rw("trains", &SwitchSetup::trains);
    nb::class_<WorkerSetup>(m, "WorkerSetup")
        .def("__init__", &init_by_name<WorkerSetup>)
        .def_rw("own", &WorkerSetup::own)
        .def_rw("to", &WorkerSetup::to)
        .def_rw("results", &WorkerSetup::results)
        .def_rw("tos", &WorkerSetup::tos)
        .def_rw("pair", &WorkerSetup::pair)
        .def_rw("ring", &WorkerSetup::ring)
        .def_rw("packet_cost_ns", &WorkerSetup::packet_cost_ns)
        .def_rw("kibibyte_cost_ns", &WorkerSetup::kibibyte_cost_ns)
        .def_rw("buffer_bytes", &WorkerSetup::buffer_bytes)
        .def_rw("trains", &WorkerSetup::trains)
        .def_prop_rw(
            "wake_ns", [](const WorkerSetup &self) { return self.wake.least_ns; },
            [](WorkerSetup &self, std::int64_t least_ns) { self.wake.least_ns = least_ns; })
        .def_prop_rw(
            "wake_jitter_ns", [](const WorkerSetup &self) { return self.wake.jitter_ns; },
            [](WorkerSetup &self, std::int64_t jitter_ns) { self.wake.jitter_ns = jitter_ns; })
        .def_rw("max_in_flight", &WorkerSetup::max_in_flight)
        .def_rw("shares", &WorkerSetup::shares)
        .def_rw("halts", &WorkerSetup::halts);
}

void bind_trace(nb::module_ &m) {
    nb::enum_<Fate>(m, "Fate")
        .value("ARRIVES", Fate::kArrives)
        .value("LOST", Fate::kLost)
        .value("CORRUPTED", Fate::kCorrupted)
        .value("LINK_DOWN", Fate::kLinkDown)
        .value("QUEUE_FULL", Fate::kQueueFull);
    nb::class_<TraceRecord>(m, "TraceRecord")
        .def_ro("port", &TraceRecord::port)
        .def_ro("fate", &TraceRecord::fate)
        .def_ro("sent_ns", &TraceRecord::sent_ns)
        .def_ro("arrives_ns", &TraceRecord::arrives_ns)
        .def_ro("frame_bytes", &TraceRecord::bytes)
        .def_prop_ro("head", [](const TraceRecord &self) {
            return nb::bytes(self.head, std::min<std::size_t>(self.bytes, TraceRecord::kHeadBytes));
        });
    nb::class_<Trace>(m, "Trace")
        .def(nb::init<std::size_t, const std::string &>(), "most_records"_a = 0, "pcap"_a = "")
        .def("flush", &Trace::flush)
        .def_prop_ro("ports", &Trace::ports)
        .def("records", &Trace::records);
}

void bind_nodes(nb::module_ &m) {
    nb::class_<PortCounters>(m, "PortCounters")
        .def_ro("offered_packets", &PortCounters::offered_packets)
        .def_ro("arrived_packets", &PortCounters::arrived_packets)
        .def_ro("full_packets", &PortCounters::full_packets)
        .def_ro("lost_packets", &PortCounters::lost_packets)
        .def_ro("corrupted_packets", &PortCounters::corrupted_packets)
        .def_ro("duplicated_packets", &PortCounters::duplicated_packets)
        .def_ro("marked_packets", &PortCounters::marked_packets)
        .def_ro("sent_packets", &PortCounters::sent_packets)
        .def_ro("sent_bytes", &PortCounters::sent_bytes)
        .def_ro("waited_ns", &PortCounters::waited_ns)
        .def_ro("longest_bytes", &PortCounters::longest_bytes);
    nb::class_<Port>(m, "Port")
        .def_prop_ro("name", &Port::name)
        .def_prop_ro("counters", [](const Port &self) { return self.counters(); })
        .def_prop_ro("waiting_packets", &Port::waiting_packets)
        .def_prop_ro("waiting_bytes", &Port::waiting_bytes)
        .def_prop_rw("up", &Port::is_up, &Port::set_up)
        .def_prop_rw(
            "link", [](const Port &self) { return self.link(); }, &Port::set_link)
        .def_prop_rw(
            "queue", [](const Port &self) { return self.queue(); }, &Port::set_queue)
        .def(
            "set_tap",
            [](Port &self, std::optional<nb::callable> tap) {
                self.set_tap(tap ? python_tap(std::move(*tap)) : Tap());
            },
            "tap"_a.none());
    nb::class_<Node>(m, "Node");
    nb::class_<Bridge, Node>(m, "Bridge")
        .def("set_route", &Bridge::set_route, "mac"_a, "ports"_a)
        .def_prop_ro("unrouted_packets", &Bridge::unrouted_packets);
    nb::class_<P4SwitchCounters>(m, "P4SwitchCounters")
        .def_ro("received_packets", &P4SwitchCounters::received_packets)
        .def_ro("off_packets", &P4SwitchCounters::off_packets)
        .def_ro("sent_packets", &P4SwitchCounters::sent_packets)
        .def_ro("unknown_port_packets", &P4SwitchCounters::unknown_port_packets)
        .def_ro("to_controller_packets", &P4SwitchCounters::to_controller_packets)
        .def_ro("loss_in_packets", &P4SwitchCounters::loss_in_packets)
        .def_ro("loss_out_packets", &P4SwitchCounters::loss_out_packets);
    nb::class_<P4Switch, Node>(m, "P4Switch")
        .def(
            "set_pipeline",
            [](P4Switch &self, std::uintptr_t pipeline, std::uintptr_t state) {
                self.set_pipeline(reinterpret_cast<const ina_pipeline *>(pipeline),
                                  reinterpret_cast<void *>(state));
            },
            "pipeline"_a, "state"_a)
        .def("clear_queues", &P4Switch::clear_queues)
        .def_prop_ro("counters", [](const P4Switch &self) { return self.counters(); });
    nb::class_<Host, Node>(m, "Host")
        .def_prop_ro("address", &Host::address)
        .def_prop_ro("unwanted_packets", &Host::unwanted_packets);
}

void bind_worker(nb::module_ &m) {
    nb::enum_<WorkerEvent::Kind>(m, "WorkerEvent")
        .value("DONE", WorkerEvent::Kind::kDone)
        .value("STALLED", WorkerEvent::Kind::kStalled)
        .value("MISMATCH", WorkerEvent::Kind::kMismatch)
        .value("CORRUPTED", WorkerEvent::Kind::kCorrupted)
        .value("BREACH", WorkerEvent::Kind::kBreach);
    nb::class_<Worker, host::TransportEngine>(m, "Worker")
        .def_prop_ro("name", &Worker::name)
        .def("pause", &Worker::pause, "until_ns"_a)
        .def("crash", &Worker::crash)
        .def("leave_group", &Worker::leave_group)
        .def_prop_ro("alive", &Worker::is_alive)
        .def_prop_ro("buffer_full_packets", &Worker::buffer_full_packets)
        .def_prop_ro("damaged_packets", &Worker::damaged_packets)
        .def_prop_ro("busy_ns", &Worker::busy_ns)
        .def_prop_ro("breach", &Worker::breach)
        .def_prop_ro("moderation_ns", &Worker::moderation_ns)
        .def_prop_ro("counters", [](const Worker &self) { return self.stats().worker; })
        .def_prop_ro("window", [](const Worker &self) { return self.stats().window; })
        .def_prop_ro("in_flight", [](const Worker &self) { return self.stats().in_flight; })
        .def_prop_ro("in_flight_limit",
                     [](const Worker &self) { return self.stats().in_flight_limit; });
}

}  // namespace

void bind(nb::module_ &m) {
    m.doc() = "The virtual network of ina.sim.";
    bind_configs(m);
    bind_trace(m);
    bind_nodes(m);
    bind_worker(m);
    const auto inside = nb::rv_policy::reference_internal;
    nb::class_<Network>(m, "Network")
        .def(nb::init<std::uint64_t>(), "seed"_a)
        .def("add_bridge", &Network::add_bridge, "name"_a, inside)
        .def("add_switch", &Network::add_switch, "name"_a, "cpu_port"_a, "setup"_a, inside)
        .def("add_host", &Network::add_host, "address"_a, inside)
        .def(
            "connect",
            [](Network &self, Node *from, std::uint32_t from_port, Node *to, std::uint32_t to_port,
               const std::string &there, const QueueConfig &queue, const LinkConfig &link,
               const std::string &back, const QueueConfig &queue_back,
               const LinkConfig &link_back) {
                return self.connect(from, from_port, to, to_port, {there, queue, link},
                                    {back, queue_back, link_back});
            },
            "from_node"_a, "from_port"_a, "to_node"_a, "to_port"_a, "there"_a, "queue"_a, "link"_a,
            "back"_a, "queue_back"_a, "link_back"_a, inside)
        .def("add_worker", &Network::add_worker, "host"_a, "name"_a, "setup"_a, "config"_a,
             "window"_a, inside)
        .def("run", &Network::run, "until_ns"_a)
        .def("take_notices",
             [](Network &self) {
                 nb::list notices;
                 for (const Notice &notice : self.take_notices()) {
                     notices.append(nb::make_tuple(
                         notice.at_ns, nb::cast(notice.worker, nb::rv_policy::reference),
                         notice.event.kind, notice.event.tensor));
                 }
                 return notices;
             })
        .def_prop_ro("now_ns", &Network::now_ns)
        .def_prop_ro("next_ns", [](Network &self) { return self.engine().next_ns(); })
        .def_prop_ro("happened", [](Network &self) { return self.engine().happened(); })
        .def_prop_ro("hops", &Network::hops)
        .def("set_trace", &Network::set_trace, "trace"_a.none());
    bind_flows(m);
}

}  // namespace ina::sim
