// What a link does to a frame that has left its queue: how long it takes, and what may befall it.
#pragma once

#include <cstdint>

#include "sim/frame.hpp"
#include "sim/random.hpp"

namespace ina::sim {

// One direction. Probabilities are those of a frame, each drawn by itself.
struct LinkConfig {
    std::int64_t bits_per_s = 0;                   // 0: without end
    std::uint16_t wire_gap_bytes = kWireGapBytes;  // what each frame takes besides its bytes
    // A token bucket (Linux' tbf) instead of a wire: so much passes at once after a pause. What
    // goes as one super-packet leaves as one, when there are tokens for all of it, and until then
    // it is in the queue. 0: a wire.
    std::int64_t burst_bytes = 0;
    std::int64_t delay_ns = 1000;
    std::int64_t jitter_ns = 0;  // up to so much more, evenly; frames keep their order
    double loss = 0;             // whatever came before
    // Losses in bursts (Gilbert 1960, Elliott 1963): a state that each frame may change, and the
    // share that is lost in the bad one. bad_from 0: there is no bad one.
    double bad_from = 0;
    double bad_to = 1;
    double bad_loss = 1;
    double duplication = 0;          // a second copy comes right behind
    double reordering = 0;           // comes later than others that were sent later:
    std::int64_t reordering_ns = 0;  // by up to so much, evenly
    double corruption = 0;           // one bit is flipped, and with 1/2 each, one more, and so on
    bool frame_check = true;         // what was corrupted is dropped where it arrives
};

enum class Fate : std::uint8_t { kArrives, kLost, kCorrupted, kLinkDown, kQueueFull };

class Link {
  public:
    Link(const LinkConfig &config, Stream random)
        : is_plain_(is_plain(config)), config_(config), random_(random) {}

    // How long the link is busy with so many bytes that follow without a gap. The rest of a
    // division is kept for the next, so that a rate is kept exactly however short frames are.
    std::int64_t busy_ns(std::int64_t wire_bytes, bool follows) {
        if (config_.bits_per_s == 0) return 0;
        if (!follows) rest_ = 0;
        const std::int64_t scaled = wire_bytes * 8 * 1'000'000'000 + rest_;
        rest_ = scaled % config_.bits_per_s;
        return scaled / config_.bits_per_s;
    }

    // What becomes of a frame whose last bit has been sent; it may be corrupted. Sets how much
    // later than by the link's delay it arrives, and whether a copy follows.
    Fate carry(Frame &frame, std::int64_t *late_ns, bool *overtaken, bool *twice) {
        *late_ns = 0;
        *overtaken = *twice = false;
        if (!up_) return Fate::kLinkDown;
        if (is_plain_) return Fate::kArrives;
        if (config_.bad_from > 0) {
            is_bad_ = is_bad_ ? !random_.chance(config_.bad_to) : random_.chance(config_.bad_from);
            if (is_bad_ && random_.chance(config_.bad_loss)) return Fate::kLost;
        }
        if (random_.chance(config_.loss)) return Fate::kLost;
        if (random_.chance(config_.corruption)) {
            corrupt(frame);
            if (config_.frame_check) return Fate::kCorrupted;
        }
        if (config_.jitter_ns > 0) *late_ns = up_to(config_.jitter_ns);
        if (random_.chance(config_.reordering)) {
            *overtaken = true;
            *late_ns += up_to(config_.reordering_ns);
        }
        *twice = random_.chance(config_.duplication);
        return Fate::kArrives;
    }

    bool is_bucket() const { return config_.burst_bytes > 0 && config_.bits_per_s > 0; }
    // What a full bucket saves of the time that frames take.
    std::int64_t burst_ns() const {
        return is_bucket() ? config_.burst_bytes * 8 * 1'000'000'000 / config_.bits_per_s : 0;
    }

    const LinkConfig &config() const { return config_; }
    void set_config(const LinkConfig &config) {
        config_ = config;
        is_plain_ = is_plain(config);
    }
    bool is_up() const { return up_; }
    void set_up(bool up) { up_ = up; }

  private:
    // Nothing happens by chance.
    static bool is_plain(const LinkConfig &config) {
        return config.bad_from <= 0 && config.loss <= 0 && config.corruption <= 0 &&
               config.jitter_ns <= 0 && config.reordering <= 0 && config.duplication <= 0;
    }
    std::int64_t up_to(std::int64_t most_ns) {
        return static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(most_ns) + 1));
    }
    void corrupt(Frame &frame) {
        do {
            const std::uint64_t bit = random_.below(std::uint64_t{frame.bytes()} * 8);
            frame.data()[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
        } while (random_.chance(0.5));
    }

    // What each frame needs comes first: a thousand hosts have thousands of links.
    std::int64_t rest_ = 0;
    bool is_plain_;
    bool is_bad_ = false;
    bool up_ = true;
    LinkConfig config_;
    Stream random_;
};

}  // namespace ina::sim
