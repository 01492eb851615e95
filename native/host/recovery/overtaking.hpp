// Which packets in flight others have overtaken: sent later, and answered before.
//
// That proves a loss only where a late worker would have sent both in the order in which we did: it
// delays all results, but what it sends it sends by the order of chunks, whenever it begins. So
// packets are compared within one kind of round, and only with later chunks. Across kinds it does
// not hold: a worker sends values of low chunks as soon as their exponents are agreed, before the
// exponents of chunks further on, which others may have sent long ago.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

namespace ina::host {

class Overtaking {
  public:
    static constexpr std::size_t kKinds = 5;  // of rounds; numbered from 0

    // A packet of a chunk of this order, sent once, was answered. False: it proves nothing new.
    bool answered(std::size_t kind, std::uint64_t order, std::int64_t sent_ns) {
        std::vector<Proof> &proofs = proofs_[kind];
        if (sent_ns > latest_ns_) latest_ns_ = sent_ns;
        if (proofs.size() == 1 && proofs[0].sent_ns <= sent_ns && proofs[0].order <= order) {
            proofs[0] = {sent_ns, order};  // in the flow: nearly always
            return true;
        }
        std::size_t kept = 0;
        for (const Proof &proof : proofs) {
            if (proof.sent_ns >= sent_ns && proof.order >= order) return false;
            const bool is_weaker = proof.sent_ns <= sent_ns && proof.order <= order;
            if (!is_weaker) proofs[kept++] = proof;
        }
        proofs.resize(kept);
        if (proofs.size() == kMostProofs) proofs.erase(proofs.begin());
        auto place = proofs.end();
        while (place != proofs.begin() && std::prev(place)->sent_ns > sent_ns) --place;
        proofs.insert(place, {sent_ns, order});
        return true;
    }

    // When the latest of those was sent that have overtaken such a packet, if it is in flight; 0:
    // none has.
    std::int64_t latest_ns(std::size_t kind, std::uint64_t order) const {
        const std::vector<Proof> &proofs = proofs_[kind];
        for (auto proof = proofs.rbegin(); proof != proofs.rend(); ++proof) {
            if (proof->order > order) return proof->sent_ns;
        }
        return 0;
    }

    // Of all kinds and orders: a packet sent after it has not been overtaken.
    std::int64_t latest_ns() const { return latest_ns_; }

  private:
    // None is both sent earlier and of a lower order than another: by sent_ns, and so from the
    // highest order down. Nearly always it is one.
    struct Proof {
        std::int64_t sent_ns;
        std::uint64_t order;
    };
    static constexpr std::size_t kMostProofs = 8;  // beyond, what was sent first is forgotten

    std::array<std::vector<Proof>, kKinds> proofs_;
    std::int64_t latest_ns_ = 0;
};

}  // namespace ina::host
