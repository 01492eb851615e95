// Retransmission timeout after RFC 6298: smoothed round-trip time and its deviation, doubled while
// timeouts follow each other without a valid sample (Karn). And what windows and pacing go by: the
// plain average, and the shortest of late.
#pragma once

#include <algorithm>
#include <cstdint>

#include "congestion/window.hpp"

namespace ina::host {

struct RtoLimits {
    std::int64_t initial_ns = 20'000'000;  // before the first sample
    std::int64_t min_ns = 2'000'000;       // the round trip includes other processes' time slices
    std::int64_t max_ns = 200'000'000;     // also of a backed-off timeout
};

class RttEstimator {
  public:
    explicit RttEstimator(RtoLimits limits)
        : limits_(limits), rto_ns_(limits.initial_ns), timeout_ns_(timeout_ns(0)) {}

    // The time from sending a packet to its result; only of packets sent once. is_small: it had no
    // values, and so spent less time on links than those that windows are made for.
    void on_sample(std::int64_t now_ns, std::int64_t rtt_ns, bool is_small) {
        if (!is_small) note_round_trip(now_ns, rtt_ns);
        if (!was_silent(now_ns, rtt_ns)) add_to_mean(&flowing_ns_, rtt_ns);
        if (srtt_ns_ == 0) {
            srtt_ns_ = std::max<std::int64_t>(rtt_ns, 1);
            rttvar_ns_ = rtt_ns / 2;
        } else {
            // A sample also holds the time that other workers took to mend their losses. So that
            // their timeouts do not raise ours and ours theirs without end, one sample counts as
            // twice the average at most, and raises it more slowly than it lowers it.
            const std::int64_t error_ns = std::min(rtt_ns - srtt_ns_, srtt_ns_);
            rttvar_ns_ += (std::abs(error_ns) - rttvar_ns_) / 4;
            srtt_ns_ = std::max<std::int64_t>(srtt_ns_ + error_ns / (error_ns > 0 ? 16 : 8), 1);
        }
        rto_ns_ = std::clamp(srtt_ns_ + 4 * rttvar_ns_, limits_.min_ns, limits_.max_ns);
        backoff_ = 0;
        timeout_ns_ = rto_ns_;
    }

    // A packet was answered that had been sent more than once.
    void on_ambiguous() { round_trips_.latest_ns = 0; }

    // A timeout with `backoff` doublings passed: keep at least one more until a sample arrives.
    void on_timeout(int backoff) {
        backoff_ = std::max(backoff_, std::min(backoff + 1, kMaxBackoff));
        timeout_ns_ = timeout_ns(0);
    }

    // Timeout of a packet that was sent once.
    std::int64_t timeout_ns() const { return timeout_ns_; }
    // Of one that was already sent again `backoff` times.
    std::int64_t timeout_ns(int backoff) const {
        const int doublings = std::min(std::max(backoff, backoff_), kMaxBackoff);
        return std::min(rto_ns_ << doublings, limits_.max_ns);
    }

    // As long as results may well still come. Unlike a timeout it has no lower limit.
    std::int64_t probe_timeout_ns() const { return srtt_ns_ + std::max(srtt_ns_, 4 * rttvar_ns_); }

    std::int64_t srtt_ns() const { return srtt_ns_; }
    std::int64_t shortest_ns() const { return round_trips_.shortest_ns; }  // 0: no sample yet
    // What a round trip takes on average where results come all along; 0: none so far.
    std::int64_t flowing_ns() const { return flowing_ns_; }
    const congestion::RoundTrips &round_trips() const { return round_trips_; }
    int backoff() const { return backoff_; }

  private:
    void note_round_trip(std::int64_t now_ns, std::int64_t rtt_ns) {
        round_trips_.latest_ns = rtt_ns;
        add_to_mean(&round_trips_.mean_ns, rtt_ns);
        std::int64_t &shortest_ns = round_trips_.shortest_ns;
        if (now_ns - shortest_at_ns_ > kForgetNs || shortest_ns == 0 || rtt_ns <= shortest_ns) {
            shortest_ns = rtt_ns;
            shortest_at_ns_ = now_ns;
        }
    }
    static void add_to_mean(std::int64_t *mean_ns, std::int64_t rtt_ns) {
        *mean_ns = *mean_ns == 0 ? rtt_ns : *mean_ns + (rtt_ns - *mean_ns) / 8;
    }
    // Whether nothing came for most of a sample's time: another worker was late. What has to queue
    // comes all along, or with pauses of the pacing's, which are shorter.
    bool was_silent(std::int64_t now_ns, std::int64_t rtt_ns) {
        if (now_ns - latest_at_ns_ >= kLeastSilenceNs) {
            silent_from_ns_ = latest_at_ns_;
            silent_until_ns_ = now_ns;
        }
        latest_at_ns_ = now_ns;
        const std::int64_t sent_ns = now_ns - rtt_ns;
        const std::int64_t silent_ns = silent_until_ns_ - std::max(silent_from_ns_, sent_ns);
        return 4 * silent_ns > 3 * rtt_ns;
    }

    static constexpr std::int64_t kLeastSilenceNs = 5'000'000;  // losses are mended in less
    static constexpr int kMaxBackoff = 10;
    static constexpr std::int64_t kForgetNs = 10'000'000'000;  // routes change
    RtoLimits limits_;
    std::int64_t flowing_ns_ = 0;
    std::int64_t latest_at_ns_ = 0;    // the newest sample
    std::int64_t silent_from_ns_ = 0;  // the newest silence
    std::int64_t silent_until_ns_ = 0;
    std::int64_t srtt_ns_ = 0;  // 0: no sample yet
    std::int64_t rttvar_ns_ = 0;
    std::int64_t rto_ns_;
    int backoff_ = 0;
    std::int64_t timeout_ns_;  // asked for several times a packet
    congestion::RoundTrips round_trips_;
    std::int64_t shortest_at_ns_ = 0;
};

}  // namespace ina::host
