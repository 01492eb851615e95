// Results that did not verify: each is dropped, counted and waited for anew; when they are too
// many, the job ends. A forger who has not the key passes with a small probability each time, so
// the times must be few; a slot that holds a wrong sum gives the same again and again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "common/ina_wire.hpp"
#include "host/core/digest.hpp"
#include "host/core/lane.hpp"
#include "host/core/worker_types.hpp"

namespace ina::host {

class FailedChecks {
  public:
    static constexpr std::uint32_t kMostOfOnePacket = 8;
    static constexpr std::uint64_t kMostOfAll = 256;  // with a key

    // keyed: the number of all is bounded, too.
    explicit FailedChecks(bool keyed) : keyed_(keyed) {}

    std::uint64_t count() const { return count_; }

    // One more, of the packet that `lane` has sent and still has at `sent`; `alone`: this worker's
    // values are all that is in the sum. Says when it is enough.
    std::optional<Corruption> note(Lane &lane, const wire::Header &header,
                                   const std::uint8_t *values, const std::uint8_t *sent,
                                   bool alone) {
        ++count_;
        FailedCheck &failed = lane.failed;
        const std::uint64_t seen = fingerprint(header, values);
        const bool repeats = failed.count > 0 && header.digest == failed.digest;
        failed.digest_repeats = repeats ? failed.digest_repeats + 1 : 0;
        failed.digest = header.digest;
        if (failed.count++ == 0) failed.first = seen;
        failed.same = failed.same && seen == failed.first;
        if (failed.count < kMostOfOnePacket && !(keyed_ && count_ >= kMostOfAll)) {
            return std::nullopt;
        }
        Corruption found;
        found.tensor = lane.tensor->request.id;
        found.seq = lane.seq;
        found.results = failed.count;
        found.all_results = count_;
        found.same = failed.same;
        found.own_is_missing = header.next_exponent < lane.announced;
        if (alone) found.first_value = first_difference(header, values, sent);
        return found;
    }

  private:
    // Of what comes from the slot: the first result of it says the same as its replays.
    static std::uint64_t fingerprint(const wire::Header &header, const std::uint8_t *values) {
        const std::uint32_t flags = header.flags & ~std::uint32_t{wire::kFlagReplay};
        std::uint64_t hash = mix(std::uint64_t{header.check} << 32 | header.digest << 16 |
                                 header.next_exponent << 8 | flags);
        hash = mix(hash ^ (std::uint64_t{header.exponent} << 16 | header.value_count));
        for (std::size_t i = 0; i < header.value_count; ++i) {
            hash = mix(hash ^ wire::load_be32(values + i * wire::kValueBytes));
        }
        return hash;
    }

    static std::int64_t first_difference(const wire::Header &header, const std::uint8_t *values,
                                         const std::uint8_t *sent) {
        const std::uint8_t *const own = sent + wire::kHeaderBytes;
        for (std::size_t i = 0; i < header.value_count; ++i) {
            const std::size_t at = i * wire::kValueBytes;
            if (std::memcmp(values + at, own + at, wire::kValueBytes) != 0) {
                return static_cast<std::int64_t>(i);
            }
        }
        return -1;
    }

    bool keyed_;
    std::uint64_t count_ = 0;
};

}  // namespace ina::host
