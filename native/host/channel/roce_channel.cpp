#include "host/channel/roce_channel.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "common/ina_wire.hpp"

namespace ina::host {
namespace {

std::uint64_t address_of(const std::uint8_t *memory) {
    return reinterpret_cast<std::uintptr_t>(memory);
}

}  // namespace

RoceChannel::RoceChannel(std::shared_ptr<UcQueue> queue) : queue_(std::move(queue)) {
    if (!queue_->is_connected()) throw std::invalid_argument("a queue pair without a way");
    taken_.reserve(kBurst);
}

RoceChannel::~RoceChannel() { queue_->close(); }

PacketMemory RoceChannel::packet_memory() {
    return {queue_->frame(0), queue_->frame_bytes(), queue_->place().packets};
}

void RoceChannel::send(const PacketView *packets, std::size_t count, std::size_t /*train*/,
                       std::size_t /*way*/) {
    std::size_t next = 0;
    while (next < count) {
        const std::size_t most = take_places(std::min(kBurst, count - next));
        if (most == 0) break;
        std::size_t filled = 0;
        for (; filled < most && next < count; ++next) {
            if (fill(packets[next], filled)) {
                ++filled;
            } else {
                ++counters_.send_drops;
            }
        }
        if (filled == 0) continue;
        sends_[filled - 1].next = nullptr;
        verbs::SendWr *bad = nullptr;
        ++counters_.send_calls;
        const int error = queue_->post_send(sends_.data(), &bad);
        std::size_t taken = filled;
        if (error != 0) taken = bad == nullptr ? 0 : static_cast<std::size_t>(bad - sends_.data());
        posted_ += taken;
        counters_.send_drops += filled - taken;
        if (error == 0) continue;
        if (error != ENOMEM) note_broken();
        break;
    }
    counters_.send_drops += count - next;
    if (is_broken_ && count > 0) ++counters_.refused;
}

// Of the NIC's queue; 0: none is free, or it takes nothing any more.
std::size_t RoceChannel::take_places(std::size_t wanted) {
    const auto free = [this] { return queue_->send_depth() - (posted_ - done_); };
    if (free() < wanted) reap();
    return is_broken_ ? 0 : std::min<std::size_t>(wanted, free());
}

void RoceChannel::reap() {
    std::array<verbs::Wc, 16> ended;
    while (true) {
        const int count = queue_->poll_sent(ended.data(), static_cast<int>(ended.size()));
        if (count < 0) note_broken();
        for (int i = 0; i < count; ++i) {
            const verbs::Wc &it = ended[static_cast<std::size_t>(i)];
            if (it.status != verbs::kWcSuccess) note_broken();
            done_ = std::max(done_, it.wr_id + 1);  // they end in order
        }
        if (count < static_cast<int>(ended.size())) return;
    }
}

// False: it lies where the NIC does not read.
bool RoceChannel::fill(const PacketView &packet, std::size_t index) {
    const std::size_t all_bytes = queue_->frame_bytes() * queue_->place().packets;
    const std::uint64_t at = address_of(packet.data) - address_of(queue_->frame(0));
    if (at >= all_bytes || packet.bytes < wire::kHeaderBytes ||
        packet.bytes > queue_->path_mtu_bytes() || packet.bytes > all_bytes - at) {
        return false;
    }
    const std::uint64_t number = posted_ + index;
    std::uint8_t *const header =
        queue_->header(static_cast<std::uint32_t>(number % queue_->send_depth()));
    std::memcpy(header, packet.data, wire::kHeaderBytes);
    std::array<verbs::Sge, 2> &pieces = pieces_[index];
    pieces[0] = {address_of(header), wire::kHeaderBytes, queue_->memory_key()};
    pieces[1] = {address_of(packet.data + wire::kHeaderBytes),
                 static_cast<std::uint32_t>(packet.bytes - wire::kHeaderBytes),
                 queue_->memory_key()};
    verbs::SendWr &send = sends_[index];
    send.wr_id = number;
    send.next = &send + 1;
    send.sg_list = pieces.data();
    send.num_sge = pieces[1].length == 0 ? 1 : 2;
    send.opcode = verbs::kWrSend;
    send.send_flags = (number + 1) % kSignalEach == 0 ? verbs::kSendSignaled : 0;
    return true;
}

void RoceChannel::poll() {
    if (here_ > 0 || is_broken_) return;
    const int count = queue_->poll_received(ended_.data(), static_cast<int>(kBurst));
    if (count < 0) note_broken();
    here_ = static_cast<std::size_t>(std::max(count, 0));
}

bool RoceChannel::receive(std::vector<Arrival> *arrivals) {
    arrivals->clear();
    release();
    if (asked_) {
        asked_ = false;
        queue_->take_events();
    }
    poll();
    ++counters_.receive_calls;
    const std::size_t count = std::exchange(here_, 0);
    for (std::size_t i = 0; i < count; ++i) {
        const verbs::Wc &it = ended_[i];
        if (it.status != verbs::kWcSuccess) {
            note_broken();
            continue;
        }
        const auto buffer = static_cast<std::uint32_t>(it.wr_id);
        taken_.push_back(buffer);
        // Of marks on the way only the NIC knows.
        arrivals->push_back({queue_->buffer(buffer), it.byte_len, false});
    }
    return count == kBurst;
}

void RoceChannel::release() {
    if (taken_.empty()) return;
    for (std::size_t i = 0; i < taken_.size(); ++i) {
        buffers_[i] = {address_of(queue_->buffer(taken_[i])), queue_->buffer_bytes(),
                       queue_->memory_key()};
        receives_[i] = {taken_[i], &receives_[i] + 1, &buffers_[i], 1};
    }
    receives_[taken_.size() - 1].next = nullptr;
    taken_.clear();
    verbs::RecvWr *bad = nullptr;
    if (queue_->post_receive(receives_.data(), &bad) != 0) note_broken();
}

bool RoceChannel::prepare_sleep(std::uint32_t /*in_flight*/) {
    if (is_broken_) return true;
    if (!queue_->ask_for_event()) {
        note_broken();
        return true;
    }
    asked_ = true;
    poll();  // what came before it was asked for wakes nobody
    return here_ == 0;
}

void RoceChannel::note_broken() {
    if (std::exchange(is_broken_, true)) return;
    ++counters_.refused;
}

}  // namespace ina::host
