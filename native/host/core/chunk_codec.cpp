#include "host/core/chunk_codec.hpp"

#include <cstring>

#include "host/recovery/resends.hpp"

namespace ina::host {

void ChunkCodec::write_packet(Lane &lane, std::uint8_t *packet) const {
    const Tensor &tensor = *lane.tensor;
    const ValueType type = tensor.request.type;
    const std::uint32_t values = config_.values_per_packet;
    wire::Header header;
    header.kind = wire::kKindContribution;
    header.job = config_.job;
    header.epoch = static_cast<std::uint16_t>(config_.epoch);
    header.worker = static_cast<std::uint8_t>(config_.rank);
    header.slot = static_cast<std::uint16_t>(lane.seq & (slots_ - 1));
    header.value_type = static_cast<std::uint8_t>(type);
    header.seq = lane.seq;
    header.contributors = std::uint32_t{1} << config_.rank;
    header.exponent = lane.exponent;
    header.digest = round_digest(tensor.digest, lane.seq);
    bool summed = true;
    if (lane.is_guess()) {
        const BlockScan own = scan(tensor, lane.chunk);
        header.next_exponent = own.exponent;
        lane.non_finite = own.non_finite;
        summed = own.exponent <= lane.exponent;
        if (!summed) header.flags |= wire::kFlagOverflow;
    }
    if (lane.has_values()) {
        header.value_count = static_cast<std::uint16_t>(values);
        if (lane.non_finite) header.flags |= wire::kFlagNonFinite;
        std::uint8_t *const wire_values = packet + wire::kHeaderBytes;
        std::size_t filled = 0;
        // Values that cannot change the result stay 0: the chunk is all zero, turns into NaN, or
        // will be sent once more.
        if (is_float(type)) summed = summed && lane.exponent != 0 && !lane.non_finite;
        if (summed) {
            filled = tensor.chunk_elems(lane.chunk);
            const float scale =
                is_float(type) ? block_scale(lane.exponent, config_.summands) : 1.0f;
            kernels_.quantize(type, tensor.chunk_in(lane.chunk), filled, scale, wire_values);
        }
        std::memset(wire_values + filled * wire::kValueBytes, 0,
                    (values - filled) * wire::kValueBytes);
    }
    if (!lane.is_guess()) announce_next(lane, header);
    lane.announced = header.next_exponent;
    wire::store_header(packet, header);
    Origin{header.worker, 0}.store(packet);
    lane.packet_bytes = wire::packet_bytes(header.value_count);
}

// Puts the exponent of what the lane sends next into the header.
void ChunkCodec::announce_next(Lane &lane, wire::Header &header) const {
    const Tensor *tensor = lane.tensor;
    std::uint64_t chunk = lane.has_values() ? lane.chunk + window() : lane.chunk;
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

BlockScan ChunkCodec::scan(const Tensor &tensor, std::uint64_t chunk) const {
    const std::uint8_t *const values = tensor.chunk_in(chunk);
    prefetch_scan(values, tensor.chunk_bytes(chunk));
    return kernels_.scan(tensor.request.type, values, tensor.chunk_elems(chunk));
}

ChunkCodec::Verdict ChunkCodec::judge(const Lane &lane, const wire::Header &header) const {
    const bool is_whole =
        header.slot == (lane.seq & (slots_ - 1)) && header.contributors == config_.expected_bitmap;
    if (!is_whole) return Verdict::kElse;
    // Of a whole result, whether all workers have submitted the same up to this tensor.
    const std::uint32_t own = round_digest(lane.tensor->digest, lane.seq);
    const auto summands = static_cast<std::uint32_t>(config_.summands);
    if (header.digest != static_cast<std::uint16_t>(summands * own)) return Verdict::kDisagrees;
    return fits(lane, header) ? Verdict::kFits : Verdict::kElse;
}

bool ChunkCodec::fits(const Lane &lane, const wire::Header &header) const {
    const ValueType type = lane.tensor->request.type;
    const std::uint32_t values = lane.has_values() ? config_.values_per_packet : 0;
    // The largest of all workers' is no less than our own. By a smaller one our values would not
    // fit int32, and the sum would be wrong.
    const bool next_is_valid =
        header.next_exponent >= lane.announced && (header.next_exponent == wire::kExponentAllZero ||
                                                   header.next_exponent >= kMinBlockExponent);
    return header.value_type == static_cast<std::uint8_t>(type) && header.value_count == values &&
           header.exponent == lane.exponent && next_is_valid;
}

// The sums of a guess are what they would be had the exponent been known if it was right, or the
// result depends on no value.
bool ChunkCodec::has_sums(const Lane &lane, const wire::Header &header) {
    if (!lane.is_guess()) return lane.has_values();
    return header.next_exponent == lane.exponent || header.next_exponent == 0 ||
           (header.flags & wire::kFlagNonFinite) != 0;
}

void ChunkCodec::read_sums(const Lane &lane, const wire::Header &header,
                           const std::uint8_t *values) const {
    const TensorRequest &request = lane.tensor->request;
    const std::size_t elems = lane.tensor->chunk_elems(lane.chunk);
    std::uint8_t *const out = lane.tensor->chunk_out(lane.chunk);
    Dequantization how;
    how.divisor = request.op == ReduceOp::kAverage ? config_.divisor : 1;
    if (is_float(request.type)) {
        if ((header.flags & wire::kFlagNonFinite) != 0) return fill_nan(request.type, out, elems);
        if (lane.exponent == wire::kExponentAllZero) {
            std::memset(out, 0, elems * bytes_per_elem(request.type));
            return;
        }
        how.inverse_scale = inverse_block_scale(lane.exponent, config_.summands);
    }
    kernels_.dequantize(request.type, values, elems, how, out);
}

}  // namespace ina::host
