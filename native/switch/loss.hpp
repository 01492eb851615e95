// Injected loss: a Bernoulli trial a packet from a seeded SplitMix64 (Steele, Lea, Flood 2014), so
// that the k-th packet in one direction of one port is lost or not, whatever else happens.
#pragma once

#include <cstdint>

namespace ina::sw {

class Loss {
  public:
    // probability in [0, 1]
    Loss(double probability, uint64_t seed) : always_(probability >= 1.0), state_(seed) {
        if (probability > 0.0 && !always_)
            threshold_ = static_cast<uint64_t>(probability * 18446744073709551616.0);
    }

    bool never() const { return threshold_ == 0 && !always_; }

    bool strikes() {
        if (threshold_ == 0) return always_;
        return next() < threshold_;
    }

  private:
    uint64_t next() {
        state_ += 0x9e3779b97f4a7c15u;
        uint64_t z = state_;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }

    bool always_;
    uint64_t threshold_ = 0;  // of 2^64
    uint64_t state_;
};

}  // namespace ina::sw
