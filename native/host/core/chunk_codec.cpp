#include "host/core/chunk_codec.hpp"

#include <cstring>

#include "host/core/packed.hpp"

namespace ina::host {

namespace {

// Whether a sum of digests that is not `workers` times the own one may be so for one flipped bit:
// of a digest, or of a bitmap, by which a contribution is missing or in it twice.
bool is_damaged(std::uint16_t sum, std::uint32_t own, std::uint32_t workers) {
    const std::uint32_t more = static_cast<std::uint16_t>(sum - workers * own);
    const std::uint32_t less = static_cast<std::uint16_t>(workers * own - sum);
    if ((more & (more - 1)) == 0 || (less & (less - 1)) == 0) return true;
    for (std::uint32_t times = 0; times <= 2 * workers; ++times) {
        if (static_cast<std::uint16_t>(times * own) == sum) return true;
    }
    return false;
}

}  // namespace

ChunkCodec::ChunkCodec(const WorkerConfig &config)
    : config_(config), tree_(own_tree(config)), window_(window_of(config)),
      schedule_(window_, config.is_stream), kernels_(best_kernels()), finder_(kernels_, schedule_),
      check_(config.verify, config.check_key, config.epoch, static_cast<std::uint32_t>(config.rank),
             static_cast<std::uint32_t>(config.world_size), config.values_per_packet) {}

void ChunkCodec::write_packet(Lane &lane, std::uint8_t *packet) const {
    const Tensor &tensor = *lane.tensor;
    const ValueType type = tensor.request.type;
    wire::Header header;
    header.kind = wire::kKindContribution;
    header.job = tree_.job;
    header.epoch = static_cast<std::uint16_t>(config_.epoch);
    header.worker = static_cast<std::uint8_t>(tree_.worker);
    header.slot = slot_of(tree_, lane.seq, window_);
    header.value_type = static_cast<std::uint8_t>(type);
    header.seq = lane.seq;
    header.contributors = std::uint32_t{1} << tree_.worker;
    header.shape = static_cast<std::uint8_t>(lane.shape());
    header.path = path_of(lane);
    header.exponent = lane.exponent;
    header.digest = round_digest(tensor.digest, lane.seq);
    bool summed = true;
    if (lane.is_guess() && !is_float(type)) {
        summed = never_wrap(
            check_.used_bits(tensor.chunk_in(lane.chunk), tensor.chunk_elems(lane.chunk)),
            static_cast<std::uint32_t>(config_.summands));
    } else if (lane.is_guess()) {
        const BlockScan own = scan(tensor, lane.chunk);
        header.next_exponent = own.exponent;
        lane.non_finite = own.non_finite;
        summed = own.exponent <= lane.exponent;
    }
    if (!summed) header.flags |= wire::kFlagOverflow;
    const bool names_next = config_.is_stream && lane.has_values();
    if (names_next) look_ahead(lane);
    if (names_next && lane.is_zero) {
        header.value_count = 1;
        store_next_block(packet + wire::kHeaderBytes, lane.next_own);
    } else if (lane.gives()) {
        header.value_count = static_cast<std::uint16_t>(config_.values_per_packet);
        write_values(lane, summed, packet + wire::kHeaderBytes);
    }
    if (lane.has_values() && lane.non_finite) header.flags |= wire::kFlagNonFinite;
    const Claim claim = claim_of(lane, header);
    if (!lane.is_guess() || !is_float(type)) announce_next(lane, header);
    lane.announced = header.next_exponent;
    lane.failed = {};
    if (check_.is_on()) {
        const auto made =
            check_.contribute(tag_of(lane, header), claim,
                              header.value_count > 0 ? packet + wire::kHeaderBytes : nullptr);
        header.check = made.check;
        lane.expected = made.expected;
    }
    wire::store_header(packet, header);
    lane.packet_bytes = wire::packet_bytes(header.value_count);
}

// `summed`: whether the chunk's values are to be in the sum. `to`: for a packet's values.
void ChunkCodec::write_values(const Lane &lane, bool summed, std::uint8_t *to) const {
    const Tensor &tensor = *lane.tensor;
    const ValueType type = tensor.request.type;
    const std::size_t values = config_.values_per_packet;
    std::size_t filled = 0;
    // Values that cannot change the result stay 0: the chunk is all zero, turns into NaN, or
    // will be sent once more.
    if (is_float(type)) summed = summed && lane.exponent != 0 && !lane.non_finite;
    if (tensor.is_together) {
        const std::size_t before = tensor.rank * tensor.part_bytes();
        std::memset(to, 0, values * wire::kValueBytes);
        std::memcpy(to + before, tensor.request.in, tensor.part_bytes());
    } else {
        if (summed && tensor.has_values(lane.chunk)) {
            filled = codec_of(type).write(block_of(lane), tensor.chunk_in(lane.chunk),
                                          tensor.chunk_elems(lane.chunk), to);
        }
        if (lane.is_half()) take_half(to, filled, static_cast<IntegerPart>(lane.exponent));
        std::memset(to + filled * wire::kValueBytes, 0, (values - filled) * wire::kValueBytes);
    }
    if (config_.is_stream) {
        store_next_block(to + (values - 1) * wire::kValueBytes, lane.next_own);
    }
}

// Of the chunk that the lane of a stream is to send: whether it is zero, and which comes next. The
// lane comes to all of its own blocks that are not zero, and may come to others between.
void ChunkCodec::look_ahead(Lane &lane) const {
    const Tensor &tensor = *lane.tensor;
    const bool is_first = lane.chunk < tensor.place.step(window_);
    const bool is_own = !is_first && lane.chunk == lane.next_own;
    lane.is_zero = is_first ? finder_.is_zero(tensor, lane.chunk) : !is_own;
    if (is_first || is_own) lane.next_own = finder_.next(tensor, lane.chunk);
    lane.non_finite = !lane.is_zero && is_float(tensor.request.type) &&
                      finder_.scan(tensor, lane.chunk).non_finite;
}

std::uint64_t ChunkCodec::named_next(const Lane &lane, const std::uint8_t *values) const {
    if (!config_.is_stream || !lane.has_values()) return Schedule::kNone;
    return load_next_block(values + (config_.values_per_packet - 1) * wire::kValueBytes);
}

void ChunkCodec::clear_between(const Lane &lane, std::uint64_t next) const {
    const Tensor &tensor = *lane.tensor;
    const std::uint64_t first = lane.chunk + tensor.place.step(window_);
    schedule_.each_from(tensor.place, first, [&](std::uint64_t chunk) {
        if (chunk >= next) return;
        copy_own(tensor, chunk);
        if (tensor.gets(chunk)) std::memset(tensor.chunk_out(chunk), 0, tensor.chunk_bytes(chunk));
    });
}

Block ChunkCodec::block_of(const Lane &lane) const {
    const Tensor &tensor = *lane.tensor;
    Block block{tensor.request.type, lane.exponent, config_.summands, tensor.request.rounding};
    if (block.rounding == Rounding::kStochastic) {
        block.key = rounding_key(tensor.request.number(), tensor.number_of_first(lane.chunk),
                                 static_cast<std::uint32_t>(config_.rank));
    }
    return block;
}

// Puts the exponent of what the lane sends next into the header.
void ChunkCodec::announce_next(Lane &lane, wire::Header &header) const {
    const auto [tensor, chunk] = schedule_.ahead(lane);
    lane.non_finite = false;
    if (tensor == nullptr) {
        header.next_exponent = kUnknownExponent;
        return;
    }
    if (!is_float(tensor->request.type)) return;
    if (config_.is_stream) {
        header.next_exponent = finder_.exponent_from(*tensor, chunk);
        return;
    }
    const BlockScan own = scan(*tensor, chunk);
    header.next_exponent = own.exponent;
    lane.non_finite = own.non_finite;
}

BlockScan ChunkCodec::scan(const Tensor &tensor, std::uint64_t chunk) const {
    const std::uint8_t *const values = tensor.chunk_in(chunk);
    prefetch_scan(values, tensor.chunk_bytes(chunk));
    const ValueType type = tensor.request.type;
    BlockScan found = kernels_.scan(element_of(type), values, tensor.chunk_elems(chunk));
    // Who submits sees to it that columns have room for a sum. Where they have not, no sum is
    // better than a wrong one: it turns into NaN, on all ranks.
    const std::uint32_t bits = 32 / values_per_word(type);
    found.non_finite = found.non_finite || column_limit(bits, config_.summands) == 0;
    return found;
}

ChunkCodec::Verdict ChunkCodec::judge(const Lane &lane, const wire::Header &header,
                                      const std::uint8_t *values) const {
    const bool is_whole = header.slot == slot_of(tree_, lane.seq, window_) &&
                          header.contributors == tree_.expected_bitmap;
    if (!is_whole) return Verdict::kElse;
    // Of a whole result, whether all workers have submitted the same up to this tensor.
    const std::uint32_t own = round_digest(lane.tensor->digest, lane.seq);
    const auto summands = static_cast<std::uint32_t>(config_.summands);
    const bool agrees = header.digest == static_cast<std::uint16_t>(summands * own);
    if (!check_.is_on()) {
        if (!agrees) return Verdict::kDisagrees;
        // The largest of all workers' is no less than our own. By a smaller one our values would
        // not fit int32, and the sum would be wrong.
        const bool may_be = header.next_exponent >= lane.announced;
        return may_be && fits(lane, header, values) ? Verdict::kFits : Verdict::kElse;
    }
    // The check is of the digest, too: where it holds, all have submitted the same.
    // Nothing holds of a result without values, which is a sign to go on and no more: it changes
    // no tensor of this rank's.
    const bool holds = is_bare(lane, header) ? agrees : verifies(lane, header, values);
    const bool is_fit = fits(lane, header, values);
    if (is_fit && holds) return Verdict::kFits;
    // A damaged field must not end the job, and with the wrong reason: it is in the slot if it
    // comes a third time, and then not what one flipped bit makes of it.
    const FailedCheck &failed = lane.failed;
    const bool repeats = failed.digest_repeats > 0 && header.digest == failed.digest;
    if (!agrees && repeats && !is_damaged(header.digest, own, summands)) return Verdict::kDisagrees;
    return agrees && !is_fit ? Verdict::kElse : Verdict::kCorrupt;
}

bool ChunkCodec::verifies(const Lane &lane, const wire::Header &header,
                          const std::uint8_t *values) const {
    // Exponents are no sum. The maximum cannot be less than what this worker said; that it is not
    // more than anybody said is claimed in the round that uses it.
    if (header.next_exponent < lane.announced) return false;
    const auto workers = static_cast<std::uint32_t>(config_.world_size);
    return check_.verify(tag_of(lane, header), claims_in(lane, header, workers), lane.expected,
                         values, header.check);
}

bool ChunkCodec::fits(const Lane &lane, const wire::Header &header,
                      const std::uint8_t *values) const {
    const ValueType type = lane.tensor->request.type;
    const std::uint32_t count = moves_values(lane) ? config_.values_per_packet : 0;
    const bool may_be_bare = !config_.is_stream && !lane.gets();
    // A sum that another job put out of a shared slot says no shape: who gets none has them then.
    const bool has_right_shape =
        header.shape == static_cast<std::uint8_t>(lane.shape()) || header.shape == wire::kShapeSum;
    const bool has_right_size = has_right_shape && (header.value_count == count ||
                                                    (header.value_count == 0 && may_be_bare));
    const bool names_next = config_.is_stream && lane.has_values();
    if (names_next &&
        (!has_right_size || !schedule_.may_follow(lane, named_next(lane, values), lane.next_own))) {
        return false;
    }
    const bool next_is_valid =
        header.next_exponent == wire::kExponentAllZero || header.next_exponent >= kMinBlockExponent;
    return header.value_type == static_cast<std::uint8_t>(type) && has_right_size &&
           header.exponent == lane.exponent && next_is_valid;
}

// The sums of a guess are what they would be had the exponent been known if it was right, or the
// result depends on no value. That all values are 0 nobody claims: it takes a round with exponent
// 0, where sums are verified.
bool ChunkCodec::has_sums(const Lane &lane, const wire::Header &header) const {
    if (!is_float(lane.tensor->request.type)) {
        if (lane.is_guess()) return (header.flags & wire::kFlagOverflow) == 0;
        return lane.exponent != static_cast<std::uint8_t>(IntegerPart::kLower);
    }
    if (!lane.is_guess()) return lane.has_values();
    return header.next_exponent == lane.exponent ||
           (header.next_exponent == 0 && !check_.is_on()) ||
           (header.flags & wire::kFlagNonFinite) != 0;
}

std::uint8_t *ChunkCodec::lower_of(const Lane &lane) {
    const std::size_t bytes = wire::kValueBytes * config_.values_per_packet;
    lower_.resize(bytes * config_.lanes);
    return lower_.data() + bytes * ((lane.seq & (window_ - 1)) - config_.first_lane);
}

void ChunkCodec::keep_lower(const Lane &lane, const std::uint8_t *values) {
    std::memcpy(lower_of(lane), values, wire::kValueBytes * config_.values_per_packet);
}

// The sums of all, of a result that lacks this worker's own values.
const std::uint8_t *ChunkCodec::with_own(const Lane &lane, const std::uint8_t *sums,
                                         std::uint8_t *room) const {
    const Tensor &tensor = *lane.tensor;
    const std::size_t words = codec_of(tensor.request.type)
                                  .write(block_of(lane), tensor.chunk_in(lane.chunk),
                                         tensor.chunk_elems(lane.chunk), room);
    for (std::size_t i = 0; i < words * wire::kValueBytes; i += wire::kValueBytes) {
        wire::store_be32(room + i, wire::load_be32(room + i) + wire::load_be32(sums + i));
    }
    return room;
}

void ChunkCodec::copy_own(const Tensor &tensor, std::uint64_t chunk) {
    if (tensor.request.kind != CollectiveKind::kAllGather || tensor.gets(chunk)) return;
    std::uint8_t *const to = tensor.chunk_out(chunk);
    const std::uint8_t *const from = tensor.chunk_in(chunk);
    if (to != from) std::memmove(to, from, tensor.chunk_bytes(chunk));
}

void ChunkCodec::read_sums(const Lane &lane, std::uint8_t flags, const std::uint8_t *values,
                           std::uint8_t *room, std::uint8_t *out) {
    const TensorRequest &request = lane.tensor->request;
    const std::size_t elems = lane.tensor->chunk_elems(lane.chunk);
    if (is_float(request.type)) {
        if ((flags & wire::kFlagNonFinite) != 0) return fill_nan(request.type, out, elems);
        if (lane.exponent == wire::kExponentAllZero) {
            std::memset(out, 0, elems * bytes_per_elem(request.type));
            return;
        }
    }
    if (lane.is_half()) {
        std::uint8_t *const sums = lower_of(lane);
        join_halves(sums, values, elems);
        values = sums;
    }
    if (lane.tensor->adds_own(lane.chunk)) values = with_own(lane, values, room);
    const int divisor = request.op == Reduction::kAverage ? config_.divisor : 1;
    codec_of(request.type).read(block_of(lane), values, elems, divisor, out);
}

}  // namespace ina::host
