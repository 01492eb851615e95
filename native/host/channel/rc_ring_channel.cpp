#include "host/channel/rc_ring_channel.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "common/ina_wire.hpp"

namespace ina::host {

RcRingChannel::RcRingChannel(std::shared_ptr<RcRing> ring, std::uint32_t lanes)
    : ring_(std::move(ring)), lanes_(lanes) {
    if (!ring_->is_connected()) throw std::invalid_argument("queue pairs without a way");
    if (ring_->lanes() != lanes) throw std::invalid_argument("queue pairs of other lanes");
    taken_.reserve(kBurst);
}

RcRingChannel::~RcRingChannel() { ring_->close(); }

void RcRingChannel::send(const PacketView *packets, std::size_t count, std::size_t /*train*/,
                         std::size_t /*way*/) {
    for (std::size_t i = 0; i < count; ++i) {
        const PacketView &packet = packets[i];
        if (is_broken_ || packet.bytes < wire::kHeaderBytes ||
            packet.bytes > ring_->message_bytes()) {
            ++counters_.send_drops;
            continue;
        }
        const std::uint32_t seq = wire::load_be32(packet.data + wire::kSeqOffset);
        const auto number = seq & (static_cast<std::uint32_t>(lanes_.size()) - 1);
        Lane &lane = lanes_[number];
        if (lane.has_sent && lane.last_seq == seq) continue;  // the device sees to that
        if (!copy(number, packet)) {
            ++counters_.send_drops;
            continue;
        }
        lane.has_sent = true;
        lane.last_seq = seq;
        post(number);
    }
}

bool RcRingChannel::copy(std::uint32_t number, const PacketView &packet) {
    Lane &lane = lanes_[number];
    if (lane.copied - lane.done == RcRing::kFrames) return false;
    const auto index = static_cast<std::uint32_t>(lane.copied++ % RcRing::kFrames);
    std::memcpy(ring_->frame(number, index), packet.data, packet.bytes);
    lane.bytes[index] = static_cast<std::uint32_t>(packet.bytes);
    ++owed_;
    return true;
}

// As many of what was copied as the device has places for.
void RcRingChannel::post(std::uint32_t number) {
    Lane &lane = lanes_[number];
    while (!is_broken_ && lane.posted < lane.copied && lane.posted - lane.done < RcRing::kPosted) {
        const auto index = static_cast<std::uint32_t>(lane.posted % RcRing::kFrames);
        ++counters_.send_calls;
        if (ring_->send(number, index, lane.bytes[index]) != 0) {
            note_broken();
            return;
        }
        ++lane.posted;
    }
}

void RcRingChannel::poll() {
    if (here_ > 0 || is_broken_) return;
    const int count = ring_->poll(ended_.data(), static_cast<int>(kBurst));
    if (count < 0) note_broken();
    here_ = static_cast<std::size_t>(std::max(count, 0));
}

bool RcRingChannel::receive(std::vector<Arrival> *arrivals) {
    arrivals->clear();
    release();
    if (asked_) {
        asked_ = false;
        ring_->take_events();
    }
    poll();
    ++counters_.receive_calls;
    const std::size_t count = std::exchange(here_, 0);
    for (std::size_t i = 0; i < count; ++i) take(ended_[i], arrivals);
    return count == kBurst;
}

void RcRingChannel::take(const verbs::Wc &ended, std::vector<Arrival> *arrivals) {
    const RcRing::Ended it = RcRing::ended_of(ended.wr_id);
    if (ended.status != verbs::kWcSuccess) {
        if (ended.status == verbs::kWcRetriesSpent) ++counters_.spent;
        note_broken();
        return;
    }
    if (it.is_sent) {
        if (is_broken_) return;  // nothing is owed any more
        Lane &lane = lanes_[it.lane];
        ++lane.done;  // they end in order
        --owed_;
        post(it.lane);
        return;
    }
    taken_.push_back(it);
    // Of marks on the way only the device knows.
    arrivals->push_back({ring_->buffer(it.lane, it.index), ended.byte_len, false});
}

void RcRingChannel::release() {
    for (const RcRing::Ended &it : taken_) {
        if (!is_broken_ && ring_->post(it.lane, it.index) != 0) note_broken();
    }
    taken_.clear();
}

bool RcRingChannel::prepare_sleep(std::uint32_t /*in_flight*/) {
    if (is_broken_) return true;
    if (!ring_->ask_for_event()) {
        note_broken();
        return true;
    }
    asked_ = true;
    poll();  // what came before it was asked for wakes nobody
    return here_ == 0;
}

void RcRingChannel::note_broken() {
    if (std::exchange(is_broken_, true)) return;
    ++counters_.refused;
    owed_ = 0;  // it cannot
}

}  // namespace ina::host
