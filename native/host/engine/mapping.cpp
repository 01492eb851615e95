#include "host/engine/mapping.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace ina::host {
namespace {

std::uint32_t threads_of(std::uint32_t window, std::size_t queues) {
    return std::min(window, static_cast<std::uint32_t>(queues));
}

std::uint32_t part_of_thread(std::uint32_t all, std::uint32_t index, std::uint32_t threads) {
    return all / threads + (index < all % threads ? 1 : 0);
}

// Of what a thread's shares may have in flight, one share's part: at least 1.
std::uint32_t part_of_share(std::uint64_t of_thread, std::uint32_t lanes,
                            std::uint32_t lanes_of_thread) {
    return static_cast<std::uint32_t>(
        std::max<std::uint64_t>(of_thread * lanes / lanes_of_thread, 1));
}

// What a thread's shares may have in flight, of `limit` in all. A queue of the thread's own bounds
// just these: their packets' results come there. With them may come the end of a train whose first
// packet is of another share, less than 64 KiB. For that there is room: channels reckon with
// packets that come one by one, and the packets of a train take half of that (measured on loopback
// and veth).
std::uint32_t part_of(std::uint32_t limit, const ResultQueue &queue, std::uint32_t index,
                      std::uint32_t threads) {
    const std::uint32_t all = queue.is_own ? limit : std::min(limit, queue.room_packets);
    const std::uint32_t part = part_of_thread(all, index, threads);
    return queue.is_own ? std::min(part, queue.room_packets) : part;
}

PacketMemory frames_from(PacketMemory memory, std::uint32_t first, std::uint32_t frames) {
    if (memory.base == nullptr) return memory;
    memory.base += memory.stride_bytes * first;
    memory.frames = frames;
    return memory;
}

}  // namespace

Mapping::Mapping(const WorkerConfig &config, std::uint32_t most,
                 const congestion::Choice &congestion, const std::vector<ResultQueue> &queues,
                 const std::vector<Way> &ways, const PacketMemory &memory, std::uint32_t first_bit)
    : epoch(config.epoch), window(window_of(config)), threads(threads_of(window, queues.size())),
      first_bit(first_bit), memory(memory), trees(trees_of(config)), framing(config.framing),
      order(config) {
    const std::vector<LaneShare> parts = divide_lanes(window, threads, trees);
    finder = ShareFinder(window, threads, parts);
    for (const LaneShare &part : parts) {
        WorkerConfig own = config;
        own.first_lane = part.first_lane;
        own.lanes = part.lanes;
        const std::uint32_t own_most = part_of_share(
            part_of(most, queues[part.thread], part.thread, threads), part.lanes, window / threads);
        shares.push_back(std::make_unique<Share>(part.thread, way_of(ways, trees[part.tree]), own,
                                                 congestion, own_most,
                                                 frames_from(memory, part.first_lane, part.lanes)));
    }
}

std::uint64_t Mapping::takers(const Submission &submission) const {
    if (submission.request.is_empty()) return 0;
    const Place &place = submission.place;
    const std::uint32_t stride = 1u << place.lane_shift;
    const std::uint32_t lanes =
        (place.lanes(window) - 1) * stride + 1;  // from the first to the last
    std::uint64_t found = 0;
    for (std::size_t i = 0; i < shares.size(); ++i) {
        const WorkerCore &core = shares[i]->core;
        const std::uint32_t ahead = (core.first_lane() - place.first_lane) & (window - 1);
        const std::uint32_t behind = (place.first_lane - core.first_lane()) & (window - 1);
        // Of two lanes in a row each stride has one.
        const bool has_stride = core.lane_count() >= stride || ahead % stride == 0;
        const bool has_part = has_stride && (ahead < lanes || behind < core.lane_count());
        if (has_part) found |= bit_of(i);
    }
    return found;
}

void Mapping::set_congestion(const congestion::Choice *choice, std::uint32_t packets) const {
    for (const auto &share : shares) {
        std::uint32_t most = UINT32_MAX;
        if (packets > 0) {
            const auto thread = static_cast<std::uint32_t>(share->owner);
            most = part_of_share(part_of_thread(packets, thread, threads), share->core.lane_count(),
                                 window / threads);
        }
        const std::lock_guard lock(share->mutex);
        share->set_congestion(choice, most);
    }
}

Share &Mapping::share_of(std::uint32_t lane) const {
    return *shares[finder.of(std::min(lane, window - 1))];
}

WorkerConfig Mapping::warmed(WorkerConfig config) const {
    std::int64_t rto_ns = 0;
    for (const auto &share : shares) {
        const std::lock_guard lock(share->mutex);
        const RttEstimator &rtt = share->core.recovery().rtt();
        if (rtt.srtt_ns() > 0) rto_ns = std::max(rto_ns, rtt.timeout_ns());
    }
    if (rto_ns > 0) config.rto.initial_ns = std::min(rto_ns, config.rto.max_ns);
    return config;
}

std::uint32_t most_in_flight(const WorkerConfig &config, std::uint32_t wanted) {
    const std::uint32_t slots = std::max(config.slots / 2, 1u);
    return wanted == 0 ? slots : std::min(slots, wanted);
}

PacketMemory first_frames(const PacketMemory &all, std::uint32_t lanes) {
    if (all.base != nullptr && all.frames < lanes) {
        throw std::invalid_argument("memory for " + std::to_string(all.frames) +
                                    " packets, and W is " + std::to_string(lanes));
    }
    return frames_from(all, 0, lanes);
}

PacketMemory frames_beside(const PacketMemory &all, const PacketMemory &taken,
                           std::uint32_t lanes) {
    if (all.base == nullptr) return all;
    const auto first = static_cast<std::uint32_t>(static_cast<std::size_t>(taken.base - all.base) /
                                                  all.stride_bytes);
    // By turns at the beginning and at the end, so that what is free stays in one piece.
    if (lanes <= first) return frames_from(all, 0, lanes);
    if (lanes <= all.frames - first - taken.frames) {
        return frames_from(all, all.frames - lanes, lanes);
    }
    throw std::runtime_error("the memory that it shares with the switch has room for " +
                             std::to_string(all.frames) + " packets: no " + std::to_string(lanes) +
                             " beside the " + std::to_string(taken.frames) + " now");
}

}  // namespace ina::host
