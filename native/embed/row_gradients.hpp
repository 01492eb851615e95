// The sum of a step's gradients for each row of a shard that has some. It is added up in the order
// in which it is told, so the same order makes the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "embed/shard.hpp"

namespace ina::embed {

class RowGradients {
  public:
    RowGradients(std::uint32_t rows, std::size_t dim) : dim_(dim), slot_of_(rows, kNone) {}

    void add(std::uint32_t local, const float *vector, float weight) {
        std::uint32_t &slot = slot_of_[local];
        if (slot == kNone) {
            slot = static_cast<std::uint32_t>(touched_.size());
            touched_.push_back(local);
            sums_.resize(sums_.size() + dim_, 0.0F);
        }
        float *const sum = sums_.data() + std::size_t{slot} * dim_;
        for (std::size_t i = 0; i < dim_; ++i) sum[i] += weight * vector[i];
    }
    // Each row once; afterwards there are none.
    void apply(Shard *shard, const Optimizer &optimizer, float rate) {
        for (std::size_t i = 0; i < touched_.size(); ++i) {
            const std::uint32_t local = touched_[i];
            optimizer.apply(shard->row(local), shard->state(local), sums_.data() + i * dim_, dim_,
                            rate);
            slot_of_[local] = kNone;
        }
        touched_.clear();
        sums_.clear();
    }

  private:
    static constexpr std::uint32_t kNone = UINT32_MAX;

    std::size_t dim_;
    std::vector<std::uint32_t> slot_of_;
    std::vector<std::uint32_t> touched_;
    std::vector<float> sums_;
};

}  // namespace ina::embed
