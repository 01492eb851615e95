// Python bindings: ina._native.infer, described in ina/_native/infer.pyi. Memory is passed as
// addresses; the Python side keeps the arrays alive and checks that they fit.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <utility>

#include "common/bind_fields.hpp"
#include "infer/asker.hpp"
#include "infer/kernels.hpp"
#include "infer/service.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace ina::infer {
namespace {

using Unlocked = nb::call_guard<nb::gil_scoped_release>;
using Address = std::uintptr_t;

const std::int32_t *values_at(Address address) {
    return reinterpret_cast<const std::int32_t *>(address);
}

std::vector<std::int32_t> copied(Address address, std::size_t values) {
    return {values_at(address), values_at(address) + values};
}

// A node as tests drive it, with its packets as Python has them.
struct LoneNode : Node {
    using Node::Node;
    // (-1, address, UDP port, bytes) of datagrams, and (place among the sums, 0, 0, bytes) of
    // contributions.
    using Sent = std::tuple<int, std::uint32_t, std::uint16_t, nb::bytes>;

    nb::list work_now(std::int64_t now_ns) {
        nb::list sent;
        work(now_ns, [&](std::size_t at, const host::PacketView *packets, std::size_t count) {
            for (std::size_t i = 0; i < count; ++i) {
                sent.append(nb::make_tuple(static_cast<int>(at), 0, 0,
                                           nb::bytes(packets[i].data, packets[i].bytes)));
            }
        });
        for (const Leaving &packet : outbox().packets()) {
            sent.append(nb::make_tuple(-1, packet.to.ipv4, packet.to.udp_port,
                                       nb::bytes(outbox().data(packet), packet.bytes)));
        }
        outbox().clear();
        return sent;
    }
};

struct LoneClient {
    explicit LoneClient(const ClientConfig &config) : client(config, &outbox) {}

    nb::list work_now(std::int64_t now_ns) {
        client.poll(now_ns);
        nb::list sent;
        for (const Leaving &packet : outbox.packets()) {
            sent.append(nb::make_tuple(-1, packet.to.ipv4, packet.to.udp_port,
                                       nb::bytes(outbox.data(packet), packet.bytes)));
        }
        outbox.clear();
        return sent;
    }

    Outbox outbox;
    Client client;
};

// IPv4 address and UDP port.
using Address4 = std::pair<std::uint32_t, std::uint16_t>;

Peer peer_of(const Address4 &place) { return {place.first, place.second}; }

std::vector<Peer> peers_of(const std::vector<Address4> &places) {
    std::vector<Peer> peers;
    for (const Address4 &place : places) peers.push_back(peer_of(place));
    return peers;
}

std::vector<StageSums>
sums_of(const std::vector<std::pair<std::size_t, std::shared_ptr<SumEngine>>> &engines) {
    std::vector<StageSums> sums;
    for (const auto &[stage, engine] : engines) sums.push_back({stage, engine});
    return sums;
}

const std::uint8_t *octets(const nb::bytes &packet) {
    return static_cast<const std::uint8_t *>(packet.data());
}

// Python lets go of one with its lock held, for which no thread of a node's ever waits.
nb::list moments_of(Trace &trace) {
    nb::list moments;
    for (const Moment &moment : trace.take()) {
        moments.append(
            nb::make_tuple(moment.at_ns, moment.mark, moment.stage, moment.request, moment.block));
    }
    return moments;
}

void bind_values(nb::module_ &m) {
    nb::enum_<Kernel>(m, "Kernel")
        .value("INPUT", Kernel::kInput)
        .value("LINEAR", Kernel::kLinear)
        .value("RELU", Kernel::kRelu)
        .value("ADD", Kernel::kAdd)
        .value("EMBED", Kernel::kEmbed)
        .value("NEIGHBOURS", Kernel::kNeighbours)
        .value("FRONTIER", Kernel::kFrontier)
        .value("FOLD", Kernel::kFold)
        .value("ARGMAX", Kernel::kArgmax);
    nb::class_<Columns>(m, "Columns")
        .def(
            "__init__",
            [](Columns *self, std::uint32_t low, std::uint32_t high) {
                new (self) Columns{low, high};
            },
            "low"_a = 0, "high"_a = 0)
        .def_ro("low", &Columns::low)
        .def_ro("high", &Columns::high);
    nb::class_<Edge>(m, "Edge")
        .def(
            "__init__",
            [](Edge *self, std::uint16_t node, const Columns &columns) {
                new (self) Edge{node, columns};
            },
            "node"_a, "columns"_a)
        .def_ro("node", &Edge::node)
        .def_ro("columns", &Edge::columns);
    nb::class_<Graph>(m, "Graph")
        .def("__init__",
             [](Graph *self, Address first, std::size_t vertices, Address to, std::size_t edges) {
                 const auto *const begin = reinterpret_cast<const std::uint64_t *>(first);
                 const auto *const ends = reinterpret_cast<const std::uint32_t *>(to);
                 new (self) Graph{{begin, begin + vertices + 1}, {ends, ends + edges}};
             });
}

void bind_stage(nb::module_ &m) {
    nb::class_<Stage>(m, "Stage")
        .def("__init__", &init_by_name<Stage>)
        .def_rw("kernel", &Stage::kernel)
        .def_rw("is_mine", &Stage::is_mine)
        .def_rw("is_summed", &Stage::is_summed)
        .def_rw("rows_in", &Stage::rows_in)
        .def_rw("rows_out", &Stage::rows_out)
        .def_rw("columns_in", &Stage::in)
        .def_rw("columns_out", &Stage::out)
        .def_rw("own", &Stage::own)
        .def_rw("inbound", &Stage::inbound)
        .def_rw("outbound", &Stage::outbound)
        .def_rw("adds", &Stage::with)
        .def_rw("shift", &Stage::shift)
        .def_rw("low", &Stage::low)
        .def_rw("high", &Stage::high)
        .def_rw("table_width", &Stage::table_width)
        .def_rw("fanout", &Stage::fanout)
        .def_rw("seed", &Stage::seed)
        .def_rw("with_self", &Stage::with_self)
        .def_rw("is_last", &Stage::is_last)
        .def_rw("turn", &Stage::turn)
        .def_rw("turns", &Stage::turns)
        .def("set_weights",
             [](Stage &self, Address weights, std::size_t count, Address bias, std::size_t made) {
                 self.weights = copied(weights, count);
                 self.bias = copied(bias, made);
             })
        .def("set_table",
             [](Stage &self, Address table, std::size_t values, Address places, std::size_t rows) {
                 self.table = copied(table, values);
                 self.places = copied(places, rows);
             })
        .def("set_graph", [](Stage &self, const Graph &graph) {
            self.graph = std::make_shared<const Graph>(graph);
        });
}

void bind_program(nb::module_ &m) {
    nb::class_<Program>(m, "Program")
        .def("__init__", &init_by_name<Program>)
        .def_rw("key", &Program::key)
        .def_rw("plan", &Program::plan)
        .def_rw("node", &Program::node)
        .def_rw("entry", &Program::entry)
        .def_rw("members", &Program::members)
        .def_rw("ring", &Program::ring)
        .def_rw("packet_values", &Program::packet_values)
        .def_rw("low", &Program::low)
        .def_rw("high", &Program::high)
        .def_prop_rw(
            "nodes", [](const Program &self) { return self.nodes.size(); },
            [](Program &self, const std::vector<Address4> &places) {
                self.nodes = peers_of(places);
            })
        .def_rw("stages", &Program::stages);
    m.def(
        "run_kernel",
        [](const Stage &stage, Address in, Address with, Address out) {
            run(stage, values_at(in), values_at(with), reinterpret_cast<std::int32_t *>(out));
        },
        Unlocked());
    m.def(
        "finish_kernel",
        [](const Stage &stage, Address values) {
            finish(stage, reinterpret_cast<std::int32_t *>(values));
        },
        Unlocked());
}

void bind_states(nb::module_ &m) {
    nb::enum_<Fault>(m, "Fault")
        .value("NONE", Fault::kNone)
        .value("NODE_LOST", Fault::kNodeLost)
        .value("SUMS_LOST", Fault::kSumsLost)
        .value("OTHER_PLAN", Fault::kOtherPlan)
        .value("OUT_OF_RANGE", Fault::kOutOfRange);
    nb::enum_<Outcome>(m, "Outcome")
        .value("PENDING", Outcome::kPending)
        .value("DONE", Outcome::kDone)
        .value("FAILED", Outcome::kFailed)
        .value("TOO_LATE", Outcome::kTooLate);
    nb::enum_<Mark>(m, "Mark")
        .value("CAME", Mark::kCame)
        .value("RAN", Mark::kRan)
        .value("SUMMED", Mark::kSummed)
        .value("ANSWERED", Mark::kAnswered);
    nb::class_<Failure>(m, "Failure")
        .def(
            "__init__",
            [](Failure *self, Fault fault, std::uint16_t node, std::uint16_t stage) {
                new (self) Failure{fault, node, stage};
            },
            "fault"_a, "node"_a = kClient, "stage"_a = 0)
        .def_ro("fault", &Failure::fault)
        .def_ro("node", &Failure::node)
        .def_ro("stage", &Failure::stage);
    nb::class_<Status>(m, "Status")
        .def_ro("at_ns", &Status::at_ns)
        .def_ro("node", &Status::node)
        .def_ro("silent_ms", &Status::silent_ms);
    nb::class_<StagesCounters>(m, "StagesCounters")
        .def_ro("tasks", &StagesCounters::tasks)
        .def_ro("duplicates", &StagesCounters::duplicates)
        .def_ro("stale", &StagesCounters::stale)
        .def_ro("strays", &StagesCounters::strays)
        .def_ro("replays", &StagesCounters::replays)
        .def_ro("blocks", &StagesCounters::blocks);
    nb::class_<EntryCounters>(m, "EntryCounters")
        .def_ro("blocks", &EntryCounters::blocks)
        .def_ro("again", &EntryCounters::again)
        .def_ro("timeouts", &EntryCounters::timeouts)
        .def_ro("refused", &EntryCounters::refused)
        .def_ro("strays", &EntryCounters::strays);
    nb::class_<ClientCounters>(m, "ClientCounters")
        .def_ro("blocks", &ClientCounters::blocks)
        .def_ro("again", &ClientCounters::again)
        .def_ro("strays", &ClientCounters::strays)
        .def_ro("damaged", &ClientCounters::damaged);
    nb::class_<Traffic>(m, "Traffic")
        .def_ro("sent_packets", &Traffic::sent_packets)
        .def_ro("received_packets", &Traffic::received_packets)
        .def_ro("send_drops", &Traffic::send_drops)
        .def_ro("lost", &Traffic::lost)
        .def_ro("wakes", &Traffic::wakes);
}

void bind_configs(nb::module_ &m) {
    nb::class_<EntryConfig>(m, "EntryConfig")
        .def("__init__", &init_by_name<EntryConfig>)
        .def_rw("rto", &EntryConfig::rto)
        .def_rw("patience_ns", &EntryConfig::patience_ns)
        .def_rw("least_gap_ns", &EntryConfig::least_gap_ns);
    nb::class_<ClientConfig>(m, "ClientConfig")
        .def("__init__", &init_by_name<ClientConfig>)
        .def_rw("key", &ClientConfig::key)
        .def_rw("plan", &ClientConfig::plan)
        .def_rw("nonce", &ClientConfig::nonce)
        .def_prop_rw(
            "entry", [](const ClientConfig &self) { return self.entry.udp_port; },
            [](ClientConfig &self, const Address4 &place) { self.entry = peer_of(place); })
        .def_rw("packet_values", &ClientConfig::packet_values)
        .def_rw("window", &ClientConfig::window)
        .def_rw("rows_in", &ClientConfig::rows_in)
        .def_rw("columns_in", &ClientConfig::columns_in)
        .def_rw("rows_out", &ClientConfig::rows_out)
        .def_rw("columns_out", &ClientConfig::columns_out)
        .def_prop_rw(
            "nodes", [](const ClientConfig &self) { return self.nodes.size(); },
            [](ClientConfig &self, const std::vector<Address4> &places) {
                self.nodes = peers_of(places);
            })
        .def_rw("answers", &ClientConfig::answers)
        .def_rw("rto", &ClientConfig::rto);
}

void bind_cores(nb::module_ &m) {
    nb::class_<SumEngine, host::TransportEngine>(m, "SumEngine")
        .def(nb::init<const host::WorkerConfig &, std::uint32_t, const congestion::Choice &,
                      std::uint32_t, bool>(),
             "config"_a, "max_in_flight"_a, "congestion"_a, "room_packets"_a,
             "is_virtual"_a = false)
        .def("close", &SumEngine::close, Unlocked())
        .def_prop_ro("has_left", &SumEngine::has_left);
    nb::class_<LoneNode>(m, "Node")
        .def("__init__",
             [](LoneNode *self, const Program &program, const EntryConfig &entry,
                const std::vector<std::pair<std::size_t, std::shared_ptr<SumEngine>>> &engines) {
                 new (self) LoneNode(program, entry, sums_of(engines), 0);
             })
        .def(
            "receive",
            [](LoneNode &self, const Address4 &from, const nb::bytes &packet, std::int64_t now_ns) {
                self.receive(peer_of(from), octets(packet), packet.size(), now_ns);
            })
        .def("receive_result",
             [](LoneNode &self, std::size_t at, const nb::bytes &packet, std::int64_t now_ns) {
                 self.receive_result(at, octets(packet), packet.size(), now_ns, false);
             })
        .def("work", &LoneNode::work_now)
        .def("next_deadline_ns", &LoneNode::next_deadline_ns)
        .def_prop_ro("failure", [](const LoneNode &self) { return self.failure(); })
        .def_prop_ro("counters", [](const LoneNode &self) { return self.counters(); })
        .def_prop_ro("damaged", &LoneNode::damaged)
        .def_prop_ro("under_way", [](const LoneNode &self) -> std::uint64_t {
            return self.entry() == nullptr ? 0 : self.entry()->under_way();
        });
    nb::class_<LoneClient>(m, "Client")
        .def(nb::init<const ClientConfig &>())
        .def("ask",
             [](LoneClient &self, Address in, std::size_t blocks, Address out,
                std::int64_t deadline_ns) {
                 return self.client.ask(values_at(in), blocks,
                                        reinterpret_cast<std::int32_t *>(out), deadline_ns);
             })
        .def("outcome",
             [](LoneClient &self, std::uint32_t one) { return self.client.outcome(one); })
        .def("forget", [](LoneClient &self, std::uint32_t one) { self.client.forget(one); })
        .def("receive",
             [](LoneClient &self, const Address4 &from, const nb::bytes &packet,
                std::int64_t now_ns) {
                 self.client.receive(peer_of(from), octets(packet), packet.size(), now_ns);
             })
        .def("work", &LoneClient::work_now)
        .def("next_deadline_ns", [](LoneClient &self) { return self.client.next_deadline_ns(); })
        .def_prop_ro("failure", [](LoneClient &self) { return self.client.failure(); })
        .def_prop_ro("status", [](LoneClient &self) { return self.client.status(); })
        .def_prop_ro("counters", [](LoneClient &self) { return self.client.counters(); });
}

void bind_services(nb::module_ &m) {
    nb::class_<StageLink>(m, "StageLink")
        .def("__init__",
             [](StageLink *self, std::size_t stage, int fd, std::shared_ptr<SumEngine> engine) {
                 new (self) StageLink{stage, fd, std::move(engine)};
             });
    nb::class_<Service>(m, "Service")
        .def(
            "__init__",
            [](Service *self, int fd, const Program &program, const EntryConfig &entry,
               const std::vector<StageLink> &links, double loss_rate, std::uint64_t loss_seed,
               std::size_t most_moments) {
                new (self) Service(fd, program, entry, links, {loss_rate, loss_seed}, most_moments);
            },
            "fd"_a, "program"_a, "entry"_a, "links"_a, "loss_rate"_a = 0.0, "loss_seed"_a = 0,
            "most_moments"_a = 0)
        .def("fail", &Service::fail, Unlocked())
        .def("wait_failed", &Service::wait_failed, "timeout_ns"_a, Unlocked())
        .def("close", &Service::close, Unlocked())
        .def_prop_ro("failure", &Service::failure, Unlocked())
        .def_prop_ro("traffic", &Service::traffic, Unlocked())
        .def_prop_ro("thread_id", &Service::thread_id)
        .def_prop_ro("counters",
                     [](Service &self) {
                         return self.with_node([](Node &node) { return node.counters(); });
                     })
        .def_prop_ro(
            "damaged",
            [](Service &self) { return self.with_node([](Node &node) { return node.damaged(); }); })
        .def_prop_ro("entry_counters",
                     [](Service &self) -> std::optional<EntryCounters> {
                         return self.with_node([](Node &node) -> std::optional<EntryCounters> {
                             if (node.entry() == nullptr) return std::nullopt;
                             return node.entry()->counters();
                         });
                     })
        .def("take_moments", [](Service &self) {
            return self.with_node([](Node &node) { return moments_of(node.trace()); });
        });
}

void bind_asker(nb::module_ &m) {
    nb::class_<Asker>(m, "Asker")
        .def(nb::init<int, const ClientConfig &>())
        .def(
            "ask",
            [](Asker &self, Address in, std::size_t blocks, Address out, std::int64_t patience_ns) {
                return self.ask(values_at(in), blocks, reinterpret_cast<std::int32_t *>(out),
                                patience_ns);
            },
            Unlocked())
        .def("wait", &Asker::wait, "request"_a, "timeout_ns"_a, Unlocked())
        .def("forget", &Asker::forget, Unlocked())
        .def_prop_ro(
            "failure",
            [](Asker &self) { return self.with_client([](Client &one) { return one.failure(); }); })
        .def_prop_ro(
            "status",
            [](Asker &self) { return self.with_client([](Client &one) { return one.status(); }); })
        .def_prop_ro("heard_ns",
                     [](Asker &self) {
                         return self.with_client([](Client &one) { return one.heard_ns(); });
                     })
        .def_prop_ro("counters", [](Asker &self) {
            return self.with_client([](Client &one) { return one.counters(); });
        });
}

}  // namespace

void bind(nb::module_ &m) {
    bind_values(m);
    bind_stage(m);
    bind_program(m);
    bind_states(m);
    bind_configs(m);
    bind_cores(m);
    bind_services(m);
    bind_asker(m);
}

}  // namespace ina::infer
