#include "host/channel/uc_queue.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace ina::host {
namespace {

constexpr std::size_t kLineBytes = 64;
constexpr std::uint32_t kSpareBuffers = 64;
constexpr std::uint32_t kLeastDepth = 256;

std::size_t whole_lines(std::size_t bytes) {
    return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
}

}  // namespace

UcQueue::UcQueue(const UcPlace &place) : place_(place), port_(place.at, place.message_bytes) {
    map_memory();
    make_queues();
}

void UcQueue::map_memory() {
    frame_bytes_ = whole_lines(kLineBytes + place_.message_bytes);
    // Resends among them: each packet twice.
    send_depth_ = std::max(kLeastDepth, 2 * place_.packets);
    buffer_count_ = 2 * place_.packets + kSpareBuffers;
    const std::size_t frames = frame_bytes_ * place_.packets;
    const std::size_t headers = kHeaderStride * send_depth_;
    memory_ = port_.map(frames + headers + std::size_t{buffer_bytes()} * buffer_count_);
    headers_ = memory_ + frames;
    buffers_ = headers_ + headers;
}

void UcQueue::make_queues() {
    // When a queue pair breaks, all that was posted ends there.
    sent_ = port_.make_cq(send_depth_ + 1, false);
    received_ = port_.make_cq(buffer_count_ + 1, true);
    verbs::QpInitAttr wanted{};
    wanted.send_cq = sent_;
    wanted.recv_cq = received_;
    wanted.cap = {send_depth_, buffer_count_, 2, 1, 0};
    wanted.qp_type = verbs::kQpUc;
    qp_ = port_.make_qp(wanted, "a queue pair for " + std::to_string(place_.packets) + " packets");
    number_ = qp_->qp_num;
    for (std::uint32_t i = 0; i < buffer_count_; ++i) {
        post_buffer(qp_, i,
                    {reinterpret_cast<std::uintptr_t>(buffer(i)), buffer_bytes(), memory_key()});
    }
}

void UcQueue::connect(const RdmaPath &path) {
    if (!is_open()) throw std::runtime_error("the queue pair is closed");
    port_.connect(qp_, path, nullptr);
    is_connected_ = true;
}

void UcQueue::close() {
    port_.close();
    is_connected_ = false;
}

}  // namespace ina::host
