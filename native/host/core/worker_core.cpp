#include "host/core/worker_core.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

namespace ina::host {
namespace {

constexpr std::size_t kCacheLineBytes = 64;

void check(const WorkerConfig &config) {
    if (config.world_size < 1 || config.world_size > wire::kMaxWorkers) {
        throw std::invalid_argument("world_size must be 1..32, got " +
                                    std::to_string(config.world_size));
    }
    if (config.rank < 0 || config.rank >= config.world_size) {
        throw std::invalid_argument("rank must be 0.." + std::to_string(config.world_size - 1) +
                                    ", got " + std::to_string(config.rank));
    }
    if (config.values_per_packet < 1 || config.values_per_packet > 4095) {
        throw std::invalid_argument("values_per_packet must be 1..4095, got " +
                                    std::to_string(config.values_per_packet));
    }
    if (config.first_seq % (2 * window_of(config)) != 0) {
        throw std::invalid_argument("first_seq must be a multiple of 2 W, got " +
                                    std::to_string(config.first_seq));
    }
    const std::uint32_t shares = config.shares;
    if (shares < 1 || (shares & (shares - 1)) != 0 || shares > window_of(config)) {
        throw std::invalid_argument(
            "shares must be a power of two, at most W = " + std::to_string(window_of(config)) +
            ", got " + std::to_string(shares));
    }
    if (config.share >= shares) {
        throw std::invalid_argument("share must be 0.." + std::to_string(shares - 1) + ", got " +
                                    std::to_string(config.share));
    }
}

std::size_t round_up(std::size_t value, std::size_t multiple) {
    return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

std::uint32_t window_of(const WorkerConfig &config) {
    if (config.slots < 2 || config.slots > 65536) {
        throw std::invalid_argument("slots must be 2..65536, got " + std::to_string(config.slots));
    }
    // A power of two, so that seq mod 2W stays continuous when sequence numbers wrap at 2^32.
    std::uint32_t window = 1;
    while (window * 4 <= config.slots) window *= 2;
    return window;
}

WorkerCore::WorkerCore(const WorkerConfig &config, std::unique_ptr<CongestionWindow> congestion,
                       const PacketMemory &memory)
    : config_(config), window_(window_of(config)),
      first_own_(config.share * (window_ / std::max(config.shares, 1u))),
      full_bitmap_(static_cast<std::uint32_t>((std::uint64_t{1} << config.world_size) - 1)),
      values_bytes_(wire::kValueBytes * config.values_per_packet), memory_(memory),
      kernels_(best_kernels()), congestion_(std::move(congestion)), rtt_(config.rto),
      placement_(window_, std::max(config.values_per_packet, 1u)) {
    check(config);
    lanes_ = std::vector<Lane>(window_ / config.shares);
    if (memory_.base == nullptr) {
        // One packet right behind the other, for lanes that follow each other are sent together: of
        // a whole train the kernel then copies one piece.
        memory_.stride_bytes = wire::kHeaderBytes + values_bytes_;
        memory_.frames = lane_count();
        own_memory_.resize(memory_.stride_bytes * lane_count() + 2 * kCacheLineBytes);
        const auto base = reinterpret_cast<std::uintptr_t>(own_memory_.data());
        memory_.base = own_memory_.data() + (round_up(base, kCacheLineBytes) - base);
    } else if (config.shares > 1 || memory_.frames < window_ ||
               memory_.stride_bytes < kCacheLineBytes + values_bytes_) {
        throw std::invalid_argument("no memory for packets of that size and number");
    }
    if (config.keep_results) kept_memory_.resize(values_bytes_ * lane_count());
    for (std::uint32_t i = 0; i < lane_count(); ++i) {
        lanes_[i].seq = config.first_seq + first_own_ + i;
    }
}

void WorkerCore::submit(const TensorRequest &request, std::int64_t now_ns) {
    digest_.add(request);
    ++counters_.tensors_submitted;
    if (request.elems == 0) return complete(request.id);
    if (tensors_.count(request.id) > 0) {
        throw std::invalid_argument("tensor id is in use: " + std::to_string(request.id));
    }
    const Place place = placement_.next(request);
    const std::uint64_t full_rounds = place.chunks / window_;  // of all lanes
    const std::uint64_t rest = place.chunks % window_;
    Tensor *tensor = nullptr;  // until a lane of ours has a part of it
    for (std::uint32_t i = 0; i < place.lanes(window_); ++i) {
        const std::uint32_t index = own_index(place.first_lane + i);
        if (index >= lane_count()) continue;
        if (tensor == nullptr) {
            if (tensors_.empty()) last_progress_ns_ = now_ns;
            const Tensor fresh{request, place, next_order_, digest_.value(), 0};
            tensor = &tensors_.emplace(request.id, fresh).first->second;
        }
        tensor->chunks_left += full_rounds + (i < rest ? 1 : 0);
        Lane &lane = lanes_[index];
        lane.queue.push_back({tensor, i});
        if (lane.state == LaneState::kIdle) start_next_assignment(lane);
    }
    next_order_ += place.chunks;
    if (tensor == nullptr) complete(request.id);
}

void WorkerCore::complete(std::uint64_t id) {
    ++counters_.tensors_done;
    completions_.push_back(id);
}

void WorkerCore::start_next_assignment(Lane &lane) {
    if (lane.queue.empty()) {
        lane.state = LaneState::kIdle;
        lane.tensor = nullptr;
        return;
    }
    const Assignment next = lane.queue.front();
    lane.queue.pop_front();
    lane.tensor = next.tensor;
    lane.chunk = next.first_chunk;
    lane.exponent = std::exchange(lane.next_tensor_exponent, kUnknownExponent);
    const Tensor &tensor = *lane.tensor;
    if (!is_float(tensor.request.type)) {
        lane.round = Round::kValues;
        lane.exponent = 0;
    } else if (lane.exponent != kUnknownExponent) {
        lane.round = Round::kValues;  // and announce_next has told whether it is finite
        return make_ready(lane);
    } else {
        const auto &history = tensor.place.history;
        lane.exponent = history ? history->guess(block(tensor, lane.chunk)) : 0;
        lane.round = lane.exponent != 0 ? Round::kGuess : Round::kExponent;
    }
    lane.non_finite = false;
    make_ready(lane);
}

void WorkerCore::make_ready(Lane &lane) {
    lane.state = LaneState::kReady;
    lane.order = lane.tensor->first_order + lane.chunk;
    auto place = ready_.end();
    while (place != ready_.begin() && lanes_[*std::prev(place)].order > lane.order) --place;
    ready_.insert(place, own_index(lane.seq));
}

std::uint8_t *WorkerCore::packet(const Lane &lane) {
    // Where the stride is of whole lines the values, not the headers, begin on one.
    return memory_.base + memory_.stride_bytes * own_index(lane.seq) +
           (kCacheLineBytes - wire::kHeaderBytes);
}

std::uint8_t *WorkerCore::kept(std::size_t lane) {
    return kept_memory_.data() + values_bytes_ * lane;
}

std::size_t WorkerCore::chunk_elems(const Tensor &tensor, std::uint64_t chunk) const {
    const std::uint64_t values = config_.values_per_packet;
    return static_cast<std::size_t>(
        std::min<std::uint64_t>(values, tensor.request.elems - chunk * values));
}

std::size_t WorkerCore::chunk_bytes(const Tensor &tensor, std::uint64_t chunk) const {
    return chunk_elems(tensor, chunk) * bytes_per_elem(tensor.request.type);
}

std::size_t WorkerCore::chunk_offset_bytes(const Tensor &tensor, std::uint64_t chunk) const {
    return chunk * config_.values_per_packet * bytes_per_elem(tensor.request.type);
}

namespace {

const std::uint8_t *at(const void *memory, std::size_t offset_bytes) {
    return static_cast<const std::uint8_t *>(memory) + offset_bytes;
}
std::uint8_t *at(void *memory, std::size_t offset_bytes) {
    return static_cast<std::uint8_t *>(memory) + offset_bytes;
}

}  // namespace

void WorkerCore::build_packet(Lane &lane) {
    const Tensor &tensor = *lane.tensor;
    const ValueType type = tensor.request.type;
    const std::uint32_t values = config_.values_per_packet;
    wire::Header header;
    header.kind = wire::kKindContribution;
    header.job = config_.job;
    header.epoch = static_cast<std::uint16_t>(config_.epoch);
    header.worker = static_cast<std::uint8_t>(config_.rank);
    header.slot = static_cast<std::uint16_t>(lane.seq & (2 * window_ - 1));
    header.value_type = static_cast<std::uint8_t>(type);
    header.seq = lane.seq;
    header.contributors = std::uint32_t{1} << config_.rank;
    header.exponent = lane.exponent;
    header.digest = round_digest(tensor.digest, lane.seq);
    bool summed = true;
    if (lane.round == Round::kGuess) {
        const BlockScan own = scan(tensor, lane.chunk);
        header.next_exponent = own.exponent;
        lane.non_finite = own.non_finite;
        summed = own.exponent <= lane.exponent;
        if (!summed) header.flags |= wire::kFlagOverflow;
    }
    std::uint8_t *const bytes = packet(lane);
    if (lane.round != Round::kExponent) {
        header.value_count = static_cast<std::uint16_t>(values);
        if (lane.non_finite) header.flags |= wire::kFlagNonFinite;
        std::uint8_t *const wire_values = bytes + wire::kHeaderBytes;
        std::size_t filled = 0;
        // Values that cannot change the result stay 0: the chunk is all zero, turns into NaN, or
        // will be sent once more.
        if (is_float(type)) summed = summed && lane.exponent != 0 && !lane.non_finite;
        if (summed) {
            filled = chunk_elems(tensor, lane.chunk);
            const float scale =
                is_float(type) ? block_scale(lane.exponent, config_.world_size) : 1.0f;
            kernels_.quantize(type, at(tensor.request.in, chunk_offset_bytes(tensor, lane.chunk)),
                              filled, scale, wire_values);
        }
        std::memset(wire_values + filled * wire::kValueBytes, 0,
                    (values - filled) * wire::kValueBytes);
    }
    if (lane.round != Round::kGuess) announce_next(lane, header);
    wire::store_header(bytes, header);
    Origin{header.worker, 0}.store(bytes);
    lane.packet_bytes = wire::packet_bytes(header.value_count);
}

// Puts the exponent of what the lane sends next into the header.
void WorkerCore::announce_next(Lane &lane, wire::Header &header) {
    const Tensor *tensor = lane.tensor;
    std::uint64_t chunk = lane.round == Round::kExponent ? lane.chunk : lane.chunk + window_;
    lane.non_finite = false;
    if (chunk >= tensor->place.chunks) {
        if (lane.queue.empty()) {
            header.next_exponent = kUnknownExponent;
            return;
        }
        tensor = lane.queue.front().tensor;
        chunk = lane.queue.front().first_chunk;
    }
    if (!is_float(tensor->request.type)) return;
    const BlockScan own = scan(*tensor, chunk);
    header.next_exponent = own.exponent;
    lane.non_finite = own.non_finite;
}

BlockScan WorkerCore::scan(const Tensor &tensor, std::uint64_t chunk) const {
    const std::uint8_t *const values = at(tensor.request.in, chunk_offset_bytes(tensor, chunk));
    prefetch_scan(values, chunk_bytes(tensor, chunk));
    return kernels_.scan(tensor.request.type, values, chunk_elems(tensor, chunk));
}

std::size_t WorkerCore::poll_transmit(std::int64_t now_ns, PacketView *batch,
                                      std::size_t capacity) {
    if (stall_ || mismatch_ || stalled(now_ns)) return 0;
    std::size_t count = overtaken_moved_ ? resend_overtaken(now_ns, batch, capacity) : 0;
    if (now_ns >= scan_at_ns_ && count < capacity) {
        count += resend_expired(now_ns, batch + count, capacity - count);
    }
    while (count < capacity && !ready_.empty() && may_send_next()) {
        Lane &lane = lanes_[ready_.front()];
        ready_.pop_front();
        build_packet(lane);
        lane.state = LaneState::kWaiting;
        lane.retries = 0;
        lane.timeouts = 0;
        if (in_flight_++ == 0) heard_ns_ = now_ns;
        link_newest(lane);
        batch[count++] = emit(lane, now_ns);
        scan_at_ns_ = std::min({scan_at_ns_, lane_deadline_ns(lane), probe_deadline_ns()});
        scan_rto_ns_ = std::max(scan_rto_ns_, rtt_.timeout_ns(0));
    }
    return count;
}

PacketView WorkerCore::emit(Lane &lane, std::int64_t now_ns) {
    lane.sent_ns = now_ns;
    if (lane.retries == 0) lane.first_sent_ns = now_ns;
    ++counters_.packets_sent;
    counters_.payload_bytes_sent += lane.packet_bytes;
    return {packet(lane), lane.packet_bytes};
}

void WorkerCore::on_result(const std::uint8_t *payload, std::size_t bytes, std::int64_t now_ns,
                           bool ip_marked, const std::uint8_t *values) {
    ++counters_.packets_received;
    counters_.payload_bytes_received += bytes;
    wire::Header header;
    if (wire::parse_packet(payload, bytes, header) != wire::Parse::kOk ||
        header.kind != wire::kKindResult) {
        ++counters_.malformed;
        return;
    }
    if (header.job != config_.job || header.epoch != static_cast<std::uint16_t>(config_.epoch) ||
        (header.worker != config_.rank && header.worker != wire::kAllWorkers)) {
        ++counters_.foreign;
        return;
    }
    if (stall_ || mismatch_) {
        ++counters_.stale;
        return;
    }
    const std::uint32_t index = own_index(header.seq);
    if (index >= lane_count()) {
        ++counters_.mismatched;
        return;
    }
    Lane &lane = lanes_[index];
    if (lane.state != LaneState::kWaiting || header.seq != lane.seq) {
        if (lane.has_history && header.seq == lane.seq - window_) {
            ++counters_.duplicates;
            lane.resends.duplicated(needed_copy(header), &counters_);
            note_duplicate(lane, now_ns);
        } else if (wire::seq_newer(lane.seq, header.seq)) {
            ++counters_.stale;
        } else {
            ++counters_.mismatched;
        }
        return;
    }
    if (!is_whole(lane, header)) {
        ++counters_.mismatched;
        return;
    }
    if (!all_agree(lane, header)) {
        mismatch_ = {lane.tensor->request.id, lane.seq};
        return;
    }
    if (!fits(lane, header)) {
        ++counters_.mismatched;
        return;
    }
    lane.resends.answered(needed_copy(header), now_ns, &counters_);
    agreed_ = std::max(agreed_, lane.tensor->request.id);
    note_overtaken(lane);
    const std::int64_t rtt_ns = lane.retries == 0 ? now_ns - lane.sent_ns : 0;
    if (lane.retries == 0) {
        rtt_.on_sample(rtt_ns);
        overtaken_moved_ |= lane.sent_ns > overtaken_ns_;
        overtaken_ns_ = std::max(overtaken_ns_, lane.sent_ns);
        if (rtt_.timeout_ns(0) < scan_rto_ns_ / 2) scan_at_ns_ = now_ns;
    }
    const bool marked = ip_marked || (header.flags & wire::kFlagEcn) != 0;
    if (marked) ++counters_.ecn_marked;
    congestion_->on_result(now_ns, rtt_ns, marked);
    note_answer(lane, now_ns);
    if (quiet_) resumed_ns_ = now_ns;
    quiet_ = false;
    tail_probes_ = 0;
    heard_ns_ = now_ns;
    last_progress_ns_ = now_ns;
    counters_.last_seq = header.seq;
    const bool is_guess = lane.round == Round::kGuess;
    const bool has_sums = is_guess ? guess_holds(lane, header) : lane.round == Round::kValues;
    if (has_sums) {
        ++counters_.chunks_done;
        counters_.guessed_chunks += is_guess;
        counters_.bytes_done += chunk_bytes(*lane.tensor, lane.chunk);
        write_result(lane, header, values != nullptr ? values : payload + wire::kHeaderBytes);
    } else {
        ++counters_.exponent_rounds;
        counters_.missed_guesses += is_guess;
    }
    advance(lane, has_sums, header.next_exponent);
}

// Whether the sums of a guess are what they would be had the exponent been known: it was right, or
// the result depends on no value.
bool WorkerCore::guess_holds(const Lane &lane, const wire::Header &header) {
    return header.next_exponent == lane.exponent || header.next_exponent == 0 ||
           (header.flags & wire::kFlagNonFinite) != 0;
}

std::uint32_t WorkerCore::needed_copy(const wire::Header &header) const {
    const Origin origin = Origin::of(header);
    return origin.worker == static_cast<std::uint32_t>(config_.rank) ? origin.copy : 0;
}

bool WorkerCore::is_whole(const Lane &lane, const wire::Header &header) const {
    return header.slot == (lane.seq & (2 * window_ - 1)) && header.contributors == full_bitmap_;
}

// Whether all workers whose contributions are in it have submitted the same up to this tensor.
bool WorkerCore::all_agree(const Lane &lane, const wire::Header &header) const {
    const std::uint32_t own = round_digest(lane.tensor->digest, lane.seq);
    const auto workers = static_cast<std::uint32_t>(config_.world_size);
    return header.digest == static_cast<std::uint16_t>(workers * own);
}

bool WorkerCore::fits(const Lane &lane, const wire::Header &header) {
    const ValueType type = lane.tensor->request.type;
    const std::uint32_t values = lane.round == Round::kExponent ? 0 : config_.values_per_packet;
    const bool next_is_valid =
        header.next_exponent == wire::kExponentAllZero || header.next_exponent >= kMinBlockExponent;
    return header.value_type == static_cast<std::uint8_t>(type) && header.value_count == values &&
           header.exponent == lane.exponent && next_is_valid;
}

void WorkerCore::write_result(const Lane &lane, const wire::Header &header,
                              const std::uint8_t *values) {
    const TensorRequest &request = lane.tensor->request;
    const std::size_t elems = chunk_elems(*lane.tensor, lane.chunk);
    std::uint8_t *const out = at(request.out, chunk_offset_bytes(*lane.tensor, lane.chunk));
    Dequantization how;
    how.divisor = request.op == ReduceOp::kAverage ? config_.world_size : 1;
    if (is_float(request.type)) {
        if ((header.flags & wire::kFlagNonFinite) != 0) return fill_nan(request.type, out, elems);
        if (lane.exponent == wire::kExponentAllZero) {
            std::memset(out, 0, elems * bytes_per_elem(request.type));
            return;
        }
        how.inverse_scale = inverse_block_scale(lane.exponent, config_.world_size);
    }
    kernels_.dequantize(request.type, values, elems, how, out);
}

void WorkerCore::remember(Lane &lane, bool has_sums) {
    const Tensor &tensor = *lane.tensor;
    lane.accepted = {tensor.request.id, lane.chunk, 0, false};
    if (!has_sums) return;
    const std::size_t bytes = chunk_bytes(tensor, lane.chunk);
    lane.accepted.bytes = static_cast<std::uint32_t>(bytes);
    // While the lane has more chunks of it, the tensor stays and its memory is the caller's
    // promise.
    if (kept_memory_.empty() || lane.chunk + window_ < tensor.place.chunks) return;
    lane.accepted.kept = true;
    std::memcpy(kept(own_index(lane.seq)),
                at(tensor.request.out, chunk_offset_bytes(tensor, lane.chunk)), bytes);
}

void WorkerCore::advance(Lane &lane, bool has_sums, std::uint8_t next_exponent) {
    remember(lane, has_sums);
    unlink(lane);
    --in_flight_;
    if (in_flight_ == 0) {
        scan_at_ns_ = kNever;
        more_probes_ = false;
    }
    lane.seq += window_;
    lane.has_history = true;
    const bool was_guess = lane.round == Round::kGuess;
    const std::uint8_t agreed = was_guess ? next_exponent : lane.exponent;
    lane.round = Round::kValues;
    Tensor &tensor = *lane.tensor;
    if (!has_sums) {
        lane.exponent = next_exponent;
        return make_ready(lane);
    }
    if (tensor.place.history) {
        tensor.place.history->observe(block(tensor, lane.chunk), agreed);
    }
    const bool tensor_done = --tensor.chunks_left == 0;
    const bool more_chunks = lane.chunk + window_ < tensor.place.chunks;
    if (more_chunks) {
        lane.chunk += window_;
        lane.exponent = is_float(tensor.request.type) ? next_exponent : 0;
        make_ready(lane);
    } else {
        lane.next_tensor_exponent = was_guess ? kUnknownExponent : next_exponent;
        start_next_assignment(lane);
    }
    if (tensor_done) {
        const std::uint64_t id = tensor.request.id;
        complete(id);
        tensors_.erase(id);
    }
}

std::vector<std::uint64_t> WorkerCore::take_completions() {
    return std::exchange(completions_, {});
}

}  // namespace ina::host
