// Values of some columns, cut into packets: row by row, packets of one size, the last one shorter.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "infer/program.hpp"

namespace ina::infer {

// Values of all columns `whole` of some rows, in memory; of which a message has `part`.
struct Place {
    std::size_t rows;
    Columns whole;
    Columns part;

    std::size_t values() const { return rows * part.width(); }

    // Calls copy(where in the memory, where in the message, how many) for the message's values from
    // `first` on.
    template <typename Copy>
    void each(std::size_t first, std::size_t count, const Copy &copy) const {
        const std::size_t width = part.width();
        const std::size_t stride = whole.width();
        if (width == stride) return copy(first, std::size_t{0}, count);
        for (std::size_t done = 0; done < count;) {
            const std::size_t row = (first + done) / width;
            const std::size_t column = (first + done) % width;
            const std::size_t now = std::min(width - column, count - done);
            copy(row * stride + (part.low - whole.low) + column, done, now);
            done += now;
        }
    }
};

struct Piece {
    std::size_t first;
    std::size_t count;
};

inline Piece piece_of(std::size_t values, std::uint32_t packet_values, std::uint32_t piece) {
    const std::size_t first = std::size_t{piece} * packet_values;
    return {first, std::min<std::size_t>(packet_values, values - first)};
}

// Which of some pieces have come.
class Pieces {
  public:
    void expect(std::uint32_t pieces) {
        have_.assign((pieces + 63) / 64, 0);
        missing_ = pieces;
    }
    // False: it has come before.
    bool take(std::uint32_t piece) {
        std::uint64_t &word = have_[piece / 64];
        const std::uint64_t bit = std::uint64_t{1} << piece % 64;
        if ((word & bit) != 0) return false;
        word |= bit;
        --missing_;
        return true;
    }
    bool are_all() const { return missing_ == 0; }

  private:
    std::vector<std::uint64_t> have_;
    std::uint32_t missing_ = 0;
};

// Writes a packet's values to their place in memory. False: it has another size than it should.
inline bool scatter(const Place &place, std::uint32_t packet_values, std::uint32_t piece,
                    const std::uint8_t *payload, std::size_t bytes, std::int32_t *memory) {
    if (piece >= pieces_of(place.values(), packet_values)) return false;
    const Piece part = piece_of(place.values(), packet_values, piece);
    if (bytes != part.count * kValueBytes) return false;
    place.each(part.first, part.count, [&](std::size_t at, std::size_t from, std::size_t count) {
        std::memcpy(memory + at, payload + from * kValueBytes, count * kValueBytes);
    });
    return true;
}

inline void gather(const Place &place, const Piece &part, const std::int32_t *memory,
                   std::uint8_t *payload) {
    place.each(part.first, part.count, [&](std::size_t at, std::size_t to, std::size_t count) {
        std::memcpy(payload + to * kValueBytes, memory + at, count * kValueBytes);
    });
}

}  // namespace ina::infer
