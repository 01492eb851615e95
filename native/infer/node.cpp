#include "infer/node.hpp"

#include <algorithm>
#include <stdexcept>

namespace ina::infer {
namespace {

// So long a node keeps to itself that it is done with blocks, or until they are so large a part of
// the ring: one packet tells of many.
constexpr std::int64_t kProgressNs = 2'000'000;
constexpr std::uint64_t kProgressParts = 4;
constexpr int kTellings = 5;
constexpr std::int64_t kTellAgainNs = 100'000'000;

}  // namespace

Node::Node(Program program, const EntryConfig &entry, std::vector<StageSums> sums,
           std::size_t most_moments)
    : program_(std::move(program)), sums_(std::move(sums)), trace_(most_moments),
      stages_(program_, &outbox_, this, &trace_) {
    for (std::size_t k = 0; k < program_.stages.size(); ++k) {
        const Stage &stage = program_.stages[k];
        const auto engines = std::count_if(sums_.begin(), sums_.end(),
                                           [&](const StageSums &one) { return one.stage == k; });
        if (engines != (stage.is_mine && stage.is_summed ? 1 : 0)) {
            throw std::invalid_argument("a stage that is summed has one engine, others none");
        }
    }
    if (program_.node == program_.entry) {
        entry_ = std::make_unique<Entry>(program_, entry, &stages_, &outbox_);
    }
}

Header Node::header(Kind kind) const {
    Header header;
    header.kind = kind;
    header.sender = program_.node;
    header.key = program_.key;
    header.plan = program_.plan;
    header.base = stages_.base();
    return header;
}

void Node::receive(const Peer &from, const std::uint8_t *packet, std::size_t bytes,
                   std::int64_t now_ns) {
    trace_.set_time(now_ns);
    Header header;
    if (!is_whole(packet, bytes, program_.key, &header)) {
        ++damaged_;
        return;
    }
    const std::uint8_t *const payload = packet + kHeaderBytes;
    const std::size_t payload_bytes = bytes - kHeaderBytes;
    if (header.sender == kClient) {
        if (!entry_ || header.kind != Kind::kTask || header.stage != 0) {
            ++damaged_;
            return;
        }
        return entry_->on_input(header, payload, payload_bytes, from, now_ns);
    }
    if (!is_of(header, from) || header.plan != program_.plan) {
        ++damaged_;
        return;
    }
    if (entry_) entry_->heard(header.sender, now_ns);
    switch (header.kind) {
        case Kind::kTask: return stages_.on_task(header, payload, payload_bytes);
        case Kind::kProgress:
            if (entry_) entry_->on_progress(header, payload, payload_bytes, now_ns);
            return;
        case Kind::kPing: stages_.advance(header.base); return tell_progress();
        case Kind::kFault: return on_fault(header);
        default: ++damaged_;
    }
}

void Node::on_fault(const Header &header) {
    if (entry_ == nullptr && header.sender != program_.entry) return;
    const Failure said{static_cast<Fault>(header.stage), header.source,
                       static_cast<std::uint16_t>(header.piece)};
    if (said.fault != Fault::kNodeLost && said.fault != Fault::kSumsLost) return;
    if (entry_) return fail(said);
    if (failure_.fault == Fault::kNone) failure_ = said;
}

void Node::fail(const Failure &failure) {
    if (failure_.fault != Fault::kNone) return;
    failure_ = failure;
    tell_at_ns_ = 0;
    if (entry_) entry_->fail(failure);
}

void Node::submit(std::size_t stage, std::uint64_t seq, const std::int32_t *part, std::int32_t *sum,
                  std::size_t values) {
    const auto one = std::find_if(sums_.begin(), sums_.end(),
                                  [&](const StageSums &sums) { return sums.stage == stage; });
    ++submitted_;
    one->engine->sum(seq, part, sum, values);
}

void Node::take_sums() {
    for (const StageSums &one : sums_) {
        for (const std::uint64_t seq : one.engine->take_done()) stages_.on_sum(one.stage, seq);
        if (one.engine->has_left() && failure_.fault == Fault::kNone) {
            fail({Fault::kSumsLost, kClient, static_cast<std::uint16_t>(one.stage)});
        }
    }
}

void Node::poll(std::int64_t now_ns) {
    if (entry_) {
        entry_->poll(now_ns);
        if (failure_.fault == Fault::kNone) failure_ = entry_->failure();
        return;
    }
    note_progress(now_ns);
    if (now_ns < tell_at_ns_) return;
    tell_at_ns_ = ++told_ < kTellings ? now_ns + kTellAgainNs : INT64_MAX;
    Header fault = header(Kind::kFault);
    fault.stage = static_cast<std::uint16_t>(failure_.fault);
    fault.source = failure_.node;
    fault.piece = failure_.stage;
    outbox_.put(program_.nodes[program_.entry], fault);
}

void Node::note_progress(std::int64_t now_ns) {
    const std::uint64_t news = stages_.counters().blocks - told_blocks_;
    if (news == 0) return;
    if (progress_ns_ == INT64_MAX) progress_ns_ = now_ns + kProgressNs;
    if (now_ns >= progress_ns_ || news * kProgressParts >= program_.ring) tell_progress();
}

void Node::tell_progress() {
    if (entry_) return;
    told_blocks_ = stages_.counters().blocks;
    progress_ns_ = INT64_MAX;
    std::uint8_t *const bits =
        outbox_.open(program_.nodes[program_.entry], header(Kind::kProgress), program_.ring / 8);
    for (std::uint32_t i = 0; i < program_.ring; ++i) {
        if (stages_.is_done(stages_.base() + i)) {
            bits[i / 8] = static_cast<std::uint8_t>(bits[i / 8] | 1u << i % 8);
        }
    }
    outbox_.seal();
}

std::int64_t Node::next_deadline_ns() const {
    std::int64_t deadline_ns =
        entry_ ? entry_->next_deadline_ns() : std::min(progress_ns_, tell_at_ns_);
    for (const StageSums &one : sums_) {
        deadline_ns = std::min(deadline_ns, one.engine->next_deadline_ns());
    }
    return deadline_ns;
}

}  // namespace ina::infer
