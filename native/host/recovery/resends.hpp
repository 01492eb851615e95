// What became of the packets that a lane sent again: was a loss mended, or was nothing lost?
//
// A switch echoes the header fields `path` and `copy` of the contribution that it answers: the one
// that completed the sum, or was answered by a replay. A worker writes into them who it is and how
// often it has sent the packet, and so a result tells which copy of whose packet brought it. If
// that is a resend of our own, the copies before came to nothing: something was lost, of them or of
// their answers. If it is anybody else's packet, or our first, then no resend of ours was needed;
// one that was sent because nothing was heard was a probe, one that was sent because later packets
// had been answered was sent on wrong evidence.
#pragma once

#include <algorithm>
#include <cstdint>

#include "common/ina_wire.hpp"

namespace ina::host {

struct RecoveryCounters {
    std::uint64_t retransmissions = 0;
    // Each retransmission is in one of these once its packet has been answered, and in none before:
    // losses + spurious + probes <= retransmissions.
    std::uint64_t losses = 0;      // needed: an earlier copy, or the answer to it, was lost
    std::uint64_t spurious = 0;    // not needed; sent because a later packet was answered before
    std::uint64_t probes = 0;      // not needed; sent because nothing was heard: somebody was late
    std::uint64_t overtaken = 0;   // of all, because a later packet was answered before
    std::uint64_t timeouts = 0;    // timer expiries; each leads to one or more retransmissions
    std::uint64_t ecn_marked = 0;  // accepted results with the ECN flag or IP mark
    std::uint64_t last = 0;        // of sums that our packet, sent once, completed: it was the last
};

// One copy of one worker's packet, as told in the header. Copies from the 255th on are told as
// that.
struct Origin {
    static constexpr std::uint32_t kLastCopy = 255;

    std::uint32_t path = 0;  // the worker's
    std::uint32_t copy = 0;  // 0: sent for the first time

    static Origin of(const wire::Header &header) { return {header.path, header.copy}; }
    void store(std::uint8_t *packet) const {
        static_assert(wire::kPathOffset == wire::kCopyOffset);
        wire::store_be32(packet + wire::kPathOffset, path << 8 | copy);
    }
};

enum class ResendReason : std::uint8_t {
    kOvertaken,  // the result of a packet sent later had come
    kSilence,    // nothing was heard for too long, of this lane or of all
};

// Of one lane: its packet in flight, and the one answered last.
class Resends {
  public:
    // The packet goes out again. Returns which copy this one is.
    std::uint32_t add(ResendReason reason) {
        const std::uint32_t copy = std::min(overtaken_ + silent_ + 1, Origin::kLastCopy);
        if (reason == ResendReason::kOvertaken) {
            ++overtaken_;
            overtaken_copies_ |= bit_of(copy);
        } else {
            ++silent_;
        }
        return copy;
    }

    // A result came for it, or (`needed` 0) it was taken from another worker. `needed`: the copy of
    // ours that brought the result; 0: the first, or another worker's packet.
    void answered(std::uint32_t needed, std::int64_t now_ns, RecoveryCounters *counters) {
        settle(counters);
        if (overtaken_ + silent_ == 0) return;
        if (needed > 0 && needed <= overtaken_ + silent_) {
            // Results of later packets came meanwhile, so nobody was late: what was sent because of
            // them was lost, too. Probes before may have met a sum that still waited for others.
            const std::uint64_t up_to = 2 * bit_of(needed) - 1;
            const bool by_silence = (overtaken_copies_ & bit_of(needed)) == 0;
            mended_overtaken_ =
                static_cast<std::uint8_t>(__builtin_popcountll(overtaken_copies_ & up_to));
            mended_silent_ = by_silence ? 1 : 0;
            needed_ = static_cast<std::uint8_t>(needed);
            answered_ns_ = now_ns;
        }
        counters->spurious += overtaken_ - mended_overtaken_;
        counters->probes += silent_ - mended_silent_;
        overtaken_ = silent_ = 0;
        overtaken_copies_ = 0;
    }

    // Another result for the packet answered last. Where no later copy of ours brought it, it had
    // only been slower than the one before: nothing was lost.
    // `later`: the copy of ours that brought it; 0: none did.
    void duplicated(std::uint32_t later, RecoveryCounters *counters) {
        if (later > needed_ || later == Origin::kLastCopy) return;
        counters->spurious += mended_overtaken_;
        counters->probes += mended_silent_;
        mended_overtaken_ = mended_silent_ = 0;
    }

    // No other result for the packet answered last will come any more.
    void settle(RecoveryCounters *counters) {
        counters->losses += mended_overtaken_ + mended_silent_;
        mended_overtaken_ = mended_silent_ = 0;
    }
    void settle_before(std::int64_t time_ns, RecoveryCounters *counters) {
        if (answered_ns_ < time_ns) settle(counters);
    }

  private:
    // Of a copy in overtaken_copies_; all from the 63rd on share one.
    static std::uint64_t bit_of(std::uint32_t copy) {
        return std::uint64_t{1} << std::min<std::uint32_t>(copy, 63);
    }

    std::uint32_t overtaken_ = 0;  // of the packet in flight, by reason
    std::uint32_t silent_ = 0;
    std::uint64_t overtaken_copies_ = 0;  // bit c: copy c was sent for that reason
    // Of the packet answered last: losses, unless the answer to an earlier copy turns up.
    std::uint8_t mended_overtaken_ = 0;
    std::uint8_t mended_silent_ = 0;
    std::uint8_t needed_ = 0;
    std::int64_t answered_ns_ = 0;
};

}  // namespace ina::host
