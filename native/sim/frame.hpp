// Frames on their way: Ethernet, without preamble and frame check. Blocks of a few sizes are used
// again and again, since a network has thousands of frames at a time and millions in all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace ina::sim {

// What a frame takes on a wire besides its bytes: preamble, frame check, gap.
inline constexpr std::uint16_t kWireGapBytes = 24;

class FramePool;

// Owns one frame, alone. It knows the length, so that a queue need not touch the frame's memory.
class Frame {
  public:
    Frame() = default;
    Frame(Frame &&other) noexcept
        : block_(std::exchange(other.block_, nullptr)), bytes_(other.bytes_),
          wire_gap_bytes_(other.wire_gap_bytes_), follows_(other.follows_) {}
    Frame &operator=(Frame &&other) noexcept {
        std::swap(block_, other.block_);
        std::swap(bytes_, other.bytes_);
        std::swap(wire_gap_bytes_, other.wire_gap_bytes_);
        std::swap(follows_, other.follows_);
        return *this;
    }
    Frame(const Frame &) = delete;
    Frame &operator=(const Frame &) = delete;
    ~Frame() { release(); }

    explicit operator bool() const { return block_ != nullptr; }
    std::uint8_t *data() { return block_->data(); }
    const std::uint8_t *data() const { return block_->data(); }
    std::uint32_t bytes() const { return bytes_; }
    std::int64_t wire_bytes() const { return std::int64_t{bytes_} + wire_gap_bytes_; }
    void set_wire_gap_bytes(std::uint16_t bytes) {
        wire_gap_bytes_ = bytes;
    }  // of the link it is on
    // It is part of the super-packet that the frame before it is of, or begins.
    bool follows() const { return follows_; }
    void set_follows(bool follows) { follows_ = follows; }
    inline Frame copy() const;
    // With other bytes from now on.
    inline void assign(const std::uint8_t *data, std::size_t bytes);
    // It will be read soon.
    void prefetch() const {
        const auto *const block = reinterpret_cast<const std::uint8_t *>(block_);
        for (std::uint32_t at = 0; at < sizeof(Block) + bytes_ && at < kPrefetchBytes; at += 64) {
            __builtin_prefetch(block + at);
        }
    }

  private:
    friend class FramePool;
    struct alignas(32) Block {  // in a cache line with the frame's headers
        FramePool *pool;
        Block *next;  // while it is free
        std::uint32_t size_class;
        std::uint8_t *data() { return reinterpret_cast<std::uint8_t *>(this + 1); }
    };
    static constexpr std::uint32_t kPrefetchBytes = 512;

    Frame(Block *block, std::uint32_t bytes) : block_(block), bytes_(bytes) {}
    inline void release();

    Block *block_ = nullptr;
    std::uint32_t bytes_ = 0;
    std::uint16_t wire_gap_bytes_ = kWireGapBytes;
    bool follows_ = false;
};

class FramePool {
  public:
    static constexpr std::size_t kMostBytes = 128 << 10;  // of a frame

    FramePool() = default;
    FramePool(const FramePool &) = delete;
    FramePool &operator=(const FramePool &) = delete;

    Frame make(std::size_t bytes) {
        std::uint32_t size_class = 0;
        while (block_bytes(size_class) < sizeof(Frame::Block) + bytes) ++size_class;
        if (free_[size_class] == nullptr) refill(size_class);
        Frame::Block *const block = free_[size_class];
        free_[size_class] = block->next;
        return Frame(block, static_cast<std::uint32_t>(bytes));
    }
    Frame make(const std::uint8_t *data, std::size_t bytes) {
        Frame frame = make(bytes);
        std::memcpy(frame.data(), data, bytes);
        return frame;
    }

  private:
    friend class Frame;
    static constexpr std::size_t kClasses = 22;  // up to 192 KiB
    static constexpr std::size_t kSlabBytes = 1 << 20;
    static constexpr std::size_t kLineBytes = 64;
    struct alignas(kLineBytes) Line {
        std::uint8_t bytes[kLineBytes];
    };

    // With the block: 128, 192, 256, 384, 512, 768 and so on.
    static constexpr std::size_t block_bytes(std::uint32_t size_class) {
        return (size_class % 2 == 0 ? std::size_t{128} : std::size_t{192}) << size_class / 2;
    }

    void refill(std::uint32_t size_class) {
        const std::size_t stride = block_bytes(size_class);
        const std::size_t count = kSlabBytes / stride;
        slabs_.push_back(std::make_unique<Line[]>(kSlabBytes / kLineBytes));
        auto *const base = reinterpret_cast<std::uint8_t *>(slabs_.back().get());
        for (std::size_t i = 0; i < count; ++i) {
            auto *const block = new (base + i * stride) Frame::Block;
            block->pool = this;
            block->size_class = size_class;
            block->next = free_[size_class];
            free_[size_class] = block;
        }
    }
    void put(Frame::Block *block) {
        block->next = free_[block->size_class];
        free_[block->size_class] = block;
    }

    Frame::Block *free_[kClasses] = {};
    std::vector<std::unique_ptr<Line[]>> slabs_;
};

inline Frame Frame::copy() const { return block_->pool->make(block_->data(), bytes_); }

inline void Frame::assign(const std::uint8_t *data, std::size_t bytes) {
    *this = block_->pool->make(data, bytes);
}

inline void Frame::release() {
    if (block_ != nullptr) block_->pool->put(std::exchange(block_, nullptr));
}

}  // namespace ina::sim
