// The bytes that a door is entered with, taken from the front: numbers that say what happens, and
// what comes from outside. An input that ends early goes on with zeros.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace ina::testing {

// Of which each is a block of the heap as long as it is: what reads past its end is seen.
using Bytes = std::vector<std::uint8_t>;

// Never null, also of none.
inline const std::uint8_t *begin_of(const Bytes &bytes) {
    static const std::uint8_t kNothing = 0;
    return bytes.empty() ? &kNothing : bytes.data();
}

class Input {
  public:
    Input(const std::uint8_t *data, std::size_t bytes) : at_(data), left_(bytes) {}

    bool is_empty() const { return left_ == 0; }
    std::uint8_t byte() {
        if (left_ == 0) return 0;
        --left_;
        return *at_++;
    }
    std::uint32_t number(int bytes) {  // little endian
        std::uint32_t value = 0;
        for (int i = 0; i < bytes; ++i) value |= std::uint32_t{byte()} << (8 * i);
        return value;
    }
    // As many as there are, at most.
    Bytes take(std::size_t bytes) {
        const std::size_t count = std::min(bytes, left_);
        Bytes taken(at_, at_ + count);
        at_ += count;
        left_ -= count;
        return taken;
    }
    Bytes rest() { return take(left_); }

  private:
    const std::uint8_t *at_;
    std::size_t left_;
};

// What a door says holds for every input did not.
struct BrokenPromise : std::logic_error {
    using std::logic_error::logic_error;
};

inline void promise(bool holds, const std::string &what) {
    if (!holds) throw BrokenPromise(what);
}

// Reads them all, so that the sanitizers see what may not be read. Returns something of them.
inline std::uint32_t touch(const std::uint8_t *data, std::size_t bytes) {
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < bytes; ++i) sum += data[i];
    volatile std::uint32_t kept = sum;
    return kept;
}

}  // namespace ina::testing
