// The rows of one table that a host owns, with what the optimiser keeps of each.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "embed/optimizer.hpp"
#include "embed/placement.hpp"

namespace ina::embed {

class Shard {
  public:
    Shard(const Placement &placement, std::uint16_t host, const Optimizer &optimizer)
        : dim_(placement.spec().dim), rows_(placement.rows_of(host)),
          values_(std::size_t{rows_} * dim_) {
        keep_state(optimizer);
    }

    // What that optimiser keeps, as it is before the first step.
    void keep_state(const Optimizer &optimizer) {
        state_values_ = optimizer.state_values(dim_);
        state_.assign(std::size_t{rows_} * state_values_, optimizer.first_accumulator);
    }

    std::uint32_t rows() const { return rows_; }
    std::size_t dim() const { return dim_; }
    std::size_t state_values() const { return state_values_; }
    float *row(std::uint32_t local) { return values_.data() + std::size_t{local} * dim_; }
    const float *row(std::uint32_t local) const {
        return values_.data() + std::size_t{local} * dim_;
    }
    // Has a row's values brought from memory, which goes on while other work is done.
    void fetch(std::uint32_t local) const {
        constexpr std::size_t kLineValues = 16;
        const float *const values = row(local);
        for (std::size_t i = 0; i < dim_; i += kLineValues) __builtin_prefetch(values + i);
    }
    float *state(std::uint32_t local) { return state_.data() + std::size_t{local} * state_values_; }
    const float *state(std::uint32_t local) const {
        return state_.data() + std::size_t{local} * state_values_;
    }

  private:
    std::size_t dim_;
    std::uint32_t rows_;
    std::size_t state_values_ = 0;
    std::vector<float> values_;
    std::vector<float> state_;
};

}  // namespace ina::embed
