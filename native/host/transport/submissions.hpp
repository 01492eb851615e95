// What a worker has submitted of late: what it says when workers turn out to have submitted
// different things.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "host/core/worker_types.hpp"

namespace ina::host {

class Submissions {
  public:
    // In the order of their ids.
    void add(const TensorRequest &request) {
        requests_.erase(requests_.begin(), first_to_tell());
        requests_.push_back(request);
    }

    // All workers have submitted the same up to this one: an earlier one cannot be what differs.
    void agree_up_to(std::uint64_t id) { agreed_ = std::max(agreed_, id); }

    // The last few that all agree on (another worker may not know that yet), then those that
    // follow; oldest first, at most 512.
    std::vector<TensorRequest> list() const {
        const auto first = first_to_tell();
        return {first, first + std::min(requests_.end() - first, kListed)};
    }

  private:
    std::deque<TensorRequest>::const_iterator first_to_tell() const {
        auto first = requests_.begin();
        while (requests_.end() - first > kAgreedKept && first[kAgreedKept].id <= agreed_) ++first;
        return first;
    }

    static constexpr std::ptrdiff_t kAgreedKept = 16;
    static constexpr std::ptrdiff_t kListed = 512;  // more than W lanes of small tensors: 256
    std::uint64_t agreed_ = 0;
    std::deque<TensorRequest> requests_;
};

}  // namespace ina::host
