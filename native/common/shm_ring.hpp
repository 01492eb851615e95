// Packets between one worker and the switch, in memory that both have mapped: two rings of cells of
// a cache line, each with one producer and one consumer. Numbers are in the machine's byte order.
//
// A cell holds a packet's header, and says where the values are, in an area of memory that the
// producer fills and does not touch until the packet is done with:
//
// - The worker's, in its own segment: a frame for each lane, filled anew when the result of what it
//   held is here. What is sent again is a second cell for the same frame. That one may be taken
//   when the frame holds the lane's next values already; its header says that it is the packet
//   which the result counts, so the program takes no values from it (protocol.md, duplicates).
// - The switch's, one for all workers, which can only read it: the result that a group of workers
//   gets is there once (native/switch/shm_results.hpp). Where it has no room, values go into a
//   frame that belongs to the cell.
//
// Neither side believes what it reads there. Each keeps its own position to itself, and takes the
// other's only if it lies in the window that the other may be in. Lengths and places are read once
// and checked. Cells are the producer's until it publishes them; a hostile worker may write to them
// afterwards, so the switch copies a packet's header before it looks at it. It reads the values
// where the worker has them: one that changes them meanwhile contributes something else, no more.
//
//   segment:  Control to switch | Control to worker | cells to switch | cells to worker
//             | the worker's frames | frames of the cells to the worker
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "common/ina_wire.hpp"

namespace ina::shm {

inline constexpr std::uint32_t kMagic = 0x696e6173;  // "inas"
inline constexpr std::uint32_t kVersion = 2;
inline constexpr std::size_t kLineBytes = 64;
inline constexpr std::uint32_t kMinCells = 16;
inline constexpr std::uint32_t kMaxCells = 65536;  // twice the largest window
inline constexpr std::uint32_t kMaxPayloadBytes =
    static_cast<std::uint32_t>(wire::packet_bytes(4095));

// The worker says Hello on a new connection, the switch answers Welcome, with the descriptors of
// the segment and of the results' area if status is kAttached. From then on, a byte on the
// connection wakes who sleeps, and its end is the end of the rings.
struct Hello {
    std::uint32_t magic = kMagic;
    std::uint32_t version = kVersion;
    std::uint32_t cells = 0;          // of each ring; a power of two
    std::uint32_t payload_bytes = 0;  // of the largest packet
};

enum class Status : std::uint32_t {
    kAttached = 0,
    kBadHello = 1,    // another version, or numbers out of range
    kNotAllowed = 2,  // another user's process
    kFull = 3,        // too many workers
    kNoMemory = 4,
};

struct Welcome {
    std::uint32_t magic = kMagic;
    std::uint32_t version = kVersion;
    Status status = Status::kAttached;
    std::uint32_t switch_port = 0;  // the port's number in the P4 program
    std::uint32_t address = 0;      // IPv4, what the program sees as this worker's
    std::uint32_t udp_port = 0;     // and its UDP port
};

struct CellHead {
    std::uint32_t bytes;   // of the payload
    std::uint32_t marked;  // not 0: the IP header had Congestion Experienced
    // Where the payload goes on behind its first kHeadBytes: bytes from the area's beginning.
    std::uint32_t rest_at;
};

// A cell: CellHead, and at its end the payload's first bytes.
inline constexpr std::size_t kHeadBytes = wire::kHeaderBytes;
inline constexpr std::size_t kPayloadOffset = kLineBytes - kHeadBytes;
inline constexpr std::uint32_t kInOwnFrame = UINT32_MAX;  // rest_at: the cell's
static_assert(sizeof(CellHead) <= kPayloadOffset);

struct Shape {
    std::uint32_t cells = 0;
    std::uint32_t payload_bytes = 0;

    bool is_valid() const {
        return cells >= kMinCells && cells <= kMaxCells && (cells & (cells - 1)) == 0 &&
               payload_bytes >= wire::kHeaderBytes && payload_bytes <= kMaxPayloadBytes;
    }
    // Values begin on a cache line: they are what vector code reads.
    std::size_t frame_bytes() const {
        return (kPayloadOffset + payload_bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
    }
    std::size_t frames_bytes() const { return frame_bytes() * cells; }
    std::size_t segment_bytes() const;
};

// Of one direction. Positions count cells, modulo 2^32; the difference is what lies between.
struct Control {
    alignas(kLineBytes) std::atomic<std::uint32_t> published;  // the producer's position
    // 1 + the core on which the producer runs, and which it asks the consumer to leave; 0: none.
    std::atomic<std::uint32_t> leave_core;
    alignas(kLineBytes) std::atomic<std::uint32_t> released;  // the consumer's position
    // Not 0: the consumer sleeps, and wants to be woken once so many cells are there (a promise:
    // fewer wake it before the producer itself sleeps). Who wakes it sets it to 0.
    alignas(kLineBytes) std::atomic<std::uint32_t> wanted;
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

inline std::size_t Shape::segment_bytes() const {
    return 2 * sizeof(Control) + 2 * kLineBytes * cells + 2 * frames_bytes();
}

// One direction of a mapped segment.
struct Ring {
    Control *control = nullptr;
    std::uint8_t *cells = nullptr;
    std::uint32_t mask = 0;
    std::uint32_t payload_bytes = 0;
    const std::uint8_t *area = nullptr;
    std::size_t area_bytes = 0;
    std::uint8_t *own_frames = nullptr;  // of the cells; null: they have none
    std::size_t frame_bytes = 0;

    std::uint8_t *cell(std::uint32_t position) const {
        return cells + kLineBytes * (position & mask);
    }
    // What follows the payload's head, if it is in the cell's own frame.
    std::uint8_t *own_rest(std::uint32_t position) const {
        return own_frames + frame_bytes * (position & mask) + kLineBytes;
    }
};

// Where the worker builds its packets.
inline std::uint8_t *frames(void *segment, const Shape &shape) {
    return static_cast<std::uint8_t *>(segment) + 2 * sizeof(Control) +
           2 * kLineBytes * shape.cells;
}

inline Ring ring_to_switch(void *segment, const Shape &shape) {
    auto *const bytes = static_cast<std::uint8_t *>(segment);
    return {reinterpret_cast<Control *>(bytes),
            bytes + 2 * sizeof(Control),
            shape.cells - 1,
            shape.payload_bytes,
            frames(segment, shape),
            shape.frames_bytes(),
            nullptr,
            0};
}

inline Ring ring_to_worker(void *segment, const Shape &shape, const void *results,
                           std::size_t results_bytes) {
    auto *const bytes = static_cast<std::uint8_t *>(segment);
    return {reinterpret_cast<Control *>(bytes) + 1,
            bytes + 2 * sizeof(Control) + kLineBytes * shape.cells,
            shape.cells - 1,
            shape.payload_bytes,
            static_cast<const std::uint8_t *>(results),
            results_bytes,
            frames(segment, shape) + shape.frames_bytes(),
            shape.frame_bytes()};
}

class Producer {
  public:
    Producer() = default;
    explicit Producer(const Ring &ring) : ring_(ring) {}

    // A packet for the next cell, seen by the consumer after publish(). What follows its first
    // kHeadBytes is at `rest_at` of the area. False: the ring is full, or the packet too long, or
    // the consumer's position is impossible.
    bool put(const std::uint8_t *head, std::size_t bytes, std::uint32_t rest_at, bool marked) {
        if (bytes > ring_.payload_bytes || !has_room()) return false;
        std::uint8_t *const cell = ring_.cell(next_++);
        __builtin_prefetch(ring_.cell(next_), 1);  // the consumer's core has it
        const CellHead line{static_cast<std::uint32_t>(bytes), marked, rest_at};
        std::memcpy(cell, &line, sizeof line);
        std::memcpy(cell + kPayloadOffset, head, std::min(bytes, kHeadBytes));
        return true;
    }
    // The same, with the rest copied into the cell's own frame.
    bool put_copy(const std::uint8_t *head, std::size_t bytes, const std::uint8_t *rest,
                  bool marked) {
        const std::uint32_t position = next_;
        if (!put(head, bytes, kInOwnFrame, marked)) return false;
        if (bytes > kHeadBytes) std::memcpy(ring_.own_rest(position), rest, bytes - kHeadBytes);
        return true;
    }
    // The number of the cell that put() fills next.
    std::uint32_t next() const { return next_; }
    std::uint32_t cell_index(std::uint32_t position) const { return position & ring_.mask; }
    // The consumer's position: what lies before it is done with. As last seen if it is impossible.
    std::uint32_t released() {
        const std::uint32_t released = ring_.control->released.load(std::memory_order_acquire);
        if (next_ - released <= next_ - released_) released_ = released;
        return released_;
    }

    void ask_to_leave(std::uint32_t core) {
        ring_.control->leave_core.store(core, std::memory_order_relaxed);
    }
    void publish() { ring_.control->published.store(next_, std::memory_order_release); }

    // Whether the consumer sleeps and is to be woken now: then that is the caller's to do. After
    // publish(). `patient`: only if as many cells are there as it wants.
    bool must_wake(bool patient) {
        std::atomic_thread_fence(std::memory_order_seq_cst);  // published before wanted is read
        const std::uint32_t wanted = ring_.control->wanted.load(std::memory_order_relaxed);
        if (wanted == 0) return false;
        const std::uint32_t waiting =
            next_ - ring_.control->released.load(std::memory_order_relaxed);
        if (waiting == 0 || (patient && waiting < wanted)) return false;
        return ring_.control->wanted.exchange(0, std::memory_order_relaxed) != 0;
    }

  private:
    bool has_room() { return next_ - released_ <= ring_.mask || next_ - released() <= ring_.mask; }

    Ring ring_;
    std::uint32_t next_ = 0;
    std::uint32_t released_ = 0;  // the consumer's position, as last seen
};

class Consumer {
  public:
    struct Packet {
        const std::uint8_t *head = nullptr;  // null: a length or a place that cannot be
        const std::uint8_t *rest = nullptr;  // what follows the first kHeadBytes
        std::size_t bytes = 0;               // of both
        bool marked = false;
    };

    Consumer() = default;
    explicit Consumer(const Ring &ring) : ring_(ring) {}

    // Cells that are there to take; UINT32_MAX: the producer's position is impossible.
    std::uint32_t waiting() {
        if (published_ != next_) return published_ - next_;
        const std::uint32_t published = ring_.control->published.load(std::memory_order_acquire);
        // Behind us, or into cells that we have not released.
        if (published - next_ > ring_.mask + 1 - (next_ - released_)) return UINT32_MAX;
        published_ = published;
        return published_ - next_;
    }

    // The next of the cells that are waiting(). It stays until release(), but who produced it may
    // still change it.
    Packet take() {
        const std::uint32_t position = next_++;
        const std::uint8_t *const cell = ring_.cell(position);
        const auto *const line = reinterpret_cast<const CellHead *>(cell);
        // Atomic, so that what is checked is what is used: the compiler may not read it again.
        const std::uint32_t bytes = __atomic_load_n(&line->bytes, __ATOMIC_RELAXED);
        const std::uint32_t marked = __atomic_load_n(&line->marked, __ATOMIC_RELAXED);
        const std::uint32_t rest_at = __atomic_load_n(&line->rest_at, __ATOMIC_RELAXED);
        if (bytes > ring_.payload_bytes) return {};
        const std::uint8_t *const head = cell + kPayloadOffset;
        if (bytes <= kHeadBytes) return {head, head + bytes, bytes, marked != 0};
        const std::size_t rest_bytes = bytes - kHeadBytes;
        if (rest_at == kInOwnFrame) {
            if (ring_.own_frames == nullptr) return {};
            return {head, ring_.own_rest(position), bytes, marked != 0};
        }
        if (rest_at > ring_.area_bytes || rest_bytes > ring_.area_bytes - rest_at) return {};
        return {head, ring_.area + rest_at, bytes, marked != 0};
    }

    std::uint32_t core_to_leave() const {
        return ring_.control->leave_core.load(std::memory_order_relaxed);
    }

    // Gives all cells taken so far back to the producer.
    void release() {
        released_ = next_;
        ring_.control->released.store(next_, std::memory_order_release);
    }

    // Announces sleep. False: something is there (or nonsense), do not sleep.
    bool prepare_sleep(std::uint32_t wanted) {
        ring_.control->wanted.store(wanted, std::memory_order_relaxed);
        std::atomic_thread_fence(std::memory_order_seq_cst);  // wanted before published is read
        if (waiting() == 0) return true;
        wake_up();
        return false;
    }
    void wake_up() { ring_.control->wanted.store(0, std::memory_order_relaxed); }

  private:
    Ring ring_;
    std::uint32_t next_ = 0;
    std::uint32_t released_ = 0;
    std::uint32_t published_ = 0;  // the producer's position, as last seen
};

}  // namespace ina::shm
