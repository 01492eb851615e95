#include "host/core/worker_core.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

namespace ina::host {

namespace {

// A stream's packets have whole words, whose last one is a block's number. Throws
// std::invalid_argument.
void check_block_numbers(const Submission &submission) {
    if (values_per_word(submission.request.type) > 1 && !submission.request.is_moved()) {
        throw std::invalid_argument("a stream's tensors are not packed");
    }
    if (submission.place.chunks >= kNoBlock) {
        throw std::invalid_argument("a stream's tensor has at most 2^32 - 2 chunks, got " +
                                    std::to_string(submission.place.chunks));
    }
}

}  // namespace

WorkerCore::WorkerCore(const WorkerConfig &config, congestion::Control control,
                       const PacketMemory &memory)
    : config_(checked(config)), tree_(own_tree(config_)), window_(window_of(config_)),
      first_own_(config_.first_lane), schedule_(window_, config_.is_stream), codec_(config_),
      recovery_(config_.lanes, config_.rto, std::move(control.window), small_share(config_)),
      claims_(std::move(control.claims)), lanes_(config_.lanes),
      frames_(lane_count(), values_bytes(), config_.framing.bytes(), memory),
      kept_(config.keep_results ? lane_count() : 0, values_bytes()),
      failed_checks_(config.verify == VerifyMode::kKeyed) {
    for (std::uint32_t i = 0; i < lane_count(); ++i) {
        lanes_[i].seq = config.first_seq + first_own_ + i;
        lanes_[i].number = lanes_[i].seq;
    }
}

void WorkerCore::submit(const Submission &submission, std::int64_t now_ns) {
    const std::uint64_t id = submission.request.id;
    ++counters_.tensors_submitted;
    if (submission.request.is_empty()) return complete(id);
    if (tensors_.count(id) > 0) {
        throw std::invalid_argument("tensor id is in use: " + std::to_string(id));
    }
    if (config_.is_stream) check_block_numbers(submission);
    kept_.make_room(submission.chunk_bytes(0));
    const Place &place = submission.place;
    Tensor *tensor = nullptr;  // until a lane of ours has a part of it
    for (std::uint32_t i = 0; i < place.lanes(window_); ++i) {
        const std::uint32_t index = own_index(place.lane_of(i));
        if (index >= lane_count()) continue;
        if (tensor == nullptr) {
            if (tensors_.empty()) last_progress_ns_ = now_ns;
            tensor = &tensors_.emplace(id, Tensor{submission, 0}).first->second;
        }
        tensor->chunks_left += schedule_.count_from(place, i);
        Lane &lane = lanes_[index];
        lane.queue.push_back({tensor, i});
        if (lane.state == LaneState::kIdle) start_next_assignment(lane);
    }
    if (tensor == nullptr) complete(id);
}

void WorkerCore::withdraw_from(std::uint64_t id) {
    if (agreed_ >= id) {
        throw std::logic_error("tensor " + std::to_string(agreed_) + " has results already");
    }
    for (std::uint32_t i = 0; i < lane_count(); ++i) {
        Lane &lane = lanes_[i];
        const auto is_taken = [&](const Tensor *tensor) { return tensor->request.id >= id; };
        while (!lane.queue.empty() && is_taken(lane.queue.back().tensor)) lane.queue.pop_back();
        if (lane.tensor == nullptr || !is_taken(lane.tensor)) continue;
        if (lane.is_waiting()) recovery_.withdrawn(i);
        lane.on(LaneEvent::kWithdrawn);
        lane.tensor = nullptr;
    }
    const auto is_idle = [&](std::uint32_t i) { return lanes_[i].state == LaneState::kIdle; };
    for (auto &ready : ready_) {
        ready.erase(std::remove_if(ready.begin(), ready.end(), is_idle), ready.end());
    }
    for (auto tensor = tensors_.begin(); tensor != tensors_.end();) {
        tensor = tensor->first >= id ? tensors_.erase(tensor) : std::next(tensor);
    }
}

void WorkerCore::complete(std::uint64_t id) {
    ++counters_.tensors_done;
    completions_.push_back(id);
}

void WorkerCore::start_next_assignment(Lane &lane) {
    lane.tensor = nullptr;
    if (lane.queue.empty()) return;
    const Lane::Assignment next = lane.queue.front();
    lane.queue.pop_front();
    lane.tensor = next.tensor;
    lane.chunk = next.first_chunk;
    lane.splits = false;
    lane.exponent = std::exchange(lane.next_tensor_exponent, kUnknownExponent);
    const Tensor &tensor = *lane.tensor;
    const bool agreed = lane.exponent != kUnknownExponent;
    if (is_float(tensor.request.type) && agreed) {
        return make_ready(lane, LaneEvent::kNextKnown);  // and it was told whether it is finite
    }
    lane.non_finite = false;
    lane.exponent = 0;
    if (!is_float(tensor.request.type)) return make_integers_ready(lane);
    const auto &history = tensor.place.history;
    if (history) lane.exponent = history->guess(tensor.block(lane.chunk));
    make_ready(lane, lane.exponent != 0 ? LaneEvent::kNextGuessed : LaneEvent::kNextUnknown);
}

// The chunk of integers that the lane sends next.
void WorkerCore::make_integers_ready(Lane &lane) {
    const auto part = lane.splits ? IntegerPart::kLower : IntegerPart::kAll;
    lane.exponent = static_cast<std::uint8_t>(part);
    const TensorRequest &request = lane.tensor->request;
    const bool is_sum = !request.is_moved() && request.kind != CollectiveKind::kBarrier;
    const bool may_wrap = is_sum && config_.verify != VerifyMode::kOff && !lane.splits;
    make_ready(lane, may_wrap ? LaneEvent::kNextGuessed : LaneEvent::kNextKnown);
}

void WorkerCore::make_ready(Lane &lane, LaneEvent event) {
    lane.on(event);
    std::deque<std::uint32_t> &ready = ready_[lane.flow()];
    auto place = ready.end();
    while (place != ready.begin() && lanes_[*std::prev(place)].order() > lane.order()) --place;
    ready.insert(place, own_index(lane.seq));
}

// Of the flows that have a packet ready and room for it, the one with less in flight.
std::optional<std::uint8_t> WorkerCore::next_flow() const {
    std::optional<std::uint8_t> found;
    for (std::uint8_t flow = 0; flow < kFlows; ++flow) {
        if (ready_[flow].empty()) continue;
        const FlightList &flights = recovery_.flights();
        const std::uint8_t other = 1 - flow;
        const bool is_shared = !ready_[other].empty() || flights.size(other) > 0;
        const std::uint64_t order = lanes_[ready_[flow].front()].order();
        if (!recovery_.has_room_for(order, flow, is_shared)) continue;
        if (!found || flights.size(flow) < flights.size(*found)) found = flow;
    }
    return found;
}

std::size_t WorkerCore::poll_transmit(std::int64_t now_ns, PacketView *batch,
                                      std::size_t capacity) {
    if (has_stopped() || stalled(now_ns)) return 0;
    constexpr std::size_t kResends = 256;  // at a time
    Resend again[kResends];
    std::size_t count = 0;
    std::size_t found = 0;
    do {
        const std::size_t most = std::min(kResends, capacity - count);
        found = most > 0 ? recovery_.due(now_ns, again, most) : 0;
        for (std::size_t i = 0; i < found; ++i) batch[count++] = send_again(again[i]);
    } while (found == kResends);
    std::optional<std::uint8_t> flow;
    while ((flow = next_flow()) && count < capacity && recovery_.paced_ns() <= now_ns) {
        const std::uint32_t index = ready_[*flow].front();
        ready_[*flow].pop_front();
        Lane &lane = lanes_[index];
        codec_.write_packet(lane, frames_.packet(index));
        if (claims_ && !claims_->claims(index)) pass_slots_by(index);
        lane.on(LaneEvent::kSent);
        recovery_.sent(index, {lane.order(), lane.round(), *flow, !codec_.moves_values(lane)},
                       now_ns);
        batch[count++] = view_of(index);
    }
    recovery_.note_paced(flow.has_value());
    return count;
}

inline PacketView WorkerCore::view_of(std::uint32_t lane) {
    const PacketView view = config_.framing.around(frames_.packet(lane), lanes_[lane].packet_bytes);
    ++counters_.packets_sent;
    counters_.payload_bytes_sent += view.bytes;
    return view;
}

// A switch whose slots jobs share lets what is sent again claim none, and takes along with it what
// the slot has of its round. So a first copy goes on alone that says that it is one. Which copy a
// result answers is said by `copy`, 0 here: nothing was lost. Own slots do not look at the flag.
void WorkerCore::pass_slots_by(std::uint32_t lane) {
    frames_.packet(lane)[wire::kFlagsOffset] |= wire::kFlagResend;
    ++counters_.unclaimed;
}

PacketView WorkerCore::send_again(const Resend &resend) {
    std::uint8_t *const packet = frames_.packet(resend.lane);
    packet[wire::kFlagsOffset] |= wire::kFlagResend;
    Origin{codec_.path_of(lanes_[resend.lane]), resend.copy}.store(packet);
    return view_of(resend.lane);
}

void WorkerCore::on_result(const std::uint8_t *payload, std::size_t bytes, std::int64_t now_ns,
                           bool ip_marked, const std::uint8_t *values) {
    ++counters_.packets_received;
    counters_.payload_bytes_received += bytes;
    wire::Header header;
    const PacketView inside = config_.framing.inside(payload, bytes);
    if (wire::parse_packet(inside.data, inside.bytes, header) != wire::Parse::kOk ||
        header.kind != wire::kKindResult) {
        ++counters_.malformed;
        return;
    }
    if (values == nullptr) values = inside.data + wire::kHeaderBytes;
    Lane *const found = lane_for(header, now_ns);
    if (found == nullptr || !accepts(*found, header, values)) return;
    Lane &lane = *found;
    const Origin origin = Origin::of(header);
    const bool is_own = is_of(tree_, origin.path);
    Answer answer;
    answer.copy = is_own ? origin.copy : 0;
    answer.others_loss = !is_own && origin.copy > 0;
    answer.marked_here = ip_marked;
    answer.is_own = is_own;
    answer.marked = ip_marked || (header.flags & wire::kFlagEcn) != 0;
    const std::uint32_t index = own_index(lane.seq);
    const bool was_wanted = (header.flags & wire::kFlagWanted) != 0;
    if (claims_ && lane.has_values()) claims_->answered(index, was_wanted);
    recovery_.answered(index, answer, now_ns);
    agreed_ = std::max(agreed_, lane.tensor->request.id);
    last_progress_ns_ = now_ns;
    counters_.last_seq = header.seq;
    const std::uint64_t next = schedule_.next(lane, codec_.named_next(lane, values));
    const bool has_sums = codec_.has_sums(lane, header);
    const bool is_bare = ChunkCodec::is_bare(lane, header);
    count(lane, has_sums, lane.is_guess() && is_float(lane.tensor->request.type));
    if (has_sums) {
        std::uint8_t *const out = kept_.place(lane, index);
        std::uint8_t *const room = frames_.packet(index) + wire::kHeaderBytes;
        if (out != nullptr && !is_bare) codec_.read_sums(lane, header.flags, values, room, out);
        ChunkCodec::copy_own(*lane.tensor, lane.chunk);
        if (config_.is_stream) codec_.clear_between(lane, next);
    } else if (lane.is_half() && !is_bare) {
        codec_.keep_lower(lane, values);
    }
    using Brought = KeptResults::Brought;
    const Brought sums = is_bare ? Brought::kBare : Brought::kSums;
    advance(lane, has_sums ? sums : Brought::kNoSums, header, next);
}

void WorkerCore::count(const Lane &lane, bool has_sums, bool was_guess) {
    if (!has_sums) {
        ++counters_.exponent_rounds;
        counters_.missed_guesses += was_guess;
        return;
    }
    ++counters_.chunks_done;
    counters_.guessed_chunks += was_guess;
    counters_.bytes_done += lane.tensor->chunk_bytes(lane.chunk);
}

// The lane that waits for a result with this sequence number. Null: none does; it is counted.
inline Lane *WorkerCore::lane_for(const wire::Header &header, std::int64_t now_ns) {
    const auto ignore = [](std::uint64_t *counter) {
        ++*counter;
        return nullptr;
    };
    if (header.job != tree_.job || header.epoch != static_cast<std::uint16_t>(config_.epoch) ||
        (header.worker != tree_.worker && header.worker != wire::kAllWorkers)) {
        return ignore(&counters_.foreign);
    }
    if (has_stopped()) return ignore(&counters_.stale);
    const std::uint32_t index = own_index(header.seq);
    if (index >= lane_count()) return ignore(&counters_.mismatched);
    Lane &lane = lanes_[index];
    if (lane.is_waiting() && header.seq == lane.seq) return &lane;
    if (lane.has_history && header.seq == lane.seq - window_) {
        const Origin origin = Origin::of(header);
        const bool is_own = is_of(tree_, origin.path);
        recovery_.duplicate(index, is_own ? origin.copy : 0, now_ns);
        return ignore(&counters_.duplicates);
    }
    const bool is_older = wire::seq_newer(lane.seq, header.seq);
    return ignore(is_older ? &counters_.stale : &counters_.mismatched);
}

inline bool WorkerCore::accepts(Lane &lane, const wire::Header &header,
                                const std::uint8_t *values) {
    const ChunkCodec::Verdict verdict = codec_.judge(lane, header, values);
    if (verdict == ChunkCodec::Verdict::kCorrupt) {
        // It counts as lost: what it answered is sent again, and answered anew.
        const std::uint8_t *const sent = frames_.packet(own_index(lane.seq));
        corruption_ = failed_checks_.note(lane, header, values, sent, config_.world_size == 1);
    }
    if (verdict == ChunkCodec::Verdict::kElse) ++counters_.mismatched;
    if (verdict == ChunkCodec::Verdict::kDisagrees) mismatch_ = {lane.tensor->request.id, lane.seq};
    return verdict == ChunkCodec::Verdict::kFits;
}

// The lane has its result: on to what it sends next; `next`: of the tensor, once it has sums.
inline void WorkerCore::advance(Lane &lane, KeptResults::Brought brought,
                                const wire::Header &result, std::uint64_t next) {
    const bool has_sums = brought != KeptResults::Brought::kNoSums;
    const std::uint32_t index = own_index(lane.seq);
    std::uint8_t next_exponent = result.next_exponent;
    kept_.remember(lane, index, next != Schedule::kNone, brought,
                   (result.flags & wire::kFlagNonFinite) != 0,
                   frames_.packet(index) + wire::kHeaderBytes);
    lane.seq += window_;
    lane.number += window_;
    lane.has_history = true;
    Tensor &tensor = *lane.tensor;
    const bool are_floats = is_float(tensor.request.type);
    if (!has_sums) {
        if (!are_floats) {
            const auto part = lane.splits ? IntegerPart::kUpper : IntegerPart::kLower;
            next_exponent = static_cast<std::uint8_t>(part);
            lane.splits = true;
            lane.non_finite = false;  // which was announced of what comes after the chunk
        }
        lane.exponent = next_exponent;
        return make_ready(lane, LaneEvent::kAgreement);
    }
    const bool was_guess = lane.is_guess() && are_floats;
    if (tensor.place.history) {
        const std::uint8_t agreed = was_guess ? next_exponent : lane.exponent;
        tensor.place.history->observe(tensor.block(lane.chunk), agreed);
    }
    lane.on(LaneEvent::kSums);
    tensor.chunks_left -= schedule_.done_before(lane, next);
    const bool tensor_done = tensor.chunks_left == 0;
    if (next != Schedule::kNone) {
        lane.chunk = next;
        if (!config_.is_stream) lane.exponent = next_exponent;
        if (are_floats) {
            make_ready(lane, LaneEvent::kNextKnown);
        } else {
            make_integers_ready(lane);
        }
    } else {
        const bool is_told = !was_guess && !config_.is_stream;
        lane.next_tensor_exponent = is_told ? next_exponent : kUnknownExponent;
        start_next_assignment(lane);
    }
    if (tensor_done) {
        const std::uint64_t id = tensor.request.id;
        complete(id);
        tensors_.erase(id);
    }
}

std::int64_t WorkerCore::next_deadline_ns(std::int64_t now_ns) const {
    if (has_stopped() || tensors_.empty()) return kNever;
    const std::int64_t sends_ns = next_flow() ? std::max(recovery_.paced_ns(), now_ns) : kNever;
    if (sends_ns == now_ns) return now_ns;
    return std::min(
        {sends_ns, recovery_.deadline_ns(), last_progress_ns_ + config_.stall_timeout_ns});
}

std::vector<std::uint64_t> WorkerCore::take_completions() {
    return std::exchange(completions_, {});
}

WorkerCounters WorkerCore::counters() const {
    WorkerCounters counters = counters_;
    counters.corrupted = failed_checks_.count();
    counters.recovery = recovery_.counters();
    return counters;
}

bool WorkerCore::stalled(std::int64_t now_ns) {
    const std::int64_t waited_ns = now_ns - last_progress_ns_;
    if (tensors_.empty() || waited_ns < config_.stall_timeout_ns) return false;
    StallReport report;
    report.waited_ns = waited_ns;
    report.in_flight = in_flight();
    const std::uint32_t longest = recovery_.flights().longest_waiting();
    if (longest != kNoLane) {
        report.oldest_seq = lanes_[longest].seq;
        report.anything_sent = true;
    }
    stall_ = report;
    return true;
}

LaneSnapshot WorkerCore::lanes(std::int64_t now_ns) const {
    LaneSnapshot snapshot;
    snapshot.epoch = config_.epoch;
    snapshot.seqs.reserve(lane_count());
    snapshot.waiting.resize((lane_count() + 7) / 8);
    for (std::uint32_t i = 0; i < lane_count(); ++i) {
        const bool waiting = lanes_[i].is_waiting();
        snapshot.seqs.push_back(waiting ? lanes_[i].seq : lanes_[i].seq - window_);
        if (waiting) snapshot.waiting[i / 8] |= static_cast<std::uint8_t>(1u << (i % 8));
    }
    snapshot.in_flight = in_flight();
    snapshot.heard_ns = recovery_.heard_ns();
    for (const auto &[id, tensor] : tensors_) {
        if (snapshot.oldest.id == 0 || id < snapshot.oldest.id) snapshot.oldest = tensor.request;
    }
    const std::uint32_t longest = recovery_.flights().longest_waiting();
    if (longest != kNoLane) {
        snapshot.silent_ns = now_ns - snapshot.heard_ns;
        snapshot.oldest_seq = lanes_[longest].seq;
        snapshot.oldest_waited_ns = now_ns - recovery_.flights()[longest].first_sent_ns;
    }
    return snapshot;
}

// Throws std::invalid_argument.
Lane &WorkerCore::lane_numbered(std::uint32_t number) {
    const std::uint32_t index = number - first_own_;
    if (index < lane_count()) return lanes_[index];
    throw std::invalid_argument("lane must be " + std::to_string(first_own_) + ".." +
                                std::to_string(first_own_ + lane_count() - 1) + ", got " +
                                std::to_string(number));
}

LaneResult WorkerCore::lane_result(std::uint32_t number) {
    const Lane &lane = lane_numbered(number);
    return kept_.newest(lane, number - first_own_, window_, tensors_);
}

std::vector<std::uint8_t> WorkerCore::own_part(std::uint32_t number, std::uint32_t seq) {
    const Lane &lane = lane_numbered(number);
    const std::uint32_t index = number - first_own_;
    const std::uint8_t *words = nullptr;
    if (lane.is_waiting() && lane.seq == seq) {
        if (lane.gives()) words = frames_.packet(index) + wire::kHeaderBytes;
    } else if (lane.has_history && lane.seq - window_ == seq) {
        words = kept_.own_part(lane, index);
    } else {
        throw std::invalid_argument("lane " + std::to_string(number) +
                                    " has nothing of sequence number " + std::to_string(seq));
    }
    if (words == nullptr) return {};
    return {words, words + values_bytes()};
}

std::vector<PendingTensor> WorkerCore::pending() const {
    std::map<std::uint64_t, std::vector<bool>> undone;  // chunks, of each tensor
    const auto mark = [&](const Tensor &tensor, std::uint64_t first) {
        std::vector<bool> &chunks = undone[tensor.request.id];
        chunks.resize(tensor.place.chunks);
        schedule_.each_from(tensor.place, first,
                            [&](std::uint64_t chunk) { chunks[chunk] = true; });
    };
    for (const Lane &lane : lanes_) {
        if (lane.tensor != nullptr) mark(*lane.tensor, lane.chunk);
        for (const Lane::Assignment &later : lane.queue) mark(*later.tensor, later.first_chunk);
    }
    std::vector<PendingTensor> pending;
    for (const auto &[id, chunks] : undone) {
        pending.push_back({tensors_.at(id).request, ranges_of(chunks)});
    }
    return pending;
}

void WorkerCore::put_result(std::uint32_t number, std::uint32_t seq, const void *data,
                            std::size_t bytes, bool non_finite) {
    const auto require = [&](bool holds, const std::string &what) {
        if (holds) return;
        throw std::invalid_argument("lane " + std::to_string(number) + ", sequence number " +
                                    std::to_string(seq) + ": " + what);
    };
    const std::uint32_t index = number - first_own_;
    require(index < lane_count(), "there is no such lane");
    Lane &lane = lanes_[index];
    require(lane.is_waiting() && lane.seq == seq && lane.has_values(),
            "the lane does not wait for values");
    std::uint8_t *const out = kept_.place(lane, index);
    const bool are_words = lane.tensor->adds_own(lane.chunk);
    std::size_t expected = are_words ? values_bytes() : lane.tensor->chunk_bytes(lane.chunk);
    if (out == nullptr && !lane.gets()) expected = bytes;
    require(bytes == expected,
            "the chunk has " + std::to_string(expected) + " bytes, got " + std::to_string(bytes));
    wire::Header result;
    if (non_finite) result.flags |= wire::kFlagNonFinite;
    const auto *const values = static_cast<const std::uint8_t *>(data);
    if (are_words) {
        std::uint8_t *const room = frames_.packet(index) + wire::kHeaderBytes;
        codec_.read_sums(lane, result.flags, values, room, out);
    } else if (out != nullptr) {
        std::memcpy(out, values, bytes);
    }
    ChunkCodec::copy_own(*lane.tensor, lane.chunk);
    count(lane, true, false);
    recovery_.withdrawn(index);
    const bool is_bare = out == nullptr;
    advance(lane, is_bare ? KeptResults::Brought::kBare : KeptResults::Brought::kSums, result,
            schedule_.next(lane, Schedule::kNone));
}

}  // namespace ina::host
