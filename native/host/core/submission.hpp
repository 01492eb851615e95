// A tensor to all-reduce, and what follows from the order in which tensors are submitted: which
// lanes it runs on, where its chunks come among all, and a digest of all submissions up to it. All
// workers, and all shares of one worker's lanes, come to the same.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "host/core/codec.hpp"
#include "host/core/digest.hpp"
#include "host/core/placement.hpp"
#include "host/core/worker_types.hpp"

namespace ina::host {

struct Submission {
    TensorRequest request;
    Place place;
    std::uint64_t first_order = 0;  // chunk 0's, among all chunks submitted
    std::uint64_t digest = 0;       // of all submissions up to this one
    std::uint32_t values_per_chunk = 1;

    std::size_t chunk_elems(std::uint64_t chunk) const {  // the last chunk's may be fewer
        return static_cast<std::size_t>(
            std::min<std::uint64_t>(values_per_chunk, request.elems - chunk * values_per_chunk));
    }
    std::size_t chunk_bytes(std::uint64_t chunk) const {
        return chunk_elems(chunk) * bytes_per_elem(request.type);
    }
    const std::uint8_t *chunk_in(std::uint64_t chunk) const {
        return static_cast<const std::uint8_t *>(request.in) + offset_bytes(chunk);
    }
    std::uint8_t *chunk_out(std::uint64_t chunk) const {
        return static_cast<std::uint8_t *>(request.out) + offset_bytes(chunk);
    }
    // The chunk's, in the tensor's history of exponents.
    std::uint32_t block(std::uint64_t chunk) const {
        return place.first_block + static_cast<std::uint32_t>(chunk);
    }

  private:
    std::size_t offset_bytes(std::uint64_t chunk) const {
        return chunk * values_per_chunk * bytes_per_elem(request.type);
    }
};

// One worker's. Not thread-safe.
class SubmissionOrder {
  public:
    // window: W. values_per_chunk: whole words. guesses: whether exponents are (placement.hpp).
    SubmissionOrder(std::uint32_t window, std::uint32_t values_per_chunk, bool guesses = true)
        : values_per_chunk_(values_per_chunk), placement_(window, guesses) {}

    Submission next(const TensorRequest &request) {
        digest_.add(request);
        Submission submission;
        submission.request = request;
        const std::uint32_t per_chunk = values_per_chunk_ * codec_of(request.type).per_word;
        if (request.elems > 0) submission.place = placement_.next(request, per_chunk);
        submission.first_order = next_order_;
        submission.digest = digest_.value();
        submission.values_per_chunk = per_chunk;
        next_order_ += submission.place.chunks;
        return submission;
    }

  private:
    std::uint32_t values_per_chunk_;
    Placement placement_;
    SubmissionDigest digest_;
    std::uint64_t next_order_ = 0;
};

}  // namespace ina::host
