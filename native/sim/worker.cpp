#include "sim/worker.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace ina::sim {
namespace {

constexpr std::uint8_t kEcnBits = 3;
constexpr std::uint8_t kCongestionExperienced = 3;

}  // namespace

Worker::Worker(Engine *engine, FramePool *frames, Host *host, std::string name,
               const WorkerSetup &setup, const host::WorkerConfig &config,
               const congestion::Choice &window, Stream random, Tell tell)
    : engine_(engine), frames_(frames), host_(host), name_(std::move(name)), setup_(setup),
      tell_(std::move(tell)), waking_(setup.wake, random) {
    const std::uint32_t packets =
        setup.max_in_flight == 0 ? host::window_of(config) : setup.max_in_flight;
    const std::uint32_t lanes = host::window_of(config);
    const std::uint32_t parts = setup.shares;
    if (parts == 0 || parts > lanes || (parts & (parts - 1)) != 0) {
        throw std::invalid_argument("shares must be a power of two, at most W");
    }
    const std::vector<host::Tree> trees = host::trees_of(config);
    const std::vector<host::LaneShare> shares = host::divide_lanes(lanes, parts, trees);
    finder_ = host::ShareFinder(lanes, parts, shares);
    for (const host::LaneShare &share : shares) {
        host::WorkerConfig its = config;
        its.first_lane = share.first_lane;
        its.lanes = share.lanes;
        const host::NodeAddress &node = trees[share.tree].node;
        const sw::UdpAddress to =
            node.ipv4 == 0 ? setup.to : sw::UdpAddress{node.ipv4, node.udp_port};
        const std::uint64_t most = std::uint64_t{packets} * share.lanes / lanes;
        shares_.push_back(std::make_unique<Share>(
            to, its, window, static_cast<std::uint32_t>(std::max<std::uint64_t>(most, 1))));
    }
    order_ =
        std::make_unique<host::SubmissionOrder>(first().core.window(), config.values_per_packet);
    host_->listen(kUdp, setup_.own.port, this);
    if (setup_.results_group != 0) {
        host_->join_group(setup_.results_group, setup_.results_udp_port, this);
    }
}

const Worker::Share &Worker::first() const {
    if (shares_.empty()) throw std::logic_error(name_ + " has crashed");
    return *shares_.front();
}

host::WorkerCounters Worker::counters() const {
    host::WorkerCounters sum = first().core.counters();
    for (std::size_t i = 1; i < shares_.size(); ++i) {
        host::add_counters(&sum, shares_[i]->core.counters());
    }
    return sum;
}

host::LaneSnapshot Worker::lanes() const {
    if (shares_.size() == 1) return first().core.lanes(engine_->now_ns());
    std::vector<host::LaneSnapshot> shares;
    for (const auto &share : shares_) shares.push_back(share->core.lanes(engine_->now_ns()));
    return host::merge_lanes(shares);
}

std::vector<host::PendingTensor> Worker::pending() const {
    std::vector<std::vector<host::PendingTensor>> shares;
    for (const auto &share : shares_) shares.push_back(share->core.pending());
    return host::merge_pending(shares);
}

void Worker::settle_resends() {
    for (const auto &share : shares_) share->core.settle_resends(engine_->now_ns());
}

std::uint64_t Worker::agreed() const {
    std::uint64_t agreed = first().core.agreed();
    for (const auto &share : shares_) agreed = std::max(agreed, share->core.agreed());
    return agreed;
}

std::optional<host::StallReport> Worker::stall() const {
    for (const auto &share : shares_) {
        if (share->core.stall()) return share->core.stall();
    }
    return std::nullopt;
}

std::optional<host::Mismatch> Worker::mismatch() const {
    for (const auto &share : shares_) {
        if (share->core.mismatch()) return share->core.mismatch();
    }
    return std::nullopt;
}

std::optional<host::Corruption> Worker::corruption() const {
    for (const auto &share : shares_) {
        if (share->core.corruption()) return share->core.corruption();
    }
    return std::nullopt;
}

// Of a lane that there is not: any; it says so.
host::WorkerCore &Worker::core_of(std::uint32_t lane) const {
    return shares_[finder_.of(std::min(lane, first().core.window() - 1))]->core;
}

host::LaneResult Worker::lane_result(std::uint32_t lane) const {
    return core_of(lane).lane_result(lane);
}

void Worker::put_result(std::uint32_t lane, std::uint32_t seq, const void *data,
                        std::size_t bytes) {
    core_of(lane).put_result(lane, seq, data, bytes);
}

std::int64_t Worker::moderation_ns() const { return first().pacing.moderation_ns(first().core); }

std::uint32_t Worker::in_flight() const {
    std::uint32_t sum = 0;
    for (const auto &share : shares_) sum += share->core.in_flight();
    return sum;
}

std::uint32_t Worker::in_flight_limit() const {
    std::uint32_t sum = 0;
    for (const auto &share : shares_) sum += share->core.in_flight_limit();
    return sum;
}

void Worker::submit(const host::TensorRequest &request) {
    first();
    const host::Submission placed = order_->next(request);
    shares_left_[request.id] = static_cast<std::uint32_t>(shares_.size());
    for (const auto &share : shares_) share->core.submit(placed, engine_->now_ns());
    work_at(engine_->now_ns());
}

void Worker::pause(std::int64_t until_ns) {
    paused_until_ns_ = std::max(paused_until_ns_, until_ns);
    if (shares_.empty()) return;
    ++work_number_;  // what has been put down is void
    work_at_ns_ = kNever;
    work_at(paused_until_ns_);
}

void Worker::crash() {
    if (shares_.empty()) return;
    host_->listen(kUdp, setup_.own.port, nullptr);
    leave_group();
    shares_.clear();
    buffer_.clear();
    outbox_.clear();
    buffered_bytes_ = 0;
}

void Worker::leave_group() { host_->leave_groups(this); }

void Worker::receive(Frame frame) {
    if (shares_.empty()) return;
    if (buffered_bytes_ + frame.bytes() > setup_.buffer_bytes) {
        ++buffer_full_packets_;
        return;
    }
    buffered_bytes_ += frame.bytes();
    buffer_.push_back(std::move(frame));
    work_at(std::max(engine_->now_ns(), read_ns_));
}

void Worker::on_event(std::uint64_t what) {
    if (shares_.empty()) return;
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
    std::size_t share = 0;
    if (shares_.size() > 1 && datagram.payload_bytes >= wire::kHeaderBytes) {
        const std::uint32_t seq = wire::load_be32(datagram.payload + wire::kSeqOffset);
        share = finder_.of(seq & (first().core.window() - 1));
    }
    return datagram.source == shares_[share]->to ? shares_[share].get() : nullptr;
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
        if (share == nullptr) continue;
        const bool is_marked = (datagram.tos & kEcnBits) == kCongestionExperienced;
        share->core.on_result(datagram.payload, datagram.payload_bytes, now_ns, is_marked);
    }
    free_ns_ = now_ns + cost_ns;
    if (shares_.size() > 1) note_progress();
    for (const auto &share : shares_) transmit(*share);
    busy_ns_ += free_ns_ - now_ns;
    if (read > 0) read_ns_ = now_ns + moderation_ns();
    if (!buffer_.empty()) {  // who has read all that it has buffers for reads on without a pause
        read_ns_ = now_ns;
        work_at(free_ns_);
    }
    set_timer();
    tell();
}

// So much has been read at once, and what is next begins another batch.
bool Worker::is_batch(std::size_t packets, std::size_t trains) const {
    if (!setup_.trains) return packets == kBatch;
    return trains == kTrains && !buffer_.front().follows();
}

// A share that waits is not stalled while another one has results.
void Worker::note_progress() {
    bool is_some = false;
    for (const auto &share : shares_) {
        const std::uint64_t results = share->core.results();
        is_some |= results != std::exchange(share->results, results);
    }
    if (!is_some) return;
    for (const auto &share : shares_) share->core.note_progress(engine_->now_ns());
}

void Worker::set_timer() {
    std::int64_t deadline_ns = kNever;
    for (const auto &share : shares_) {
        deadline_ns = std::min(deadline_ns, share->core.next_deadline_ns(engine_->now_ns()));
    }
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
    for (const auto &share : shares_) {
        for (const std::uint64_t tensor : share->core.take_completions()) {
            const auto left = shares_left_.find(tensor);
            if (--left->second > 0) continue;
            shares_left_.erase(left);
            tell_(this, {WorkerEvent::Kind::kDone, tensor});
        }
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
