#include "infer/stages.hpp"

#include <algorithm>

#include "infer/kernels.hpp"

namespace ina::infer {

Stages::Stages(const Program &program, Outbox *outbox, Sums *sums, Trace *trace)
    : program_(program), outbox_(outbox), sums_(sums), trace_(trace), blocks_(program.ring),
      first_piece_(program.stages.size()), pieces_(program.stages.size()),
      next_sum_(program.stages.size()) {
    check(program);
    for (std::size_t k = 0; k < program.stages.size(); ++k) {
        const Stage &stage = program.stages[k];
        if (!stage.is_mine) continue;
        ++stages_here_;
        for (const Edge &edge : stage.inbound) {
            first_piece_[k].push_back(pieces_[k]);
            const std::size_t values = std::size_t{stage.rows_in} * edge.columns.width();
            pieces_[k] += pieces_of(values, program.packet_values);
        }
    }
    make_room();
}

void Stages::make_room() {
    for (Block &block : blocks_) {
        block.work.resize(program_.stages.size());
        for (std::size_t k = 0; k < program_.stages.size(); ++k) {
            const Stage &stage = program_.stages[k];
            if (!stage.is_mine) continue;
            block.work[k].in.resize(stage.values_in());
            block.work[k].out.resize(stage.values_out());
            if (stage.is_summed) block.work[k].part.resize(stage.values_out());
        }
    }
}

bool Stages::is_done(std::uint64_t seq) const {
    const Block &block = *block_at(seq);
    return block.is_used && block.seq == seq && block.stages_left == 0;
}

// Null: it is over, or cannot have begun.
Stages::Block *Stages::block_for(std::uint64_t seq, const Origin &origin) {
    if (seq < base_ || seq >= base_ + program_.ring) return nullptr;
    Block *const block = block_at(seq);
    if (block->is_used && block->seq == seq) return block->origin == origin ? block : nullptr;
    if (block->is_used && (block->seq > seq || block->stages_left > 0)) return nullptr;
    block->is_used = true;
    block->seq = seq;
    block->origin = origin;
    block->attempt = 0;
    block->stages_left = stages_here_;
    for (std::size_t k = 0; k < program_.stages.size(); ++k) {
        const Stage &stage = program_.stages[k];
        if (!stage.is_mine) continue;
        block->work[k].state = State::kWaits;
        block->work[k].pieces.expect(piece_with(k) + (stage.with < 0 ? 0 : 1));
    }
    return block;
}

void Stages::begin(std::uint64_t seq, const Origin &origin, const std::int32_t *values) {
    Block *const block = block_for(seq, origin);
    if (block == nullptr) return;
    std::copy_n(values, block->work[0].in.size(), block->work[0].in.data());
    trace_->note(Mark::kCame, 0, origin.request, origin.block);
    run_stage(block, 0);
}

void Stages::on_task(const Header &header, const std::uint8_t *payload, std::size_t bytes) {
    const auto ignore = [](std::uint64_t *counter) { ++*counter; };
    if (header.stage >= program_.stages.size()) return ignore(&counters_.strays);
    const Stage &stage = program_.stages[header.stage];
    const auto from = std::find_if(stage.inbound.begin(), stage.inbound.end(),
                                   [&](const Edge &edge) { return edge.node == header.source; });
    if (!stage.is_mine || from == stage.inbound.end() || header.source != header.sender) {
        return ignore(&counters_.strays);
    }
    advance(header.base);
    Block *const block = block_for(header.seq, Origin::of(header));
    if (block == nullptr) return ignore(&counters_.stale);
    if (header.attempt > block->attempt) replay(header.seq, header.attempt);
    Work &work = block->work[header.stage];
    const Place place{stage.rows_in, stage.in, from->columns};
    const auto edge = static_cast<std::size_t>(from - stage.inbound.begin());
    if (header.piece >= pieces_of(place.values(), program_.packet_values)) {
        return ignore(&counters_.strays);
    }
    const std::uint32_t piece = first_piece_[header.stage][edge] + header.piece;
    if (work.state != State::kWaits) return ignore(&counters_.duplicates);
    if (!scatter(place, program_.packet_values, header.piece, payload, bytes, work.in.data())) {
        return ignore(&counters_.strays);
    }
    if (!work.pieces.take(piece)) return ignore(&counters_.duplicates);
    ++counters_.tasks;
    if (work.pieces.are_all()) run_stage(block, header.stage);
}

void Stages::run_stage(Block *block, std::size_t k) {
    const Stage &stage = program_.stages[k];
    Work &work = block->work[k];
    const std::int32_t *const with =
        stage.with < 0 ? nullptr : block->work[static_cast<std::size_t>(stage.with)].out.data();
    run(stage, work.in.data(), with, stage.is_summed ? work.part.data() : work.out.data());
    trace_->note(Mark::kRan, k, block->origin.request, block->origin.block);
    if (!stage.is_summed) return made(block, k);
    work.state = State::kReady;
    submit_ready(k);
}

// In the order of blocks.
void Stages::submit_ready(std::size_t k) {
    for (;; ++next_sum_[k]) {
        const std::uint64_t seq = next_sum_[k];
        Block *const block = block_at(seq);
        if (!block->is_used || block->seq != seq || block->work[k].state != State::kReady) return;
        Work &work = block->work[k];
        work.state = State::kSumming;
        sums_->submit(k, seq, work.part.data(), work.out.data(), work.out.size());
    }
}

void Stages::on_sum(std::size_t k, std::uint64_t seq) {
    Block *const block = block_at(seq);
    if (block->seq != seq || block->work[k].state != State::kSumming) return;
    finish(program_.stages[k], block->work[k].out.data());
    trace_->note(Mark::kSummed, k, block->origin.request, block->origin.block);
    made(block, k);
}

void Stages::made(Block *block, std::size_t k) {
    block->work[k].state = State::kDone;
    if (--block->stages_left == 0) ++counters_.blocks;
    send_on(*block, k);
    if (k + 1 < program_.stages.size()) take_own(block, k + 1);
    for (std::size_t later = k + 1; later < program_.stages.size(); ++later) {
        const Stage &stage = program_.stages[later];
        if (stage.is_mine && stage.with == static_cast<int>(k))
            took(block, later, piece_with(later));
    }
}

// Behind those from others and from here: that the values are here that it adds.
std::uint32_t Stages::piece_with(std::size_t k) const {
    return pieces_[k] + (program_.stages[k].own.is_empty() ? 0 : 1);
}

void Stages::took(Block *block, std::size_t k, std::uint32_t piece) {
    Pieces &pieces = block->work[k].pieces;
    if (pieces.take(piece) && pieces.are_all()) run_stage(block, k);
}

// What comes from this node's stage before.
void Stages::take_own(Block *block, std::size_t k) {
    const Stage &stage = program_.stages[k];
    if (!stage.is_mine || stage.own.is_empty()) return;
    Work &work = block->work[k];
    const Stage &before = program_.stages[k - 1];
    const std::int32_t *from = block->work[k - 1].out.data() + (stage.own.low - before.out.low);
    std::int32_t *to = work.in.data() + (stage.own.low - stage.in.low);
    for (std::size_t row = 0; row < stage.rows_in; ++row) {
        std::copy_n(from, stage.own.width(), to);
        from += before.out.width();
        to += stage.in.width();
    }
    took(block, k, pieces_[k]);
}

void Stages::send_on(const Block &block, std::size_t k) {
    const Stage &stage = program_.stages[k];
    const std::int32_t *const values = block.work[k].out.data();
    Header header;
    header.stage = static_cast<std::uint16_t>(k + 1);
    for (const Edge &edge : stage.outbound) {
        send(block, program_.nodes[edge.node], header, {stage.rows_out, stage.out, edge.columns},
             values);
    }
    if (!stage.is_last || block.seq % stage.turns != stage.turn) return;
    header.kind = Kind::kAnswer;
    send(block, block.origin.client, header, {stage.rows_out, stage.out, stage.out}, values);
    trace_->note(Mark::kAnswered, k, block.origin.request, block.origin.block);
}

void Stages::send(const Block &block, const Peer &to, Header header, const Place &place,
                  const std::int32_t *values) {
    header.sender = header.source = program_.node;
    header.key = program_.key;
    header.plan = program_.plan;
    header.seq = block.seq;
    header.base = base_;
    header.attempt = block.attempt;
    block.origin.store(&header);
    const std::uint32_t pieces = pieces_of(place.values(), program_.packet_values);
    for (header.piece = 0; header.piece < pieces; ++header.piece) {
        const Piece part = piece_of(place.values(), program_.packet_values, header.piece);
        gather(place, part, values, outbox_->open(to, header, part.count * kValueBytes));
        outbox_->seal();
    }
}

void Stages::replay(std::uint64_t seq, std::uint16_t attempt) {
    Block *const block = block_at(seq);
    if (!block->is_used || block->seq != seq || attempt <= block->attempt) return;
    block->attempt = attempt;
    ++counters_.replays;
    for (std::size_t k = 0; k < program_.stages.size(); ++k) {
        if (block->work[k].state == State::kDone && program_.stages[k].is_mine) {
            send_on(*block, k);
        }
    }
}

}  // namespace ina::infer
