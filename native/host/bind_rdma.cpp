// Python bindings of RDMA devices: what there is, and a queue pair with what a worker does to it.
#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <poll.h>

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "host/bind.hpp"
#include "host/channel/rc_ring_channel.hpp"
#include "host/channel/roce_channel.hpp"
#include "host/channel/uc_queue.hpp"
#include "host/channel/verbs.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace ina::host {
namespace {

using Unlocked = nb::call_guard<nb::gil_scoped_release>;

constexpr std::size_t kBeforeHeader = 32;  // of a frame

template <typename Any>
void check_open(const Any &channel) {
    if (!channel.is_open()) throw std::invalid_argument("the queue pair is closed");
}

// A message for each frame, in order. Throws std::invalid_argument.
void send(RoceChannel &channel, const std::vector<nb::bytes> &messages) {
    check_open(channel);
    const PacketMemory memory = channel.packet_memory();
    if (messages.size() > memory.frames) throw std::invalid_argument("more messages than frames");
    std::vector<PacketView> views;
    for (const nb::bytes &message : messages) {
        if (message.size() > memory.stride_bytes - kBeforeHeader) {
            throw std::invalid_argument("a message longer than its frame");
        }
        std::uint8_t *const at = memory.base + memory.stride_bytes * views.size() + kBeforeHeader;
        std::memcpy(at, message.data(), message.size());
        views.push_back({at, message.size()});
    }
    channel.send(views.data(), views.size(), views.size(), 0);
}

void send_round(RcRingChannel &channel, const std::vector<nb::bytes> &messages) {
    check_open(channel);
    std::vector<PacketView> views;
    for (const nb::bytes &message : messages) {
        views.push_back({reinterpret_cast<const std::uint8_t *>(message.data()), message.size()});
    }
    channel.send(views.data(), views.size(), views.size(), 0);
}

template <typename Any>
std::vector<nb::bytes> receive(Any &channel, int timeout_ms) {
    check_open(channel);
    std::vector<Arrival> arrivals;
    if (channel.prepare_sleep(1)) {
        const nb::gil_scoped_release unlocked;
        pollfd entry{channel.fd(), POLLIN, 0};
        (void)::poll(&entry, 1, timeout_ms);
    }
    channel.receive(&arrivals);
    std::vector<nb::bytes> messages;
    for (const Arrival &arrival : arrivals) messages.emplace_back(arrival.data, arrival.bytes);
    channel.release();
    return messages;
}

void bind_rc_ring(nb::module_ &m) {
    nb::class_<RcRingPath>(m, "RcRingPath")
        .def("__init__", &init_by_name<RcRingPath>)
        .def_rw("next_ipv4", &RcRingPath::next_ipv4)
        .def_rw("previous_ipv4", &RcRingPath::previous_ipv4)
        .def_rw("next_in", &RcRingPath::next_in)
        .def_rw("previous_out", &RcRingPath::previous_out)
        .def_rw("first_psn", &RcRingPath::first_psn)
        .def_rw("traffic_class", &RcRingPath::traffic_class)
        .def_rw("timeout", &RcRingPath::timeout)
        .def_rw("retries", &RcRingPath::retries);
    nb::class_<RcRing>(m, "RcRing")
        .def(
            "__init__",
            [](RcRing *self, const std::string &device, std::uint8_t port, std::uint8_t gid_index,
               std::uint32_t lanes, std::uint32_t message_bytes) {
                new (self) RcRing(RcRingPlace{{device, port, gid_index}, lanes, message_bytes});
            },
            "device"_a, "port"_a, "gid_index"_a, "lanes"_a, "message_bytes"_a)
        .def("connect", &RcRing::connect, "path"_a, Unlocked())
        .def("close", &RcRing::close)
        .def_prop_ro("out_numbers", &RcRing::out_numbers)
        .def_prop_ro("in_numbers", &RcRing::in_numbers);

    nb::class_<RcRingChannel>(m, "RcRingChannel")
        .def(nb::init<std::shared_ptr<RcRing>, std::uint32_t>(), "ring"_a, "lanes"_a)
        .def("send", &send_round, "messages"_a)
        .def("receive", &receive<RcRingChannel>, "timeout_ms"_a)
        .def("owes", &RcRingChannel::owes)
        .def_prop_ro("fd", &RcRingChannel::fd)
        .def_prop_ro("counters", [](const RcRingChannel &self) { return self.counters(); })
        .def("close", &RcRingChannel::close);
}

}  // namespace

void bind_rdma(nb::module_ &m) {
    nb::class_<verbs::GidInfo>(m, "RdmaGid")
        .def_ro("index", &verbs::GidInfo::index)
        .def_ro("type", &verbs::GidInfo::type)
        .def_ro("address", &verbs::GidInfo::address)
        .def_ro("ipv4", &verbs::GidInfo::ipv4)
        .def_ro("interface_index", &verbs::GidInfo::interface_index);
    nb::class_<verbs::PortInfo>(m, "RdmaPort")
        .def_ro("number", &verbs::PortInfo::number)
        .def_ro("is_active", &verbs::PortInfo::is_active)
        .def_ro("is_ethernet", &verbs::PortInfo::is_ethernet)
        .def_ro("active_mtu_bytes", &verbs::PortInfo::active_mtu_bytes)
        .def_ro("max_mtu_bytes", &verbs::PortInfo::max_mtu_bytes)
        .def_ro("gids", &verbs::PortInfo::gids);
    nb::class_<verbs::DeviceInfo>(m, "RdmaDevice")
        .def_ro("name", &verbs::DeviceInfo::name)
        .def_ro("trouble", &verbs::DeviceInfo::trouble)
        .def_ro("ports", &verbs::DeviceInfo::ports);
    m.def("rdma_devices", &verbs::devices, Unlocked());
    m.attr("GID_ROCE_V1") = verbs::kGidRoceV1;
    m.attr("GID_ROCE_V2") = verbs::kGidRoceV2;

    nb::class_<UcQueue>(m, "UcQueue")
        .def(
            "__init__",
            [](UcQueue *self, const std::string &device, std::uint8_t port, std::uint8_t gid_index,
               std::uint32_t packets, std::uint32_t message_bytes) {
                new (self) UcQueue(UcPlace{{device, port, gid_index}, packets, message_bytes});
            },
            "device"_a, "port"_a, "gid_index"_a, "packets"_a, "message_bytes"_a)
        .def(
            "connect",
            [](UcQueue &self, std::uint32_t ipv4, std::uint32_t number, std::uint32_t first_psn,
               std::uint8_t traffic_class) {
                self.connect({ipv4, number, first_psn, 0, traffic_class});
            },
            "ipv4"_a, "number"_a, "first_psn"_a, "traffic_class"_a, Unlocked())
        .def("close", &UcQueue::close)
        .def_prop_ro("number", &UcQueue::number)
        .def_prop_ro("path_mtu_bytes", &UcQueue::path_mtu_bytes);

    nb::class_<RoceChannel>(m, "RoceChannel")
        .def(nb::init<std::shared_ptr<UcQueue>>(), "queue"_a)
        .def("send", &send, "messages"_a)
        .def("receive", &receive<RoceChannel>, "timeout_ms"_a)
        .def_prop_ro("fd", &RoceChannel::fd)
        .def_prop_ro("counters", [](const RoceChannel &self) { return self.counters(); })
        .def("close", &RoceChannel::close);
    bind_rc_ring(m);
}

}  // namespace ina::host
