#include "sim/p4_switch.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace ina::sim {

P4Switch::P4Switch(Engine *engine, FramePool *frames, std::uint32_t cpu_port)
    : engine_(engine), frames_(frames), cpu_port_(cpu_port), ports_(INA_MAX_PORTS),
      arena_(new std::uint8_t[kArenaBytes]), packets_(kMostCopies), depth_packets_(INA_MAX_PORTS),
      right_until_ns_(INA_MAX_PORTS, kNever) {
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
    if (all_right_until_ns_ <= engine_->now_ns()) look_at_all();
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
        if (to != nullptr) {
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
