// How long other workers have been late of late, on a network that loses nothing.
//
// After a silence a worker probes (LossRecovery). Where workers compute between their tensors most
// silences end by themselves, and probes are in vain: there it pays to wait as long as silences
// last. Where packets are lost it does not, and would feed itself: what another worker takes to
// find its loss is a silence for all others. So any loss, of whomever, ends the patience for a
// while.
#pragma once

#include <algorithm>
#include <cstdint>

namespace ina::host {

class Lateness {
  public:
    // Nothing had come for so long, and then a result that nobody's resend had brought.
    void ended_by_itself(std::int64_t now_ns, std::int64_t silence_ns) {
        forget(now_ns);
        if (silence_ns < longest_ns_) return;
        longest_ns_ = silence_ns;
        forgotten_at_ns_ = now_ns;
    }

    // A resend was needed, this worker's or another's.
    void loss_seen(std::int64_t now_ns) { impatient_until_ns_ = now_ns + kForgetNs; }

    // Wait at least so long before the first probe. 0: others are not late, or packets are lost.
    std::int64_t patience_ns(std::int64_t now_ns) {
        if (longest_ns_ == 0 || now_ns < impatient_until_ns_) return 0;
        forget(now_ns);
        return std::min(longest_ns_ + longest_ns_ / 4, kMostPatienceNs);
    }

  private:
    // A first loss at a tensor's end costs so much at most: a small model's step. A longer silence
    // is worth a probe or two.
    static constexpr std::int64_t kMostPatienceNs = 64'000'000;
    static constexpr std::int64_t kForgetNs = 1'000'000'000;

    void forget(std::int64_t now_ns) {  // half of it, each second
        if (longest_ns_ == 0 || now_ns - forgotten_at_ns_ <= kForgetNs) return;
        longest_ns_ /= 2;
        forgotten_at_ns_ = now_ns;
    }

    std::int64_t longest_ns_ = 0;
    std::int64_t forgotten_at_ns_ = 0;
    std::int64_t impatient_until_ns_ = 0;
};

}  // namespace ina::host
