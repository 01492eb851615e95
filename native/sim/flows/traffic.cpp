#include "sim/flows/traffic.hpp"

#include <algorithm>
#include <stdexcept>

namespace ina::sim {
namespace {

// An event of the traffic's own; no flow has this place.
constexpr std::uint32_t kArrival = (1u << TimerEvent::kPlaceBits) - 1;
constexpr std::size_t kMostActive = kArrival;

enum Which : std::uint32_t { kRetransmission, kDelayedAck };

}  // namespace

// Both ends of a connection, and what they tell of it.
struct Traffic::Flow final : public Endpoint {
    Flow(Traffic *traffic, std::uint32_t at, Host *from, Host *to, const TcpConnection &connection,
         const FlowRecord &begun)
        : traffic(traffic), place(at), source(from), destination(to), ports(connection),
          record(begun), sender(&traffic->network_->frames(), from, traffic->config_.tcp,
                                connection, &traffic->timers_, at, kRetransmission),
          receiver(&traffic->network_->frames(), to, traffic->config_.tcp, connection,
                   &traffic->timers_, at, kDelayedAck),
          to_receiver{this} {
        source->listen(kTcp, ports.sender.udp_port, this);
        destination->listen(kTcp, ports.receiver.udp_port, &to_receiver);
    }
    ~Flow() override {
        source->listen(kTcp, ports.sender.udp_port, nullptr);
        destination->listen(kTcp, ports.receiver.udp_port, nullptr);
    }

    void receive(Frame frame) override {  // an acknowledgement
        sender.receive(std::move(frame));
        traffic->settle(place);
    }

    struct ToReceiver final : public Endpoint {
        explicit ToReceiver(Flow *of) : flow(of) {}
        void receive(Frame frame) override {
            flow->receiver.receive(std::move(frame));
            if (flow->receiver.has_all() && flow->record.done_ns < 0) {
                flow->record.done_ns = flow->traffic->network_->now_ns();
            }
        }
        Flow *const flow;
    };

    Traffic *const traffic;
    const std::uint32_t place;
    Host *const source;
    Host *const destination;
    const TcpConnection ports;
    FlowRecord record;
    TcpSender sender;
    TcpReceiver receiver;
    ToReceiver to_receiver;
    bool has_ended = false;
};

Traffic::Traffic(Network *network, const std::string &name, const TrafficConfig &config,
                 FlowSizes sizes, std::vector<Host *> sources, std::vector<Host *> destinations)
    : network_(network), config_(config), sizes_(std::move(sizes)), sources_(std::move(sources)),
      destinations_(std::move(destinations)), random_(network->stream(name)),
      timers_{&network->engine(), this} {
    const bool has_pair = std::any_of(sources_.begin(), sources_.end(), [&](Host *from) {
        return std::any_of(destinations_.begin(), destinations_.end(),
                           [&](Host *to) { return to != from; });
    });
    if (!has_pair) throw std::invalid_argument(name + ": no source has another host to send to");
    if (config_.tcp.mss_bytes == 0 || config_.tcp.initial_window_segments == 0) {
        throw std::invalid_argument(name + ": a segment and a window hold something");
    }
    if (config_.mean_gap_ns > 0) {
        next_arrival();
    } else {
        network_->engine().at(config_.start_ns, this, TimerEvent{kArrival, 0, 0}.what());
    }
}

Traffic::~Traffic() = default;

void Traffic::on_event(std::uint64_t what) {
    reap();
    const TimerEvent event = TimerEvent::of(what);
    if (event.place == kArrival) {
        if (config_.mean_gap_ns <= 0) return begin_round();
        // Each pair of different hosts is as likely as any other.
        std::uint32_t source = 0;
        std::uint32_t destination = 0;
        do {
            source = static_cast<std::uint32_t>(random_.below(sources_.size()));
            destination = static_cast<std::uint32_t>(random_.below(destinations_.size()));
        } while (sources_[source] == destinations_[destination]);
        begin(source, destination);
        return next_arrival();
    }
    if (event.place >= flows_.size() || flows_[event.place] == nullptr) return;
    Flow &flow = *flows_[event.place];
    if (event.which == kDelayedAck) return flow.receiver.on_timer(event.number);
    flow.sender.on_timer(event.number);
    settle(event.place);
}

void Traffic::next_arrival() {
    if (started_ >= config_.most_flows) return;
    const std::int64_t from_ns = std::max(network_->now_ns(), config_.start_ns);
    gap_rest_ns_ += random_.exponential() * config_.mean_gap_ns;
    const auto gap_ns = static_cast<std::int64_t>(gap_rest_ns_);
    gap_rest_ns_ -= static_cast<double>(gap_ns);
    if (from_ns + gap_ns >= config_.stop_ns) return;
    network_->engine().at(from_ns + gap_ns, this, TimerEvent{kArrival, 0, 0}.what());
}

void Traffic::begin_round() {
    const std::int64_t now_ns = network_->now_ns();
    if (rounds_begun_ >= config_.rounds || now_ns >= config_.stop_ns) return;
    ++rounds_begun_;
    for (std::uint32_t to = 0; to < destinations_.size(); ++to) {
        for (std::uint32_t from = 0; from < sources_.size(); ++from) {
            if (sources_[from] != destinations_[to] && started_ < config_.most_flows) {
                begin(from, to);
            }
        }
    }
    if (config_.period_ns > 0) {
        network_->engine().at(now_ns + config_.period_ns, this, TimerEvent{kArrival, 0, 0}.what());
    }
}

void Traffic::begin(std::uint32_t source, std::uint32_t destination) {
    if (free_.empty()) {
        if (flows_.size() >= kMostActive) throw std::runtime_error("too many flows at a time");
        free_.push_back(static_cast<std::uint32_t>(flows_.size()));
        flows_.emplace_back();
    }
    Host *const from = sources_[source];
    Host *const to = destinations_[destination];
    TcpConnection connection;
    connection.sender = {from->address(), from->free_port(kTcp)};
    connection.receiver = {to->address(), to->free_port(kTcp)};
    const std::uint64_t sequences = random_.next();
    connection.first_sequence = static_cast<std::uint32_t>(sequences);
    connection.peer_sequence = static_cast<std::uint32_t>(sequences >> 32);
    connection.bytes = sizes_.draw(&random_);
    FlowRecord record;
    record.number = started_++;
    record.source = source;
    record.destination = destination;
    record.bytes = connection.bytes;
    record.started_ns = network_->now_ns();
    const std::uint32_t place = free_.back();
    free_.pop_back();
    ++active_;
    flows_[place] = std::make_unique<Flow>(this, place, from, to, connection, record);
    flows_[place]->sender.start();
}

// Of a flow that may have ended just now.
void Traffic::settle(std::uint32_t place) {
    Flow &flow = *flows_[place];
    if (flow.has_ended || !(flow.sender.is_done() || flow.sender.has_given_up())) return;
    flow.has_ended = true;
    const TcpSenderCounters &sent = flow.sender.counters();
    flow.record.segments = sent.segments;
    flow.record.retransmissions = sent.retransmissions;
    flow.record.timeouts = sent.timeouts;
    flow.record.marked_packets = flow.receiver.marked_packets();
    records_.push_back(flow.record);
    ended_.push_back(place);
    if (--active_ == 0 && config_.mean_gap_ns <= 0 && config_.period_ns <= 0) {
        network_->engine().at(network_->now_ns(), this, TimerEvent{kArrival, 0, 0}.what());
    }
}

void Traffic::reap() {
    for (const std::uint32_t place : ended_) {
        flows_[place].reset();
        free_.push_back(place);
    }
    ended_.clear();
}

std::vector<std::pair<std::uint64_t, std::int64_t>> Traffic::progress() const {
    std::vector<std::pair<std::uint64_t, std::int64_t>> found;
    for (const auto &flow : flows_) {
        if (flow != nullptr && !flow->has_ended) {
            found.emplace_back(flow->record.number, flow->receiver.next());
        }
    }
    std::sort(found.begin(), found.end());
    return found;
}

const TcpSender *Traffic::sender(std::uint64_t number) const {
    for (const auto &flow : flows_) {
        if (flow != nullptr && !flow->has_ended && flow->record.number == number) {
            return &flow->sender;
        }
    }
    return nullptr;
}

}  // namespace ina::sim
