// Python bindings of native/switch: ina._native.switch, described in ina/_native/switch.pyi.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <system_error>

#include "switch/afpacket_port.hpp"
#include "switch/frames_port.hpp"
#include "switch/pcap_port.hpp"
#include "switch/port_loop.hpp"
#include "switch/shm_port.hpp"
#include "switch/udp_port.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace ina::sw {

namespace {

nb::dict port_stats(const Port &port) {
    const PortCounters &c = port.counters();
    nb::dict stats;
    for (const auto &[name, counter] : {std::pair{"rx_packets", &c.rx_packets},
                                        {"rx_bytes", &c.rx_bytes},
                                        {"tx_packets", &c.tx_packets},
                                        {"tx_bytes", &c.tx_bytes},
                                        {"loss_in_packets", &c.loss_in_packets},
                                        {"loss_out_packets", &c.loss_out_packets},
                                        {"no_pipeline_packets", &c.no_pipeline_packets},
                                        {"malformed_packets", &c.malformed_packets},
                                        {"wrong_checksum_packets", &c.wrong_checksum_packets},
                                        {"undeliverable_packets", &c.undeliverable_packets},
                                        {"blocked_packets", &c.blocked_packets},
                                        {"failed_packets", &c.failed_packets}})
        stats[name] = counter->get();
    std::vector<std::pair<std::string, uint64_t>> extra;
    port.extra_stats(&extra);
    for (const auto &[name, value] : extra) stats[name.c_str()] = value;
    return stats;
}

nb::dict loop_stats(const PortLoop &loop) {
    const PortLoop::Stats s = loop.stats();
    nb::dict stats;
    stats["unknown_port_packets"] = s.unknown_port_packets;
    stats["oversize_packets"] = s.oversize_packets;
    stats["cpu_packets"] = s.cpu_packets;
    stats["cpu_dropped_packets"] = s.cpu_dropped_packets;
    stats["injected_packets"] = s.injected_packets;
    return stats;
}

void os_error(const std::exception_ptr &pointer, void *) {
    try {
        std::rethrow_exception(pointer);
    } catch (const std::system_error &error) {
        nb::object value = nb::make_tuple(error.code().value(), error.what());
        PyErr_SetObject(PyExc_OSError, value.ptr());
    }
}

}  // namespace

void bind(nb::module_ &m) {
    m.doc() = "Packet ports of the soft switch.";
    nb::register_exception_translator(os_error);

    nb::class_<Port>(m, "Port")
        .def_prop_ro("number", &Port::number)
        .def("set_delay", &Port::set_delay, "delay_ns"_a)
        .def("close", &Port::close)
        .def("stats", &port_stats);
    nb::class_<UdpPort, Port>(m, "UdpPort")
        .def(nb::init<uint32_t, uint32_t, uint16_t, uint16_t, double, uint64_t, int>(), "number"_a,
             "address"_a, "udp_port"_a, "frame_udp_port"_a, "loss_probability"_a, "loss_seed"_a,
             "socket_buffer_bytes"_a = 32 << 20)
        .def_prop_ro("bound", [](const UdpPort &port) {
            return std::pair<uint32_t, uint16_t>(port.bound().ipv4, port.bound().udp_port);
        });
    nb::class_<FramesPort, Port>(m, "FramesPort")
        .def(nb::init<uint32_t, uint32_t, uint16_t, double, uint64_t>(), "number"_a, "address"_a,
             "udp_port"_a, "loss_probability"_a, "loss_seed"_a)
        .def_prop_ro("bound", [](const FramesPort &port) {
            return std::pair<uint32_t, uint16_t>(port.bound().ipv4, port.bound().udp_port);
        });
    nb::class_<AfPacketPort, Port>(m, "AfPacketPort")
        .def(nb::init<uint32_t, const std::string &, double, uint64_t>(), "number"_a, "interface"_a,
             "loss_probability"_a, "loss_seed"_a);
    nb::class_<ShmPort, Port>(m, "ShmPort")
        .def(nb::init<uint32_t, const std::string &, uint16_t, double, uint64_t>(), "number"_a,
             "name"_a, "frame_udp_port"_a, "loss_probability"_a, "loss_seed"_a)
        .def("set_dscp", &ShmPort::set_dscp, "dscp"_a);
    nb::class_<PcapPort, Port>(m, "PcapPort")
        .def(nb::init<uint32_t, const std::string &, const std::string &, double, uint64_t>(),
             "number"_a, "read"_a, "write"_a, "loss_probability"_a, "loss_seed"_a);

    nb::class_<PortLoop>(m, "PortLoop")
        .def(nb::init<uint32_t>(), "cpu_port"_a)
        .def("add", &PortLoop::add, "port"_a)
        .def("start", &PortLoop::start)
        .def("stop", &PortLoop::stop, nb::call_guard<nb::gil_scoped_release>())
        .def(
            "set_pipeline",
            [](PortLoop &loop, uintptr_t pipeline, uintptr_t state) {
                loop.set_pipeline(reinterpret_cast<const ina_pipeline *>(pipeline),
                                  reinterpret_cast<void *>(state));
            },
            "pipeline"_a, "state"_a, nb::call_guard<nb::gil_scoped_release>())
        .def(
            "inject",
            [](PortLoop &loop, uint32_t port, nb::bytes packet) {
                if (packet.size() > UINT16_MAX || port >= INA_MAX_PORTS)
                    throw nb::value_error(
                        "inject: a packet of at most 65535 bytes, a port below 512");
                return loop.inject(port, std::string(packet.c_str(), packet.size()));
            },
            "port"_a, "packet"_a)
        .def(
            "next_cpu_packet",
            [](PortLoop &loop, uint64_t timeout_ns) -> nb::object {
                std::string packet;
                bool got;
                {
                    nb::gil_scoped_release release;
                    got = loop.next_cpu_packet(timeout_ns, &packet);
                }
                if (!got) return nb::none();
                return nb::bytes(packet.data(), packet.size());
            },
            "timeout_ns"_a)
        .def("stats", &loop_stats);
}

}  // namespace ina::sw
