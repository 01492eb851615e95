// Python bindings of flows: a part of ina._native.sim, described in ina/_native/sim.pyi.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "common/bind_fields.hpp"
#include "sim/flows/cubic.hpp"
#include "sim/flows/traffic.hpp"
#include "sim/flows/udp_stream.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace ina::sim {
namespace {

void bind_tcp(nb::module_ &m) {
    nb::enum_<TcpAlgorithm>(m, "TcpAlgorithm")
        .value("CUBIC", TcpAlgorithm::kCubic)
        .value("DCTCP", TcpAlgorithm::kDctcp);
    nb::class_<TcpConfig>(m, "TcpConfig")
        .def("__init__", &init_by_name<TcpConfig>)
        .def_rw("algorithm", &TcpConfig::algorithm)
        .def_rw("ecn", &TcpConfig::ecn)
        .def_rw("dscp", &TcpConfig::dscp)
        .def_rw("mss_bytes", &TcpConfig::mss_bytes)
        .def_rw("initial_window_segments", &TcpConfig::initial_window_segments)
        .def_rw("receive_window_bytes", &TcpConfig::receive_window_bytes)
        .def_rw("initial_rto_ns", &TcpConfig::initial_rto_ns)
        .def_rw("min_rto_ns", &TcpConfig::min_rto_ns)
        .def_rw("max_rto_ns", &TcpConfig::max_rto_ns)
        .def_rw("delayed_ack_ns", &TcpConfig::delayed_ack_ns)
        .def_rw("most_timeouts", &TcpConfig::most_timeouts);
    nb::class_<TcpSender>(m, "TcpSender")
        .def_prop_ro("window_bytes", [](const TcpSender &self) { return self.window().bytes(); })
        .def_prop_ro("threshold_bytes",
                     [](const TcpSender &self) { return self.window().threshold_bytes(); })
        .def_prop_ro("in_flight_bytes", &TcpSender::in_flight_bytes)
        .def_prop_ro("srtt_ns", &TcpSender::srtt_ns)
        .def_prop_ro("rto_ns", &TcpSender::rto_ns)
        .def_prop_ro("retransmissions",
                     [](const TcpSender &self) { return self.counters().retransmissions; })
        .def_prop_ro("recoveries", [](const TcpSender &self) { return self.counters().recoveries; })
        .def_prop_ro("timeouts", [](const TcpSender &self) { return self.counters().timeouts; })
        .def_prop_ro("ecn_reductions",
                     [](const TcpSender &self) { return self.counters().ecn_reductions; });
    m.def("cubic_curve", &Cubic::curve, "since_s"_a, "k_s"_a, "most_segments"_a);
    m.def("cubic_back_s", &Cubic::back_s, "most_segments"_a, "window_segments"_a);
}

void bind_traffic(nb::module_ &m) {
    nb::class_<TrafficConfig>(m, "TrafficConfig")
        .def("__init__", &init_by_name<TrafficConfig>)
        .def_rw("tcp", &TrafficConfig::tcp)
        .def_rw("start_ns", &TrafficConfig::start_ns)
        .def_rw("stop_ns", &TrafficConfig::stop_ns)
        .def_rw("most_flows", &TrafficConfig::most_flows)
        .def_rw("mean_gap_ns", &TrafficConfig::mean_gap_ns)
        .def_rw("rounds", &TrafficConfig::rounds)
        .def_rw("period_ns", &TrafficConfig::period_ns);
    nb::class_<FlowRecord>(m, "FlowRecord")
        .def_ro("number", &FlowRecord::number)
        .def_ro("source", &FlowRecord::source)
        .def_ro("destination", &FlowRecord::destination)
        .def_ro("bytes", &FlowRecord::bytes)
        .def_ro("started_ns", &FlowRecord::started_ns)
        .def_ro("done_ns", &FlowRecord::done_ns)
        .def_ro("segments", &FlowRecord::segments)
        .def_ro("retransmissions", &FlowRecord::retransmissions)
        .def_ro("timeouts", &FlowRecord::timeouts)
        .def_ro("marked_packets", &FlowRecord::marked_packets);
    nb::class_<Traffic>(m, "Traffic")
        .def_prop_ro("started_flows", &Traffic::started_flows)
        .def_prop_ro("active_flows", &Traffic::active_flows)
        .def("take_records", &Traffic::take_records)
        .def("progress", &Traffic::progress)
        .def("sender", &Traffic::sender, "number"_a, nb::rv_policy::reference_internal);
}

void bind_udp(nb::module_ &m) {
    nb::class_<UdpStreamConfig>(m, "UdpStreamConfig")
        .def("__init__", &init_by_name<UdpStreamConfig>)
        .def_rw("mean_gap_ns", &UdpStreamConfig::mean_gap_ns)
        .def_rw("is_poisson", &UdpStreamConfig::is_poisson)
        .def_rw("payload_bytes", &UdpStreamConfig::payload_bytes)
        .def_rw("dscp", &UdpStreamConfig::dscp)
        .def_rw("start_ns", &UdpStreamConfig::start_ns)
        .def_rw("stop_ns", &UdpStreamConfig::stop_ns);
    nb::class_<UdpStreamCounters>(m, "UdpStreamCounters")
        .def_ro("sent_packets", &UdpStreamCounters::sent_packets)
        .def_ro("received_packets", &UdpStreamCounters::received_packets)
        .def_ro("received_bytes", &UdpStreamCounters::received_bytes)
        .def_ro("delay_ns", &UdpStreamCounters::delay_ns)
        .def_ro("longest_delay_ns", &UdpStreamCounters::longest_delay_ns);
    nb::class_<UdpStream>(m, "UdpStream").def_prop_ro("counters", [](const UdpStream &self) {
        return self.counters();
    });
}

}  // namespace

void bind_flows(nb::module_ &m) {
    bind_tcp(m);
    bind_traffic(m);
    bind_udp(m);
    m.def(
        "add_traffic",
        [](Network &network, const std::string &name, const TrafficConfig &config,
           const std::vector<std::pair<double, double>> &sizes, const std::vector<Host *> &sources,
           const std::vector<Host *> &destinations) {
            std::vector<FlowSizes::Point> points;
            for (const auto &[bytes, share] : sizes) points.push_back({bytes, share});
            return network.keep(std::make_unique<Traffic>(
                &network, name, config, FlowSizes(std::move(points)), sources, destinations));
        },
        "network"_a, "name"_a, "config"_a, "sizes"_a, "sources"_a, "destinations"_a,
        nb::rv_policy::reference, nb::keep_alive<0, 1>());
    m.def(
        "add_udp_stream",
        [](Network &network, const std::string &name, const UdpStreamConfig &config, Host *source,
           Host *destination) {
            return network.keep(
                std::make_unique<UdpStream>(&network, name, config, source, destination));
        },
        "network"_a, "name"_a, "config"_a, "source"_a, "destination"_a, nb::rv_policy::reference,
        nb::keep_alive<0, 1>());
}

}  // namespace ina::sim
