#include "sim/network.hpp"

namespace ina::sim {

Bridge *Network::add_bridge(const std::string &name) {
    auto bridge = std::make_unique<Bridge>(Stream(seed_, name).next());
    Bridge *const added = bridge.get();
    nodes_.push_back(std::move(bridge));
    return added;
}

P4Switch *Network::add_switch(const std::string &name, std::uint32_t cpu_port,
                              const SwitchSetup &setup) {
    auto node = std::make_unique<P4Switch>(&engine_, &frames_, cpu_port, setup,
                                           stream("switch/" + name + "/loss"),
                                           stream("switch/" + name + "/wake"));
    P4Switch *const added = node.get();
    nodes_.push_back(std::move(node));
    return added;
}

Host *Network::add_host(std::uint32_t address) {
    auto host = std::make_unique<Host>(address);
    Host *const added = host.get();
    nodes_.push_back(std::move(host));
    return added;
}

std::pair<Port *, Port *> Network::connect(Node *from, std::uint32_t from_port, Node *to,
                                           std::uint32_t to_port, const Way &there,
                                           const Way &back) {
    const auto add = [&](const Way &way, Node *sender, std::uint32_t leaving, Node *receiver,
                         std::uint32_t arriving) {
        ports_.push_back(std::make_unique<Port>(&engine_, way.name, seed_, way.queue, way.link,
                                                receiver, arriving));
        Port *const port = ports_.back().get();
        if (trace_) port->set_trace(trace_.get());
        sender->attach(leaving, port);
        return port;
    };
    Port *const one = add(there, from, from_port, to, to_port);
    return {one, add(back, to, to_port, from, from_port)};
}

Worker *Network::add_worker(Host *host, const std::string &name, const WorkerSetup &setup,
                            const host::WorkerConfig &config, const congestion::Choice &window) {
    const auto tell = [this](Worker *worker, const WorkerEvent &event) {
        notices_.push_back({engine_.now_ns(), worker, event});
        engine_.stop();
    };
    workers_.push_back(std::make_unique<Worker>(&engine_, &frames_, host, name, setup, config,
                                                window, stream("worker/" + name), tell));
    return workers_.back().get();
}

std::uint64_t Network::hops() const {
    std::uint64_t hops = 0;
    for (const auto &port : ports_) hops += port->counters().arrived_packets;
    return hops;
}

void Network::set_trace(std::shared_ptr<Trace> trace) {
    trace_ = std::move(trace);
    for (const auto &port : ports_) port->set_trace(trace_.get());
}

}  // namespace ina::sim
