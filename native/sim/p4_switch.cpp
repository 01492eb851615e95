#include "sim/p4_switch.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include "switch/frame.hpp"

namespace ina::sim {

P4Switch::P4Switch(Engine *engine, FramePool *frames, std::uint32_t cpu_port,
                   const SwitchSetup &setup, Stream losses, Stream wakes)
    : engine_(engine), frames_(frames), cpu_port_(cpu_port), setup_(setup), random_(losses),
      waking_(setup.wake, wakes), ports_(INA_MAX_PORTS), arena_(new std::uint8_t[kArenaBytes]),
      packets_(kMostCopies), depth_packets_(INA_MAX_PORTS), right_until_ns_(INA_MAX_PORTS, kNever) {
    output_.arena = arena_.get();
    output_.arena_bytes = kArenaBytes;
    output_.packets = packets_.data();
    output_.capacity = packets_.size();
    output_.depth_pkts = depth_packets_.data();
}

void P4Switch::attach(std::uint32_t port, Port *leaving) {
    if (port >= INA_MAX_PORTS) {
        throw std::invalid_argument("a port's number is below " + std::to_string(INA_MAX_PORTS));
    }
    ports_[port] = leaving;
    attached_.push_back(port);
}

void P4Switch::set_pipeline(const ina_pipeline *pipeline, void *state) {
    pipeline_ = pipeline;
    state_ = state;
}

void P4Switch::clear_queues() {
    inbox_.clear();
    outbox_.clear();
    for (const std::uint32_t number : attached_) ports_[number]->clear();
    all_right_until_ns_ = 0;
    std::fill(right_until_ns_.begin(), right_until_ns_.end(), 0);
}

void P4Switch::look_at(std::uint32_t number) {
    depth_packets_[number] = ports_[number]->waiting_packets();
    right_until_ns_[number] = ports_[number]->next_sent_ns();
}

void P4Switch::look_at_all() {
    const std::int64_t now_ns = engine_->now_ns();
    all_right_until_ns_ = kNever;
    for (const std::uint32_t number : attached_) {
        if (right_until_ns_[number] <= now_ns) look_at(number);
        all_right_until_ns_ = std::min(all_right_until_ns_, right_until_ns_[number]);
    }
}

void P4Switch::receive(Frame frame, std::uint32_t port) {
    ++counters_.received_packets;
    if (pipeline_ == nullptr) {
        ++counters_.off_packets;
        return;
    }
    if (!setup_.is_soft()) return process(frame, port);
    if (random_.chance(setup_.loss)) {
        ++counters_.loss_in_packets;
        return;
    }
    inbox_.push_back({std::move(frame), port});
    if (is_put_down_) return;
    // What arrives at this very moment belongs to the batch: it comes as one super-packet.
    const std::int64_t now_ns = engine_->now_ns();
    is_put_down_ = true;
    engine_->at(free_ns_ < now_ns ? now_ns + waking_.now_takes_ns() : free_ns_, this, kWork);
    waking_.next();
}

void P4Switch::on_event(std::uint64_t what) {
    if (what == kSend) return send_outbox();
    is_put_down_ = false;
    if (pipeline_ != nullptr) return work();
    counters_.off_packets += inbox_.size();
    inbox_.clear();
}

void P4Switch::work() {
    const std::int64_t now_ns = engine_->now_ns();
    std::size_t taken = 0;
    const auto has_room = [&] {
        return taken + kReceive <= kBatch || inbox_.front().first.follows();
    };
    for (; !inbox_.empty() && has_room(); ++taken) {
        process(inbox_.front().first, inbox_.front().second);
        inbox_.pop_front();
    }
    const auto packets = static_cast<std::int64_t>(taken + outbox_.size());
    free_ns_ = now_ns + packets * setup_.packet_cost_ns;
    if (free_ns_ == now_ns) {
        send_outbox();
    } else {
        engine_->at(free_ns_, this, kSend);
    }
    if (inbox_.empty()) return;
    is_put_down_ = true;
    engine_->at(free_ns_, this, kWork);
}

// What goes by one port together, in the order in which it was written.
void P4Switch::send_outbox() {
    std::vector<Frame> frames;
    for (std::size_t first = 0; first < outbox_.size(); ++first) {
        if (!outbox_[first].second) continue;
        const std::uint32_t port = outbox_[first].first;
        for (std::size_t i = first; i < outbox_.size(); ++i) {
            if (outbox_[i].first == port) frames.push_back(std::move(outbox_[i].second));
        }
        send_trains(port, &frames);
        frames.clear();
    }
    outbox_.clear();
    std::fill(depth_packets_.begin(), depth_packets_.end(), 0);  // a thread sees no queues
}

// Of frames to one address and port, of one length, as GSO wants them.
void P4Switch::send_trains(std::uint32_t port, std::vector<Frame> *frames) {
    constexpr std::size_t kAddress = sw::kEthernetBytes + 16;  // IPv4's, then UDP's ports
    constexpr std::size_t kAddressBytes = 8;
    std::vector<Frame> train;
    for (Frame &frame : *frames) {
        ++counters_.sent_packets;
        const std::size_t packets = train.size() + 1;
        const bool fits =
            setup_.trains && !train.empty() && packets <= kTrainPackets &&
            train.front().bytes() == frame.bytes() && frame.bytes() >= sw::kFrameHeaderBytes &&
            packets * (frame.bytes() - sw::kFrameHeaderBytes) <= kTrainBytes &&
            std::memcmp(train.front().data() + kAddress, frame.data() + kAddress, kAddressBytes) ==
                0;
        if (!fits && !train.empty()) {
            ports_[port]->send_train(&train);
            train.clear();
        }
        train.push_back(std::move(frame));
    }
    if (!train.empty()) ports_[port]->send_train(&train);
}

void P4Switch::process(const Frame &frame, std::uint32_t port) {
    if (!setup_.is_soft() && all_right_until_ns_ <= engine_->now_ns()) look_at_all();
    ina_packet_in in{};
    in.data = frame.data();
    in.length = frame.bytes();
    in.port = port;
    in.now_ns = static_cast<std::uint64_t>(engine_->now_ns());
    output_.count = output_.arena_used = 0;
    pipeline_->process(state_, &in, 1, &output_);
    for (std::size_t i = 0; i < output_.count; ++i) {
        const ina_packet_out &out = packets_[i];
        Port *const to = out.port < INA_MAX_PORTS ? ports_[out.port] : nullptr;
        if (to != nullptr && setup_.is_soft()) {
            if (random_.chance(setup_.loss)) {
                ++counters_.loss_out_packets;
            } else {
                outbox_.emplace_back(out.port, frames_->make(out.data, out.length));
            }
        } else if (to != nullptr) {
            ++counters_.sent_packets;
            to->send(frames_->make(out.data, out.length));
            look_at(out.port);  // the program has added one, whatever became of the frame
            all_right_until_ns_ = std::min(all_right_until_ns_, right_until_ns_[out.port]);
        } else if (out.port == cpu_port_) {
            ++counters_.to_controller_packets;
        } else {
            ++counters_.unknown_port_packets;
            if (out.port < INA_MAX_PORTS) depth_packets_[out.port] = 0;
        }
    }
}

}  // namespace ina::sim
