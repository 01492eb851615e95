#include "host/engine/division.hpp"

#include <algorithm>

namespace ina::host {

std::vector<LaneShare> divide_lanes(std::uint32_t window, std::uint32_t threads,
                                    const std::vector<Tree> &trees) {
    const std::uint32_t part = window / threads;
    std::vector<LaneShare> shares;
    std::uint32_t lane = 0;
    for (std::size_t i = 0; i < trees.size(); ++i) {
        const std::uint32_t tree_end = trees[i].first_lane + trees[i].lanes;
        while (lane < tree_end) {
            const std::uint32_t thread = lane / part;
            const std::uint32_t end = std::min(tree_end, (thread + 1) * part);
            shares.push_back({lane, end - lane, thread, i});
            lane = end;
        }
    }
    return shares;
}

ShareFinder::ShareFinder(std::uint32_t window, std::uint32_t threads,
                         const std::vector<LaneShare> &shares)
    : first_of_thread_(threads) {
    while (window >> thread_shift_ > threads) ++thread_shift_;
    for (std::size_t i = shares.size(); i-- > 0;) first_of_thread_[shares[i].thread] = i;
    for (const LaneShare &share : shares) ends_.push_back(share.first_lane + share.lanes);
}

std::size_t way_of(const std::vector<Way> &ways, const Tree &tree) {
    const auto leads_there = [&](const Way &way) { return way.node == tree.node; };
    const auto found = std::find_if(ways.begin(), ways.end(), leads_there);
    return static_cast<std::size_t>(found - ways.begin());
}

void add_ways(const std::vector<Tree> &trees, std::vector<Way> *ways) {
    for (const Tree &tree : trees) {
        const std::size_t way = way_of(*ways, tree);
        if (way == ways->size()) ways->push_back({tree.node, {}});
        std::vector<std::uint16_t> &jobs = (*ways)[way].jobs;
        if (std::find(jobs.begin(), jobs.end(), tree.job) == jobs.end()) jobs.push_back(tree.job);
    }
}

std::vector<Way> ways_of_both(std::vector<Way> ways, const std::vector<Tree> &older,
                              const std::vector<Tree> &newer) {
    for (Way &way : ways) way.jobs.clear();
    add_ways(older, &ways);
    add_ways(newer, &ways);
    return ways;
}

}  // namespace ina::host
