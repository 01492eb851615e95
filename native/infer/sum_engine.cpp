#include "infer/sum_engine.hpp"

#include <algorithm>
#include <stdexcept>

namespace ina::infer {
namespace {

host::TransportOptions options_of(std::uint32_t max_in_flight,
                                  const congestion::Choice &congestion) {
    host::TransportOptions options;
    options.max_in_flight = max_in_flight;
    options.congestion = congestion;
    return options;
}

}  // namespace

SumEngine::SumEngine(const host::WorkerConfig &config, std::uint32_t max_in_flight,
                     const congestion::Choice &congestion, std::uint32_t room_packets,
                     bool is_virtual)
    : TransportEngine(config, options_of(max_in_flight, congestion), {{room_packets, true}}, {}, 1,
                      true),
      is_virtual_(is_virtual), batch_(kBatch) {
    const host::Layout first = layout();
    if (first.ways.size() != 1) {
        throw std::invalid_argument("sums of inference are made at one switch");
    }
    to_ = first.ways.front().node;
    station_.number = 0;
    take_layout();
}

void SumEngine::take_layout() {
    host::Layout now = layout();
    const bool is_same = now.ways.size() == 1 && now.ways.front().node == to_;
    adopt(station_, std::move(now), is_same ? "" : "sums of inference stay at their switch");
}

void SumEngine::wake(std::size_t) {
    const std::lock_guard lock(bell_mutex_);
    if (bell_) bell_();
}

void SumEngine::sum(std::uint64_t seq, const std::int32_t *part, std::int32_t *sum,
                    std::size_t values) {
    host::TensorRequest request;
    request.type = host::ValueType::kInt32;
    request.elems = values;
    request.in = part;
    request.out = sum;
    const auto operation = submit(request);
    submitted_.emplace_back(operation->id(), seq);
}

void SumEngine::receive(const std::uint8_t *packet, std::size_t bytes, std::int64_t now_ns,
                        bool ip_marked) {
    at_ns_ = now_ns;
    if (has_left_) return;
    const host::Work &work = station_.work[station_.index_of(packet, bytes)];
    host::Share &share = *work.share;
    const std::lock_guard lock(share.mutex);
    share.time_ns = std::max(share.time_ns, now_ns);
    share.core.on_result(packet, bytes, share.time_ns, ip_marked);
    accepted(work);
}

std::vector<std::uint64_t> SumEngine::take_done() {
    std::vector<std::uint64_t> done;
    if (has_left_) return done;  // what ended then has failed
    for (const std::uint64_t id : take_watched()) {
        const auto found = std::find_if(submitted_.begin(), submitted_.end(),
                                        [&](const auto &one) { return one.first == id; });
        if (found == submitted_.end()) continue;
        done.push_back(found->second);
        submitted_.erase(found);
    }
    return done;
}

std::int64_t SumEngine::next_deadline_ns() {
    if (has_left_) return host::kNever;
    std::int64_t deadline_ns = host::kNever;
    for (const host::Work &work : station_.work) {
        host::Share &share = *work.share;
        const std::lock_guard lock(share.mutex);
        deadline_ns = std::min(deadline_ns, share.core.next_deadline_ns(share.time_ns));
    }
    return deadline_ns;
}

void SumEngine::leave_once() {
    if (!has_left_.exchange(true)) leave(station_);
}

void SumEngine::close() {
    if (is_closed_) return;
    is_closed_ = true;
    stop();
    leave_once();
    end_closed();
}

}  // namespace ina::infer
