#include "embed/owner.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace ina::embed {

Owner::Owner(const GroupConfig &config, Outbox *outbox)
    : config_(config), placements_(placements_of(config)), optimizer_(config.optimizer),
      outbox_(outbox) {
    for (const Placement &placement : placements_) {
        shards_.emplace_back(placement, config.host, config.optimizer);
        gradients_.emplace_back(shards_.back().rows(), shards_.back().dim());
    }
    for (Step &step : steps_) step.resize(config.hosts);
}

void Owner::set_optimizer(const Optimizer &optimizer) {
    if (version_ != 0) throw std::logic_error("rows have been updated by another optimizer");
    optimizer_ = optimizer;
    for (Shard &shard : shards_) shard.keep_state(optimizer);
}

void Owner::open_before(std::uint32_t version) {
    closed_from_ = version;
    answer_held();
}

Header Owner::reply_to(const Header &header, Kind kind) const {
    Header reply = header;
    reply.kind = kind;
    reply.flags = header.flags & kFlagAgain;
    reply.sender = config_.host;
    reply.crc = 0;
    return reply;
}

void Owner::give_up(std::string why) {
    if (fault_.empty()) fault_ = std::move(why);
}

std::uint64_t Owner::missing() const {
    std::uint64_t mask = 0;
    for (std::size_t host = 0; host < config_.asking(); ++host) {
        if (!steps_[0][host].is_complete()) mask |= std::uint64_t{1} << host;
    }
    return mask;
}

void Owner::on_packet(const Header &header, const std::uint8_t *payload, std::size_t bytes) {
    if (header.kind == Kind::kLookup) {
        on_lookup(header, payload, bytes);
    } else if (header.kind == Kind::kGradient) {
        on_gradient(header, payload, bytes);
    }
}

void Owner::on_lookup(const Header &header, const std::uint8_t *payload, std::size_t bytes) {
    ++counters_.lookups;
    std::uint64_t wanted = 0;
    if (!read_mask(payload, bytes, &wanted)) {
        ++counters_.refused;
        return;
    }
    const auto ahead = static_cast<std::int32_t>(header.step - version_);
    if (ahead < 0) {
        ++counters_.late;
    } else if (ahead > 0 || !is_open(header) || !fault_.empty()) {
        hold(header, wanted, payload + kMaskBytes, bytes - kMaskBytes);
    } else {
        answer(header, wanted, payload + kMaskBytes, bytes - kMaskBytes);
    }
}

void Owner::hold(const Header &header, std::uint64_t wanted, const std::uint8_t *body,
                 std::size_t bytes) {
    if ((header.flags & kFlagAgain) != 0) say_wait(header);
    const std::pair<std::uint16_t, std::uint32_t> key{header.sender, header.number};
    if (const auto found = held_.find(key); found != held_.end()) {
        found->second.wanted |= wanted;
    } else if (held_.size() < kMostHeld) {
        held_[key] = {header, wanted, {body, body + bytes}};
    } else {
        ++counters_.unheld;
    }
}

void Owner::say_wait(const Header &header) {
    Header reply = reply_to(header, Kind::kWait);
    if (!fault_.empty()) reply.flags |= kFlagFault;
    reply.part = 0;
    outbox_->put_mask(header.sender, reply, missing());
}

bool Owner::are_here(const Header &header, const BagReader &bags) const {
    if (header.table >= placements_.size()) return false;
    const Placement &placement = placements_[header.table];
    for (std::size_t i = 0; i < bags.rows(); ++i) {
        const std::uint32_t row = bags.row(i);
        if (row >= placement.spec().rows || placement.owner_of(row) != config_.host) return false;
    }
    return true;
}

// Rows are anywhere in memory, and their sum takes less time than a row's way from there.
constexpr std::size_t kAhead = 8;

// Of each bag the sum of its rows, in their order; with kFlagState, each row's optimiser's numbers
// behind it. Only of bags that have a value in a part that is wanted.
void Owner::pool(const Header &header, const BagReader &bags, std::uint64_t wanted) {
    const Placement &placement = placements_[header.table];
    const Shard &shard = shards_[header.table];
    const std::size_t dim = shard.dim();
    const std::size_t state = (header.flags & kFlagState) != 0 ? shard.state_values() : 0;
    pooled_.assign(bags.bags() * (dim + state), 0.0F);
    const std::size_t part_values = config_.part_bytes / sizeof(float);
    std::size_t next = 0;
    for (std::size_t bag = 0; bag < bags.bags(); ++bag) {
        const std::size_t first_part = bag * (dim + state) / part_values;
        const std::size_t last_part = ((bag + 1) * (dim + state) - 1) / part_values;
        if ((wanted & all_parts(last_part + 1) & ~all_parts(first_part)) == 0) {
            next += bags.count(bag);
            continue;
        }
        float *const sum = pooled_.data() + bag * (dim + state);
        const std::size_t first = next;
        counters_.rows_read += bags.count(bag);
        for (std::size_t end = next + bags.count(bag); next < end; ++next) {
            if (next + kAhead < bags.rows()) {
                shard.fetch(placement.local_of(bags.row(next + kAhead)));
            }
            const std::uint32_t local = placement.local_of(bags.row(next));
            const float *const row = shard.row(local);
            if (bags.is_weighted()) {
                const float weight = bags.weight(next);
                for (std::size_t i = 0; i < dim; ++i) sum[i] += weight * row[i];
            } else if (next == first) {
                std::copy_n(row, dim, sum);  // a row alone keeps its bits, -0 too
            } else {
                for (std::size_t i = 0; i < dim; ++i) sum[i] += row[i];
            }
            if (state > 0) std::copy_n(shard.state(local), state, sum + dim);
        }
    }
}

void Owner::answer(const Header &header, std::uint64_t wanted, const std::uint8_t *body,
                   std::size_t bytes) {
    BagReader bags;
    if (!bags.read(body, bytes, header) || !are_here(header, bags)) {
        ++counters_.refused;
        return;
    }
    pool(header, bags, wanted);
    const auto *const answer = reinterpret_cast<const std::uint8_t *>(pooled_.data());
    const std::size_t total = pooled_.size() * sizeof(float);
    if (parts_of(total, config_.part_bytes) != header.parts) {
        ++counters_.refused;
        return;
    }
    Header reply = reply_to(header, Kind::kRows);
    for (std::size_t part = 0; part < header.parts; ++part) {
        if ((wanted >> part & 1) == 0) continue;
        reply.part = static_cast<std::uint8_t>(part);
        const std::size_t offset = part * config_.part_bytes;
        outbox_->put(header.sender, reply, answer + offset,
                     std::min(config_.part_bytes, total - offset));
    }
}

void Owner::acknowledge(const Header &header, std::uint64_t have) {
    Header reply = reply_to(header, Kind::kReceived);
    reply.part = 0;
    outbox_->put_mask(header.sender, reply, have);
}

void Owner::on_gradient(const Header &header, const std::uint8_t *payload, std::size_t bytes) {
    const auto ahead = static_cast<std::int32_t>(header.step - version_);
    if (ahead < 0) {  // the acknowledgement was lost
        ++counters_.repeated;
        return acknowledge(header, all_parts(header.parts));
    }
    if (ahead > 1 ||
        !fault_.empty()) {  // it comes again; its sender is to know that this host lives
        if (!fault_.empty() || (header.flags & kFlagAgain) != 0) say_wait(header);
        return;
    }
    FromHost &from = steps_[ahead][header.sender];
    if (header.number >= kMostMessages) {
        ++counters_.refused;
        return;
    }
    Assembly &message = from.messages[header.number];
    const bool was_complete = message.is_complete();
    const bool had_part = (message.have() >> header.part & 1) != 0;
    if (!message.add(header, payload, bytes, config_.part_bytes)) {
        ++counters_.refused;
        return;
    }
    from.headers[header.number] = header;
    if (had_part) ++counters_.repeated;
    if (message.is_complete() && !was_complete) {
        ++counters_.gradients;
        ++from.complete;
        if ((header.flags & kFlagLast) != 0) from.last = header.number;
    }
    if (message.is_complete() || (header.flags & kFlagAgain) != 0) {
        acknowledge(header, message.have());
    }
    advance();
}

void Owner::advance() {
    while (fault_.empty() && missing() == 0) {
        if (!apply_step(steps_[0])) return;
        steps_[0] = std::move(steps_[1]);
        steps_[1] = Step(config_.hosts);
        ++version_;
        answer_held();
    }
}

bool Owner::apply_step(const Step &step) {
    std::uint32_t rate_bits = 0;
    for (std::size_t host = 0; host < config_.asking(); ++host) {
        const auto &last = step[host].messages.at(step[host].last).bytes();
        if (last.size() < sizeof(float)) {
            give_up("host " + std::to_string(host) + " said no learning rate");
            return false;
        }
        std::uint32_t bits = 0;
        std::memcpy(&bits, last.data() + last.size() - sizeof bits, sizeof bits);
        if (host > 0 && bits != rate_bits) {
            give_up("step " + std::to_string(version_) + ": hosts 0 and " + std::to_string(host) +
                    " disagree about the learning rate");
            return false;
        }
        rate_bits = bits;
    }
    for (const FromHost &from : step) {
        for (const auto &[number, message] : from.messages) {
            apply_message(from.headers.at(number), message.bytes());
        }
    }
    float rate = 0.0F;
    std::memcpy(&rate, &rate_bits, sizeof rate);
    for (std::size_t table = 0; table < shards_.size(); ++table) {
        gradients_[table].apply(&shards_[table], optimizer_, rate);
    }
    return true;
}

// The vector of a bag goes to each of its rows.
void Owner::apply_message(const Header &header, const std::vector<std::uint8_t> &message) {
    if (header.bags == 0) return;
    BagReader bags;
    if (!bags.read(message.data(), message.size(), header) || !are_here(header, bags) ||
        message.size() - bags.bytes() < bags.bags() * shards_[header.table].dim() * sizeof(float)) {
        ++counters_.refused;
        return give_up("host " + std::to_string(header.sender) + " sent gradients of step " +
                       std::to_string(header.step) + " that are not of rows of this host");
    }
    const Placement &placement = placements_[header.table];
    const std::size_t dim = shards_[header.table].dim();
    std::vector<float> vector(dim);
    std::size_t next = 0;
    for (std::size_t bag = 0; bag < bags.bags(); ++bag) {
        std::memcpy(vector.data(), message.data() + bags.bytes() + bag * dim * sizeof(float),
                    dim * sizeof(float));
        for (std::size_t end = next + bags.count(bag); next < end; ++next) {
            gradients_[header.table].add(placement.local_of(bags.row(next)), vector.data(),
                                         bags.weight(next));
        }
    }
}

void Owner::answer_held() {
    for (auto it = held_.begin(); it != held_.end();) {
        const Held &held = it->second;
        const auto ahead = static_cast<std::int32_t>(held.header.step - version_);
        if (ahead > 0 || (ahead == 0 && !is_open(held.header))) {
            ++it;
            continue;
        }
        if (ahead == 0) answer(held.header, held.wanted, held.body.data(), held.body.size());
        it = held_.erase(it);
    }
}

}  // namespace ina::embed
