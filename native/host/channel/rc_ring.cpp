#include "host/channel/rc_ring.hpp"

#include <stdexcept>
#include <string>

namespace ina::host {
namespace {

std::uint64_t address_of(const std::uint8_t *memory) {
    return reinterpret_cast<std::uintptr_t>(memory);
}

}  // namespace

RcRing::RcRing(const RcRingPlace &place) : place_(place), port_(place.at, place.message_bytes) {
    const std::size_t frames = std::size_t{place.message_bytes} * kFrames * place.lanes;
    const std::size_t buffers = std::size_t{buffer_bytes()} * kBuffers * place.lanes;
    memory_ = port_.map(frames + buffers);
    buffers_ = memory_ + frames;
    // When queue pairs break, all that was posted ends there.
    ended_ = port_.make_cq((kPosted + kBuffers) * place.lanes + 1, true);
    for (std::uint32_t lane = 0; lane < place.lanes; ++lane) {
        out_.push_back(make_qp(true));
        in_.push_back(make_qp(false));
        out_numbers_.push_back(out_.back()->qp_num);
        in_numbers_.push_back(in_.back()->qp_num);
        for (std::uint32_t i = 0; i < kBuffers; ++i) {
            post_buffer(in_.back(), id_of(lane, i, false),
                        {address_of(buffer(lane, i)), buffer_bytes(), port_.memory_key()});
        }
    }
}

verbs::Qp *RcRing::make_qp(bool sends) {
    verbs::QpInitAttr wanted{};
    wanted.send_cq = wanted.recv_cq = ended_;
    // One of what it is not for: some devices have no queues without a place.
    wanted.cap = {sends ? kPosted : 1, sends ? 1 : kBuffers, 1, 1, 0};
    wanted.qp_type = verbs::kQpRc;
    return port_.make_qp(wanted, "queue pairs for " + std::to_string(place_.lanes) + " lanes");
}

void RcRing::connect(const RcRingPath &path) {
    if (!is_open()) throw std::runtime_error("the queue pairs are closed");
    if (path.next_in.size() != place_.lanes || path.previous_out.size() != place_.lanes) {
        throw std::invalid_argument("a ring needs a queue pair of each kind for each lane");
    }
    const RdmaPatience patience{path.timeout, path.retries};
    RdmaPath way;
    way.first_psn = way.expected_psn = path.first_psn;
    way.traffic_class = path.traffic_class;
    for (std::uint32_t lane = 0; lane < place_.lanes; ++lane) {
        way.ipv4 = path.previous_ipv4;
        way.number = path.previous_out[lane];
        port_.connect(in_[lane], way, &patience);
        way.ipv4 = path.next_ipv4;
        way.number = path.next_in[lane];
        port_.connect(out_[lane], way, &patience);
    }
    is_connected_ = true;
}

void RcRing::close() {
    port_.close();
    is_connected_ = false;
}

int RcRing::send(std::uint32_t lane, std::uint32_t index, std::uint32_t bytes) const {
    verbs::Sge piece{address_of(frame(lane, index)), bytes, port_.memory_key()};
    verbs::SendWr wanted{};
    wanted.wr_id = id_of(lane, index, true);
    wanted.sg_list = &piece;
    wanted.num_sge = 1;
    wanted.opcode = verbs::kWrSend;
    wanted.send_flags = verbs::kSendSignaled;
    verbs::SendWr *bad = nullptr;
    return post_send(out_[lane], &wanted, &bad);
}

int RcRing::post(std::uint32_t lane, std::uint32_t index) const {
    verbs::Sge piece{address_of(buffer(lane, index)), buffer_bytes(), port_.memory_key()};
    verbs::RecvWr wanted{id_of(lane, index, false), nullptr, &piece, 1};
    verbs::RecvWr *bad = nullptr;
    return post_receive(in_[lane], &wanted, &bad);
}

}  // namespace ina::host
