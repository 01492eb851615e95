// Python bindings of native/host: the transport here, the rest in bind_core.cpp.
#include "host/bind.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <utility>

#include "host/bind_transport.hpp"
#include "host/channel/rc_ring_channel.hpp"
#include "host/channel/roce_channel.hpp"
#include "host/channel/shm_channel.hpp"
#include "host/channel/udp_channel.hpp"

namespace nb = nanobind;

namespace ina::host {
namespace {

// Without the interpreter's lock: everything that waits or takes the transport's own locks.
using Unlocked = nb::call_guard<nb::gil_scoped_release>;

void bind_operations(nb::module_ &m) {
    nb::enum_<OperationState>(m, "OperationState")
        .value("PENDING", OperationState::kPending)
        .value("DONE", OperationState::kDone)
        .value("FAILED", OperationState::kFailed)
        .value("CLOSED", OperationState::kClosed);

    nb::class_<Operation>(m, "Operation")
        .def_prop_ro("id", &Operation::id)
        .def_prop_ro("state", &Operation::state)
        .def("wait", &Operation::wait, nb::arg("timeout_ns"), Unlocked())
        .def("watch", &Operation::watch, Unlocked());

    nb::class_<ChannelCounters>(m, "ChannelCounters")
        .def_ro("send_calls", &ChannelCounters::send_calls)
        .def_ro("receive_calls", &ChannelCounters::receive_calls)
        .def_ro("refused", &ChannelCounters::refused)
        .def_ro("unreachable", &ChannelCounters::unreachable)
        .def_ro("send_drops", &ChannelCounters::send_drops)
        .def_ro("shared_packets", &ChannelCounters::shared_packets)
        .def_ro("damaged", &ChannelCounters::damaged)
        .def_ro("spent", &ChannelCounters::spent);

    nb::class_<RhythmCounters>(m, "RhythmCounters")
        .def_ro("busy_ns", &RhythmCounters::busy_ns)
        .def_ro("tail_ns", &RhythmCounters::tail_ns)
        .def_ro("step_operations", &RhythmCounters::step_operations);

    nb::class_<Rhythm>(m, "Rhythm")
        .def(nb::init<>())
        .def("submitted", &Rhythm::submitted, nb::arg("elems"), nb::arg("now_ns"))
        .def("ended", &Rhythm::ended, nb::arg("operations"), nb::arg("now_ns"))
        .def("counters", &Rhythm::counters, nb::arg("now_ns"));
}

void bind_stats(nb::module_ &m) {
    nb::class_<EngineStats>(m, "EngineStats")
        .def_ro("worker", &EngineStats::worker)
        .def_ro("rhythm", &EngineStats::rhythm)
        .def_ro("srtt_ns", &EngineStats::srtt_ns)
        .def_ro("shortest_ns", &EngineStats::shortest_ns)
        .def_ro("mean_ns", &EngineStats::mean_ns)
        .def_ro("rto_ns", &EngineStats::rto_ns)
        .def_ro("window", &EngineStats::window)
        .def_ro("in_flight_limit", &EngineStats::in_flight_limit)
        .def_ro("in_flight", &EngineStats::in_flight)
        .def_ro("refused", &EngineStats::refused)
        .def_ro("refused_since_result", &EngineStats::refused_since_result)
        .def_ro("spent", &EngineStats::spent);

    nb::class_<TransportOptions>(m, "TransportOptions")
        .def("__init__", &init_by_name<TransportOptions>)
        .def_rw("max_in_flight", &TransportOptions::max_in_flight)
        .def_rw("threads", &TransportOptions::threads)
        .def_rw("halts", &TransportOptions::halts)
        .def_rw("congestion", &TransportOptions::congestion);
}

void bind_remap(nb::class_<TransportEngine> &engine) {
    engine
        .def("begin_remap", &TransportEngine::begin_remap, nb::arg("config"),
             nb::arg("max_in_flight"), nb::arg("congestion"), Unlocked())
        .def("reserve", &TransportEngine::reserve, nb::arg("news_ns"), Unlocked())
        .def("cut_over", &TransportEngine::cut_over, nb::arg("first"), nb::arg("may_send"),
             Unlocked())
        .def("wait_cut", &TransportEngine::wait_cut, nb::arg("timeout_ns"), Unlocked())
        .def("end_remap", &TransportEngine::end_remap, Unlocked())
        .def("cancel_remap", &TransportEngine::cancel_remap, Unlocked());
}

void bind_frozen(nb::class_<TransportEngine> &engine) {
    engine.def("freeze", &TransportEngine::freeze, Unlocked())
        .def("mappings", &TransportEngine::mappings, Unlocked())
        .def("lane_result", &TransportEngine::lane_result, nb::arg("epoch"), nb::arg("lane"),
             Unlocked())
        .def("pending", &TransportEngine::pending, Unlocked())
        .def(
            "own_part",
            [](const TransportEngine &self, std::uint32_t epoch, std::uint32_t lane,
               std::uint32_t seq) { return bytes_of(self.own_part(epoch, lane, seq)); },
            nb::arg("epoch"), nb::arg("lane"), nb::arg("seq"))
        .def(
            "put_result",
            [](TransportEngine &self, std::uint32_t epoch, std::uint32_t lane, std::uint32_t seq,
               const nb::bytes &data, bool non_finite) {
                self.put_result(epoch, lane, seq, data.data(), data.size(), non_finite);
            },
            nb::arg("epoch"), nb::arg("lane"), nb::arg("seq"), nb::arg("data"),
            nb::arg("non_finite") = false)
        .def("end_operation", &TransportEngine::end_operation, nb::arg("operation"),
             nb::arg("done"), Unlocked());
}

// What a transport and a worker of the virtual network have alike.
void bind_engine(nb::module_ &m) {
    auto engine = nb::class_<TransportEngine>(m, "TransportEngine");
    engine
        .def(
            "submit",
            [](TransportEngine &self, std::uintptr_t in, std::uintptr_t out,
               const nb::tuple &collective) {
                const TensorRequest request = tensor_request(0, in, out, collective);
                const nb::gil_scoped_release unlocked;
                return self.submit(request);
            },
            nb::arg("address_in"), nb::arg("address_out"), nb::arg("collective"))
        .def("count_on_from", &TransportEngine::count_on_from, nb::arg("tensors"), Unlocked())
        .def("stats", &TransportEngine::stats, Unlocked())
        .def("lanes", &TransportEngine::lanes, Unlocked())
        .def("set_congestion", &TransportEngine::set_congestion, nb::arg("choice").none(),
             nb::arg("most_packets"), Unlocked())
        .def("fail", &TransportEngine::fail, Unlocked())
        .def("failure", &TransportEngine::failure, Unlocked())
        .def("mismatch", &TransportEngine::mismatch, Unlocked())
        .def("corruption", &TransportEngine::corruption, Unlocked())
        .def("wait_halted", &TransportEngine::wait_halted, nb::arg("timeout_ns"), Unlocked())
        .def_prop_ro("agreed", &TransportEngine::agreed)
        .def("owes", &TransportEngine::owes)
        .def("submissions",
             [](const TransportEngine &self) {
                 std::vector<TensorRequest> requests;
                 {
                     const nb::gil_scoped_release unlocked;
                     requests = self.submissions();
                 }
                 nb::list told;
                 for (const TensorRequest &request : requests) told.append(described(request));
                 return told;
             })
        .def("wait_watched", &TransportEngine::wait_watched, nb::arg("timeout_ns"), Unlocked());
    bind_remap(engine);
    bind_frozen(engine);
}

void bind_transport(nb::module_ &m) {
    nb::class_<TransportStats, EngineStats>(m, "TransportStats")
        .def_ro("channel", &TransportStats::channel)
        .def_ro("receive_buffer_bytes", &TransportStats::receive_buffer_bytes)
        .def_ro("gso", &TransportStats::gso)
        .def_ro("gro", &TransportStats::gro)
        .def_ro("kind", &TransportStats::kind)
        .def_ro("threads", &TransportStats::threads)
        .def_ro("queues", &TransportStats::queues)
        .def_ro("one_queue_why", &TransportStats::one_queue_why)
        .def_ro("passed_on", &TransportStats::passed_on);

    BoundTransport transport(m, "Transport");
    bind_soft_roce(m, transport);
    transport
        .def_static(
            "udp",
            [](int fd, const WorkerConfig &config, int receive_buffer_bytes,
               const TransportOptions &options, bool trains, int group_fd) {
                auto channel =
                    std::make_unique<UdpChannel>(fd, receive_buffer_bytes, trains, group_fd);
                return std::make_unique<OwnedTransport>(std::move(channel), config, options);
            },
            nb::arg("fd"), nb::arg("config"), nb::arg("receive_buffer_bytes"),
            nb::arg("options") = TransportOptions{}, nb::arg("trains") = true,
            nb::arg("group_fd") = -1)
        .def_static(
            "shm",
            [](int fd, int memory_fd, int results_fd, std::uint32_t cells,
               std::uint32_t payload_bytes, const WorkerConfig &config,
               const TransportOptions &options) {
                auto channel = std::make_unique<ShmChannel>(fd, memory_fd, results_fd,
                                                            shm::Shape{cells, payload_bytes});
                return std::make_unique<OwnedTransport>(std::move(channel), config, options);
            },
            nb::arg("fd"), nb::arg("memory_fd"), nb::arg("results_fd"), nb::arg("cells"),
            nb::arg("payload_bytes"), nb::arg("config"), nb::arg("options") = TransportOptions{})
        .def_static(
            "roce",
            [](std::shared_ptr<UcQueue> queue, const WorkerConfig &config,
               const TransportOptions &options) {
                auto channel = std::make_unique<RoceChannel>(std::move(queue));
                return std::make_unique<OwnedTransport>(std::move(channel), config, options);
            },
            nb::arg("queue"), nb::arg("config"), nb::arg("options") = TransportOptions{})
        .def_static(
            "rc_ring",
            [](std::shared_ptr<RcRing> ring, const WorkerConfig &config,
               const TransportOptions &options) {
                auto channel = std::make_unique<RcRingChannel>(std::move(ring), window_of(config));
                return std::make_unique<OwnedTransport>(std::move(channel), config, options);
            },
            nb::arg("ring"), nb::arg("config"), nb::arg("options") = TransportOptions{})
        .def("stats", &Transport::stats, Unlocked())
        .def("take_own_results", &Transport::take_own_results, Unlocked())
        .def("close", &Transport::close, Unlocked());
}

}  // namespace

void bind(nb::module_ &m) {
    m.doc() = "WorkerCore, quantisers and transports of ina.host.";
    bind_core(m);
    bind_operations(m);
    bind_stats(m);
    bind_engine(m);
    bind_transport(m);
}

}  // namespace ina::host
