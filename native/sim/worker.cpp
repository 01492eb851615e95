#include "sim/worker.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace ina::sim {
namespace {

host::TransportOptions options_of(const WorkerSetup &setup, const congestion::Choice &window) {
    return {setup.max_in_flight, setup.shares, setup.halts, window};
}

// Its one buffer has a limit in bytes, of its own.
std::vector<host::ResultQueue> queues_of(const WorkerSetup &setup,
                                         const host::WorkerConfig &config) {
    const std::uint32_t parts = setup.shares;
    if (parts == 0 || parts > host::window_of(config) || (parts & (parts - 1)) != 0) {
        throw std::invalid_argument("shares must be a power of two, at most W");
    }
    return std::vector<host::ResultQueue>(parts, {UINT32_MAX, true});
}

}  // namespace

Worker::Worker(sim::Engine *engine, FramePool *frames, Host *host, std::string name,
               const WorkerSetup &setup, const host::WorkerConfig &config,
               const congestion::Choice &window, Stream random, Tell tell)
    : TransportEngine(config, options_of(setup, window), queues_of(setup, config), {}, 1, true),
      engine_(engine), host_(host), name_(std::move(name)), setup_(setup), tell_(std::move(tell)),
      nic_(make_nic(setup, host, frames, host::window_of(config))), waking_(setup.wake, random) {
    station_.number = host::Station::kAll;
    take_layout();
    nic_->listen(this);
}

// What there is to work on now. Audits hear what no packet tells them: that tensors were taken
// back, and who is gone.
void Worker::take_layout() {
    const bool was_cut = station_.layout.is_cut;
    const host::Layout former = std::move(station_.layout);
    adopt(station_, layout(), "");
    const host::Layout &now = station_.layout;
    if (now.is_cut && !was_cut) {
        for (const auto &share : now.mappings.front()->shares) {
            audits_.at(share.get()).withdrawn_from(now.first_of_new);
        }
    }
    std::unordered_map<const host::Share *, WindowAudit> audits;
    for (const host::Work &work : station_.work) {
        const auto found = audits_.find(work.share);
        if (found != audits_.end()) {
            audits.insert(audits_.extract(found));
        } else {
            audits.try_emplace(work.share, work.share->core.config(), work.share->room.packets);
        }
    }
    audits_ = std::move(audits);
}

void Worker::attend() {
    if (!is_alive_ || has_ended_) return;
    if (!has_adopted(station_)) take_layout();
    if (is_ending()) return end();
    work_at(engine_->now_ns());
}

// It is frozen, or has failed: what is done was told.
void Worker::end() {
    tell();
    has_ended_ = true;
    ++work_number_;  // what has been put down is void
    work_at_ns_ = kNever;
    leave(station_);
    take_watched();
}

std::int64_t Worker::moderation_ns() const {
    const host::Share &first = *station_.layout.current().shares.front();
    return first.pacing.moderation_ns(first.core);
}

void Worker::pause(std::int64_t until_ns) {
    paused_until_ns_ = std::max(paused_until_ns_, until_ns);
    if (!is_alive_ || has_ended_) return;
    ++work_number_;  // what has been put down is void
    work_at_ns_ = kNever;
    work_at(paused_until_ns_);
}

void Worker::crash() {
    if (!is_alive_) return;
    is_alive_ = false;
    nic_->listen(nullptr);
    leave_group();
    stop();
    end_closed();
    buffer_.clear();
    outbox_.clear();
    buffered_bytes_ = 0;
}

void Worker::leave_group() { nic_->leave_group(this); }

void Worker::receive(Frame frame) {
    if (!is_alive_ || has_ended_) return;
    if (buffered_bytes_ + frame.bytes() > setup_.buffer_bytes) {
        ++buffer_full_packets_;
        return;
    }
    buffered_bytes_ += frame.bytes();
    buffer_.push_back(std::move(frame));
    work_at(std::max(engine_->now_ns(), read_ns_));
}

void Worker::on_event(std::uint64_t what) {
    if (!is_alive_ || (has_ended_ && what % kWhats != kSend)) return;
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

// From which alone a socket takes the share's packets.
Peer Worker::address_of(const host::Share &share) const {
    const Peer &node = station_.layout.ways[share.way].node;
    return node.is_known() ? node : setup_.to;
}

void Worker::work() {
    const std::int64_t now_ns = engine_->now_ns();
    waking_.next();
    const std::size_t waited = buffer_.size();
    free_ns_ = now_ns + read();
    for (const host::Work &work : station_.work) accepted(work);
    nic_->look_at_timers(now_ns, &replies_);
    if (nic_->has_failed() && !std::exchange(told_refused_, true)) note_refused(1);
    for (const Frame &frame : replies_) free_ns_ += cost_ns(frame);
    put_out(&replies_, kBatch);
    for (const host::Work &work : station_.work) work_on(work);
    busy_ns_ += free_ns_ - now_ns;
    if (buffer_.size() < waited) read_ns_ = now_ns + moderation_ns();
    if (!buffer_.empty()) {  // who has read all that it has buffers for reads on without a pause
        read_ns_ = now_ns;
        work_at(free_ns_);
    }
    set_timer();
    tell();
    if (is_ending() && !has_ended_) end();
}

// What it has buffers for. Returns what that takes.
std::int64_t Worker::read() {
    std::int64_t cost_ns = 0;
    std::size_t trains = 0;
    for (std::size_t read = 0; !buffer_.empty() && !is_batch(read, trains); ++read) {
        trains += buffer_.front().follows() ? 0 : 1;
        const Frame frame = std::move(buffer_.front());
        buffer_.pop_front();
        buffered_bytes_ -= frame.bytes();
        cost_ns += this->cost_ns(frame);
        const auto result = nic_->take(frame, engine_->now_ns(), &replies_);
        if (!result) continue;
        const host::Work &work =
            station_.work[station_.index_of(result->packet.data, result->packet.bytes)];
        if (result->from == address_of(*work.share)) accept(work, result->packet);
    }
    return cost_ns;
}

void Worker::accept(const host::Work &work, const host::Arrival &packet) {
    host::Share &share = *work.share;
    const std::uint64_t results = share.core.results();
    const std::uint64_t chunks = share.core.chunks();
    share.time_ns = engine_->now_ns();
    share.core.on_result(packet.data, packet.bytes, share.time_ns, packet.ip_marked);
    if (share.core.results() == results) return;
    const host::PacketView inside = work.mapping->framing.inside(packet.data, packet.bytes);
    const std::uint32_t seq = wire::load_be32(inside.data + wire::kSeqOffset);
    audits_.at(&share).answered(seq, share.core.chunks() > chunks,
                                inside.data + wire::kHeaderBytes);
}

// So much has been read at once, and what is next begins another batch.
bool Worker::is_batch(std::size_t packets, std::size_t trains) const {
    if (!setup_.trains) return packets == kBatch;
    return trains == kTrains && !buffer_.front().follows();
}

void Worker::set_timer() {
    std::int64_t deadline_ns = nic_->deadline_ns();
    for (const host::Work &work : station_.work) {
        deadline_ns = std::min(deadline_ns, work.share->core.next_deadline_ns(engine_->now_ns()));
    }
    if (deadline_ns >= timer_at_ns_) return;
    timer_at_ns_ = deadline_ns;
    engine_->at(deadline_ns, this, ++timer_number_ * kWhats + kTimer);
}

void Worker::work_on(const host::Work &work) {
    host::Share &share = *work.share;
    WindowAudit &audit = audits_.at(&share);
    const auto taken = take_inbox(work, std::nullopt);
    if (!taken) return;
    for (const host::Submission &placed : *taken) audit.submitted(placed);
    audit.set_most(std::min(share.most, share.room.packets));
    const Peer to = address_of(share);
    host::PacketView batch[kBatch];
    std::vector<Frame> frames;
    transmit(station_, work, batch, kBatch, [&](std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) {
            audit.sent(work.mapping->framing.inside(batch[i].data, batch[i].bytes),
                       share.core.in_flight_limit());
        }
        const std::size_t before = frames.size();
        nic_->send(batch, count, to, engine_->now_ns(), &frames);
        for (std::size_t i = before; i < frames.size(); ++i) free_ns_ += cost_ns(frames[i]);
    });
    put_out(&frames, share.pacing.longest_train(share.core));
}

// Once the processor has done with them.
void Worker::put_out(std::vector<Frame> *frames, std::uint32_t longest_train) {
    if (frames->empty()) return;
    if (free_ns_ == engine_->now_ns()) return send(frames, longest_train);
    for (Frame &frame : *frames) outbox_.push_back(std::move(frame));
    frames->clear();
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
    for (const std::uint64_t tensor : take_watched()) {
        tell_(this, {WorkerEvent::Kind::kDone, tensor});
    }
    if (breach_.empty()) {
        for (const host::Work &work : station_.work) {
            if (breach_.empty()) breach_ = audits_.at(work.share).breach();
        }
        if (!breach_.empty()) tell_(this, {WorkerEvent::Kind::kBreach, 0});
    }
    if (told_failure_ || !is_ending()) return;
    told_failure_ = true;
    if (const auto mismatch = this->mismatch()) {
        tell_(this, {WorkerEvent::Kind::kMismatch, mismatch->tensor});
    } else if (const auto corruption = this->corruption()) {
        tell_(this, {WorkerEvent::Kind::kCorrupted, corruption->tensor});
    } else if (failure()) {
        tell_(this, {WorkerEvent::Kind::kStalled, 0});
    }
}

}  // namespace ina::sim
