// One lane's connections in a ring of InfiniBand's reliable connections, as far as SENDs of one
// packet need it: the requester of what it sends to the next worker, and the responder to the one
// before. Without sockets and clocks; time is passed in.
//
// Sources: InfiniBand Architecture Specification, volume 1, section 9.7 (acknowledgements, NAK of a
// sequence error, go-back-N, duplicates). A worker sends its lane's next message once the sum of
// the last has come, so no more than two are really under way; of some before these the
// acknowledgement may be lost, until a later one says the same of all. Where that is so of all that
// there is room for, the next message waits for one (ring_endpoint.hpp).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ina::host {

constexpr std::uint32_t kPsnMask = 0xffffff;
constexpr std::uint32_t kHalfOfPsns = 1 << 23;

// How far `psn` is behind `from`, around the end of the numbers; half of them or more: before it.
inline std::uint32_t psn_after(std::uint32_t psn, std::uint32_t from) {
    return (psn - from) & kPsnMask;
}

struct ReliableLimits {
    // Of silence, until all that is not acknowledged is sent again. It doubles each time, five
    // times at most: where a switch or a host is busy, and not deaf, more packets make it worse.
    std::int64_t timeout_ns = 0;
    std::uint32_t retries = 0;  // so often, until the connection has failed
};

class Requester {
  public:
    static constexpr std::size_t kMost = 8;

    struct Message {
        std::uint32_t psn = 0;
        std::vector<std::uint8_t> payload;
    };

    Requester(std::uint32_t first_psn, const ReliableLimits &limits)
        : limits_(limits), next_psn_(first_psn & kPsnMask) {}

    std::size_t pending() const { return count_; }
    const Message &message(std::size_t index) const { return messages_[(first_ + index) % kMost]; }
    bool has_failed() const { return has_failed_; }
    // Of the timer; INT64_MAX: nothing waits.
    std::int64_t deadline_ns() const { return count_ == 0 ? INT64_MAX : deadline_ns_; }

    // The message, with its number, which stays until it is acknowledged; null: there is no room.
    const Message *post(const std::uint8_t *payload, std::size_t bytes, std::int64_t now_ns) {
        if (count_ == kMost) return nullptr;
        Message &message = messages_[(first_ + count_) % kMost];
        message.psn = next_psn_;
        message.payload.assign(payload, payload + bytes);
        next_psn_ = (next_psn_ + 1) & kPsnMask;
        if (count_++ == 0) restart(now_ns);
        return &message;
    }
    // All up to this number have arrived. What is not under way is nobody's.
    void acknowledged(std::uint32_t psn, std::int64_t now_ns) {
        drop(psn_after(psn, oldest()) + 1, now_ns);
    }
    // All before this one have arrived, and it has not: true: send message(0) and those behind
    // it again.
    bool missed(std::uint32_t psn, std::int64_t now_ns) {
        const std::uint32_t before = psn_after(psn, oldest());
        if (before >= count_) return false;
        drop(before, now_ns);
        return true;
    }
    // True: send all again. Once too often, and the connection has failed.
    bool is_due(std::int64_t now_ns) {
        if (count_ == 0 || now_ns < deadline_ns_) return false;
        if (++tried_ > limits_.retries) {
            has_failed_ = true;
            count_ = 0;
            return false;
        }
        deadline_ns_ = now_ns + (limits_.timeout_ns << std::min(tried_, kMostDoublings));
        return true;
    }

  private:
    static constexpr std::uint32_t kMostDoublings = 5;

    std::uint32_t oldest() const { return (next_psn_ - static_cast<std::uint32_t>(count_)); }
    void restart(std::int64_t now_ns) {
        tried_ = 0;
        deadline_ns_ = now_ns + limits_.timeout_ns;
    }
    void drop(std::uint32_t messages, std::int64_t now_ns) {
        if (messages == 0 || messages > count_) return;
        first_ = (first_ + messages) % kMost;
        count_ -= messages;
        restart(now_ns);
    }

    ReliableLimits limits_;
    std::array<Message, kMost> messages_;
    std::size_t first_ = 0;
    std::size_t count_ = 0;
    std::uint32_t next_psn_;
    std::uint32_t tried_ = 0;
    std::int64_t deadline_ns_ = 0;
    bool has_failed_ = false;
};

// What of a message that came is to be done.
enum class Reply : std::uint8_t {
    kTake,     // it is the next one: deliver it, and acknowledge it
    kAgain,    // it has been delivered: acknowledge all so far once more
    kMissing,  // one before it has not come: say so
    kNothing,  // that was said already
};

class Responder {
  public:
    explicit Responder(std::uint32_t first_psn) : expected_(first_psn & kPsnMask) {}

    Reply came(std::uint32_t psn) {
        const std::uint32_t ahead = psn_after(psn, expected_);
        if (ahead == 0) {
            expected_ = (expected_ + 1) & kPsnMask;
            ++messages_;
            has_said_ = false;
            return Reply::kTake;
        }
        if (ahead >= kHalfOfPsns) return Reply::kAgain;
        if (has_said_) return Reply::kNothing;
        has_said_ = true;
        return Reply::kMissing;
    }
    std::uint32_t expected() const { return expected_; }
    std::uint32_t last() const { return (expected_ - 1) & kPsnMask; }  // that was delivered
    std::uint32_t messages() const { return messages_ & kPsnMask; }

  private:
    std::uint32_t expected_;
    std::uint32_t messages_ = 0;
    bool has_said_ = false;
};

}  // namespace ina::host
