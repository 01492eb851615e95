// Python bindings: ina._native.embed, described in ina/_native/embed.pyi. Memory is passed as
// addresses; the Python side keeps the arrays alive and checks that they fit.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tuple>
#include <type_traits>

#include "common/bind_fields.hpp"
#include "embed/batch.hpp"
#include "embed/service.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace ina::embed {
namespace {

using Unlocked = nb::call_guard<nb::gil_scoped_release>;
using Address = std::uintptr_t;

BagSource source_of(std::size_t bags, Address offsets, Address rows, Address weights) {
    return {bags, reinterpret_cast<const std::int64_t *>(offsets),
            reinterpret_cast<const std::uint32_t *>(rows),
            reinterpret_cast<const float *>(weights)};
}

float *floats(Address address) { return reinterpret_cast<float *>(address); }

// Rows that a host owns, by their numbers there, from `first` on; and the optimiser's numbers.
void copy_rows(Owner &owner, std::size_t table, std::size_t first, std::size_t count,
               Address values, Address state, bool in) {
    Shard &shard = owner.shard(table);
    if (first + count > shard.rows()) throw nb::index_error("rows that this host has not");
    for (std::size_t i = 0; i < count; ++i) {
        const auto local = static_cast<std::uint32_t>(first + i);
        const auto copy = [&](float *own, Address others, std::size_t size) {
            if (others == 0) return;
            float *const other = floats(others) + i * size;
            in ? std::copy_n(other, size, own) : std::copy_n(own, size, other);
        };
        copy(shard.row(local), values, shard.dim());
        copy(shard.state(local), state, shard.state_values());
    }
}

// Hot rows of a table, from arrays of `count` rows, values and what the optimiser keeps.
void set_hot(Node &node, std::size_t table, std::size_t count, Address rows, Address values,
             Address state) {
    node.client().hot().set(table, reinterpret_cast<const std::uint32_t *>(rows), count,
                            floats(values), floats(state), node.client().optimizer());
}

std::vector<std::uint32_t> hot_rows(Node &node, std::size_t table) {
    return node.client().hot().rows(table);
}

void read_hot(Node &node, std::size_t table, Address values, Address state) {
    const HotRows &hot = node.client().hot();
    const Shard &shard = node.owner().shard(table);
    for (std::size_t i = 0; i < hot.rows(table).size(); ++i) {
        std::copy_n(hot.values(table, i), shard.dim(), floats(values) + i * shard.dim());
        std::copy_n(hot.state(table, i), shard.state_values(),
                    floats(state) + i * shard.state_values());
    }
}

void settle_hot(Node &node) { node.settle_hot(); }

void apply_hot(Node &node, Address sums, float rate) {
    node.client().hot().apply(floats(sums), node.client().optimizer(), rate);
}

// Of rows of a table; what is looked for is marked as asked for.
void find_all(RowCache &cache, std::size_t table, std::size_t count, Address rows, Address found) {
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint32_t row = reinterpret_cast<const std::uint32_t *>(rows)[i];
        reinterpret_cast<bool *>(found)[i] = cache.find(table, row) != nullptr;
    }
}

void put_all(RowCache &cache, std::size_t table, std::size_t count, Address rows, Address values,
             std::size_t dim) {
    for (std::size_t i = 0; i < count; ++i) {
        cache.put(table, reinterpret_cast<const std::uint32_t *>(rows)[i],
                  floats(values) + i * dim);
    }
}

void owners_of(const Placement &placement, std::size_t count, Address rows, Address owners) {
    for (std::size_t i = 0; i < count; ++i) {
        reinterpret_cast<std::uint16_t *>(owners)[i] =
            placement.owner_of(reinterpret_cast<const std::uint32_t *>(rows)[i]);
    }
}

std::size_t hot_values(Node &node) { return node.client().hot().gradient_values(); }

void read_hot_gradients(Node &node, Address out) {
    node.client().hot().read_gradients(floats(out));
}

void open_before(Node &node, std::uint32_t version) { node.owner().open_before(version); }

void resize_cache(Node &node, std::size_t most_bytes) {
    node.client().cache().resize(node.config().tables, most_bytes);
}

// Of a Node, or of a Service's with its thread held up.
template <class Bound, class... Arguments>
void bind_of_node(nb::class_<Bound> &bound, const char *name, void (*work)(Node &, Arguments...)) {
    if constexpr (std::is_same_v<Bound, Node>) {
        bound.def(name, work);
    } else {
        bound.def(
            name,
            [work](Bound &service, Arguments... arguments) {
                service.with_node([&](Node &node) { work(node, arguments...); });
            },
            Unlocked());
    }
}

template <class Bound>
void bind_hot(nb::class_<Bound> &bound) {
    bind_of_node(bound, "set_hot", &set_hot);
    bind_of_node(bound, "read_hot", &read_hot);
    bind_of_node(bound, "settle_hot", &settle_hot);
    bind_of_node(bound, "apply_hot", &apply_hot);
    bind_of_node(bound, "read_hot_gradients", &read_hot_gradients);
    bind_of_node(bound, "open_before", &open_before);
    bind_of_node(bound, "resize_cache", &resize_cache);
}

void bind_configs(nb::module_ &m) {
    nb::enum_<Rule>(m, "Rule")
        .value("NONE", Rule::kNone)
        .value("SGD", Rule::kSgd)
        .value("ADAGRAD", Rule::kAdagrad)
        .value("ROWWISE_ADAGRAD", Rule::kRowwiseAdagrad);
    nb::class_<TableSpec>(m, "TableSpec")
        .def("__init__", &init_by_name<TableSpec>)
        .def_rw("rows", &TableSpec::rows)
        .def_rw("dim", &TableSpec::dim)
        .def_rw("first_owner", &TableSpec::first_owner)
        .def_rw("owners", &TableSpec::owners);
    nb::class_<Optimizer>(m, "Optimizer")
        .def("__init__", &init_by_name<Optimizer>)
        .def_rw("rule", &Optimizer::rule)
        .def_rw("epsilon", &Optimizer::epsilon)
        .def_rw("first_accumulator", &Optimizer::first_accumulator)
        .def("state_values", &Optimizer::state_values, "dim"_a);
    nb::class_<GroupConfig>(m, "GroupConfig")
        .def("__init__", &init_by_name<GroupConfig>)
        .def_rw("key", &GroupConfig::key)
        .def_rw("host", &GroupConfig::host)
        .def_rw("hosts", &GroupConfig::hosts)
        .def_rw("askers", &GroupConfig::askers)
        .def_rw("tables", &GroupConfig::tables)
        .def_rw("optimizer", &GroupConfig::optimizer)
        .def_rw("part_bytes", &GroupConfig::part_bytes);
    nb::class_<ClientConfig>(m, "ClientConfig")
        .def("__init__", &init_by_name<ClientConfig>)
        .def_rw("window_parts", &ClientConfig::window_parts)
        .def_rw("patience_ns", &ClientConfig::patience_ns);
    nb::class_<Placement>(m, "Placement")
        .def(nb::init<const TableSpec &, std::uint16_t>(), "spec"_a, "hosts"_a)
        .def("owner_of", &Placement::owner_of, "row"_a)
        .def("local_of", &Placement::local_of, "row"_a)
        .def("rows_of", &Placement::rows_of, "host"_a)
        .def("row_at", &Placement::row_at, "host"_a, "local"_a)
        .def("owners_of", &owners_of);
    nb::class_<RowCache>(m, "RowCache")
        .def(nb::init<>())
        .def("resize", &RowCache::resize, "specs"_a, "most_bytes"_a)
        .def("find_all", &find_all)
        .def("put_all", &put_all)
        .def_prop_ro("counters", [](const RowCache &cache) { return cache.counters(); });
}

void bind_counters(nb::module_ &m) {
    nb::class_<OwnerCounters>(m, "OwnerCounters")
        .def_ro("lookups", &OwnerCounters::lookups)
        .def_ro("rows_read", &OwnerCounters::rows_read)
        .def_ro("gradients", &OwnerCounters::gradients)
        .def_ro("repeated", &OwnerCounters::repeated)
        .def_ro("late", &OwnerCounters::late)
        .def_ro("refused", &OwnerCounters::refused)
        .def_ro("unheld", &OwnerCounters::unheld);
    nb::class_<ClientCounters>(m, "ClientCounters")
        .def_ro("messages", &ClientCounters::messages)
        .def_ro("sent_again", &ClientCounters::sent_again)
        .def_ro("stray", &ClientCounters::stray);
    nb::class_<CacheCounters>(m, "CacheCounters")
        .def_ro("hits", &CacheCounters::hits)
        .def_ro("misses", &CacheCounters::misses);
    nb::class_<TableCounters>(m, "TableCounters")
        .def_ro("rows", &TableCounters::rows)
        .def_ro("bags", &TableCounters::bags)
        .def_ro("hot_hits", &TableCounters::hot_hits)
        .def_ro("cache_hits", &TableCounters::cache_hits)
        .def_ro("cache_misses", &TableCounters::cache_misses);
    nb::class_<Failure>(m, "Failure")
        .def_ro("host", &Failure::host)
        .def_ro("step", &Failure::step)
        .def_ro("what", &Failure::what);
    nb::class_<Traffic>(m, "Traffic")
        .def_ro("sent_packets", &Traffic::sent_packets)
        .def_ro("sent_bytes", &Traffic::sent_bytes)
        .def_ro("received_packets", &Traffic::received_packets)
        .def_ro("received_bytes", &Traffic::received_bytes)
        .def_ro("strangers", &Traffic::strangers)
        .def_ro("send_drops", &Traffic::send_drops)
        .def_ro("lost", &Traffic::lost);
    nb::enum_<Outcome>(m, "Outcome")
        .value("DONE", Outcome::kDone)
        .value("NOT_YET", Outcome::kNotYet)
        .value("FAILED", Outcome::kFailed);
}

void receive(Node &node, std::uint16_t from, const nb::bytes &packet, std::int64_t now_ns) {
    node.receive(from, static_cast<const std::uint8_t *>(packet.data()), packet.size(), now_ns);
}

std::vector<std::pair<std::uint16_t, nb::bytes>> take_packets(Node &node, std::int64_t now_ns) {
    std::vector<std::pair<std::uint16_t, nb::bytes>> packets;
    for (const Packet &packet : node.take_packets(now_ns)) {
        packets.emplace_back(packet.to, nb::bytes(packet.bytes.data(), packet.bytes.size()));
    }
    return packets;
}

nb::object failure_of(const Node &node) {
    const Failure *const failure = node.client().failure();
    return failure == nullptr ? nb::none() : nb::cast(*failure);
}

void bind_node(nb::module_ &m) {
    nb::class_<Node> node(m, "Node");
    bind_hot(node);
    node.def("hot_rows", &hot_rows, "table"_a).def("hot_values", &hot_values);
    node.def(nb::init<const GroupConfig &, const ClientConfig &>(), "config"_a, "own"_a)
        .def("look_up",
             [](Node &node, std::uint32_t step, std::uint16_t table, std::size_t bags,
                Address offsets, Address rows, Address weights, bool with_state) {
                 return node.client().look_up(step, table, source_of(bags, offsets, rows, weights),
                                              with_state);
             })
        .def("is_done",
             [](const Node &node, Client::Ticket ticket) { return node.client().is_done(ticket); })
        .def("take", [](Node &node, Client::Ticket ticket,
                        Address vectors) { node.client().take(ticket, floats(vectors)); })
        .def("add_gradients",
             [](Node &node, std::uint32_t step, std::uint16_t table, std::size_t bags,
                Address offsets, Address rows, Address weights, Address vectors) {
                 node.client().add_gradients(step, table, source_of(bags, offsets, rows, weights),
                                             floats(vectors));
             })
        .def("end_step",
             [](Node &node, std::uint32_t step, float rate) { node.client().end_step(step, rate); })
        .def("are_gradients_received",
             [](const Node &node) { return node.client().are_gradients_received(); })
        .def("set_optimizer", &Node::set_optimizer, "optimizer"_a)
        .def("receive", &receive, "sender"_a, "packet"_a, "now_ns"_a)
        .def("poll", &Node::poll, "now_ns"_a)
        .def("take_packets", &take_packets, "now_ns"_a)
        .def("next_deadline_ns", &Node::next_deadline_ns)
        .def("copy_rows",
             [](Node &node, std::size_t table, std::size_t first, std::size_t count, Address values,
                Address state,
                bool in) { copy_rows(node.owner(), table, first, count, values, state, in); })
        .def_prop_ro("version", [](const Node &node) { return node.owner().version(); })
        .def_prop_ro("missing", [](const Node &node) { return node.owner().missing(); })
        .def_prop_ro("fault", [](const Node &node) { return node.owner().fault(); })
        .def_prop_ro("failure", &failure_of)
        .def_prop_ro("damaged", &Node::damaged)
        .def_prop_ro("owner", [](const Node &node) { return node.owner().counters(); })
        .def_prop_ro("client", [](const Node &node) { return node.client().counters(); })
        .def_prop_ro("cache", [](const Node &node) { return node.client().cache().counters(); });
}

// Table, by name and number; ids: how many, and where; bags: how many, and where they begin;
// weights; whether the mean is meant; whether by row in any case.
using Given = std::tuple<std::string, std::uint16_t, std::size_t, Address, std::size_t, Address,
                         Address, bool, bool>;

Batch *batch_of(const std::vector<TableSpec> &specs, const std::vector<Given> &given) {
    std::vector<GivenBags> all;
    all.reserve(given.size());
    for (const auto &[name, table, count, ids, bags, offsets, weights, is_mean, by_row] : given) {
        all.push_back({name, table, count, reinterpret_cast<const std::int64_t *>(ids), bags,
                       reinterpret_cast<const std::int64_t *>(offsets),
                       reinterpret_cast<const float *>(weights), is_mean, by_row});
    }
    const nb::gil_scoped_release unlocked;
    return new Batch(specs, all);
}

void bind_batch(nb::module_ &m) {
    nb::class_<Batch>(m, "Batch")
        .def(nb::new_(&batch_of), "specs"_a, "given"_a)
        .def("asked", [](const Batch &batch, std::size_t i) { return batch.asked(i).bags; })
        .def("is_by_row", &Batch::is_by_row)
        .def("is_plain", &Batch::is_plain)
        .def("read_rows",
             [](const Batch &batch, std::size_t i, Address rows) {
                 const BagSource asked = batch.asked(i);
                 std::copy_n(asked.rows, asked.bags, reinterpret_cast<std::uint32_t *>(rows));
             })
        .def("read_places", [](const Batch &batch, std::size_t i, Address places) {
            std::copy(batch.places(i).begin(), batch.places(i).end(),
                      reinterpret_cast<std::int64_t *>(places));
        });
}

template <class Value>
std::vector<Value *> pointers(const std::vector<Address> &addresses) {
    std::vector<Value *> all;
    for (const Address one : addresses) all.push_back(reinterpret_cast<Value *>(one));
    return all;
}

void bind_of_batches(nb::class_<Service> &service) {
    service
        .def(
            "look_up_batch",
            [](Service &own, std::uint32_t step, const Batch &batch) {
                return own.look_up(step, batch);
            },
            Unlocked())
        .def(
            "take_batch",
            [](Service &own, const Batch &batch, const std::vector<Client::Ticket> &tickets,
               const std::vector<Address> &vectors) {
                own.take(batch, tickets, pointers<float>(vectors));
            },
            Unlocked())
        .def(
            "add_gradients_of_batch",
            [](Service &own, std::uint32_t step, const Batch &batch,
               const std::vector<Address> &gradients) {
                own.add_gradients(step, batch, pointers<const float>(gradients));
            },
            Unlocked())
        .def("wait_all", &Service::wait, "tickets"_a, "timeout_ns"_a, Unlocked());
}

Service *service_of(int fd, const GroupConfig &config, const ClientConfig &own,
                    const std::vector<std::pair<std::uint32_t, std::uint16_t>> &peers,
                    double loss_rate, std::uint64_t loss_seed) {
    std::vector<Peer> all;
    for (const auto &[ipv4, udp_port] : peers) all.push_back({ipv4, udp_port});
    return new Service(fd, config, own, std::move(all), {loss_rate, loss_seed});
}

template <class Read>
auto of_node(Read read) {
    return [read](Service &service) { return service.with_node(read); };
}

void bind_state(nb::class_<Service> &service) {
    service
        .def(
            "copy_rows",
            [](Service &service, std::size_t table, std::size_t first, std::size_t count,
               Address values, Address state, bool in) {
                service.with_node([&](Node &node) {
                    copy_rows(node.owner(), table, first, count, values, state, in);
                });
            },
            Unlocked())
        .def_prop_ro("version", of_node([](Node &node) { return node.owner().version(); }))
        .def_prop_ro("owner", of_node([](Node &node) { return node.owner().counters(); }))
        .def_prop_ro("client", of_node([](Node &node) { return node.client().counters(); }))
        .def_prop_ro("cache", of_node([](Node &node) { return node.client().cache().counters(); }))
        .def_prop_ro("damaged", of_node([](Node &node) { return node.damaged(); }))
        .def_prop_ro("failure", &Service::failure)
        .def_prop_ro("traffic", &Service::traffic)
        .def("table_counters", &Service::table_counters, "table"_a)
        .def("close", &Service::close, Unlocked());
}

void bind_service(nb::module_ &m) {
    nb::class_<Service> service(m, "Service");
    service
        .def(nb::new_(&service_of), "fd"_a, "config"_a, "own"_a, "peers"_a, "loss_rate"_a,
             "loss_seed"_a)
        .def(
            "look_up",
            [](Service &service, std::uint32_t step, std::uint16_t table, std::size_t bags,
               Address offsets, Address rows, Address weights, bool with_state) {
                return service.look_up(step, table, source_of(bags, offsets, rows, weights),
                                       with_state);
            },
            Unlocked())
        .def(
            "take",
            [](Service &service, Client::Ticket ticket, Address vectors) {
                service.take(ticket, floats(vectors));
            },
            Unlocked())
        .def(
            "add_gradients",
            [](Service &service, std::uint32_t step, std::uint16_t table, std::size_t bags,
               Address offsets, Address rows, Address weights, Address vectors) {
                service.add_gradients(step, table, source_of(bags, offsets, rows, weights),
                                      floats(vectors));
            },
            Unlocked())
        .def("end_step", &Service::end_step, "step"_a, "rate"_a, Unlocked())
        .def(
            "wait",
            [](Service &own, Client::Ticket ticket, std::int64_t timeout_ns) {
                return own.wait({ticket}, timeout_ns);
            },
            "ticket"_a, "timeout_ns"_a, Unlocked())
        .def("wait_for_gradients", &Service::wait_for_gradients, "timeout_ns"_a, Unlocked())
        .def("wait_for_version", &Service::wait_for_version, "version"_a, "timeout_ns"_a,
             Unlocked())
        .def("set_optimizer", [](Service &service, const Optimizer &optimizer) {
            service.with_node([&](Node &node) { node.set_optimizer(optimizer); });
        });
    bind_state(service);
    bind_hot(service);
    bind_of_batches(service);
    service
        .def(
            "hot_rows",
            [](Service &own, std::size_t table) {
                return own.with_node([&](Node &node) { return hot_rows(node, table); });
            },
            "table"_a)
        .def("hot_values", of_node([](Node &node) { return hot_values(node); }));
}

}  // namespace

void bind(nb::module_ &m) {
    bind_configs(m);
    bind_counters(m);
    bind_node(m);
    bind_batch(m);
    bind_service(m);
}

}  // namespace ina::embed
