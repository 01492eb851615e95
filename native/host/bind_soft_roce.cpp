// Python bindings of the transports that speak RoCEv2 in this process.
#include <nanobind/nanobind.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <utility>

#include "common/bind_fields.hpp"
#include "host/bind_transport.hpp"
#include "host/channel/ring_channel.hpp"
#include "host/channel/soft_roce_channel.hpp"
#include "host/channel/udp_channel.hpp"

namespace nb = nanobind;

namespace ina::host {

void bind_soft_roce(nb::module_ &m, BoundTransport &transport) {
    nb::class_<ReliableLimits>(m, "ReliableLimits")
        .def("__init__", &init_by_name<ReliableLimits>)
        .def_rw("timeout_ns", &ReliableLimits::timeout_ns)
        .def_rw("retries", &ReliableLimits::retries);
    nb::class_<RingEnds>(m, "RingEnds")
        .def("__init__", &init_by_name<RingEnds>)
        .def_rw("own", &RingEnds::own)
        .def_rw("next", &RingEnds::next)
        .def_rw("previous", &RingEnds::previous)
        .def_rw("own_out", &RingEnds::own_out)
        .def_rw("own_in", &RingEnds::own_in)
        .def_rw("next_in", &RingEnds::next_in)
        .def_rw("previous_out", &RingEnds::previous_out)
        .def_rw("first_psn", &RingEnds::first_psn)
        .def_rw("limits", &RingEnds::limits);
    nb::class_<SoftRoceEnds>(m, "SoftRoceEnds")
        .def("__init__", &init_by_name<SoftRoceEnds>)
        .def_rw("own", &SoftRoceEnds::own)
        .def_rw("own_qp", &SoftRoceEnds::own_qp)
        .def_rw("node", &SoftRoceEnds::node)
        .def_rw("node_qp", &SoftRoceEnds::node_qp);

    transport
        .def_static(
            "soft_roce",
            [](int fd, const SoftRoceEnds &ends, bool is_on_wire, const WorkerConfig &config,
               int receive_buffer_bytes, const TransportOptions &options) {
                auto udp = std::make_unique<UdpChannel>(fd, receive_buffer_bytes, !is_on_wire);
                auto channel = std::make_unique<SoftRoceChannel>(std::move(udp), ends, is_on_wire);
                return std::make_unique<OwnedTransport>(std::move(channel), config, options);
            },
            nb::arg("fd"), nb::arg("ends"), nb::arg("is_on_wire"), nb::arg("config"),
            nb::arg("receive_buffer_bytes"), nb::arg("options") = TransportOptions{})
        .def_static(
            "soft_ring",
            [](int fd, const RingEnds &ends, const WorkerConfig &config, int receive_buffer_bytes,
               const TransportOptions &options) {
                auto channel = std::make_unique<RingChannel>(fd, ends, window_of(config),
                                                             receive_buffer_bytes);
                return std::make_unique<OwnedTransport>(std::move(channel), config, options);
            },
            nb::arg("fd"), nb::arg("ends"), nb::arg("config"), nb::arg("receive_buffer_bytes"),
            nb::arg("options") = TransportOptions{});
}

}  // namespace ina::host
