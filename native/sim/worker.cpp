#include "sim/worker.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace ina::sim {
namespace {

constexpr std::uint8_t kEcnBits = 3;
constexpr std::uint8_t kCongestionExperienced = 3;

std::uint32_t most_in_flight(const WorkerSetup &setup, const host::WorkerConfig &config) {
    return setup.max_in_flight == 0 ? host::window_of(config) : setup.max_in_flight;
}

}  // namespace

Worker::Worker(Engine *engine, FramePool *frames, Host *host, std::string name,
               const WorkerSetup &setup, const host::WorkerConfig &config,
               const congestion::Choice &window, Tell tell)
    : engine_(engine), frames_(frames), host_(host), name_(std::move(name)), setup_(setup),
      tell_(std::move(tell)),
      core_(std::make_unique<host::WorkerCore>(
          config, congestion::make_window(window, most_in_flight(setup, config)))),
      order_(core_->window(), config.values_per_packet), pacing_(most_in_flight(setup, config)) {
    host_->listen(kUdp, setup_.own.port, this);
    if (setup_.results_group != 0) {
        host_->join_group(setup_.results_group, setup_.results_udp_port, this);
    }
}

const host::WorkerCore &Worker::alive_core() const {
    if (core_ == nullptr) throw std::logic_error(name_ + " has crashed");
    return *core_;
}

host::WorkerCore &Worker::alive_core() {
    return const_cast<host::WorkerCore &>(std::as_const(*this).alive_core());
}

void Worker::submit(const host::TensorRequest &request) {
    alive_core().submit(order_.next(request), engine_->now_ns());
    work_at(engine_->now_ns());
}

void Worker::pause(std::int64_t until_ns) {
    paused_until_ns_ = std::max(paused_until_ns_, until_ns);
    if (core_ == nullptr) return;
    work_at_ns_ = kNever;  // what has been put down is void
    work_at(paused_until_ns_);
}

void Worker::crash() {
    if (core_ == nullptr) return;
    host_->listen(kUdp, setup_.own.port, nullptr);
    leave_group();
    core_.reset();
    buffer_.clear();
    outbox_.clear();
    buffered_bytes_ = 0;
}

void Worker::leave_group() { host_->leave_groups(this); }

void Worker::receive(Frame frame) {
    if (core_ == nullptr) return;
    if (buffered_bytes_ + frame.bytes() > setup_.buffer_bytes) {
        ++buffer_full_packets_;
        return;
    }
    buffered_bytes_ += frame.bytes();
    buffer_.push_back(std::move(frame));
    work_at(std::max(engine_->now_ns(), read_ns_));
}

void Worker::on_event(std::uint64_t what) {
    if (core_ == nullptr) return;
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

// Once the processor is free, and no later than is put down already.
void Worker::work_at(std::int64_t at_ns) {
    at_ns = std::max({at_ns, free_ns_, paused_until_ns_});
    if (at_ns >= work_at_ns_) return;
    if (at_ns == engine_->now_ns()) {
        ++work_number_;  // what has been put down is void
        work_at_ns_ = kNever;
        return work();
    }
    work_at_ns_ = at_ns;
    engine_->at(at_ns, this, ++work_number_ * kWhats + kWork);
}

void Worker::work() {
    const std::int64_t now_ns = engine_->now_ns();
    std::int64_t cost_ns = 0;
    std::size_t read = 0;
    for (; read < kBatch && !buffer_.empty(); ++read) {
        const Frame frame = std::move(buffer_.front());
        buffer_.pop_front();
        buffered_bytes_ -= frame.bytes();
        cost_ns += this->cost_ns(frame);
        sw::Datagram datagram;
        // A socket takes a result from its switch alone.
        if (!sw::parse_udp_frame(frame.data(), frame.bytes(), &datagram) ||
            !(datagram.source == setup_.to)) {
            continue;
        }
        const bool is_marked = (datagram.tos & kEcnBits) == kCongestionExperienced;
        core_->on_result(datagram.payload, datagram.payload_bytes, now_ns, is_marked);
    }
    free_ns_ = now_ns + cost_ns;
    transmit();
    busy_ns_ += free_ns_ - now_ns;
    if (read > 0) read_ns_ = now_ns + pacing_.moderation_ns(*core_);
    if (!buffer_.empty()) work_at(std::max(free_ns_, read_ns_));
    const std::int64_t deadline_ns = core_->next_deadline_ns(now_ns);
    if (deadline_ns < timer_at_ns_) {
        timer_at_ns_ = deadline_ns;
        engine_->at(deadline_ns, this, ++timer_number_ * kWhats + kTimer);
    }
    tell();
}

void Worker::transmit() {
    host::PacketView batch[kBatch];
    std::vector<Frame> frames;
    std::size_t count = 0;
    do {
        count = core_->poll_transmit(engine_->now_ns(), batch, kBatch);
        for (std::size_t i = 0; i < count; ++i) {
            Frame frame = frames_->make(sw::kFrameHeaderBytes + batch[i].bytes);
            sw::write_frame_header(frame.data(), setup_.own, setup_.to, setup_.tos, batch[i].bytes);
            std::memcpy(frame.data() + sw::kFrameHeaderBytes, batch[i].data, batch[i].bytes);
            free_ns_ += cost_ns(frame);
            frames.push_back(std::move(frame));
        }
    } while (count == kBatch);
    if (frames.empty()) return;
    const std::uint32_t longest_train = pacing_.longest_train(*core_);
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
        constexpr std::size_t kTrainBytes = 65000;
        std::vector<Frame> train;
        for (Frame &frame : *frames) {
            const std::size_t most = std::max<std::size_t>(
                1, std::min<std::size_t>(kTrainBytes / frame.bytes(), longest_train));
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
    for (const std::uint64_t tensor : core_->take_completions()) {
        tell_(this, {WorkerEvent::Kind::kDone, tensor});
    }
    if (told_failure_) return;
    if (core_->mismatch()) {
        told_failure_ = true;
        tell_(this, {WorkerEvent::Kind::kMismatch, core_->mismatch()->tensor});
    } else if (core_->stall()) {
        told_failure_ = true;
        tell_(this, {WorkerEvent::Kind::kStalled, 0});
    }
}

}  // namespace ina::sim
