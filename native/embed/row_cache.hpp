// Rows of other hosts, as they are in one version of the tables: for inference, whose version does
// not change, so that what is asked for most of the time is asked for once.
//
// Which rows stay is CLOCK's choice (Corbato, 1968): a hand goes round, and takes the place of the
// first row that has not been asked for since it last came by.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "embed/placement.hpp"

namespace ina::embed {

struct CacheCounters {
    std::uint64_t hits = 0;
    std::uint64_t misses = 0;  // rows of other hosts that were asked for
};

class RowCache {
  public:
    // Of all tables together at most so many bytes of values; of each table the same share of its
    // rows. 0: it keeps nothing.
    void resize(const std::vector<TableSpec> &specs, std::size_t most_bytes) {
        tables_.resize(specs.size());
        forget();
        is_empty_ = most_bytes == 0;
        double all_bytes = 0.0;
        for (const TableSpec &spec : specs) all_bytes += bytes_of(spec);
        const double share = std::min(1.0, static_cast<double>(most_bytes) / all_bytes);
        for (std::size_t i = 0; i < specs.size(); ++i) {
            tables_[i].dim = specs[i].dim;
            tables_[i].most = static_cast<std::size_t>(share * specs[i].rows);
        }
    }
    // From now on it holds rows of this version; those of another are forgotten.
    void use_version(std::uint32_t version) {
        if (version == version_) return;
        version_ = version;
        forget();
    }
    bool is_empty() const { return is_empty_; }  // for good
    std::uint32_t version() const { return version_; }
    // Null: it is not here. Valid until the next put().
    const float *find(std::size_t number, std::uint32_t row) {
        if (is_empty_ || tables_[number].most == 0) return nullptr;
        Table &table = tables_[number];
        const auto found = table.place_of.find(row);
        if (found == table.place_of.end()) {
            ++table.counters.misses;
            return nullptr;
        }
        ++table.counters.hits;
        table.places[found->second].was_asked = true;
        return table.values.data() + found->second * table.dim;
    }
    void put(std::size_t number, std::uint32_t row, const float *values) {
        if (is_empty_ || tables_[number].most == 0) return;
        Table &table = tables_[number];
        if (table.place_of.count(row) != 0) return;
        std::size_t place = table.places.size();
        if (place < table.most) {
            table.places.push_back({row, false});
            table.values.resize(table.values.size() + table.dim);
        } else {
            place = table.free_one();
            table.place_of.erase(table.places[place].row);
            table.places[place] = {row, false};
        }
        table.place_of.emplace(row, place);
        std::copy_n(values, table.dim, table.values.data() + place * table.dim);
    }
    CacheCounters counters(std::size_t table) const {
        return table < tables_.size() ? tables_[table].counters : CacheCounters{};
    }
    CacheCounters counters() const {
        CacheCounters sum;
        for (const Table &table : tables_) {
            sum.hits += table.counters.hits;
            sum.misses += table.counters.misses;
        }
        return sum;
    }

  private:
    struct Place {
        std::uint32_t row;
        bool was_asked;
    };
    struct Table {
        std::size_t dim = 0;
        std::size_t most = 0;
        std::unordered_map<std::uint32_t, std::size_t> place_of;
        std::vector<Place> places;
        std::vector<float> values;
        std::size_t hand = 0;
        CacheCounters counters;

        std::size_t free_one() {
            for (;;) {
                const std::size_t here = hand;
                hand = (hand + 1) % places.size();
                if (!places[here].was_asked) return here;
                places[here].was_asked = false;
            }
        }
    };

    void forget() {
        for (Table &table : tables_) {
            table.place_of.clear();
            table.places.clear();
            table.values.clear();
            table.hand = 0;
        }
    }
    static double bytes_of(const TableSpec &spec) {
        return static_cast<double>(spec.rows) * spec.dim * sizeof(float);
    }

    std::vector<Table> tables_;
    bool is_empty_ = true;
    std::uint32_t version_ = 0;
};

}  // namespace ina::embed
