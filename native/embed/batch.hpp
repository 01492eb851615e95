// What a module is asked for at a time: bags of several tables, and what is looked up for them.
//
// Of each table the way is taken that brings fewer vectors. *By row*: each row of the batch once;
// bags are made of them at home, and the gradient of a row is that of all bags that have it.
// *By bag*: owners add up the rows of a bag, and its gradient goes back once for all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "embed/bags.hpp"
#include "embed/placement.hpp"

namespace ina::embed {

// Bags of a table, as a caller has them; the memory has to stay while a Batch is made of it.
struct GivenBags {
    std::string name;  // of the table, for what is said of errors
    std::uint16_t table = 0;
    std::size_t count = 0;  // of ids
    const std::int64_t *ids = nullptr;
    std::size_t bags = 0;
    const std::int64_t *offsets = nullptr;  // where bags begin; null: each has as many rows
    const float *weights = nullptr;         // of ids; null: 1
    bool is_mean = false;
    bool by_row = false;  // in any case
};

class Batch {
  public:
    // specs: of all tables. Throws std::out_of_range: a row or a table that there is not;
    // std::invalid_argument: offsets that fall, or go beyond the ids.
    Batch(const std::vector<TableSpec> &specs, const std::vector<GivenBags> &given);

    // The tables, in the order in which they were given.
    std::size_t size() const { return tables_.size(); }
    std::uint16_t table(std::size_t i) const { return tables_[i].table; }
    std::size_t dim(std::size_t i) const { return tables_[i].dim; }
    bool is_by_row(std::size_t i) const { return tables_[i].is_by_row; }
    std::size_t bags(std::size_t i) const { return tables_[i].starts.size() - 1; }

    // What is looked up, and where gradients go: as many vectors as it has bags.
    BagSource asked(std::size_t i) const;
    // By row: of each id which of the rows it is.
    const std::vector<std::int64_t> &places(std::size_t i) const { return tables_[i].places; }
    // Whether a bag's vector is that of its one row.
    bool is_plain(std::size_t i) const { return tables_[i].is_plain; }

    // From the vectors that have come, which it may change, to those of the bags. By row only of
    // tables that are plain.
    void pool(std::size_t i, const float *came, float *vectors) const;
    // From gradients of the bags to those of what was asked for; zeros where there is none.
    void spread(std::size_t i, const float *gradients, float *sums) const;

  private:
    struct Table {
        std::uint16_t table = 0;
        std::size_t dim = 0;
        bool is_by_row = false;
        bool is_plain = false;
        bool is_mean = false;
        std::vector<std::int64_t> starts;  // of bags, among the ids; and the end
        std::vector<std::uint32_t> rows;   // of ids; by row: each once
        std::vector<std::int64_t> ends;    // by row: of bags of one row each
        std::vector<std::int64_t> places;
        std::vector<float> weights;
    };

    static Table table_of(const TableSpec &spec, const GivenBags &given);
    static void make_by_row(Table *table);
    // What a bag's sum is divided by.
    static float divisor(const Table &table, std::size_t bag);

    std::vector<Table> tables_;
};

}  // namespace ina::embed
