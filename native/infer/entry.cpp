#include "infer/entry.hpp"

#include <algorithm>
#include <utility>

namespace ina::infer {
namespace {

constexpr std::int64_t kLeastPings = 32;
constexpr int kTellings = 5;
constexpr std::int64_t kTellAgainNs = 100'000'000;
constexpr std::size_t kWaitingRings = 4;           // so many times the ring may wait
constexpr std::int64_t kForgetNs = 1'000'000'000;  // what has come of a block, without the rest

}  // namespace

Entry::Entry(const Program &program, const EntryConfig &config, Stages *stages, Outbox *outbox)
    : program_(program), config_(config), stages_(stages), outbox_(outbox),
      input_{program.stages[0].rows_in, program.stages[0].in, program.stages[0].in},
      begun_(program.ring), heard_ns_(program.nodes.size(), INT64_MIN / 2), rtt_(config.rto) {}

void Entry::on_input(Header header, const std::uint8_t *payload, std::size_t bytes,
                     const Peer &from, std::int64_t now_ns) {
    header.client_ipv4 = from.ipv4;
    header.client_port = from.udp_port;
    const Origin origin = Origin::of(header);
    if (header.plan != program_.plan) return tell_fault(origin, {Fault::kOtherPlan, kClient, 0});
    if (failure_.fault != Fault::kNone) return tell_fault(origin, failure_);
    if (is_known(header, origin, now_ns)) return;
    const std::uint32_t pieces = pieces_of(input_.values(), program_.packet_values);
    if (header.piece >= pieces) {
        ++counters_.strays;
        return;
    }
    auto found = assemblies_.find(origin);
    if (found == assemblies_.end()) {
        const std::size_t most = kWaitingRings * program_.ring;
        if (assemblies_.size() >= most || waiting_.size() >= most) {
            ++counters_.refused;
            for (auto it = assemblies_.begin(); it != assemblies_.end();) {
                it = now_ns - it->second.at_ns > kForgetNs ? assemblies_.erase(it) : std::next(it);
            }
            return;
        }
        found = assemblies_.emplace(origin, Assembly{}).first;
        found->second.pieces.expect(pieces);
        found->second.values.resize(input_.values());
    }
    Assembly &assembly = found->second;
    assembly.at_ns = now_ns;
    if (!scatter(input_, program_.packet_values, header.piece, payload, bytes,
                 assembly.values.data())) {
        ++counters_.strays;
        return;
    }
    assembly.pieces.take(header.piece);
    if (!assembly.pieces.are_all()) return;
    std::vector<std::int32_t> values = std::move(assembly.values);
    assemblies_.erase(found);
    take(origin, std::move(values), now_ns);
}

// Of a block that is under way, or waits: who asks again lacks its answer.
bool Entry::is_known(const Header &header, const Origin &origin, std::int64_t now_ns) {
    if (waits_.count(origin) > 0) {
        ++counters_.again;
        return true;
    }
    const auto number = numbers_.find(origin);
    if (number == numbers_.end()) return false;
    ++counters_.again;
    if (header.piece == 0) {
        try_again(number->second, now_ns);
        tell_status(origin, number->second, now_ns);
    }
    return true;
}

void Entry::take(const Origin &origin, std::vector<std::int32_t> values, std::int64_t now_ns) {
    if (!is_admitted(values)) return tell_fault(origin, {Fault::kOutOfRange, kClient, 0});
    if (next_ < base_ + program_.ring && waiting_.empty()) return begin(origin, values, now_ns);
    waits_[origin] = true;
    waiting_.push_back({origin, std::move(values)});
}

bool Entry::is_admitted(const std::vector<std::int32_t> &values) const {
    return std::all_of(values.begin(), values.end(), [&](std::int32_t value) {
        return value >= program_.low && value <= program_.high;
    });
}

void Entry::begin(const Origin &origin, const std::vector<std::int32_t> &values,
                  std::int64_t now_ns) {
    if (base_ == next_) look_at_ns_ = now_ns + rtt_.timeout_ns(backoff_);
    const std::uint64_t seq = next_++;
    at(seq) = {origin, now_ns, now_ns, 0, 0};
    numbers_[origin] = seq;
    ++counters_.blocks;
    stages_->begin(seq, origin, values.data());
}

void Entry::on_progress(const Header &header, const std::uint8_t *payload, std::size_t bytes,
                        std::int64_t now_ns) {
    if (header.base > base_ || bytes != program_.ring / 8) {
        ++counters_.strays;
        return;
    }
    heard(header.sender, now_ns);
    const std::uint64_t end = std::min(header.base + program_.ring, next_);
    for (std::uint64_t seq = base_; seq < end; ++seq) {
        const std::uint64_t bit = seq - header.base;
        if ((payload[bit / 8] >> bit % 8 & 1) != 0) {
            at(seq).done |= std::uint64_t{1} << header.sender;
        }
    }
}

// Nodes that are not done with it.
std::uint64_t Entry::lacking(std::uint64_t seq) const {
    std::uint64_t done = begun_[seq % program_.ring].done;
    if (stages_->is_done(seq)) done |= std::uint64_t{1} << program_.node;
    return program_.members & ~done;
}

void Entry::advance(std::int64_t now_ns) {
    const std::uint64_t before = base_;
    for (; base_ < next_ && lacking(base_) == 0; ++base_) {
        const Begun &block = at(base_);
        if (block.attempt == 0) rtt_.on_sample(now_ns, now_ns - block.at_ns, false);
        numbers_.erase(block.origin);
    }
    if (base_ == before) return;
    backoff_ = 0;
    look_at_ns_ = base_ == next_ ? INT64_MAX : now_ns + rtt_.timeout_ns(0);
    stages_->advance(base_);
    while (!waiting_.empty() && next_ < base_ + program_.ring) {
        const Waiting first = std::move(waiting_.front());
        waiting_.pop_front();
        waits_.erase(first.origin);
        begin(first.origin, first.values, now_ns);
    }
}

void Entry::poll(std::int64_t now_ns) {
    if (failure_.fault == Fault::kNone) {
        for (std::uint64_t before = next_ + 1; before != base_;) {
            before = base_;  // a plan of one node is done with what was begun just now
            advance(now_ns);
        }
        if (now_ns >= look_at_ns_) look_at_time(now_ns);
    }
    if (failure_.fault != Fault::kNone && told_ < kTellings && now_ns >= tell_at_ns_) {
        ++told_;
        tell_at_ns_ = now_ns + kTellAgainNs;
        tell_nodes();
    }
}

std::int64_t Entry::next_deadline_ns() const {
    if (failure_.fault != Fault::kNone) return told_ < kTellings ? tell_at_ns_ : INT64_MAX;
    return look_at_ns_;
}

// The oldest block has taken too long.
void Entry::look_at_time(std::int64_t now_ns) {
    ++counters_.timeouts;
    const std::int64_t timeout_ns = rtt_.timeout_ns(backoff_);
    rtt_.on_timeout(backoff_++);
    // Who is silent has been asked often before it counts as lost: a quarter of packets may be.
    look_at_ns_ = now_ns + std::min(rtt_.timeout_ns(backoff_), config_.patience_ns / kLeastPings);
    // Also of nodes that are done with it: others may lack what those have made of it.
    for (std::uint16_t node = 0; node < program_.nodes.size(); ++node) {
        if ((program_.members >> node & 1) == 0 || node == program_.node) continue;
        if (silence_ns(node, base_, now_ns) > config_.patience_ns) {
            return fail({Fault::kNodeLost, node, 0});
        }
        outbox_->put(program_.nodes[node], header_for({}, Kind::kPing));
    }
    for (std::uint64_t seq = base_; seq < next_; ++seq) {
        if (lacking(seq) != 0 && now_ns - at(seq).sent_ns >= timeout_ns) try_again(seq, now_ns);
    }
}

std::int64_t Entry::silence_ns(std::uint16_t node, std::uint64_t seq, std::int64_t now_ns) const {
    return now_ns - std::max(heard_ns_[node], begun_[seq % program_.ring].at_ns);
}

void Entry::try_again(std::uint64_t seq, std::int64_t now_ns) {
    Begun &block = at(seq);
    if (now_ns - block.sent_ns < config_.least_gap_ns || block.attempt == UINT16_MAX) return;
    block.sent_ns = now_ns;
    stages_->replay(seq, ++block.attempt);
}

Header Entry::header_for(const Origin &origin, Kind kind) const {
    Header header;
    header.kind = kind;
    header.sender = program_.node;
    header.key = program_.key;
    header.plan = program_.plan;
    header.base = base_;
    origin.store(&header);
    return header;
}

void Entry::tell_status(const Origin &origin, std::uint64_t seq, std::int64_t now_ns) {
    Header header = header_for(origin, Kind::kStatus);
    header.source = kClient;
    std::int64_t longest_ns = 0;
    for (std::uint16_t node = 0; node < program_.nodes.size(); ++node) {
        if ((program_.members >> node & 1) == 0 || node == program_.node) continue;
        const std::int64_t silence = silence_ns(node, seq, now_ns);
        if (silence <= longest_ns) continue;
        longest_ns = silence;
        header.source = node;
    }
    header.piece = static_cast<std::uint32_t>(longest_ns / 1'000'000);
    outbox_->put(origin.client, header);
}

void Entry::tell_fault(const Origin &origin, const Failure &failure) {
    Header header = header_for(origin, Kind::kFault);
    header.stage = static_cast<std::uint16_t>(failure.fault);
    header.source = failure.node;
    header.piece = failure.stage;
    outbox_->put(origin.client, header);
}

void Entry::fail(const Failure &failure) {
    if (failure_.fault != Fault::kNone) return;
    failure_ = failure;
    for (const auto &[origin, seq] : numbers_) tell_fault(origin, failure);
    for (const Waiting &one : waiting_) tell_fault(one.origin, failure);
}

// Others would wait for a block that does not come.
void Entry::tell_nodes() {
    Header header = header_for({}, Kind::kFault);
    header.stage = static_cast<std::uint16_t>(failure_.fault);
    header.source = failure_.node;
    header.piece = failure_.stage;
    for (std::uint16_t node = 0; node < program_.nodes.size(); ++node) {
        if (node != program_.node) outbox_->put(program_.nodes[node], header);
    }
}

}  // namespace ina::infer
