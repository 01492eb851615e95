#include "sim/window_audit.hpp"

#include <algorithm>

#include "common/ina_wire.hpp"
#include "host/core/block_finder.hpp"
#include "host/core/packet_frames.hpp"

namespace ina::sim {

WindowAudit::WindowAudit(const host::WorkerConfig &config, std::uint32_t most)
    : all_lanes_(host::window_of(config)), first_lane_(config.first_lane),
      tree_(host::own_tree(host::checked(config))), small_share_(host::small_share(config)),
      stream_values_(config.is_stream ? config.values_per_packet : 0), most_(most),
      lanes_(host::checked(config).lanes) {
    std::uint32_t seq = config.first_seq + first_lane_;
    for (Lane &lane : lanes_) lane.seq = seq++;
}

void WindowAudit::submitted(const host::Submission &placed) {
    const host::Place &place = placed.place;
    for (std::uint32_t i = 0; i < place.lanes(all_lanes_); ++i) {
        const std::uint32_t index = (place.lane_of(i) & (all_lanes_ - 1)) - first_lane_;
        if (index >= lanes_.size()) continue;
        const std::uint32_t step = place.step(all_lanes_);
        const std::uint64_t chunks = (place.chunks - i + step - 1) / step;
        lanes_[index].parts.push_back({placed.request.id, placed.first_order,
                                       placed.first_order + i, chunks, step,
                                       host::flow_of(placed.shape)});
    }
}

void WindowAudit::withdrawn_from(std::uint64_t id) {
    for (Lane &lane : lanes_) {
        const bool had_some = !lane.parts.empty();
        while (!lane.parts.empty() && lane.parts.back().id >= id) lane.parts.pop_back();
        if (had_some && lane.parts.empty() && lane.in_flight) leave(lane);
    }
}

void WindowAudit::sent(const host::PacketView &packet, std::uint32_t window) {
    wire::Header header;
    if (wire::parse_packet(packet.data, packet.bytes, header) != wire::Parse::kOk) return;
    const std::uint32_t index = (header.seq & (all_lanes_ - 1)) - first_lane_;
    if (index >= lanes_.size()) return note(header.seq, "is not of its lanes");
    Lane &lane = lanes_[index];
    if (header.seq != lane.seq) return note(header.seq, "is not what its lane sends next");
    const bool is_odd = (header.seq / all_lanes_) % 2 != 0;
    const std::uint32_t slot = header.seq % all_lanes_ - tree_.first_lane;
    if (header.slot != slot + (is_odd ? tree_.lanes : 0)) {
        return note(header.seq, "is in slot " + std::to_string(header.slot));
    }
    if (host::Origin::of(header).copy > 0) {
        if (!lane.in_flight) note(header.seq, "is sent again, and has not been sent");
        return;
    }
    if (lane.in_flight) return note(header.seq, "is sent twice as the first copy");
    if (lane.parts.empty()) return note(header.seq, "is of no tensor");
    const std::uint32_t most = std::min({window, most_, static_cast<std::uint32_t>(lanes_.size())});
    const Part &part = lane.parts.front();
    if (!has_room(part, most)) {
        note(header.seq, "is packet " + std::to_string(in_flight_[part.flow] + 1) + " in flight (" +
                             std::to_string(small_[part.flow]) +
                             " without values) in a window of " + std::to_string(most));
    }
    lane.in_flight = true;
    // In a round of another shape the answer may have them.
    lane.is_small = header.value_count == 0 && header.shape == wire::kShapeSum;
    lane.order = part.order;
    lane.flow = part.flow;
    ++in_flight_[lane.flow];
    small_[lane.flow] += lane.is_small;
}

void WindowAudit::answered(std::uint32_t seq, bool has_sums, const std::uint8_t *values) {
    const std::uint32_t index = (seq & (all_lanes_ - 1)) - first_lane_;
    if (index >= lanes_.size() || lanes_[index].seq != seq || !lanes_[index].in_flight) {
        return note(seq, "has a result, and is not in flight");
    }
    Lane &lane = lanes_[index];
    leave(lane);
    lane.seq += all_lanes_;
    if (!has_sums) return;
    Part &part = lane.parts.front();
    if (stream_values_ > 0) {
        const std::uint64_t next =
            host::load_next_block(values + (stream_values_ - 1) * wire::kValueBytes);
        part.order = part.first_order + next;
        if (next == host::Schedule::kNone) lane.parts.pop_front();
        return;
    }
    part.order += part.step;
    if (--part.chunks_left == 0) lane.parts.pop_front();
}

bool WindowAudit::has_room(const Part &part, std::uint32_t window) const {
    // Flows that both wait have half of it each.
    const bool is_shared = std::any_of(lanes_.begin(), lanes_.end(), [&](const Lane &lane) {
        return !lane.parts.empty() && lane.parts.front().flow != part.flow;
    });
    if (is_shared) window = std::max(window / 2, 1u);
    const std::uint32_t large = in_flight_[part.flow] - small_[part.flow];
    if (large + small_[part.flow] * small_share_ < window) return true;
    std::uint64_t lowest = UINT64_MAX;
    for (const Lane &lane : lanes_) {
        if (lane.in_flight && lane.flow == part.flow) lowest = std::min(lowest, lane.order);
    }
    return part.order < lowest + window;
}

void WindowAudit::leave(Lane &lane) {
    lane.in_flight = false;
    --in_flight_[lane.flow];
    small_[lane.flow] -= lane.is_small;
}

void WindowAudit::note(std::uint32_t seq, const std::string &what) {
    if (breach_.empty()) breach_ = "sequence number " + std::to_string(seq) + " " + what;
}

}  // namespace ina::sim
