// How a worker's lanes are divided: among its threads in equal parts, in a row, and each part where
// one tree of switches ends and another begins. What comes of it are the shares: each has one owner
// and one tree, and with one tree each thread has one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "host/core/tree.hpp"

namespace ina::host {

struct LaneShare {
    std::uint32_t first_lane;
    std::uint32_t lanes;
    std::uint32_t thread;
    std::size_t tree;
};

// `trees`: those of all `window` lanes, in their order. Both numbers are powers of two. In the
// order of the lanes.
std::vector<LaneShare> divide_lanes(std::uint32_t window, std::uint32_t threads,
                                    const std::vector<Tree> &trees);

// The share that has a lane.
class ShareFinder {
  public:
    ShareFinder() = default;
    ShareFinder(std::uint32_t window, std::uint32_t threads, const std::vector<LaneShare> &shares);

    std::size_t of(std::uint32_t lane) const {
        std::size_t share = first_of_thread_[lane >> thread_shift_];
        while (lane >= ends_[share]) ++share;
        return share;
    }

  private:
    std::uint32_t thread_shift_ = 0;
    std::vector<std::size_t> first_of_thread_;
    std::vector<std::uint32_t> ends_;
};

// Adds where the trees' packets go, each node once, in the order of the trees; and their numbers to
// ways that are there.
void add_ways(const std::vector<Tree> &trees, std::vector<Way> *ways);
// With those of two mappings' trees, whose packets may come; the older one's stay where they are in
// the list: its shares know them by number.
std::vector<Way> ways_of_both(std::vector<Way> ways, const std::vector<Tree> &older,
                              const std::vector<Tree> &newer);
// In `ways`, the tree's.
std::size_t way_of(const std::vector<Way> &ways, const Tree &tree);

}  // namespace ina::host
