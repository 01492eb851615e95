// Rows that every host has a replica of, for nearly all ask for them in each step. What a step adds
// to their gradients is summed over all hosts by an all-reduce, whose result has the same bits on
// all of them: so each replica is updated alike, and nobody tells anybody of changes.
//
// Which rows these are changes between steps, on all hosts at the same one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "embed/optimizer.hpp"

namespace ina::embed {

class HotRows {
  public:
    static constexpr std::size_t kNone = SIZE_MAX;

    explicit HotRows(std::vector<std::size_t> dims) : tables_(dims.size()) {
        for (std::size_t i = 0; i < dims.size(); ++i) tables_[i].dim = dims[i];
    }

    // Of a table these rows and no others, with their values and what the optimiser keeps of each.
    // Gradients begin at zero.
    void set(std::size_t table, const std::uint32_t *rows, std::size_t count, const float *values,
             const float *state, const Optimizer &optimizer) {
        Table &own = tables_[table];
        own.index_of.clear();
        own.rows.assign(rows, rows + count);
        for (std::size_t i = 0; i < count; ++i) own.index_of.emplace(rows[i], i);
        own.values.assign(values, values + count * own.dim);
        own.state.assign(state, state + count * optimizer.state_values(own.dim));
        own.gradients.assign(count * own.dim, 0.0F);
        count_ = 0;
        for (const Table &one : tables_) count_ += one.rows.size();
    }
    bool is_empty() const { return count_ == 0; }
    // Its place among its table's; kNone: it is not one of them.
    std::size_t find(std::size_t table, std::uint32_t row) const {
        if (is_empty()) return kNone;
        const auto found = tables_[table].index_of.find(row);
        return found == tables_[table].index_of.end() ? kNone : found->second;
    }
    // As find(), for a look-up, and counted.
    std::size_t look_up(std::size_t table, std::uint32_t row) {
        const std::size_t place = find(table, row);
        if (place != kNone) ++tables_[table].hits;
        return place;
    }
    std::uint64_t hits(std::size_t table) const { return tables_[table].hits; }
    const std::vector<std::uint32_t> &rows(std::size_t table) const { return tables_[table].rows; }
    const float *values(std::size_t table, std::size_t index) const {
        return tables_[table].values.data() + index * tables_[table].dim;
    }
    const float *state(std::size_t table, std::size_t index) const {
        const Table &own = tables_[table];
        return own.state.data() +
               index * (own.rows.empty() ? 0 : own.state.size() / own.rows.size());
    }
    void add_gradient(std::size_t table, std::size_t index, const float *vector, float weight) {
        Table &own = tables_[table];
        float *const sum = own.gradients.data() + index * own.dim;
        for (std::size_t i = 0; i < own.dim; ++i) sum[i] += weight * vector[i];
    }
    // Of all tables, one after another.
    std::size_t gradient_values() const {
        std::size_t values = 0;
        for (const Table &own : tables_) values += own.gradients.size();
        return values;
    }
    void read_gradients(float *out) const {
        for (const Table &own : tables_) {
            out = std::copy(own.gradients.begin(), own.gradients.end(), out);
        }
    }
    // The sums over all hosts, in the same order. This host's begin at zero again.
    void apply(const float *sums, const Optimizer &optimizer, float rate) {
        for (Table &own : tables_) {
            const std::size_t state_values = optimizer.state_values(own.dim);
            for (std::size_t i = 0; i < own.rows.size(); ++i, sums += own.dim) {
                optimizer.apply(own.values.data() + i * own.dim,
                                own.state.data() + i * state_values, sums, own.dim, rate);
            }
            std::fill(own.gradients.begin(), own.gradients.end(), 0.0F);
        }
    }

  private:
    struct Table {
        std::size_t dim = 0;
        std::vector<std::uint32_t> rows;
        std::unordered_map<std::uint32_t, std::size_t> index_of;
        std::vector<float> values, state, gradients;
        std::uint64_t hits = 0;
    };

    std::vector<Table> tables_;
    std::size_t count_ = 0;
};

}  // namespace ina::embed
