#include "infer/client.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace ina::infer {

Client::Client(ClientConfig config, Outbox *outbox)
    : config_(std::move(config)), outbox_(outbox),
      input_{config_.rows_in, {0, config_.columns_in}, {0, config_.columns_in}},
      first_piece_(config_.nodes.size()), rtt_(config_.rto) {
    if (config_.rows_in == 0 || config_.columns_in == 0 || config_.rows_out == 0 ||
        config_.columns_out == 0 || config_.packet_values == 0 || config_.window == 0 ||
        config_.answers.size() != config_.nodes.size()) {
        throw std::invalid_argument("rows, columns, packets and a window, and answers by node");
    }
    for (std::size_t node = 0; node < config_.answers.size(); ++node) {
        const Columns &columns = config_.answers[node];
        if (columns.low > columns.high || columns.high > config_.columns_out) {
            throw std::invalid_argument("answers are of columns that there are");
        }
        if (columns.is_empty()) continue;
        const std::size_t values = std::size_t{config_.rows_out} * columns.width();
        const std::uint32_t pieces = pieces_of(values, config_.packet_values);
        const bool is_whole = columns.width() == config_.columns_out;
        first_piece_[node] = is_whole ? 0 : pieces_;
        pieces_ = is_whole ? pieces : pieces_ + pieces;
    }
    if (pieces_ == 0) throw std::invalid_argument("nobody answers");
}

std::uint32_t Client::ask(const std::int32_t *in, std::size_t blocks, std::int32_t *out,
                          std::int64_t deadline_ns) {
    const std::uint32_t number = next_request_++;
    const Outcome outcome = blocks == 0 ? Outcome::kDone : Outcome::kPending;
    requests_[number] = {in, out, blocks, 0, blocks, deadline_ns, outcome};
    if (blocks > 0) order_.push_back(number);
    next_ns_ = INT64_MIN;  // there is something to send
    return number;
}

Outcome Client::outcome(std::uint32_t request) const {
    const auto found = requests_.find(request);
    return found == requests_.end() ? Outcome::kFailed : found->second.outcome;
}

void Client::forget(std::uint32_t request) {
    end(request, Outcome::kFailed);
    requests_.erase(request);
}

// Nothing more is sent of it, or taken for it.
void Client::end(std::uint32_t request, Outcome outcome) {
    const auto found = requests_.find(request);
    if (found == requests_.end() || found->second.outcome != Outcome::kPending) return;
    found->second.outcome = outcome;
    const auto is_its = [&](const Flight &flight) { return flight.request == request; };
    flights_.erase(std::remove_if(flights_.begin(), flights_.end(), is_its), flights_.end());
    order_.erase(std::remove(order_.begin(), order_.end(), request), order_.end());
}

void Client::poll(std::int64_t now_ns) {
    if (now_ns < next_ns_) return;
    std::vector<std::uint32_t> late;
    for (const auto &[number, request] : requests_) {
        if (request.outcome == Outcome::kPending && now_ns >= request.deadline_ns) {
            late.push_back(number);
        }
    }
    for (const std::uint32_t number : late) end(number, Outcome::kTooLate);
    for (Flight &flight : flights_) {
        if (now_ns < flight.deadline_ns) continue;
        rtt_.on_timeout(flight.attempt);
        if (flight.attempt < UINT16_MAX) ++flight.attempt;
        ++counters_.again;
        send(&flight, now_ns);
    }
    fill_window(now_ns);
    arm();
}

void Client::fill_window(std::int64_t now_ns) {
    while (flights_.size() < config_.window && !order_.empty()) {
        const std::uint32_t number = order_.front();
        Request &request = requests_.at(number);
        Flight flight;
        flight.request = number;
        flight.block = static_cast<std::uint32_t>(request.sent++);
        flight.pieces.expect(pieces_);
        ++counters_.blocks;
        send(&flight, now_ns);
        flights_.push_back(std::move(flight));
        if (request.sent == request.blocks) order_.pop_front();
    }
}

void Client::send(Flight *flight, std::int64_t now_ns) {
    flight->sent_ns = now_ns;
    flight->deadline_ns = now_ns + rtt_.timeout_ns(flight->attempt);
    Header header;
    header.sender = header.source = kClient;
    header.key = config_.key;
    header.plan = config_.plan;
    header.nonce = config_.nonce;
    header.request = flight->request;
    header.block = flight->block;
    header.attempt = flight->attempt;
    const std::int32_t *const values =
        requests_.at(flight->request).in + flight->block * input_.values();
    const std::uint32_t pieces = pieces_of(input_.values(), config_.packet_values);
    for (header.piece = 0; header.piece < pieces; ++header.piece) {
        const Piece part = piece_of(input_.values(), config_.packet_values, header.piece);
        gather(input_, part, values,
               outbox_->open(config_.entry, header, part.count * kValueBytes));
        outbox_->seal();
    }
}

void Client::arm() {
    next_ns_ = INT64_MAX;
    for (const Flight &flight : flights_) next_ns_ = std::min(next_ns_, flight.deadline_ns);
    for (const auto &[number, request] : requests_) {
        if (request.outcome == Outcome::kPending) {
            next_ns_ = std::min(next_ns_, request.deadline_ns);
        }
    }
}

std::int64_t Client::next_deadline_ns() const { return next_ns_; }

void Client::receive(const Peer &from, const std::uint8_t *packet, std::size_t bytes,
                     std::int64_t now_ns) {
    Header header;
    if (!is_whole(packet, bytes, config_.key, &header) || header.sender >= config_.nodes.size() ||
        config_.nodes[header.sender] != from || header.plan != config_.plan ||
        header.nonce != config_.nonce) {
        // An entry with another plan says so under its own number.
        const bool is_other = header.kind == Kind::kFault && from == config_.entry &&
                              header.key == config_.key && header.nonce == config_.nonce &&
                              header.stage == static_cast<std::uint16_t>(Fault::kOtherPlan);
        if (is_other) return on_fault(header);
        ++counters_.damaged;
        return;
    }
    heard_ns_ = now_ns;
    switch (header.kind) {
        case Kind::kAnswer:
            return on_answer(header, packet + kHeaderBytes, bytes - kHeaderBytes, now_ns);
        case Kind::kFault: return on_fault(header);
        case Kind::kStatus: status_ = {now_ns, header.source, header.piece}; return;
        default: ++counters_.damaged;
    }
}

void Client::on_answer(const Header &header, const std::uint8_t *payload, std::size_t bytes,
                       std::int64_t now_ns) {
    const auto flight = std::find_if(flights_.begin(), flights_.end(), [&](const Flight &one) {
        return one.request == header.request && one.block == header.block;
    });
    const Columns &columns = config_.answers[header.sender];
    if (flight == flights_.end() || columns.is_empty()) {
        ++counters_.strays;
        return;
    }
    const Columns whole{0, config_.columns_out};
    const Place place{config_.rows_out, whole, columns};
    Request &request = requests_.at(header.request);
    std::int32_t *const out =
        request.out + header.block * std::size_t{config_.rows_out} * config_.columns_out;
    if (!scatter(place, config_.packet_values, header.piece, payload, bytes, out)) {
        ++counters_.strays;
        return;
    }
    flight->pieces.take(first_piece_[header.sender] + header.piece);
    if (!flight->pieces.are_all()) return;
    if (flight->attempt == 0) {
        rtt_.on_sample(now_ns, now_ns - flight->sent_ns, false);
    } else {
        rtt_.on_ambiguous();
    }
    if (&*flight != &flights_.back()) *flight = std::move(flights_.back());
    flights_.pop_back();
    if (--request.left == 0) end(header.request, Outcome::kDone);
    next_ns_ = INT64_MIN;  // the window has room
}

void Client::on_fault(const Header &header) {
    const auto fault = static_cast<Fault>(header.stage);
    if (fault == Fault::kNone || fault > Fault::kOutOfRange) {
        ++counters_.damaged;
        return;
    }
    failure_ = {fault, header.source, static_cast<std::uint16_t>(header.piece)};
    end(header.request, Outcome::kFailed);
}

}  // namespace ina::infer
