#include "embed/client.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace ina::embed {
namespace {

std::size_t bits_of(std::uint64_t mask) {
    std::size_t bits = 0;
    for (; mask != 0; mask &= mask - 1) ++bits;
    return bits;
}

std::uint16_t lowest_of(std::uint64_t mask) {
    std::uint16_t bit = 0;
    while (bit < 63 && (mask >> bit & 1) == 0) ++bit;
    return bit;
}

std::vector<std::size_t> dims_of(const GroupConfig &config) {
    std::vector<std::size_t> dims;
    for (const TableSpec &spec : config.tables) dims.push_back(spec.dim);
    return dims;
}

}  // namespace

std::size_t Client::Message::parts_left() const { return header.parts - bits_of(done); }

Client::Client(const GroupConfig &config, const ClientConfig &own, Outbox *outbox)
    : config_(config), own_(own), placements_(placements_of(config)), optimizer_(config.optimizer),
      hot_(dims_of(config)), outbox_(outbox), rtt_(own.rto), gradient_numbers_(config.hosts),
      heard_ns_(config.hosts) {
    if (own.window_parts < kMaxParts) {
        throw std::invalid_argument("window_parts must be at least 64, which a message may have");
    }
    for (auto &owners : queues_) owners.resize(config.hosts);
}

void Client::check(std::uint16_t table, const BagSource &bags) const {
    if (table >= placements_.size()) {
        throw std::out_of_range("table " + std::to_string(table) + ": there are " +
                                std::to_string(placements_.size()));
    }
    const std::uint32_t rows = placements_[table].spec().rows;
    for (std::size_t i = 0; i < bags.bags; ++i) {
        if (bags.offsets[i] < 0 || bags.offsets[i] > bags.offsets[i + 1]) {
            throw std::out_of_range("offsets must not fall");
        }
    }
    for (std::int64_t i = 0; bags.bags > 0 && i < bags.offsets[bags.bags]; ++i) {
        if (bags.rows[i] >= rows) {
            throw std::out_of_range("row " + std::to_string(bags.rows[i]) + " of table " +
                                    std::to_string(table) + ", which has " + std::to_string(rows));
        }
    }
}

std::unique_ptr<Client::Message> Client::message_of(Kind kind, std::uint32_t step,
                                                    std::uint16_t table, const Sheet *sheet) const {
    auto message = std::make_unique<Message>();
    Header &header = message->header;
    header.kind = kind;
    header.sender = config_.host;
    header.table = table;
    header.key = config_.key;
    header.step = step;
    message->way = kind == Kind::kLookup ? kLookups : kGradients;
    if (sheet != nullptr) {
        header.flags = sheet->bags.flags();
        header.bags = static_cast<std::uint16_t>(sheet->bags.bags());
        sheet->bags.write(&message->body);
    }
    return message;
}

void Client::queue(std::unique_ptr<Message> message, std::uint16_t owner) {
    message->owner = owner;
    message->header.parts =
        static_cast<std::uint16_t>(parts_of(message->bytes, config_.part_bytes));
    ++counters_.messages;
    queues_[message->way][owner].push_back(std::move(message));
}

// What is left of bags where is_here(bag, row, weight) has seen to the others.
template <class IsHere>
BagSource Client::left_of(const BagSource &bags, IsHere is_here) {
    left_offsets_.assign(1, 0);
    left_rows_.clear();
    left_weights_.clear();
    for (std::size_t bag = 0; bag < bags.bags; ++bag) {
        for (std::int64_t i = bags.offsets[bag]; i < bags.offsets[bag + 1]; ++i) {
            const float weight = bags.weights == nullptr ? 1.0F : bags.weights[i];
            if (is_here(bag, bags.rows[i], weight)) continue;
            left_rows_.push_back(bags.rows[i]);
            if (bags.weights != nullptr) left_weights_.push_back(weight);
        }
        left_offsets_.push_back(static_cast<std::int64_t>(left_rows_.size()));
    }
    return {bags.bags, left_offsets_.data(), left_rows_.data(),
            bags.weights == nullptr ? nullptr : left_weights_.data()};
}

// Hot rows are found when vectors are taken; what the cache has is copied, for it may go.
BagSource Client::not_here(std::uint16_t table, const BagSource &bags, Asked *asked) {
    if (hot_.is_empty() && cache_.is_empty()) return bags;
    return left_of(bags, [&](std::size_t bag, std::uint32_t row, float weight) {
        const std::size_t place = hot_.look_up(table, row);
        if (place != HotRows::kNone) {
            asked->pieces.push_back({bag, kHot, place, weight});
            return true;
        }
        if (placements_[table].owner_of(row) == config_.host) return false;
        const float *const values = cache_.find(table, row);
        if (values == nullptr) return false;
        asked->pieces.push_back({bag, kKept, asked->kept.size(), weight});
        asked->kept.insert(asked->kept.end(), values, values + asked->vector_values);
        return true;
    });
}

Client::Ticket Client::look_up(std::uint32_t step, std::uint16_t table, const BagSource &bags,
                               bool with_state) {
    check(table, bags);
    const Placement &placement = placements_[table];
    auto asked = std::make_unique<Asked>();
    asked->table = table;
    asked->bags = bags.bags;
    asked->vector_values =
        placement.spec().dim + (with_state ? optimizer_.state_values(placement.spec().dim) : 0);
    const std::size_t vector_bytes = asked->vector_values * sizeof(float);
    std::size_t vectors = 0;
    cache_.use_version(step);
    // What the optimiser keeps is asked for of rows that are becoming hot.
    const BagSource left = with_state ? bags : not_here(table, bags, asked.get());
    Cutter cutter(placement, config_.hosts, {config_.part_bytes, vector_bytes, false});
    cutter.cut(left, [&](std::uint16_t owner, const Sheet &sheet) {
        auto message = message_of(Kind::kLookup, step, table, &sheet);
        if (with_state) message->header.flags |= kFlagState;
        message->header.number = next_number_++;
        message->asked = asked.get();
        message->offset = vectors * asked->vector_values;
        message->bytes = sheet.of.size() * vector_bytes;
        for (const std::size_t bag : sheet.of) {
            asked->pieces.push_back({bag, owner, vectors++ * asked->vector_values});
        }
        ++asked->open;
        queue(std::move(message), owner);
    });
    asked->values.resize(vectors * asked->vector_values);
    // Messages are not in this order where some owners' are full earlier than others'.
    std::stable_sort(asked->pieces.begin(), asked->pieces.end(),
                     [](const Piece &a, const Piece &b) {
                         return std::tie(a.bag, a.owner) < std::tie(b.bag, b.owner);
                     });
    asked_.emplace(next_ticket_, std::move(asked));
    return next_ticket_++;
}

bool Client::is_done(Ticket ticket) const { return asked_.at(ticket)->open == 0; }

const float *Client::part_of(const Asked &asked, const Piece &piece) const {
    if (piece.owner == kHot) return hot_.values(asked.table, piece.offset);
    return (piece.owner == kKept ? asked.kept : asked.values).data() + piece.offset;
}

void Client::take(Ticket ticket, float *vectors) {
    const std::unique_ptr<Asked> asked = std::move(asked_.at(ticket));
    asked_.erase(ticket);
    const std::size_t values = asked->vector_values;
    std::fill_n(vectors, asked->bags * values, 0.0F);
    std::size_t before = SIZE_MAX;  // the bag of the piece before
    for (const Piece &piece : asked->pieces) {
        float *const sum = vectors + piece.bag * values;
        const float *const part = part_of(*asked, piece);
        if (piece.bag != before && piece.weight == 1.0F) {
            std::copy_n(part, values, sum);
        } else {
            for (std::size_t i = 0; i < values; ++i) sum[i] += piece.weight * part[i];
        }
        before = piece.bag;
    }
}

std::uint32_t Client::next_gradient(std::uint32_t step, std::uint16_t owner) {
    if (step != step_) {
        step_ = step;
        std::fill(gradient_numbers_.begin(), gradient_numbers_.end(), 0);
    }
    return gradient_numbers_[owner]++;
}

void Client::add_gradients(std::uint32_t step, std::uint16_t table, const BagSource &bags,
                           const float *vectors) {
    check(table, bags);
    const Placement &placement = placements_[table];
    const std::size_t vector_bytes = placement.spec().dim * sizeof(float);
    const std::size_t dim = placement.spec().dim;
    const auto is_hot = [&](std::size_t bag, std::uint32_t row, float weight) {
        const std::size_t place = hot_.find(table, row);
        if (place == HotRows::kNone) return false;
        hot_.add_gradient(table, place, vectors + bag * dim, weight);
        return true;
    };
    const BagSource left = hot_.is_empty() ? bags : left_of(bags, is_hot);
    Cutter cutter(placement, config_.hosts, {config_.part_bytes, vector_bytes, true});
    cutter.cut(left, [&](std::uint16_t owner, const Sheet &sheet) {
        auto message = message_of(Kind::kGradient, step, table, &sheet);
        std::vector<std::uint8_t> &body = message->body;
        const std::size_t before = body.size();
        body.resize(before + sheet.of.size() * vector_bytes);
        for (std::size_t i = 0; i < sheet.of.size(); ++i) {
            std::memcpy(body.data() + before + i * vector_bytes,
                        vectors + sheet.of[i] * placement.spec().dim, vector_bytes);
        }
        message->header.number = next_gradient(step, owner);
        message->bytes = body.size();
        queue(std::move(message), owner);
    });
}

// To each owner a message of its own, which bears nothing but the rate.
void Client::end_step(std::uint32_t step, float rate) {
    ended_steps_ = step + 1;
    for (std::uint16_t owner = 0; owner < config_.hosts; ++owner) {
        auto message = message_of(Kind::kGradient, step, 0, nullptr);
        message->header.flags |= kFlagLast;
        message->header.number = next_gradient(step, owner);
        message->body.resize(sizeof rate);
        std::memcpy(message->body.data(), &rate, sizeof rate);
        message->bytes = message->body.size();
        queue(std::move(message), owner);
    }
}

bool Client::has_queued(Way way) const {
    return std::any_of(queues_[way].begin(), queues_[way].end(),
                       [](const auto &queue) { return !queue.empty(); });
}

// Of a look-up the number is its own; of gradients, with the owner and the step.
std::uint64_t Client::key_of(const Header &header, std::uint16_t owner) {
    if (header.kind != Kind::kGradient) return header.number;
    return std::uint64_t{header.step} << 32 | std::uint64_t{owner} << 24 | header.number;
}

Client::Message *Client::find(Messages *messages, const Header &header) const {
    Header asked = header;
    asked.kind = messages == &lookups_ ? Kind::kLookup : Kind::kGradient;
    const auto found = messages->find(key_of(asked, header.sender));
    if (found == messages->end()) return nullptr;
    Message *const message = found->second.get();
    const bool is_its = message->owner == header.sender && message->header.step == header.step &&
                        message->header.parts == header.parts;
    return is_its ? message : nullptr;
}

// In turn from the owners' queues, as far as the window goes.
void Client::start(Way way, std::int64_t now_ns) {
    auto &queues = queues_[way];
    for (std::size_t without = 0; without < queues.size();) {
        auto &queue = queues[next_owner_[way]];
        if (!queue.empty()) {
            const std::size_t parts = queue.front()->header.parts;
            if (parts_in_flight_[way] + parts > own_.window_parts) return;
            std::unique_ptr<Message> message = std::move(queue.front());
            queue.pop_front();
            parts_in_flight_[way] += parts;
            message->first_sent_ns = now_ns;
            send(message.get(), Again::kFirst, now_ns);
            Messages &messages = way == kLookups ? lookups_ : gradients_;
            const std::uint64_t key = key_of(message->header, message->owner);
            messages.emplace(key, std::move(message));
            without = 0;
        } else {
            ++without;
        }
        next_owner_[way] = (next_owner_[way] + 1) % queues.size();
    }
}

// Of a message that is sent again one part, to learn what of the others has come: an answer, or an
// acknowledgement, that is merely late would else cost all of them once more.
void Client::send(Message *message, Again again, std::int64_t now_ns) {
    const std::uint64_t left = all_parts(message->header.parts) & ~message->done;
    message->sent_ns = now_ns;
    message->deadline_ns = now_ns + rtt_.timeout_ns(message->tries);
    if (again != Again::kProbe) return send_parts(message, left, again);
    send_parts(message, left & (~left + 1), again);
}

void Client::send_parts(Message *message, std::uint64_t parts, Again again) {
    Header header = message->header;
    if (again != Again::kFirst) header.flags |= kFlagAgain;
    if (message->way == kLookups) {
        outbox_->put_mask(message->owner, header, parts, message->body);
        return;
    }
    for (std::size_t part = 0; part < header.parts; ++part) {
        if ((parts >> part & 1) == 0) continue;
        header.part = static_cast<std::uint8_t>(part);
        const std::size_t offset = part * config_.part_bytes;
        outbox_->put(message->owner, header, message->body.data() + offset,
                     std::min(config_.part_bytes, message->bytes - offset));
    }
}

void Client::poll(std::int64_t now_ns) {
    if (failure_) return;
    for (const Way way : {kGradients, kLookups}) start(way, now_ns);
    for (Messages *messages : {&gradients_, &lookups_}) send_due(messages, now_ns);
}

void Client::send_due(Messages *messages, std::int64_t now_ns) {
    for (auto &[key, message] : *messages) {
        if (now_ns < message->deadline_ns) continue;
        look_for_failure(*message, now_ns);
        if (failure_) return;
        rtt_.on_timeout(message->tries);
        ++message->tries;
        ++counters_.sent_again;
        message->is_probing = true;
        send(message.get(), Again::kProbe, now_ns);
    }
}

std::int64_t Client::next_deadline_ns() const {
    std::int64_t earliest_ns = INT64_MAX;
    if (failure_) return earliest_ns;
    for (const Messages *messages : {&gradients_, &lookups_}) {
        for (const auto &[key, message] : *messages) {
            earliest_ns = std::min(earliest_ns, message->deadline_ns);
        }
    }
    return earliest_ns;
}

void Client::on_packet(const Header &header, const std::uint8_t *payload, std::size_t bytes,
                       std::int64_t now_ns) {
    heard_ns_[header.sender] = now_ns;
    if (header.kind == Kind::kRows) return on_rows(header, payload, bytes, now_ns);
    std::uint64_t mask = 0;
    if (!read_mask(payload, bytes, &mask)) return;
    if (header.kind == Kind::kReceived) on_received(header, mask, now_ns);
    if (header.kind == Kind::kWait) on_wait(header, mask, now_ns);
}

void Client::on_rows(const Header &header, const std::uint8_t *payload, std::size_t bytes,
                     std::int64_t now_ns) {
    Message *const message = find(&lookups_, header);
    const std::size_t offset = header.part * config_.part_bytes;
    if (message == nullptr || header.part >= header.parts ||
        bytes != std::min(config_.part_bytes, message->bytes - offset)) {
        ++counters_.stray;
        return;
    }
    std::uint64_t parts = 0;
    if ((message->done >> header.part & 1) == 0) {
        parts = std::uint64_t{1} << header.part;
        auto *const answer =
            reinterpret_cast<std::uint8_t *>(message->asked->values.data() + message->offset);
        std::memcpy(answer + offset, payload, bytes);
    } else {
        ++counters_.stray;
    }
    note_done(message, parts, header, now_ns);
}

void Client::on_received(const Header &header, std::uint64_t mask, std::int64_t now_ns) {
    Message *const message = find(&gradients_, header);
    if (message == nullptr) {
        ++counters_.stray;
        return;
    }
    note_done(message, mask & all_parts(message->header.parts) & ~message->done, header, now_ns);
}

void Client::on_wait(const Header &header, std::uint64_t mask, std::int64_t now_ns) {
    if ((header.flags & kFlagFault) != 0) {
        if (mask == 0) return fail(header.sender, header.step, "has given up");
        return fail(lowest_of(mask), header.step,
                    "is lost, says host " + std::to_string(header.sender));
    }
    Message *const message = find(&lookups_, header);
    if (message == nullptr || mask == 0) return;
    if (message->waits_for != mask) {
        message->waits_for = mask;
        message->waits_since_ns = now_ns;
    }
}

// What answers a probe left behind the answers to what was sent before: what has not come by then
// is lost. Those that are merely late say nothing of the kind.
void Client::note_done(Message *message, std::uint64_t parts, const Header &answer,
                       std::int64_t now_ns) {
    const bool is_to_probe = (answer.flags & kFlagAgain) != 0;
    if (message->done == 0 && parts != 0 && !is_to_probe) {
        rtt_.on_sample(now_ns, now_ns - message->first_sent_ns, false);
    }
    message->done |= parts;
    if (parts != 0) message->deadline_ns = now_ns + rtt_.timeout_ns(message->tries);
    parts_in_flight_[message->way] -= bits_of(parts);
    if (message->parts_left() == 0) return finish(message);
    if (message->is_probing && is_to_probe) {
        message->is_probing = false;
        send(message, Again::kAll, now_ns);
    }
}

void Client::finish(Message *message) {
    if (message->asked != nullptr) {
        --message->asked->open;
        keep(*message);
    }
    Messages &messages = message->way == kLookups ? lookups_ : gradients_;
    messages.erase(key_of(message->header, message->owner));
}

// Rows of other hosts that came one by one.
void Client::keep(const Message &message) {
    const Header &header = message.header;
    BagReader bags;
    if (cache_.is_empty() || message.owner == config_.host || header.step != cache_.version() ||
        (header.flags & (kFlagSingle | kFlagWeighted | kFlagState)) != kFlagSingle ||
        !bags.read(message.body.data(), message.body.size(), header)) {
        return;
    }
    const float *values = message.asked->values.data() + message.offset;
    for (std::size_t i = 0; i < bags.rows(); ++i, values += message.asked->vector_values) {
        cache_.put(header.table, bags.row(i), values);
    }
}

// Nothing has been heard of an owner, or it waits for the same hosts, for too long. Who waits so
// may itself be waited for, so those who see a host's silence are to speak first.
void Client::look_for_failure(const Message &message, std::int64_t now_ns) {
    const std::int64_t heard_ns = std::max(heard_ns_[message.owner], message.first_sent_ns);
    const std::uint32_t step = message.header.step;
    if (now_ns - heard_ns > own_.patience_ns) {
        fail(message.owner, step, "has not answered");
    } else if (message.waits_for != 0 && now_ns - message.waits_since_ns > 2 * own_.patience_ns) {
        fail(lowest_of(message.waits_for), step, "has not ended the step before");
    }
}

void Client::fail(std::uint16_t host, std::uint32_t step, std::string what) {
    if (!failure_) failure_ = std::make_unique<Failure>(Failure{host, step, std::move(what)});
}

}  // namespace ina::embed
