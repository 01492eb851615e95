#include "sim/flows/tcp_receiver.hpp"

#include <algorithm>
#include <utility>

namespace ina::sim {

TcpReceiver::TcpReceiver(FramePool *frames, Host *host, const TcpConfig &config,
                         const TcpConnection &connection, TimerBase *timers, std::uint32_t place,
                         std::uint32_t which)
    : frames_(frames), host_(host), config_(config), connection_(connection),
      timer_(timers, place, which) {}

void TcpReceiver::receive(Frame frame) {
    TcpSegment segment;
    if (!parse_segment(frame, &segment) || !(segment.source == connection_.sender)) return;
    const auto expected = static_cast<std::uint32_t>(connection_.first_sequence + next_);
    Range range{next_ + static_cast<std::int32_t>(segment.sequence - expected), 0};
    range.end = range.begin + segment.payload_bytes;
    // What is not of this connection: its ports were another's before.
    if (range.begin < 0 || range.end > connection_.bytes || range.end == range.begin ||
        range.begin > next_ + config_.receive_window_bytes) {
        return;
    }
    note_marks(segment);
    if (range.end <= next_) {
        ++repeated_packets_;
        return acknowledge();
    }
    if (range.begin > next_) {
        keep(range);
        return acknowledge();
    }
    next_ = range.end;
    const bool fills = !apart_.empty();
    for (auto at = apart_.begin(); at != apart_.end();) {
        if (at->begin > next_) {
            ++at;
            continue;
        }
        next_ = std::max(next_, at->end);
        apart_.erase(at);
        at = apart_.begin();
    }
    // At once: behind a hole, each second segment, and where the sender says that no more comes.
    if (fills || ++unacked_ >= 2 || (segment.flags & kPsh) != 0) return acknowledge();
    if (!timer_.is_set()) timer_.set(timer_.now_ns() + config_.delayed_ack_ns);
}

void TcpReceiver::note_marks(const TcpSegment &segment) {
    const bool is_marked = (segment.tos & kCe) == kCe;
    marked_packets_ += is_marked;
    if (config_.algorithm == TcpAlgorithm::kDctcp) {
        // One acknowledgement tells of packets that are all marked, or none is.
        if (is_marked != echo_ && unacked_ > 0) acknowledge();
        echo_ = is_marked;
    } else if (config_.ecn) {
        if ((segment.flags & kCwr) != 0) echo_ = false;
        if (is_marked) echo_ = true;
    }
}

void TcpReceiver::keep(Range range) {
    const auto meets = [&](const Range &other) {
        if (other.begin > range.end || other.end < range.begin) return false;
        range = {std::min(range.begin, other.begin), std::max(range.end, other.end)};
        return true;
    };
    // One that it meets may make it meet another.
    const auto find = [&] { return std::find_if(apart_.begin(), apart_.end(), meets); };
    for (auto at = find(); at != apart_.end(); at = find()) apart_.erase(at);
    apart_.insert(apart_.begin(), range);
}

void TcpReceiver::acknowledge() {
    unacked_ = 0;
    timer_.stop();
    const auto sequence = [&](std::int64_t offset) {
        return static_cast<std::uint32_t>(connection_.first_sequence + offset);
    };
    TcpSegment segment;
    segment.source = connection_.receiver;
    segment.destination = connection_.sender;
    segment.sequence = connection_.peer_sequence;
    segment.acknowledged = sequence(next_);
    segment.flags = kAck | (echo_ ? kEce : 0);
    segment.window = static_cast<std::uint16_t>(
        std::min<std::int64_t>(config_.receive_window_bytes >> kWindowShift, UINT16_MAX));
    segment.tos = static_cast<std::uint8_t>(config_.dscp << 2);
    for (; segment.sacks < TcpSegment::kMostSacks && segment.sacks < apart_.size();
         ++segment.sacks) {
        const Range &range = apart_[segment.sacks];
        segment.sack[segment.sacks] = {sequence(range.begin), sequence(range.end)};
    }
    host_->send(write_segment(frames_, segment));
}

}  // namespace ina::sim
