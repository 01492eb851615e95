// The values of results for workers on the same host, once for all that get them: one area of
// memory that only the switch can write and every attached worker can read.
//
// It is cut into blocks. A block fills up with values; each cell that refers to them holds it, and
// lets go when its worker has released the cell. Blocks that nobody holds are used again, the
// lowest first, so that few are in use and stay in the cache. A worker that stops keeps what it
// holds; when all blocks are held, values go into frames of the cells instead.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>

#include "common/shm_segment.hpp"

namespace ina::sw {

class ShmResults {
  public:
    static constexpr size_t kBlockBytes = 64 << 10;
    static constexpr size_t kBlocks = 256;
    static constexpr size_t kBytes = kBlockBytes * kBlocks;
    static constexpr uint32_t kNoBlock = UINT32_MAX;

    struct Location {
        uint32_t at = 0;            // bytes from the area's beginning
        uint32_t block = kNoBlock;  // kNoBlock: there was no room
    };

    ShmResults() = default;
    ~ShmResults();
    ShmResults(const ShmResults &) = delete;
    ShmResults &operator=(const ShmResults &) = delete;

    // Makes the area. Throws std::system_error, also where the kernel cannot keep workers from
    // writing to it (Linux before 5.1).
    void open();
    void close();
    int fd() const { return fd_; }

    // A copy of the values. Those of the call before, at the same address, are there already;
    // forget() before what is at an address changes.
    Location put(const uint8_t *values, size_t bytes);
    void forget() { last_values_ = nullptr; }

    void hold(uint32_t block) { ++held_[block]; }
    void let_go(uint32_t block) { --held_[block]; }
    // By so many cells in all, of all workers.
    size_t held_cells() const { return std::accumulate(held_.begin(), held_.end(), size_t{0}); }

  private:
    bool make_room(size_t bytes);

    int fd_ = -1;
    shm::Segment segment_;
    std::array<uint32_t, kBlocks> held_{};  // by so many cells
    uint32_t block_ = 0;                    // the one that fills up
    size_t used_ = 0;                       // of it
    const uint8_t *last_values_ = nullptr;
    size_t last_bytes_ = 0;
    Location last_;
};

}  // namespace ina::sw
