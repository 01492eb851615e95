// A2TP's two windows (Li et al., EuroSys 2023, section 4): one for links, which gives way to marks
// as DCTCP's does, and one for slots that jobs share, which gives way to other jobs that want them:
// the more, the more the workers of this job straggle. What is in the first and not in the second
// goes to the aggregator alone. Where jobs share no slots nobody wants any, and the second is the
// first.
//
// A round is a window of results. In it, of all results,
//   alpha <- alpha + 1/8 (marked / links - alpha)
//   beta  <- beta + 1/8 (wanted / slots - beta)
//   gamma <- gamma + 1/64 (degree - gamma), the straggling degree, 1: nobody straggles
//   links <- links (1 - alpha / 2) if any was marked, else + 1 packet
//   slots <- slots (1 - (beta - theta)^gamma / (2 - theta)) if any was wanted and beta > theta,
//            else + 1 packet; and it is at most links
// The degree is which part of a window comes within a base round trip after a round's end: of
// workers that keep pace all of it does. A pause is no measure: who is silent for longer than five
// of them measures nothing (100 us, where a round trip is 20 us).
//
// All workers of a job should let the same lanes claim slots (slot_claims.hpp). They count the same
// results, so their windows differ by little. Lanes are taken in the order of their reversed bits:
// any lanes in a row have their part of it, and of two windows that differ, the smaller one's lanes
// are in the larger one's. It is decided when the lane's result before comes, which a worker that
// is late with its next packet has had as early as the others.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "congestion/algorithms.hpp"
#include "congestion/slot_claims.hpp"

namespace ina::congestion {

class A2tpWindow final : public Window, public SlotClaims {
  public:
    static constexpr Option kOptions[] = {
        {"first_bytes", 30800.0, 1.0, 1e9, "that both windows begin with"},
        {"increase_packets", 1.0, 0.001, 1000.0, "that either grows by, a round"},
        {"mark_weight", 0.125, 0.001, 1.0, "of the newest round in the share of marked results"},
        {"slot_weight", 0.125, 0.001, 1.0, "of the newest round in the share of wanted slots"},
        {"degree_weight", 0.015625, 0.001, 1.0, "of the newest round in the straggling degree"},
        {"threshold", 0.1, 0.0, 0.99, "share of wanted slots that it takes no notice of"},
        {"base_us", 0.0, 0.0, 1e6, "a round trip when nobody waits; 0: the shortest of late"},
    };

    A2tpWindow(const Room &room, const OptionValues &options)
        : most_(static_cast<double>(room.packets)), increase_(options[1]), mark_weight_(options[2]),
          slot_weight_(options[3]), degree_weight_(options[4]), threshold_(options[5]),
          base_ns_(options[6] * 1e3),
          links_(std::clamp(options[0] / room.packet_bytes, 1.0, most_)), slots_(links_),
          left_(packets()) {}

    void on_answer(std::int64_t now_ns, const Answer &answer) override {
        measure(now_ns, answer);
        marked_ += answer.marked;
        wanted_ += answered_wanted_;
        if (--left_ == 0) end_round(now_ns);
        let_claim(answered_lane_);
    }
    void answered(std::uint32_t lane, bool wanted) override {
        answered_lane_ = lane;
        answered_wanted_ = wanted;
    }
    // A2TP's hosts count marks only. Losses would let the windows of a job's workers come apart,
    // and then they give up other lanes. A late worker looks like a timeout.
    void on_loss(std::int64_t, const RoundTrips &) override {}
    void on_timeout(std::int64_t, const RoundTrips &) override {}
    std::uint32_t packets() const override { return static_cast<std::uint32_t>(links_); }
    bool claims(std::uint32_t lane) const override {
        return lane >= claims_.size() || claims_[lane];
    }

  private:
    static constexpr double kPatience = 5.0;  // base round trips

    void end_round(std::int64_t now_ns) {
        alpha_ += mark_weight_ * (std::min(marked_ / links_, 1.0) - alpha_);
        beta_ += slot_weight_ * (std::min(wanted_ / slots_, 1.0) - beta_);
        last_links_ = links_;
        if (wanted_ > 0.0 && beta_ > threshold_) {
            slots_ *= 1.0 - std::pow(beta_ - threshold_, gamma_) / (2.0 - threshold_);
        } else {
            slots_ += increase_;
        }
        links_ = marked_ > 0.0 ? links_ * (1.0 - alpha_ / 2.0) : links_ + increase_;
        links_ = std::clamp(links_, 1.0, most_);
        slots_ = std::clamp(slots_, 1.0, links_);
        marked_ = wanted_ = 0.0;
        left_ = packets();
        ended_ns_ = now_ns;
        soon_ = 0.0;
        measures_ = true;
    }

    // Of the round that ended last, once.
    void measure(std::int64_t now_ns, const Answer &answer) {
        if (!measures_) return;
        const auto base_ns =
            base_ns_ > 0.0 ? base_ns_ : static_cast<double>(answer.round_trips.shortest_ns);
        const auto since_ns = static_cast<double>(now_ns - ended_ns_);
        if (since_ns <= base_ns) {
            soon_ += 1.0;
            return;
        }
        measures_ = false;
        if (since_ns > kPatience * base_ns) return;
        gamma_ += degree_weight_ * (std::min(soon_ / last_links_, 1.0) - gamma_);
    }

    void let_claim(std::uint32_t lane) {
        if (lane >= claims_.size()) claims_.resize(lane + 1, true);
        claims_[lane] = reversed(lane) * links_ < slots_;
    }

    // The bits behind the point, from the lowest on: lanes 0, 1, 2, 3 ... are 0, 1/2, 1/4, 3/4 ...
    static double reversed(std::uint32_t lane) {
        double part = 0.0;
        for (double bit = 0.5; lane != 0; lane >>= 1, bit /= 2.0) part += (lane & 1) * bit;
        return part;
    }

    const double most_;
    const double increase_;  // packets
    const double mark_weight_;
    const double slot_weight_;
    const double degree_weight_;
    const double threshold_;  // theta
    const double base_ns_;
    double links_;  // packets, as are slots
    double slots_;
    double last_links_ = 1.0;  // of the round that ended last
    double alpha_ = 0.0;
    double beta_ = 0.0;
    double gamma_ = 1.0;
    double marked_ = 0.0;  // results of this round, as are those whose slots were wanted
    double wanted_ = 0.0;
    double soon_ = 0.0;          // results within a base round trip after the last round's end
    std::int64_t ended_ns_ = 0;  // when that was
    bool measures_ = false;      // it has not been long ago
    std::uint32_t left_;         // results until the round ends
    std::uint32_t answered_lane_ = 0;  // by the result that on_answer() tells of, as is the next
    bool answered_wanted_ = false;
    std::vector<bool> claims_;  // by lane, its next packet; all beyond do
};

}  // namespace ina::congestion
