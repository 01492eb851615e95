// Cuts a caller's bags into messages for the owners of their rows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "embed/bags.hpp"
#include "embed/config.hpp"

namespace ina::embed {

// What one message asks for, or brings: bags of one owner's rows, and whose pieces they are.
struct Sheet {
    BagWriter bags;
    std::vector<std::size_t> of;  // the caller's bags, in order
};

struct CutLimits {
    std::size_t part_bytes = 0;
    std::size_t vector_bytes = 0;  // of a bag
    bool brings_vectors = false;   // they are in the message, and not in the answer
};

class Cutter {
  public:
    // Answers, and messages that bring vectors, have so many parts at most, so that what is lost
    // and asked for again is little; more only where one vector is longer.
    static constexpr std::size_t kMostParts = 16;

    Cutter(const Placement &placement, std::uint16_t hosts, const CutLimits &limits)
        : placement_(placement), limits_(limits), sheets_(hosts), rows_(hosts), weights_(hosts) {}

    // Calls emit(owner, sheet) for each message. Bags without rows are in none.
    template <class Emit>
    void cut(const BagSource &source, Emit emit) {
        for (std::size_t bag = 0; bag < source.bags; ++bag) {
            deal(source, bag);
            for (const std::uint16_t owner : owners_) put_bag(bag, owner, emit);
        }
        for (std::uint16_t owner = 0; owner < sheets_.size(); ++owner) finish(owner, emit);
    }

  private:
    // A bag's rows, and their weights, to each owner.
    void deal(const BagSource &source, std::size_t bag) {
        owners_.clear();
        for (auto i = source.offsets[bag]; i < source.offsets[bag + 1]; ++i) {
            const std::uint16_t owner = placement_.owner_of(source.rows[i]);
            if (rows_[owner].empty()) owners_.push_back(owner);
            rows_[owner].push_back(source.rows[i]);
            if (source.weights != nullptr) weights_[owner].push_back(source.weights[i]);
        }
        std::sort(owners_.begin(), owners_.end());
    }
    template <class Emit>
    void put_bag(std::size_t bag, std::uint16_t owner, Emit &emit) {
        std::vector<std::uint32_t> &rows = rows_[owner];
        std::vector<float> &weights = weights_[owner];
        const std::size_t most = most_rows(!weights.empty());
        for (std::size_t first = 0; first < rows.size(); first += most) {
            const std::size_t count = std::min(most, rows.size() - first);
            Sheet &sheet = sheets_[owner];
            if (!fits(sheet, count, !weights.empty())) finish(owner, emit);
            sheet.bags.add(rows.data() + first, weights.empty() ? nullptr : weights.data() + first,
                           count);
            sheet.of.push_back(bag);
        }
        rows.clear();
        weights.clear();
    }
    template <class Emit>
    void finish(std::uint16_t owner, Emit &emit) {
        Sheet &sheet = sheets_[owner];
        if (sheet.of.empty()) return;
        emit(owner, sheet);
        sheet.bags.clear();
        sheet.of.clear();
    }
    // So many of a bag's that they fit a look-up's one packet.
    std::size_t most_rows(bool is_weighted) const {
        const std::size_t room = limits_.part_bytes - kMaskBytes - sizeof(std::uint16_t);
        return std::min(kMostRowsOfBag, room / bytes_a_row(is_weighted));
    }
    static std::size_t bytes_a_row(bool is_weighted) {
        return sizeof(std::uint32_t) + (is_weighted ? sizeof(float) : 0);
    }
    bool fits(const Sheet &sheet, std::size_t rows, bool is_weighted) const {
        if (sheet.of.empty()) return true;
        const std::size_t bags = sheet.of.size() + 1;
        const std::size_t asked_bytes =
            bags * sizeof(std::uint16_t) + (sheet.bags.rows() + rows) * bytes_a_row(is_weighted);
        const std::size_t vectors_bytes = bags * limits_.vector_bytes;
        const std::size_t most_bytes = kMostParts * limits_.part_bytes;
        if (limits_.brings_vectors) return asked_bytes + vectors_bytes <= most_bytes;
        return kMaskBytes + asked_bytes <= limits_.part_bytes && vectors_bytes <= most_bytes;
    }

    const Placement &placement_;
    const CutLimits limits_;
    std::vector<Sheet> sheets_;                     // by owner, as the next two
    std::vector<std::vector<std::uint32_t>> rows_;  // of the bag that is being cut
    std::vector<std::vector<float>> weights_;
    std::vector<std::uint16_t> owners_;  // who have some of it
};

}  // namespace ina::embed
