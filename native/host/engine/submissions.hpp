// What a worker has submitted of late: what it says when workers turn out to have submitted
// different things.
#pragma once

#include <algorithm>
#include <array>
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

    // This one and those that follow, oldest first. Not all agree on it.
    std::vector<TensorRequest> from(std::uint64_t id) const {
        const auto first = std::find_if(requests_.begin(), requests_.end(),
                                        [&](const TensorRequest &one) { return one.id >= id; });
        return {first, requests_.end()};
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

// When the last few were submitted.
class RecentTimes {
  public:
    static constexpr std::uint64_t kKept = 1024;

    void add(std::int64_t now_ns) { times_ns_[count_++ % kKept] = now_ns; }
    std::uint64_t since(std::int64_t then_ns) const {  // so many, of those kept
        const std::uint64_t kept = std::min(count_, kKept);
        std::uint64_t found = 0;
        while (found < kept && times_ns_[(count_ - 1 - found) % kKept] >= then_ns) ++found;
        return found;
    }

  private:
    std::array<std::int64_t, kKept> times_ns_{};
    std::uint64_t count_ = 0;
};

}  // namespace ina::host
