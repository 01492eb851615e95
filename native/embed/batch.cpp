#include "embed/batch.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace ina::embed {
namespace {

// Numbers rows in the order in which they come, each once.
class Numbering {
  public:
    explicit Numbering(std::size_t most) {
        std::size_t size = 16;
        while (size < 2 * most) size *= 2;
        slots_.assign(size, kFree);
        mask_ = size - 1;
    }
    // rows: those that have a number, by it; a new one is put behind.
    std::int64_t number_of(std::uint32_t row, std::vector<std::uint32_t> *rows) {
        std::size_t at = std::size_t{row} * kMix >> 20 & mask_;
        while (slots_[at] != kFree && (*rows)[slots_[at]] != row) at = (at + 1) & mask_;
        if (slots_[at] == kFree) {
            slots_[at] = static_cast<std::uint32_t>(rows->size());
            rows->push_back(row);
        }
        return slots_[at];
    }

  private:
    static constexpr std::uint32_t kFree = UINT32_MAX;
    static constexpr std::uint64_t kMix = 0x9E37'79B9'7F4A'7C15;  // 2^64 / 1.618

    std::vector<std::uint32_t> slots_;
    std::size_t mask_;
};

std::string said_of(const GivenBags &given) { return "table '" + given.name + "': "; }

std::vector<std::int64_t> starts_of(const GivenBags &given) {
    std::vector<std::int64_t> starts(given.bags + 1);
    const auto count = static_cast<std::int64_t>(given.count);
    for (std::size_t i = 0; i < given.bags; ++i) {
        starts[i] = given.offsets != nullptr
                        ? given.offsets[i]
                        : static_cast<std::int64_t>(i * given.count / given.bags);
    }
    starts[given.bags] = count;
    if (given.bags == 0 ? count != 0 : starts[0] != 0) {
        throw std::invalid_argument(said_of(given) + "the first of its offsets is " +
                                    std::to_string(starts[0]) + ", want 0");
    }
    if (!std::is_sorted(starts.begin(), starts.end())) {
        throw std::invalid_argument(said_of(given) + "its offsets fall, or go beyond the " +
                                    std::to_string(count) + " rows");
    }
    return starts;
}

std::vector<std::uint32_t> rows_of(const TableSpec &spec, const GivenBags &given) {
    std::vector<std::uint32_t> rows(given.count);
    for (std::size_t i = 0; i < given.count; ++i) {
        const std::int64_t id = given.ids[i];
        if (id < 0 || id >= std::int64_t{spec.rows}) {
            throw std::out_of_range(said_of(given) + "row " + std::to_string(id) +
                                    ": it has rows 0 to " + std::to_string(spec.rows - 1));
        }
        rows[i] = static_cast<std::uint32_t>(id);
    }
    return rows;
}

}  // namespace

Batch::Batch(const std::vector<TableSpec> &specs, const std::vector<GivenBags> &given) {
    tables_.reserve(given.size());
    for (const GivenBags &one : given) {
        if (one.table >= specs.size()) {
            throw std::out_of_range("table " + std::to_string(one.table) + ": there are " +
                                    std::to_string(specs.size()));
        }
        tables_.push_back(table_of(specs[one.table], one));
    }
}

Batch::Table Batch::table_of(const TableSpec &spec, const GivenBags &given) {
    Table table;
    table.table = given.table;
    table.dim = spec.dim;
    table.is_mean = given.is_mean;
    table.starts = starts_of(given);
    table.rows = rows_of(spec, given);
    if (given.weights != nullptr) table.weights.assign(given.weights, given.weights + given.count);
    // Sums that come for the bags: of each as many as it has owners, at most.
    std::size_t most_sums = 0;
    for (std::size_t bag = 0; bag < given.bags; ++bag) {
        const auto rows = static_cast<std::size_t>(table.starts[bag + 1] - table.starts[bag]);
        most_sums += std::min<std::size_t>(rows, spec.owners);
    }
    Table by_row = table;
    make_by_row(&by_row);
    return given.by_row || by_row.rows.size() <= most_sums ? by_row : table;
}

void Batch::make_by_row(Table *table) {
    Numbering numbering(table->rows.size());
    std::vector<std::uint32_t> once;
    table->places.reserve(table->rows.size());
    for (const std::uint32_t row : table->rows) {
        table->places.push_back(numbering.number_of(row, &once));
    }
    table->rows = std::move(once);
    table->ends.resize(table->rows.size() + 1);
    for (std::size_t i = 0; i < table->ends.size(); ++i) {
        table->ends[i] = static_cast<std::int64_t>(i);
    }
    table->is_by_row = true;
    table->is_plain = table->weights.empty();
    for (std::size_t bag = 0; bag + 1 < table->starts.size(); ++bag) {
        table->is_plain = table->is_plain && table->starts[bag + 1] - table->starts[bag] == 1;
    }
}

BagSource Batch::asked(std::size_t i) const {
    const Table &table = tables_[i];
    if (table.is_by_row) return {table.rows.size(), table.ends.data(), table.rows.data(), nullptr};
    return {table.starts.size() - 1, table.starts.data(), table.rows.data(),
            table.weights.empty() ? nullptr : table.weights.data()};
}

float Batch::divisor(const Table &table, std::size_t bag) {
    const std::int64_t rows = table.starts[bag + 1] - table.starts[bag];
    return table.is_mean && rows > 1 ? static_cast<float>(rows) : 1.0F;
}

void Batch::pool(std::size_t i, const float *came, float *vectors) const {
    const Table &table = tables_[i];
    for (std::size_t bag = 0; bag < bags(i); ++bag, vectors += table.dim) {
        const auto from = table.is_by_row ? static_cast<std::size_t>(table.places[bag]) : bag;
        std::copy_n(came + from * table.dim, table.dim, vectors);
        const float divided = divisor(table, bag);
        if (divided == 1.0F) continue;
        for (std::size_t j = 0; j < table.dim; ++j) vectors[j] /= divided;
    }
}

void Batch::spread(std::size_t i, const float *gradients, float *sums) const {
    const Table &table = tables_[i];
    const std::size_t dim = table.dim;
    std::fill_n(sums, asked(i).bags * dim, 0.0F);
    for (std::size_t bag = 0; bag < bags(i); ++bag, gradients += dim) {
        const float divided = divisor(table, bag);
        const auto add = [&](std::size_t to, float weight) {
            float *const sum = sums + to * dim;
            for (std::size_t j = 0; j < dim; ++j) sum[j] += gradients[j] / divided * weight;
        };
        if (!table.is_by_row) {
            add(bag, 1.0F);  // weights go to the owner, with the rows
            continue;
        }
        for (std::int64_t id = table.starts[bag]; id < table.starts[bag + 1]; ++id) {
            const auto at = static_cast<std::size_t>(id);
            add(static_cast<std::size_t>(table.places[at]),
                table.weights.empty() ? 1.0F : table.weights[at]);
        }
    }
}

}  // namespace ina::embed
