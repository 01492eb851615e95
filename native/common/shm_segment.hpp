// A mapped segment of shared memory; see shm_ring.hpp for what is in it.
#pragma once

#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <system_error>
#include <utility>

namespace ina::shm {

enum class Access { kRead, kWrite };
enum class Fill { kNow, kLater };  // whether pages are there before they are touched

class Segment {
  public:
    Segment() = default;
    // Maps `bytes` of `fd`, which stays the caller's. Throws std::system_error.
    Segment(int fd, std::size_t bytes, Access access, Fill fill) : bytes_(bytes) {
        memory_ =
            ::mmap(nullptr, bytes, access == Access::kWrite ? PROT_READ | PROT_WRITE : PROT_READ,
                   MAP_SHARED | (fill == Fill::kNow ? MAP_POPULATE : 0), fd, 0);
        if (memory_ == MAP_FAILED) {
            throw std::system_error(errno, std::generic_category(), "mmap of shared memory");
        }
    }
    ~Segment() {
        if (memory_ != MAP_FAILED) ::munmap(memory_, bytes_);
    }
    Segment(Segment &&other) noexcept
        : memory_(std::exchange(other.memory_, MAP_FAILED)), bytes_(other.bytes_) {}
    Segment &operator=(Segment &&other) noexcept {
        std::swap(memory_, other.memory_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }

    void *data() const { return memory_; }
    explicit operator bool() const { return memory_ != MAP_FAILED; }

  private:
    void *memory_ = MAP_FAILED;
    std::size_t bytes_ = 0;
};

}  // namespace ina::shm
