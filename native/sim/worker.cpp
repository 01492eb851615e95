#include "sim/worker.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace ina::sim {
namespace {

constexpr std::uint8_t kEcnBits = 3;
constexpr std::uint8_t kCongestionExperienced = 3;

// Of packets that all of W lanes may have in flight, those of some: at least 1.
std::uint32_t part_of(std::uint32_t packets, std::uint32_t lanes, std::uint32_t window) {
    const std::uint64_t part = std::uint64_t{packets} * lanes / window;
    return static_cast<std::uint32_t>(std::max<std::uint64_t>(part, 1));
}

}  // namespace

Worker::Mapping::Mapping(const host::WorkerConfig &config, const WorkerSetup &setup,
                         std::uint32_t max_in_flight, const congestion::Choice &choice)
    : epoch(config.epoch), window(host::window_of(config)),
      order(window, config.values_per_packet) {
    const std::uint32_t packets = max_in_flight == 0 ? window : max_in_flight;
    const std::uint32_t parts = std::min(setup.shares, window);
    const std::vector<host::Tree> trees = host::trees_of(config);
    const std::vector<host::LaneShare> divided = host::divide_lanes(window, parts, trees);
    finder = host::ShareFinder(window, parts, divided);
    for (const host::LaneShare &share : divided) {
        host::WorkerConfig its = config;
        its.first_lane = share.first_lane;
        its.lanes = share.lanes;
        const host::NodeAddress &node = trees[share.tree].node;
        const sw::UdpAddress to =
            node.ipv4 == 0 ? setup.to : sw::UdpAddress{node.ipv4, node.udp_port};
        shares.push_back(
            std::make_unique<Share>(to, its, choice, part_of(packets, share.lanes, window)));
    }
}

void Worker::Mapping::set_congestion(const congestion::Choice *choice,
                                     std::uint32_t packets) const {
    for (const auto &share : shares) {
        host::WorkerCore &core = share->core;
        if (choice != nullptr) core.set_window(congestion::make_window(*choice, share->room));
        const std::uint32_t most =
            packets == 0 ? UINT32_MAX : part_of(packets, core.lane_count(), window);
        core.set_most(most);
        share->audit.set_most(most);
    }
}

Worker::Worker(Engine *engine, FramePool *frames, Host *host, std::string name,
               const WorkerSetup &setup, const host::WorkerConfig &config,
               const congestion::Choice &window, Stream random, Tell tell)
    : engine_(engine), frames_(frames), host_(host), name_(std::move(name)), setup_(setup),
      tell_(std::move(tell)), waking_(setup.wake, random), values_(config.values_per_packet) {
    const std::uint32_t parts = setup.shares;
    if (parts == 0 || parts > host::window_of(config) || (parts & (parts - 1)) != 0) {
        throw std::invalid_argument("shares must be a power of two, at most W");
    }
    mappings_.push_back(std::make_unique<Mapping>(config, setup_, setup.max_in_flight, window));
    host_->listen(kUdp, setup_.own.port, this);
    if (setup_.results_group != 0) {
        host_->join_group(setup_.results_group, setup_.results_udp_port, this);
    }
}

const Worker::Mapping &Worker::newest() const {
    if (mappings_.empty()) throw std::logic_error(name_ + " has crashed");
    return is_cut_ ? *mappings_.back() : *mappings_.front();
}

host::WorkerCounters Worker::counters() const {
    host::WorkerCounters sum = retired_;
    std::uint32_t last_seq = newest().shares.front()->core.counters().last_seq;
    for_each_share([&](const Share &share) {
        const host::WorkerCounters counters = share.core.counters();
        host::add_counters(&sum, counters);
    });
    sum.last_seq = last_seq;
    sum.tensors_submitted = submitted_;
    sum.tensors_done = sum.tensors_submitted - pending_.size();
    return sum;
}

host::LaneSnapshot Worker::lanes() const {
    newest();
    host::LaneSnapshot snapshot;
    for (const auto &mapping : mappings_) {
        std::vector<host::LaneSnapshot> shares;
        for (const auto &share : mapping->shares) {
            shares.push_back(share->core.lanes(engine_->now_ns()));
        }
        host::LaneSnapshot its =
            shares.size() == 1 ? std::move(shares[0]) : host::merge_lanes(shares);
        const bool goes_on_here = its.oldest.id != 0;
        if (snapshot.seqs.empty() || goes_on_here) snapshot = std::move(its);
        if (goes_on_here) break;
    }
    return snapshot;
}

std::vector<host::PendingTensor> Worker::pending() const {
    std::vector<std::vector<host::PendingTensor>> shares;
    for_each_share([&](const Share &share) { shares.push_back(share.core.pending()); });
    // What may not be sent yet, no core has.
    std::vector<host::PendingTensor> waiting;
    for (const auto &[id, request] : pending_) {
        const bool is_new = first_of_new_ != 0 && id >= first_of_new_;
        if (!is_new || request.elems == 0 || (is_cut_ && mappings_.back()->is_open)) continue;
        const std::uint64_t chunks = (request.elems + values_ - 1) / values_;
        waiting.push_back({request, {{0, chunks}}});
    }
    shares.push_back(std::move(waiting));
    return host::merge_pending(shares);
}

void Worker::settle_resends() {
    for_each_share([&](Share &share) { share.core.settle_resends(engine_->now_ns()); });
}

std::uint64_t Worker::agreed() const {
    std::uint64_t agreed = 0;
    for_each_share([&](const Share &share) { agreed = std::max(agreed, share.core.agreed()); });
    return agreed;
}

std::optional<host::StallReport> Worker::stall() const {
    std::optional<host::StallReport> found;
    for_each_share([&](const Share &share) {
        if (!found) found = share.core.stall();
    });
    return found;
}

std::optional<host::Mismatch> Worker::mismatch() const {
    std::optional<host::Mismatch> found;
    for_each_share([&](const Share &share) {
        if (!found) found = share.core.mismatch();
    });
    return found;
}

std::optional<host::Corruption> Worker::corruption() const {
    std::optional<host::Corruption> found;
    for_each_share([&](const Share &share) {
        if (!found) found = share.core.corruption();
    });
    return found;
}

std::string Worker::breach() const {
    std::string found;
    for_each_share([&](const Share &share) {
        if (found.empty()) found = share.audit.breach();
    });
    return found;
}

// Of a lane that there is not: any; it says so.
host::WorkerCore &Worker::core_of(std::uint32_t epoch, std::uint32_t lane) const {
    for (const auto &mapping : mappings_) {
        if (mapping->epoch != epoch) continue;
        return mapping->shares[mapping->finder.of(std::min(lane, mapping->window - 1))]->core;
    }
    throw std::invalid_argument("there is no mapping of epoch " + std::to_string(epoch));
}

host::LaneResult Worker::lane_result(std::uint32_t epoch, std::uint32_t lane) const {
    return core_of(epoch, lane).lane_result(lane);
}

void Worker::put_result(std::uint32_t epoch, std::uint32_t lane, std::uint32_t seq,
                        const void *data, std::size_t bytes) {
    core_of(epoch, lane).put_result(lane, seq, data, bytes);
}

std::int64_t Worker::moderation_ns() const {
    const Share &first = *newest().shares.front();
    return first.pacing.moderation_ns(first.core);
}

std::uint32_t Worker::in_flight() const {
    std::uint32_t sum = 0;
    for_each_share([&](const Share &share) { sum += share.core.in_flight(); });
    return sum;
}

std::uint32_t Worker::in_flight_limit() const {
    std::uint32_t sum = 0;
    for (const auto &share : newest().shares) sum += share->core.in_flight_limit();
    return sum;
}

std::int64_t Worker::shortest_ns() const {
    std::int64_t found = 0;
    for (const auto &share : newest().shares) {
        const std::int64_t shortest_ns = share->core.recovery().rtt().shortest_ns();
        if (shortest_ns > 0) found = found == 0 ? shortest_ns : std::min(found, shortest_ns);
    }
    return found;
}

std::int64_t Worker::mean_ns() const {
    std::int64_t found = 0;
    for (const auto &share : newest().shares) {
        found = std::max(found, share->core.recovery().rtt().round_trips().mean_ns);
    }
    return found;
}

void Worker::set_congestion(const std::optional<congestion::Choice> &choice,
                            std::uint32_t most_packets) {
    newest();
    if (choice) congestion::make_window(*choice, {1, 1});  // throws before anything has changed
    most_packets_ = most_packets;
    for (const auto &mapping : mappings_) {
        mapping->set_congestion(choice ? &*choice : nullptr, most_packets);
    }
    work_at(engine_->now_ns());
}

void Worker::submit(const host::TensorRequest &request) {
    newest();
    if (!pending_.emplace(request.id, request).second) {
        throw std::invalid_argument("tensor id is in use: " + std::to_string(request.id));
    }
    next_id_ = request.id + 1;
    ++submitted_;
    submissions_.agree_up_to(agreed());
    submissions_.add(request);
    submit_times_.add(engine_->now_ns());
    const bool is_new = first_of_new_ != 0 && request.id >= first_of_new_;
    if (!is_new || is_cut_) place(*mappings_[is_new ? 1 : 0], request);
    work_at(engine_->now_ns());
}

void Worker::place(Mapping &mapping, const host::TensorRequest &request) {
    const host::Submission placed = mapping.order.next(request);
    if (pending_.count(request.id) == 0) return;  // an empty one, done already: it counts
    shares_left_[request.id] = {&mapping, mapping.shares.size()};
    if (mapping.is_open) return give(mapping, placed);
    mapping.held.push_back(placed);
}

void Worker::give(Mapping &mapping, const host::Submission &placed) {
    for (const auto &share : mapping.shares) {
        share->audit.submitted(placed);
        share->core.submit(placed, engine_->now_ns());
    }
}

void Worker::pause(std::int64_t until_ns) {
    paused_until_ns_ = std::max(paused_until_ns_, until_ns);
    if (!is_alive()) return;
    ++work_number_;  // what has been put down is void
    work_at_ns_ = kNever;
    work_at(paused_until_ns_);
}

void Worker::crash() {
    if (!is_alive()) return;
    host_->listen(kUdp, setup_.own.port, nullptr);
    leave_group();
    mappings_.clear();
    buffer_.clear();
    outbox_.clear();
    buffered_bytes_ = 0;
}

void Worker::leave_group() { host_->leave_groups(this); }

void Worker::receive(Frame frame) {
    if (!is_alive()) return;
    if (buffered_bytes_ + frame.bytes() > setup_.buffer_bytes) {
        ++buffer_full_packets_;
        return;
    }
    buffered_bytes_ += frame.bytes();
    buffer_.push_back(std::move(frame));
    work_at(std::max(engine_->now_ns(), read_ns_));
}

void Worker::on_event(std::uint64_t what) {
    if (!is_alive()) return;
    const std::uint64_t number = what / kWhats;
    switch (what % kWhats) {
        case kWork:
            if (number != work_number_) return;
            work_at_ns_ = kNever;
            return work();
        case kTimer:
            if (number != timer_number_) return;
            timer_at_ns_ = kNever;
            return work_at(engine_->now_ns());
        default: send(&outbox_, outbox_train_);
    }
}

// Once the processor is free and awake, and no later than is put down already.
void Worker::work_at(std::int64_t at_ns) {
    const bool sleeps = at_ns > free_ns_;
    at_ns = std::max({at_ns, free_ns_, paused_until_ns_}) + (sleeps ? waking_.now_takes_ns() : 0);
    if (at_ns >= work_at_ns_) return;
    if (at_ns == engine_->now_ns() && !setup_.trains) {  // what is of one train comes as one
        ++work_number_;                                  // what has been put down is void
        work_at_ns_ = kNever;
        return work();
    }
    work_at_ns_ = at_ns;
    engine_->at(at_ns, this, ++work_number_ * kWhats + kWork);
}

// Which share a packet is for; what is no packet of this format goes to the first, to be counted.
// Null: it is not from the share's switch, from which alone a socket takes its packets.
Worker::Share *Worker::share_for(const sw::Datagram &datagram) {
    const Mapping *mapping = mappings_.front().get();
    std::size_t share = 0;
    if (datagram.payload_bytes >= wire::kHeaderBytes) {
        const std::uint16_t epoch = wire::load_be16(datagram.payload + wire::kEpochOffset);
        const Mapping &newer = *mappings_.back();
        if (epoch == static_cast<std::uint16_t>(newer.epoch)) mapping = &newer;
        const std::uint32_t seq = wire::load_be32(datagram.payload + wire::kSeqOffset);
        share = mapping->finder.of(seq & (mapping->window - 1));
    }
    Share *const found = mapping->shares[share].get();
    return datagram.source == found->to ? found : nullptr;
}

void Worker::work() {
    const std::int64_t now_ns = engine_->now_ns();
    waking_.next();
    std::int64_t cost_ns = 0;
    std::size_t read = 0;
    std::size_t trains = 0;
    for (; !buffer_.empty() && !is_batch(read, trains); ++read) {
        trains += buffer_.front().follows() ? 0 : 1;
        const Frame frame = std::move(buffer_.front());
        buffer_.pop_front();
        buffered_bytes_ -= frame.bytes();
        cost_ns += this->cost_ns(frame);
        sw::Datagram datagram;
        if (!sw::parse_udp_frame(frame.data(), frame.bytes(), &datagram)) continue;
        Share *const share = share_for(datagram);
        if (share != nullptr) accept(*share, datagram);
    }
    free_ns_ = now_ns + cost_ns;
    if (mappings_.size() > 1 || newest().shares.size() > 1) note_progress();
    for_each_share([&](Share &share) { transmit(share); });
    busy_ns_ += free_ns_ - now_ns;
    if (read > 0) read_ns_ = now_ns + moderation_ns();
    if (!buffer_.empty()) {  // who has read all that it has buffers for reads on without a pause
        read_ns_ = now_ns;
        work_at(free_ns_);
    }
    set_timer();
    tell();
}

void Worker::accept(Share &share, const sw::Datagram &datagram) {
    const std::uint64_t results = share.core.results();
    const std::uint64_t chunks = share.core.chunks();
    const bool is_marked = (datagram.tos & kEcnBits) == kCongestionExperienced;
    share.core.on_result(datagram.payload, datagram.payload_bytes, engine_->now_ns(), is_marked);
    if (share.core.results() == results) return;
    const std::uint32_t seq = wire::load_be32(datagram.payload + wire::kSeqOffset);
    share.audit.answered(seq, share.core.chunks() > chunks);
}

// So much has been read at once, and what is next begins another batch.
bool Worker::is_batch(std::size_t packets, std::size_t trains) const {
    if (!setup_.trains) return packets == kBatch;
    return trains == kTrains && !buffer_.front().follows();
}

// A share that waits is not stalled while another one has results: one of its mapping, or of the
// older one, which the newer may have to wait for.
void Worker::note_progress() {
    bool is_some = false;
    for (const auto &mapping : mappings_) {
        for (const auto &share : mapping->shares) {
            const std::uint64_t results = share->core.results();
            is_some |= results != std::exchange(share->results, results);
        }
        if (!is_some) continue;
        for (const auto &share : mapping->shares) share->core.note_progress(engine_->now_ns());
    }
}

void Worker::set_timer() {
    std::int64_t deadline_ns = kNever;
    for_each_share([&](const Share &share) {
        deadline_ns = std::min(deadline_ns, share.core.next_deadline_ns(engine_->now_ns()));
    });
    if (deadline_ns >= timer_at_ns_) return;
    timer_at_ns_ = deadline_ns;
    engine_->at(deadline_ns, this, ++timer_number_ * kWhats + kTimer);
}

void Worker::transmit(Share &share) {
    host::PacketView batch[kBatch];
    std::vector<Frame> frames;
    std::size_t count = 0;
    do {
        count = share.core.poll_transmit(engine_->now_ns(), batch, kBatch);
        for (std::size_t i = 0; i < count; ++i) {
            share.audit.sent(static_cast<const std::uint8_t *>(batch[i].data), batch[i].bytes,
                             share.core.in_flight_limit());
            Frame frame = frames_->make(sw::kFrameHeaderBytes + batch[i].bytes);
            sw::write_frame_header(frame.data(), setup_.own, share.to, setup_.tos, batch[i].bytes);
            std::memcpy(frame.data() + sw::kFrameHeaderBytes, batch[i].data, batch[i].bytes);
            free_ns_ += cost_ns(frame);
            frames.push_back(std::move(frame));
        }
    } while (count == kBatch);
    if (frames.empty()) return;
    const std::uint32_t longest_train = share.pacing.longest_train(share.core);
    if (free_ns_ == engine_->now_ns()) return send(&frames, longest_train);
    for (Frame &frame : frames) outbox_.push_back(std::move(frame));
    outbox_train_ = longest_train;
    engine_->at(free_ns_, this, kSend);
}

void Worker::send(std::vector<Frame> *frames, std::uint32_t longest_train) {
    if (!setup_.trains) {
        for (Frame &frame : *frames) host_->send(std::move(frame));
    } else {
        // As GSO does: of one size, no longer than the kernel takes and the pacing wants.
        constexpr std::size_t kTrainBytes = 65000;  // as host::UdpChannel, as the next
        constexpr std::size_t kTrainPackets = 64;
        std::vector<Frame> train;
        for (Frame &frame : *frames) {
            const std::size_t payload_bytes = frame.bytes() - sw::kFrameHeaderBytes;
            const std::size_t most = std::max<std::size_t>(
                1,
                std::min<std::size_t>({kTrainBytes / payload_bytes, kTrainPackets, longest_train}));
            if (!train.empty() &&
                (train.size() >= most || train.front().bytes() != frame.bytes())) {
                host_->send_train(&train);
                train.clear();
            }
            train.push_back(std::move(frame));
        }
        if (!train.empty()) host_->send_train(&train);
    }
    frames->clear();
}

void Worker::tell() {
    for (const auto &mapping : mappings_) {
        for (const auto &share : mapping->shares) {
            for (const std::uint64_t tensor : share->core.take_completions()) {
                const auto left = shares_left_.find(tensor);
                // A share without a part in what was taken back is done with it, too.
                if (left == shares_left_.end() || left->second.mapping != mapping.get()) continue;
                if (--left->second.shares > 0) continue;
                shares_left_.erase(left);
                pending_.erase(tensor);
                tell_(this, {WorkerEvent::Kind::kDone, tensor});
            }
        }
    }
    if (!told_breach_ && !breach().empty()) {
        told_breach_ = true;
        tell_(this, {WorkerEvent::Kind::kBreach, 0});
    }
    if (told_failure_) return;
    if (const auto mismatch = this->mismatch()) {
        told_failure_ = true;
        tell_(this, {WorkerEvent::Kind::kMismatch, mismatch->tensor});
    } else if (const auto corruption = this->corruption()) {
        told_failure_ = true;
        tell_(this, {WorkerEvent::Kind::kCorrupted, corruption->tensor});
    } else if (stall()) {
        told_failure_ = true;
        tell_(this, {WorkerEvent::Kind::kStalled, 0});
    }
}

}  // namespace ina::sim
