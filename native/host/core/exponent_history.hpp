// The exponents that small float tensors had, so that the next ones need no round of their own.
//
// A worker may guess a block's exponent only from what all workers know alike when they send it:
// the results of the same lane. So small tensors of the same size and type come back to the same
// lanes, by turns, and each lane finds there what its block had the turn before.
//
// Results must not depend on guesses, nor on the job's past: a training that goes on from a
// checkpoint ends with the same bits. So a guess counts only if it is exactly the exponent that the
// workers then agree on; else the block is sent once more.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "host/core/collective.hpp"

namespace ina::host {

// What the blocks of small tensors of one size and type had: `turns` tensors of `chunks` blocks, on
// lanes that follow each other. Block = turn * chunks + chunk.
class ExponentHistory {
  public:
    ExponentHistory(std::uint32_t first_turn, std::uint32_t chunks, std::uint32_t turns)
        : first_turn_(first_turn), chunks_(chunks), blocks_(std::size_t{chunks} * turns) {}

    // The first block of the next tensor; counts it.
    std::uint32_t take_turn() {
        const std::uint32_t first = next_;
        next_ = (next_ + chunks_) % lanes();
        return first;
    }

    std::uint32_t lanes() const { return static_cast<std::uint32_t>(blocks_.size()); }
    // Of the lanes that the tensors may have, in their order.
    std::uint32_t turn_of(std::uint32_t block) const { return first_turn_ + block; }

    // 0: no guess, because none was seen or they change too often.
    std::uint8_t guess(std::uint32_t block) const {
        return blocks_[block].trust > 0 ? blocks_[block].exponent : 0;
    }

    // What the workers agreed on; 0 (all zero) teaches nothing.
    void observe(std::uint32_t block, std::uint8_t exponent) {
        if (exponent == 0) return;
        Block &seen = blocks_[block];
        if (seen.exponent == 0) {
            seen.trust = 1;
        } else if (seen.exponent == exponent) {
            seen.trust = static_cast<std::int8_t>(std::min(seen.trust + 1, kMaxTrust));
        } else {
            seen.trust = static_cast<std::int8_t>(std::max(seen.trust - 2, kMinTrust));
        }
        seen.exponent = exponent;
    }

  private:
    // A new exponent is not guessed before it has come once more, or twice where they change often:
    // a wrong guess costs a packet with values, a round of its own one without.
    static constexpr int kMinTrust = -1;
    static constexpr int kMaxTrust = 2;
    struct Block {
        std::uint8_t exponent = 0;
        std::int8_t trust = 0;
    };
    std::uint32_t first_turn_;
    std::uint32_t chunks_;
    std::uint32_t next_ = 0;
    std::vector<Block> blocks_;
};

// All of a job's. Depends on what was submitted only, so it is the same on all workers.
class ExponentHistories {
  public:
    struct Found {
        std::shared_ptr<ExponentHistory> history;
        bool is_new;
    };

    // The one for collectives of this size, type and kind; a new one begins at `first_turn` of
    // their `lanes`. Tensors keep theirs alive: one that is forgotten here, because there are too
    // many, goes on for them.
    Found find(const Collective &what, std::uint32_t chunks, std::uint32_t lanes,
               std::uint32_t first_turn) {
        const std::uint64_t kind = static_cast<std::uint64_t>(what.kind);
        const std::uint64_t key =
            (what.elems * kTypes + static_cast<std::uint64_t>(what.type)) * kTypes + kind;
        if (const auto found = histories_.find(key); found != histories_.end()) {
            return {found->second, false};
        }
        if (histories_.size() >= kMaxHistories) histories_.clear();
        // Turns: so many such tensors may be under way together without sharing lanes.
        const std::uint32_t turns = std::min(lanes / chunks, kMaxTurns);
        const auto history = std::make_shared<ExponentHistory>(first_turn, chunks, turns);
        histories_.emplace(key, history);
        return {history, true};
    }

  private:
    static constexpr std::uint64_t kTypes = 256;  // more than a byte can say: a type's, a kind's
    static constexpr std::size_t kMaxHistories = 256;  // at most 2 W bytes each, and some
    static constexpr std::uint32_t kMaxTurns = 32;
    std::unordered_map<std::uint64_t, std::shared_ptr<ExponentHistory>> histories_;
};

}  // namespace ina::host
