// Datagrams and frames at the endpoints of RoCEv2 that are in this process: what is not as its ICRC
// says, or not for them, is dropped and counted; of a reliable connection each message is taken
// once, in order.
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <memory>

#include "common/peer_socket.hpp"
#include "common/roce.hpp"
#include "host/channel/ring_channel.hpp"
#include "host/channel/soft_roce_channel.hpp"
#include "switch/frame.hpp"
#include "testing/doors.hpp"
#include "testing/loopback.hpp"

namespace ina::testing {

namespace {

constexpr int kBufferBytes = 1 << 20;
constexpr std::size_t kMostSends = 24;
constexpr std::size_t kMostBytes = 2000;
constexpr std::uint32_t kOwnQp = 0x1234;
constexpr std::uint32_t kNodeQp = 0x800040;

// Two sockets that are connected to each other: the channel's, and what stands for the switch.
struct Pair {
    LoopbackSocket own, node;

    Pair() {
        join(own.fd(), node.udp_port());
        join(node.fd(), own.udp_port());
    }
    static void join(int fd, std::uint16_t port) {
        const sockaddr_in to = socket_address({INADDR_LOOPBACK, port});
        ::connect(fd, reinterpret_cast<const sockaddr *>(&to), sizeof to);
    }
    bool send(const Bytes &bytes) const {
        return ::send(node.fd(), begin_of(bytes), bytes.size(), 0) >= 0;
    }
};

Bytes datagram_of(const roce::Bth &bth, const Bytes &payload) {
    Bytes bytes(roce::kBthBytes + payload.size());
    roce::put_bth(bytes.data(), bth);
    std::copy(payload.begin(), payload.end(), bytes.begin() + roce::kBthBytes);
    return bytes;
}

void append_icrc(Bytes *bytes, std::uint32_t icrc) {
    for (int i = 0; i < 4; ++i) bytes->push_back(static_cast<std::uint8_t>(icrc >> 8 * i));
}

// What an input says of a header; most often all is right.
roce::Bth bth_from(Input *input, roce::Bth bth) {
    const std::uint8_t wrong = input->byte();
    if (wrong & 1) bth.opcode = input->byte();
    if (wrong & 2) bth.flags = input->byte();
    if (wrong & 4) bth.pkey = static_cast<std::uint16_t>(input->number(2));
    if (wrong & 8) bth.dest_qp = input->number(3);
    bth.psn = input->number(3);
    return bth;
}

bool is_right(const roce::Bth &bth, std::uint8_t opcode) {
    return bth.opcode == opcode && bth.pkey == roce::kPkey && (bth.flags & 0x3f) == 0;
}

void check_arrivals(host::Channel *channel, const std::vector<Bytes> &wanted, std::size_t others) {
    std::vector<host::Arrival> arrivals;
    std::size_t came = 0;
    for (bool more = true; more || !arrivals.empty();) {
        more = channel->receive(&arrivals);
        for (const host::Arrival &arrival : arrivals) {
            promise(came < wanted.size(), "nothing else is taken");
            const Bytes &one = wanted[came++];
            promise(one.size() == arrival.bytes && std::equal(one.begin(), one.end(), arrival.data),
                    "what is taken is what was sent");
        }
        channel->release();
    }
    promise(came == wanted.size(), "all that is right is taken");
    promise(channel->counters().damaged == others, "all else is counted");
}

}  // namespace

void enter_soft_roce(Input input) {
    const Pair pair;
    host::SoftRoceEnds ends;
    ends.own = {INADDR_LOOPBACK, pair.own.udp_port()};
    ends.own_qp = kOwnQp;
    ends.node = {INADDR_LOOPBACK, roce::kUdpPort};
    ends.node_qp = kNodeQp;
    host::SoftRoceChannel channel(
        std::make_unique<host::UdpChannel>(pair.own.fd(), kBufferBytes, false), ends, false);
    const roce::Icrc icrc({INADDR_LOOPBACK, ends.own.udp_port}, {INADDR_LOOPBACK, roce::kUdpPort});
    std::vector<Bytes> wanted;
    std::size_t others = 0;
    for (std::size_t i = 0; i < kMostSends && !input.is_empty(); ++i) {
        const bool is_raw = input.byte() & 1;
        if (is_raw) {  // no more than a chance of 2^-32 of being right
            if (pair.send(input.take(input.number(2) % kMostBytes))) ++others;
            continue;
        }
        roce::Bth usual;
        usual.dest_qp = kOwnQp;
        const roce::Bth bth = bth_from(&input, usual);
        const Bytes payload = input.take(input.number(2) % kMostBytes);
        Bytes datagram = datagram_of(bth, payload);
        append_icrc(&datagram, icrc.of(datagram.data(), datagram.size()));
        if (!pair.send(datagram)) continue;
        if (is_right(bth, roce::kUcSendOnly) && bth.dest_qp == kOwnQp) {
            wanted.push_back(payload);
        } else {
            ++others;
        }
    }
    check_arrivals(&channel, wanted, others);
}

void enter_ring(Input input) {
    constexpr std::uint32_t kLanes = 4;
    const Pair pair;
    host::RingEnds ends;
    ends.own = {0x0a800002, 9};
    ends.next = {0x0a800003, 9};
    ends.previous = {0x0a800001, 9};
    for (std::uint32_t i = 0; i < kLanes; ++i) {
        ends.own_out.push_back(16 + i);
        ends.own_in.push_back(32 + i);
        ends.next_in.push_back(48 + i);
        ends.previous_out.push_back(64 + i);
    }
    ends.first_psn = 0xffffff;
    ends.limits = {1'000'000'000, 7};
    host::RingChannel channel(pair.own.fd(), ends, kLanes, kBufferBytes);
    std::array<std::uint32_t, kLanes> next{};
    next.fill(ends.first_psn);
    std::vector<Bytes> wanted;
    std::size_t others = 0;
    for (std::size_t i = 0; i < kMostSends && !input.is_empty(); ++i) {
        const std::uint8_t kind = input.byte();
        if (kind & 1) {
            if (pair.send(input.take(input.number(2) % kMostBytes))) ++others;
            continue;
        }
        const std::uint32_t lane = (kind >> 4) % kLanes;
        roce::Bth usual;
        usual.opcode = kind & 2 ? roce::kAcknowledge : roce::kRcSendOnly;
        usual.dest_qp = kind & 2 ? ends.own_out[lane] : ends.own_in[lane];
        roce::Bth bth = bth_from(&input, usual);
        if (kind & 4) bth.psn = next[lane];
        const Bytes payload = input.take(input.number(2) % kMostBytes);
        Bytes frame(sw::kFrameHeaderBytes);
        const Bytes datagram = datagram_of(bth, payload);
        const Peer &from = kind & 2 ? ends.next : ends.previous;
        sw::write_frame_header(frame.data(), from, {ends.own.ipv4, roce::kUdpPort}, 0,
                               datagram.size() + roce::kIcrcBytes);
        frame.insert(frame.end(), datagram.begin(), datagram.end());
        append_icrc(&frame, roce::icrc_of_packet(frame.data() + sw::kEthernetBytes,
                                                 frame.size() - sw::kEthernetBytes));
        if (!pair.send(frame)) continue;
        const bool is_reply = bth.opcode == roce::kAcknowledge && (kind & 2) && bth.dest_qp >= 16 &&
                              bth.dest_qp < 16 + kLanes && payload.size() == roce::kAethBytes;
        const bool is_send = !(kind & 2) && is_right(bth, roce::kRcSendOnly) && bth.dest_qp >= 32 &&
                             bth.dest_qp < 32 + kLanes;
        if (!is_reply && !is_send) {
            ++others;
        } else if (is_send && bth.psn == next[bth.dest_qp - 32]) {
            wanted.push_back(payload);
            next[bth.dest_qp - 32] = (bth.psn + 1) & host::kPsnMask;
        }
    }
    check_arrivals(&channel, wanted, others);
}

}  // namespace ina::testing
