// A tensor that all ranks do something with, and what follows from the order in which tensors are
// submitted: which lanes it runs on, where its chunks come among all, and a digest of all
// submissions up to it. All workers, and all shares of one worker's lanes, come to the same.
//
// Of a collective with parts each chunk is one part's, and its rank owns it. Parts take turns chunk
// by chunk: so the links of all ranks are busy all the time.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "host/core/codec.hpp"
#include "host/core/digest.hpp"
#include "host/core/placement.hpp"
#include "host/core/worker_config.hpp"
#include "host/core/worker_types.hpp"

namespace ina::host {

struct Submission {
    TensorRequest request;
    Place place;
    std::uint64_t first_order = 0;  // chunk 0's, among all chunks submitted of its flow
    std::uint64_t digest = 0;       // of all submissions up to this one
    std::uint32_t values_per_chunk = 1;
    std::uint16_t rank = 0;  // this worker's
    std::uint16_t ranks = 1;
    Shape shape = Shape::kSum;  // of its rounds with values
    // An all-gather whose parts have room in one packet together: a sum of what is zero elsewhere.
    bool is_together = false;

    std::uint64_t parts() const { return request.has_parts() && !is_together ? ranks : 1; }
    // Whose chunk it is; of collectives without parts and root it says nothing.
    std::uint16_t owner(std::uint64_t chunk) const {
        return parts() > 1 ? static_cast<std::uint16_t>(chunk % ranks) : request.root;
    }
    bool owns(std::uint64_t chunk) const { return owner(chunk) == rank; }
    // Whether this worker's packet of the chunk has values, and whether it gets those of the
    // result. All take part in every round: who has none to give sends a header alone, and who gets
    // none goes on once it has a result, with values or without.
    bool gives(std::uint64_t chunk) const {
        if (request.kind == CollectiveKind::kBarrier) return false;
        if (shape == Shape::kSum) return true;
        return owns(chunk) == (shape == Shape::kGather);
    }
    bool gets(std::uint64_t chunk) const {
        switch (request.kind) {
            case CollectiveKind::kAllReduce: return true;
            case CollectiveKind::kReduce:
            case CollectiveKind::kReduceScatter: return owns(chunk);
            case CollectiveKind::kAllGather: return is_together || !owns(chunk);
            case CollectiveKind::kBroadcast: return !owns(chunk);
            default: return false;
        }
    }
    // Whether it has some of them in memory: of what is moved the owner alone.
    bool has_values(std::uint64_t chunk) const {
        if (request.kind == CollectiveKind::kBarrier) return false;
        return !request.is_moved() || is_together || owns(chunk);
    }
    // Of a sum that leaves it out: the owner adds its own.
    bool adds_own(std::uint64_t chunk) const { return shape == Shape::kScatter && owns(chunk); }

    std::size_t chunk_elems(std::uint64_t chunk) const {  // the last one's of a part may be fewer
        if (is_together) return static_cast<std::size_t>(request.elems * ranks);
        const std::uint64_t first = piece(chunk) * values_per_chunk;
        return static_cast<std::size_t>(
            std::min<std::uint64_t>(values_per_chunk, request.elems - first));
    }
    std::size_t chunk_bytes(std::uint64_t chunk) const {
        return chunk_elems(chunk) * bytes_per_elem(request.type);
    }
    // Where this worker has the chunk's values, if it has some.
    const std::uint8_t *chunk_in(std::uint64_t chunk) const {
        const bool has_all = request.kind == CollectiveKind::kReduceScatter;
        return static_cast<const std::uint8_t *>(request.in) + offset_bytes(chunk, has_all);
    }
    // Of those: in a chunk of all ranks' parts it has its own alone.
    std::size_t chunk_in_bytes(std::uint64_t chunk) const {
        return is_together ? part_bytes() : chunk_bytes(chunk);
    }
    // And where the result's go, if it gets some.
    std::uint8_t *chunk_out(std::uint64_t chunk) const {
        const bool has_all = request.kind == CollectiveKind::kAllGather;
        return static_cast<std::uint8_t *>(request.out) + offset_bytes(chunk, has_all);
    }
    // Of the chunk's first value, among those of all parts, each filled up to whole chunks, in
    // their order.
    std::uint64_t number_of_first(std::uint64_t chunk) const {
        const std::uint64_t pieces = place.chunks / parts();
        const std::uint64_t before = request.has_parts() ? owner(chunk) * pieces : 0;
        return (before + piece(chunk)) * values_per_chunk;
    }
    std::size_t part_bytes() const {
        return static_cast<std::size_t>(request.elems) * bytes_per_elem(request.type);
    }
    // The chunk's, in the tensor's history of exponents.
    std::uint32_t block(std::uint64_t chunk) const {
        return place.first_block + static_cast<std::uint32_t>(chunk);
    }

  private:
    std::uint64_t piece(std::uint64_t chunk) const { return chunk / parts(); }  // of its part
    // has_all: the memory has all ranks' parts, one behind the other.
    std::size_t offset_bytes(std::uint64_t chunk, bool has_all) const {
        if (is_together) return 0;
        const std::size_t before = has_all ? owner(chunk) * part_bytes() : 0;
        return before + piece(chunk) * values_per_chunk * bytes_per_elem(request.type);
    }
};

// One worker's. Not thread-safe.
class SubmissionOrder {
  public:
    explicit SubmissionOrder(const WorkerConfig &config)
        : words_per_chunk_(std::max(values_per_chunk(config), 1u)),
          rank_(static_cast<std::uint16_t>(config.rank)),
          ranks_(static_cast<std::uint16_t>(config.world_size)), has_shapes_(has_shapes(config)),
          placement_(window_of(config), !config.is_stream) {}

    Submission next(const TensorRequest &request) {
        digest_.add(request);
        Submission submission;
        submission.request = request;
        submission.rank = rank_;
        submission.ranks = ranks_;
        submission.digest = digest_.value();
        submission.values_per_chunk = words_per_chunk_ * codec_of(request.type).per_word;
        submission.is_together = request.kind == CollectiveKind::kAllGather &&
                                 request.elems <= submission.values_per_chunk / ranks_;
        if (has_shapes_ && !submission.is_together) submission.shape = request.shape();
        if (!request.is_empty()) {
            submission.place = placement_.next(request, submission.shape, chunks_of(submission));
        }
        std::uint64_t &next_order = next_order_[flow_of(submission.shape)];
        submission.first_order = next_order;
        next_order += submission.place.chunks;
        return submission;
    }

  private:
    static std::uint64_t chunks_of(const Submission &submission) {
        const TensorRequest &request = submission.request;
        if (submission.is_together || request.kind == CollectiveKind::kBarrier) return 1;
        const std::uint32_t values = submission.values_per_chunk;
        return submission.parts() * ((request.elems + values - 1) / values);
    }

    std::uint32_t words_per_chunk_;
    std::uint16_t rank_;
    std::uint16_t ranks_;
    bool has_shapes_;
    Placement placement_;
    SubmissionDigest digest_;
    std::array<std::uint64_t, kFlows> next_order_{};
};

}  // namespace ina::host
