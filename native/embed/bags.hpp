// Bags of rows, as they lie in a message: how many rows each bag has (16 bits; none where each has
// one), the rows' numbers (32 bits), and, where bags are weighted, a float32 for each row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "embed/wire.hpp"

namespace ina::embed {

inline constexpr std::size_t kMostRowsOfBag = 256;  // longer ones are cut; the parts add up at home

// Bags as a caller has them: bag i's rows are those from offsets[i] to offsets[i + 1].
struct BagSource {
    std::size_t bags = 0;
    const std::int64_t *offsets = nullptr;  // bags + 1
    const std::uint32_t *rows = nullptr;
    const float *weights = nullptr;  // null: 1
};

// Bags that have come, inside of a message, which has to stay.
class BagReader {
  public:
    // False: they are not all there, or a bag has too many rows.
    bool read(const std::uint8_t *bytes, std::size_t size, const Header &header) {
        at_ = bytes;
        bags_ = header.bags;
        is_single_ = (header.flags & kFlagSingle) != 0;
        rows_ = bags_;
        std::size_t used = 0;
        if (!is_single_) {
            used = bags_ * sizeof(std::uint16_t);
            if (size < used) return false;
            rows_ = 0;
            for (std::size_t i = 0; i < bags_; ++i) {
                if (count(i) > kMostRowsOfBag) return false;
                rows_ += count(i);
            }
        }
        row_offset_ = used;
        used += rows_ * sizeof(std::uint32_t);
        weight_offset_ = (header.flags & kFlagWeighted) != 0 ? used : 0;
        if (weight_offset_ != 0) used += rows_ * sizeof(float);
        bytes_ = used;
        return size >= used;
    }

    std::size_t bags() const { return bags_; }
    std::size_t rows() const { return rows_; }
    std::size_t bytes() const { return bytes_; }  // that they take up
    bool is_weighted() const { return weight_offset_ != 0; }
    std::size_t count(std::size_t bag) const {
        return is_single_ ? 1 : get<std::uint16_t>(bag * sizeof(std::uint16_t));
    }
    std::uint32_t row(std::size_t index) const {
        return get<std::uint32_t>(row_offset_ + index * sizeof(std::uint32_t));
    }
    float weight(std::size_t index) const {
        return is_weighted() ? get<float>(weight_offset_ + index * sizeof(float)) : 1.0F;
    }

  private:
    template <class T>
    T get(std::size_t offset) const {
        T value;
        std::memcpy(&value, at_ + offset, sizeof value);
        return value;
    }

    const std::uint8_t *at_ = nullptr;
    std::size_t bags_ = 0;
    std::size_t rows_ = 0;
    std::size_t row_offset_ = 0;
    std::size_t weight_offset_ = 0;
    std::size_t bytes_ = 0;
    bool is_single_ = false;
};

// Bags to be sent, gathered one by one.
class BagWriter {
  public:
    void add(const std::uint32_t *rows, const float *weights, std::size_t count) {
        counts_.push_back(static_cast<std::uint16_t>(count));
        rows_.insert(rows_.end(), rows, rows + count);
        if (weights != nullptr) weights_.insert(weights_.end(), weights, weights + count);
        is_single_ = is_single_ && count == 1;
    }
    std::size_t bags() const { return counts_.size(); }
    std::size_t rows() const { return rows_.size(); }
    std::size_t bytes() const {
        return (is_single_ ? 0 : counts_.size() * sizeof(std::uint16_t)) +
               rows_.size() * sizeof(std::uint32_t) + weights_.size() * sizeof(float);
    }
    std::uint8_t flags() const {
        return static_cast<std::uint8_t>((is_single_ ? kFlagSingle : 0) |
                                         (weights_.empty() ? 0 : kFlagWeighted));
    }
    void write(std::vector<std::uint8_t> *body) const {
        if (!is_single_) put(counts_, body);
        put(rows_, body);
        put(weights_, body);
    }
    void clear() { *this = {}; }

  private:
    template <class T>
    static void put(const std::vector<T> &values, std::vector<std::uint8_t> *body) {
        const std::size_t before = body->size();
        body->resize(before + values.size() * sizeof(T));
        if (!values.empty())
            std::memcpy(body->data() + before, values.data(), values.size() * sizeof(T));
    }

    std::vector<std::uint16_t> counts_;
    std::vector<std::uint32_t> rows_;
    std::vector<float> weights_;
    bool is_single_ = true;
};

}  // namespace ina::embed
