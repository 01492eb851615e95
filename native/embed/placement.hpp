// Which host owns a row of a table, and where it lies there.
//
// A table lies on one host, or its rows are spread over several: row r is first taken to place
// (r * stride) mod rows, and each host has a range of places. The stride is near the golden ratio's
// part of the rows and has no divisor with them, so that the rows that are looked up most, which
// are neighbours or multiples of something in many data sets, go to all hosts alike.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace ina::embed {

struct TableSpec {
    std::uint32_t rows = 0;
    std::uint32_t dim = 0;          // float32 values a row
    std::uint16_t first_owner = 0;  // a host
    std::uint16_t owners = 1;       // it, and so many behind it, around the end
};

class Placement {
  public:
    // Throws std::invalid_argument: a number out of range.
    Placement(const TableSpec &spec, std::uint16_t hosts) : spec_(spec), hosts_(hosts) {
        if (spec.rows == 0 || spec.dim == 0) throw std::invalid_argument("a table without values");
        if (hosts == 0 || spec.first_owner >= hosts || spec.owners == 0 || spec.owners > hosts) {
            throw std::invalid_argument("owners must be among the hosts");
        }
        if (spec.owners == 1) return;
        stride_ = std::max<std::uint64_t>(1, spec.rows * kGolden32 >> 32);
        while (std::gcd(stride_, std::uint64_t{spec.rows}) != 1) ++stride_;
        inverse_ = inverse_of(stride_, spec.rows);
    }

    const TableSpec &spec() const { return spec_; }
    std::uint16_t owner_of(std::uint32_t row) const {
        return host_of(spec_.owners == 1 ? 0 : part_of(place_of(row)));
    }
    // Among the rows of its owner.
    std::uint32_t local_of(std::uint32_t row) const {
        if (spec_.owners == 1) return row;
        const std::uint64_t place = place_of(row);
        return static_cast<std::uint32_t>(place - start_of(part_of(place)));
    }
    std::uint32_t rows_of(std::uint16_t host) const {
        const std::uint64_t part = part_of_host(host);
        return part >= spec_.owners
                   ? 0
                   : static_cast<std::uint32_t>(start_of(part + 1) - start_of(part));
    }
    std::uint32_t row_at(std::uint16_t host, std::uint32_t local) const {
        if (spec_.owners == 1) return local;
        const std::uint64_t place = start_of(part_of_host(host)) + local;
        return static_cast<std::uint32_t>(place * inverse_ % spec_.rows);
    }

  private:
    static constexpr std::uint64_t kGolden32 = 2'654'435'769;  // 2^32 / 1.618

    static std::uint64_t inverse_of(std::uint64_t number, std::uint64_t modulus) {
        std::int64_t before = 0, now = 1;
        std::int64_t rest = static_cast<std::int64_t>(modulus);
        std::int64_t next = static_cast<std::int64_t>(number % modulus);
        while (next != 0) {
            const std::int64_t times = rest / next;
            before = std::exchange(now, before - times * now);
            rest = std::exchange(next, rest - times * next);
        }
        const auto limit = static_cast<std::int64_t>(modulus);
        return static_cast<std::uint64_t>((before % limit + limit) % limit);
    }

    std::uint64_t place_of(std::uint32_t row) const { return row * stride_ % spec_.rows; }
    std::uint64_t part_of(std::uint64_t place) const { return place * spec_.owners / spec_.rows; }
    std::uint64_t start_of(std::uint64_t part) const {
        return (part * spec_.rows + spec_.owners - 1) / spec_.owners;
    }
    std::uint16_t host_of(std::uint64_t part) const {
        return static_cast<std::uint16_t>((spec_.first_owner + part) % hosts_);
    }
    std::uint64_t part_of_host(std::uint16_t host) const {
        return (std::uint64_t{host} + hosts_ - spec_.first_owner) % hosts_;
    }

    TableSpec spec_;
    std::uint16_t hosts_;
    std::uint64_t stride_ = 1;
    std::uint64_t inverse_ = 1;
};

}  // namespace ina::embed
