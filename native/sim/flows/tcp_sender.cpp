#include "sim/flows/tcp_sender.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "sim/flows/cubic.hpp"
#include "sim/flows/dctcp.hpp"

namespace ina::sim {

std::unique_ptr<TcpWindow> make_tcp_window(const TcpConfig &config) {
    if (config.algorithm == TcpAlgorithm::kDctcp) {
        return std::make_unique<Dctcp>(config.mss_bytes, config.initial_window_segments);
    }
    return std::make_unique<Cubic>(config.mss_bytes, config.initial_window_segments);
}

TcpSender::TcpSender(FramePool *frames, Host *host, const TcpConfig &config,
                     const TcpConnection &connection, TimerBase *timers, std::uint32_t place,
                     std::uint32_t which)
    : frames_(frames), host_(host), config_(config), connection_(connection),
      window_(make_tcp_window(config)), timer_(timers, place, which),
      segments_((connection.bytes + config.mss_bytes - 1) / config.mss_bytes),
      peer_window_(config.receive_window_bytes) {}

std::int64_t TcpSender::bytes_of(std::int64_t segment) const {
    return std::min<std::int64_t>(config_.mss_bytes,
                                  connection_.bytes - segment * config_.mss_bytes);
}

// Which begins there; for the end of the data, and for anything else than a beginning, the next.
std::int64_t TcpSender::segment_at(std::uint32_t sequence) const {
    const std::int64_t offset = first_ * config_.mss_bytes;
    const auto expected = static_cast<std::uint32_t>(connection_.first_sequence + offset);
    const std::int64_t at = offset + static_cast<std::int32_t>(sequence - expected);
    return (at + config_.mss_bytes - 1) / config_.mss_bytes;
}

void TcpSender::receive(Frame frame) {
    TcpSegment ack;
    if (!parse_segment(frame, &ack) || !(ack.source == connection_.receiver)) return;
    const std::int64_t acknowledged = segment_at(ack.acknowledged);
    // Of data that was never sent: the ports were another connection's before. Or it came late.
    if (acknowledged > next_ || acknowledged < first_ || is_done() || has_given_up()) return;
    peer_window_ = std::int64_t{ack.window} << kWindowShift;
    newly_arrived_bytes_ = 0;
    sample_of_ = 0;
    const bool is_progress = acknowledged > first_;
    while (first_ < acknowledged) {
        if (sent_.front().has_arrived) {
            --apart_;
        } else {
            arrived(first_);
        }
        sent_.pop_front();
        ++first_;
    }
    look_ = std::max(look_, first_);
    for (std::uint32_t i = 0; i < ack.sacks; ++i) {
        const std::int64_t end = std::min(segment_at(ack.sack[i].end), next_);
        for (std::int64_t at = std::max(segment_at(ack.sack[i].begin), first_); at < end; ++at) {
            if (sent(at).has_arrived) continue;
            arrived(at);
            sent(at).has_arrived = true;
            ++apart_;
        }
    }
    if (sample_of_ > 0) take_sample(sample_ns_);
    if (first_ >= recovery_end_) in_recovery_ = false;
    if (apart_ > 0) find_losses();

    TcpAck event;
    event.now_ns = timer_.now_ns();
    event.bytes = newly_arrived_bytes_;
    event.acknowledged = std::min(first_ * config_.mss_bytes, connection_.bytes);
    event.next = std::min(next_ * config_.mss_bytes, connection_.bytes);
    event.srtt_ns = srtt_ns_;
    event.echo = config_.is_ecn() && (ack.flags & kEce) != 0;
    event.is_limited = is_limited_;
    event.in_recovery = in_recovery_;
    if (window_->on_ack(event)) {
        ++counters_.ecn_reductions;
        tells_cwr_ = true;
    }
    if (is_done()) return timer_.stop();
    if (is_progress) {
        timeouts_on_end_ = 0;
        timer_.set(timer_.now_ns() + rto_ns());
    }
    send();
}

void TcpSender::arrived(std::int64_t segment) {
    Sent &of = sent(segment);
    if (of.is_lost) {
        of.is_lost = false;
        --lost_;
    } else {
        in_flight_ -= bytes_of(segment);
    }
    newly_arrived_bytes_ += bytes_of(segment);
    const std::int64_t rtt_ns = timer_.now_ns() - of.at_ns;
    if (of.is_repeated) {
        if (rtt_ns < shortest_ns_) return;  // it was an earlier transmission
    } else if (of.transmission > sample_of_) {
        sample_of_ = of.transmission;
        sample_ns_ = rtt_ns;
    }
    newest_arrived_ = std::max(newest_arrived_, of.transmission);
}

void TcpSender::take_sample(std::int64_t rtt_ns) {
    shortest_ns_ = std::min(shortest_ns_, rtt_ns);
    if (srtt_ns_ == 0) {
        srtt_ns_ = std::max<std::int64_t>(rtt_ns, 1);
        rttvar_ns_ = rtt_ns / 2;
        return;
    }
    rttvar_ns_ += (std::abs(srtt_ns_ - rtt_ns) - rttvar_ns_) / 4;
    srtt_ns_ += (rtt_ns - srtt_ns_) / 8;
}

std::int64_t TcpSender::rto_ns() const {
    std::int64_t rto_ns = srtt_ns_ == 0 ? config_.initial_rto_ns
                                        : std::max(srtt_ns_ + 4 * rttvar_ns_, config_.min_rto_ns);
    for (std::uint32_t i = 0; i < timeouts_on_end_ && rto_ns < config_.max_rto_ns; ++i) rto_ns *= 2;
    return std::min(rto_ns, config_.max_rto_ns);
}

void TcpSender::find_losses() {
    bool found = false;
    for (std::int64_t at = first_; at < next_; ++at) {
        const Sent &of = sent(at);
        if (of.has_arrived || of.is_lost || of.transmission + kLostAfter > newest_arrived_) {
            continue;
        }
        lose(at);
        found = true;
    }
    if (!found || in_recovery_ || first_ < recovery_end_) return;
    in_recovery_ = true;
    recovery_end_ = next_;
    ++counters_.recoveries;
    window_->on_loss();
    tells_cwr_ = config_.is_ecn();
    transmit(first_lost());  // at once, whatever is in flight
}

// There is one.
std::int64_t TcpSender::first_lost() {
    while (!sent(look_).is_lost) ++look_;
    return look_;
}

void TcpSender::lose(std::int64_t segment) {
    sent(segment).is_lost = true;
    ++lost_;
    look_ = std::min(look_, segment);
    in_flight_ -= bytes_of(segment);
}

void TcpSender::send() {
    for (;;) {
        const std::int64_t segment = lost_ > 0 ? first_lost() : next_;
        is_limited_ = false;
        if (segment == segments_) return;
        const std::int64_t bytes = bytes_of(segment);
        if (segment == next_ && (next_ - first_) * config_.mss_bytes + bytes > peer_window_) return;
        is_limited_ = in_flight_ + bytes > window_->bytes();
        if (is_limited_ && in_flight_ > 0) return;
        transmit(segment);
    }
}

void TcpSender::transmit(std::int64_t segment) {
    const std::int64_t now_ns = timer_.now_ns();
    const bool is_new = segment == next_;
    if (is_new) {
        sent_.emplace_back();
        ++next_;
    }
    Sent &of = sent(segment);
    if (of.is_lost) {
        of.is_lost = false;
        --lost_;
    }
    of.is_repeated = !is_new;
    of.at_ns = now_ns;
    of.transmission = ++transmissions_;
    in_flight_ += bytes_of(segment);
    ++counters_.segments;
    counters_.retransmissions += !is_new;

    TcpSegment out;
    out.source = connection_.sender;
    out.destination = connection_.receiver;
    out.sequence =
        static_cast<std::uint32_t>(connection_.first_sequence + segment * config_.mss_bytes);
    out.acknowledged = connection_.peer_sequence;
    out.payload_bytes = static_cast<std::uint32_t>(bytes_of(segment));
    out.window = UINT16_MAX;
    if (segment == segments_ - 1) out.flags |= kPsh;
    if (is_new && tells_cwr_) {
        out.flags |= kCwr;
        tells_cwr_ = false;
    }
    // RFC 3168 (6.1.5) has no marks on what is sent again; DCTCP has them on all.
    const bool is_capable = config_.algorithm == TcpAlgorithm::kDctcp || (config_.ecn && is_new);
    out.tos = static_cast<std::uint8_t>(config_.dscp << 2 | (is_capable ? kEct0 : 0));
    if (!timer_.is_set()) timer_.set(now_ns + rto_ns());
    host_->send(write_segment(frames_, out));
}

void TcpSender::time_out() {
    ++counters_.timeouts;
    const bool again = timeouts_on_end_++ > 0;
    if (has_given_up()) return;
    for (std::int64_t at = first_; at < next_; ++at) {
        const Sent &of = sent(at);
        if (!of.has_arrived && !of.is_lost) lose(at);
    }
    in_recovery_ = false;
    recovery_end_ = next_;
    window_->on_timeout(again);
    tells_cwr_ = config_.is_ecn();
    send();
}

}  // namespace ina::sim
