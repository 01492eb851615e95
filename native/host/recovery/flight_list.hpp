// The packets in flight, one a lane at most, from the one sent longest ago to the newest.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "host/recovery/flows.hpp"
#include "host/recovery/resends.hpp"

namespace ina::host {

inline constexpr std::uint32_t kNoLane = UINT32_MAX;

// What is known of the packet that a lane has in flight, and of the one answered last.
struct Flight {
    std::uint64_t order = 0;   // of the packet's chunk among all chunks submitted, as on all ranks
    std::int64_t sent_ns = 0;  // last time
    std::int64_t first_sent_ns = 0;  // of this packet
    // Of the packet before, if it was sent again once: how much later a packet was sent whose
    // result came before. 0: it was not, or it is known already whether it was lost.
    std::int64_t overtaken_by_ns = 0;
    std::uint32_t newer = kNoLane;  // neighbours in order of sent_ns, while in flight
    std::uint32_t older = kNoLane;
    std::uint8_t kind = 0;      // of the round that it is part of
    std::uint8_t flow = 0;      // below kFlows
    bool is_small = false;      // it has no values
    std::uint8_t retries = 0;   // times that the packet was sent again
    std::uint8_t timeouts = 0;  // so many of them because its timer ran out
    Resends resends;
};

class FlightList {
  public:
    explicit FlightList(std::size_t lanes) : flights_(lanes) {}

    Flight &operator[](std::uint32_t lane) { return flights_[lane]; }
    const Flight &operator[](std::uint32_t lane) const { return flights_[lane]; }
    std::vector<Flight> &all() { return flights_; }  // also those not in flight
    std::uint32_t size() const { return size_; }     // in flight
    std::uint32_t size(std::uint8_t flow) const { return flows_[flow].size; }
    std::uint32_t small() const { return flows_[0].small + flows_[1].small; }  // without values
    std::uint32_t small(std::uint8_t flow) const { return flows_[flow].small; }
    std::uint32_t oldest() const { return oldest_; }  // kNoLane: none
    std::uint32_t newest() const { return newest_; }

    void add_newest(std::uint32_t lane) {
        Flight &flight = flights_[lane];
        flight.older = newest_;
        flight.newer = kNoLane;
        (newest_ == kNoLane ? oldest_ : flights_[newest_].newer) = lane;
        newest_ = lane;
        ++size_;
        ++flows_[flight.flow].size;
        flows_[flight.flow].small += flight.is_small;
    }

    void remove(std::uint32_t lane) {
        const Flight &flight = flights_[lane];
        (flight.older == kNoLane ? oldest_ : flights_[flight.older].newer) = flight.newer;
        (flight.newer == kNoLane ? newest_ : flights_[flight.newer].older) = flight.older;
        --size_;
        --flows_[flight.flow].size;
        flows_[flight.flow].small -= flight.is_small;
    }

    // The least of a flow's in flight; UINT64_MAX: there are none.
    std::uint64_t lowest_order(std::uint8_t flow) const {
        std::uint64_t lowest = UINT64_MAX;
        for (std::uint32_t i = oldest_; i != kNoLane; i = flights_[i].newer) {
            if (flights_[i].flow != flow) continue;
            if (flights_[i].order < lowest) lowest = flights_[i].order;
        }
        return lowest;
    }

    // The lane whose packet was first sent longest ago; kNoLane: none is in flight.
    std::uint32_t longest_waiting() const {
        std::uint32_t longest = oldest_;
        for (std::uint32_t i = oldest_; i != kNoLane; i = flights_[i].newer) {
            if (flights_[i].first_sent_ns < flights_[longest].first_sent_ns) longest = i;
        }
        return longest;
    }

  private:
    std::vector<Flight> flights_;
    struct InFlight {
        std::uint32_t size = 0;
        std::uint32_t small = 0;
    };
    std::uint32_t size_ = 0;
    std::array<InFlight, kFlows> flows_;
    std::uint32_t oldest_ = kNoLane;
    std::uint32_t newest_ = kNoLane;
};

}  // namespace ina::host
