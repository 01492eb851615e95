#include "sim/queue.hpp"

#include "switch/frame.hpp"

namespace ina::sim {
namespace {

constexpr std::uint16_t kEtherTypeIpv4 = 0x0800;
constexpr std::uint8_t kEcnBits = 3;
constexpr std::uint8_t kCongestionExperienced = 3;
constexpr std::size_t kTosOffset = sw::kEthernetBytes + 1;
constexpr std::size_t kChecksumOffset = sw::kEthernetBytes + 10;

}  // namespace

bool is_ipv4(const Frame &frame) {
    return frame.bytes() >= sw::kEthernetBytes + sw::kIpv4Bytes &&
           sw::load_be16(frame.data() + 12) == kEtherTypeIpv4;
}

std::uint8_t ecn_of(const Frame &frame) {
    return is_ipv4(frame) ? frame.data()[kTosOffset] & kEcnBits : 0;
}

std::uint8_t dscp_of(const Frame &frame) {
    return is_ipv4(frame) ? frame.data()[kTosOffset] >> 2 : 0;
}

void mark(Frame &frame) {
    std::uint8_t *const word = frame.data() + sw::kEthernetBytes;
    const std::uint16_t before = sw::load_be16(word);
    word[1] |= kCongestionExperienced;
    std::uint8_t *const checksum = frame.data() + kChecksumOffset;
    const std::uint32_t sum = static_cast<std::uint16_t>(~sw::load_be16(checksum)) +
                              static_cast<std::uint32_t>(static_cast<std::uint16_t>(~before)) +
                              sw::load_be16(word);
    sw::store_be16(checksum, sw::fold_checksum(sum));
}

bool Queue::put(Frame &frame, std::int64_t now_ns, std::uint64_t *marked) {
    if (bytes_ + frame.wire_bytes() > config_.limit_bytes) return false;
    switch (judge(frame)) {
        case Verdict::kDrop: return false;
        case Verdict::kMark:
            mark(frame);
            ++*marked;
            break;
        case Verdict::kPass: break;
    }
    bytes_ += frame.wire_bytes();
    const bool is_urgent = config_.urgent_dscp < 64 && dscp_of(frame) >= config_.urgent_dscp;
    (is_urgent ? urgent_ : others_).push_back({std::move(frame), now_ns});
    return true;
}

void Queue::pass(Frame &frame, std::uint64_t *marked) {
    if (judge(frame) != Verdict::kMark) return;
    mark(frame);
    ++*marked;
}

Queue::Waiting Queue::take() {
    Ring<Waiting> &from = urgent_.empty() ? others_ : urgent_;
    Waiting next = std::move(from.front());
    from.pop_front();
    bytes_ -= next.frame.wire_bytes();
    return next;
}

void Queue::clear() {
    urgent_.clear();
    others_.clear();
    bytes_ = 0;
}

Queue::Verdict Queue::judge(const Frame &frame) {
    const bool is_capable = ecn_of(frame) != 0;
    if (config_.marking == Marking::kStep) {
        return is_capable && bytes_ >= config_.mark_bytes ? Verdict::kMark : Verdict::kPass;
    }
    if (config_.marking == Marking::kNone) return Verdict::kPass;
    average_bytes_ += config_.red_weight * (static_cast<double>(bytes_) - average_bytes_);
    const auto least = static_cast<double>(config_.red_least_bytes);
    const auto most = static_cast<double>(config_.red_most_bytes);
    if (average_bytes_ < least) return Verdict::kPass;
    const double share = most > least ? (average_bytes_ - least) / (most - least) : 1;
    const double probability = share < 1 ? share * config_.red_probability : 1;
    if (!random_.chance(probability)) return Verdict::kPass;
    return is_capable ? Verdict::kMark : Verdict::kDrop;
}

}  // namespace ina::sim
