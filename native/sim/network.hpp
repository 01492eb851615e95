// A network in virtual time: the nodes, the cables between them, the workers on its hosts, and who
// is told what becomes of them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/bridge.hpp"
#include "sim/engine.hpp"
#include "sim/frame.hpp"
#include "sim/host.hpp"
#include "sim/p4_switch.hpp"
#include "sim/port.hpp"
#include "sim/trace.hpp"
#include "sim/worker.hpp"

namespace ina::sim {

// What a cable has, one way.
struct Way {
    std::string name;
    QueueConfig queue;
    LinkConfig link;
};

struct Notice {
    std::int64_t at_ns;
    Worker *worker;
    WorkerEvent event;
};

class Network {
  public:
    explicit Network(std::uint64_t seed) : seed_(seed) {}
    Network(const Network &) = delete;
    Network &operator=(const Network &) = delete;

    Bridge *add_bridge(const std::string &name);
    // What it loses by chance follows from the seed and its name.
    P4Switch *add_switch(const std::string &name, std::uint32_t cpu_port, const SwitchSetup &setup);
    Host *add_host(std::uint32_t address);
    // A cable between two nodes. What happens by chance on a way follows from the seed and its
    // name.
    std::pair<Port *, Port *> connect(Node *from, std::uint32_t from_port, Node *to,
                                      std::uint32_t to_port, const Way &there, const Way &back);
    // Throws std::invalid_argument.
    Worker *add_worker(Host *host, const std::string &name, const WorkerSetup &setup,
                       const host::WorkerConfig &config, const congestion::Choice &window);

    // What else happens in it, of those above: the network keeps it. Its random numbers follow from
    // the network's seed and this name.
    template <typename Kind>
    Kind *keep(std::unique_ptr<Kind> element) {
        Kind *const kept = element.get();
        elements_.push_back(std::move(element));
        return kept;
    }
    Stream stream(const std::string &name) const { return Stream(seed_, name); }
    FramePool &frames() { return frames_; }
    Engine &engine() { return engine_; }

    // Goes on until then, or to the first event of which there is something to tell. Returns
    // whether it got there; what there is to tell is in take_notices().
    bool run(std::int64_t until_ns) { return engine_.run(until_ns); }
    std::vector<Notice> take_notices() { return std::exchange(notices_, {}); }
    std::int64_t now_ns() const { return engine_.now_ns(); }
    // Frames that arrived somewhere, over all cables.
    std::uint64_t hops() const;

    // Of all cables, from now on; null: none.
    void set_trace(std::shared_ptr<Trace> trace);

  private:
    std::uint64_t seed_;
    FramePool frames_;  // outlives all that may hold one
    Engine engine_;
    std::shared_ptr<Trace> trace_;
    std::vector<std::unique_ptr<Node>> nodes_;
    std::vector<std::unique_ptr<Port>> ports_;
    std::vector<std::unique_ptr<Worker>> workers_;
    std::vector<std::unique_ptr<Element>> elements_;
    std::vector<Notice> notices_;
};

}  // namespace ina::sim
