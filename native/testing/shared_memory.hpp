// What the two doors of shared memory have in common: a mapped segment, scribbled over as a hostile
// process at the other end of the rings may.
#pragma once

#include <cstdint>

#include "common/shm_ring.hpp"
#include "common/shm_segment.hpp"
#include "testing/input.hpp"

namespace ina::testing {

// A descriptor that is closed with it.
class Descriptor {
  public:
    explicit Descriptor(int fd) : fd_(fd) {}
    ~Descriptor();
    Descriptor(const Descriptor &) = delete;
    Descriptor &operator=(const Descriptor &) = delete;

    int get() const { return fd_; }
    void close();

  private:
    int fd_;
};

// Memory of so many bytes, not mapped. Throws std::system_error.
int new_memory(std::size_t bytes);
// A connection's two ends. Throws std::system_error.
void connect_pair(int ends[2]);

// Puts the input's bytes anywhere into `bytes` of memory.
void scribble(Input *input, std::uint8_t *memory, std::size_t bytes);
// Changes one number of a ring: a position, or who is to be woken; near what it was, or anything.
void scribble(Input *input, shm::Control *control);
// Writes the head of a cell: lengths and places that may be right.
void scribble(Input *input, const shm::Ring &ring);

// The cores on which this thread may run are the same afterwards: a switch may ask a worker to
// leave one.
class KeptCores {
  public:
    KeptCores();
    ~KeptCores();
    KeptCores(const KeptCores &) = delete;
    KeptCores &operator=(const KeptCores &) = delete;

  private:
    Bytes cores_;
};

}  // namespace ina::testing
