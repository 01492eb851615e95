// Datagrams and trains at a UDP port of the switch, and at a worker's socket: each arrives as it
// was sent, once, in order.
#include <netinet/in.h>

#include <cstring>

#include "common/ina_wire.hpp"
#include "host/channel/udp_receiver.hpp"
#include "switch/frame.hpp"
#include "switch/udp_port.hpp"
#include "testing/doors.hpp"
#include "testing/loopback.hpp"

namespace ina::testing {

namespace {

constexpr int kSocketBufferBytes = 1 << 20;

bool are_equal(const Bytes &bytes, const std::uint8_t *data, std::size_t count) {
    return bytes.size() == count && (count == 0 || std::memcmp(bytes.data(), data, count) == 0);
}

}  // namespace

void enter_udp_port(Input input) {
    sw::UdpPort port(1, INADDR_LOOPBACK, 0, wire::kUdpPort, 0.0, 0, kSocketBufferBytes);
    const std::vector<Sent> sent = send_datagrams(&input, port.bound().udp_port);
    sw::FrameBatch batch;
    std::size_t arrived = 0;
    for (;;) {
        port.receive(&batch);
        if (batch.packets().empty()) break;
        for (const ina_packet_in &packet : batch.packets()) {
            promise(arrived < sent.size(), "no more frames than datagrams");
            const Sent &one = sent[arrived++];
            sw::Datagram datagram;
            promise(sw::parse_udp_frame(packet.data, packet.length, &datagram),
                    "each datagram becomes a frame");
            promise(are_equal(one.payload, datagram.payload, datagram.payload_bytes),
                    "a frame holds what was sent");
            promise(datagram.destination.udp_port == wire::kUdpPort &&
                        datagram.source.ipv4 == INADDR_LOOPBACK && datagram.tos == one.tos,
                    "a frame is from whom it came");
        }
        batch.clear();
    }
    promise(arrived == sent.size(), "no datagram is lost between socket and frame");
    promise(port.counters().rx_packets.get() == arrived, "each is counted");
}

void enter_udp_receiver(Input input) {
    const LoopbackSocket socket;
    host::UdpReceiver::ask_for_trains(socket.fd());
    const std::vector<Sent> sent = send_datagrams(&input, socket.udp_port());
    host::UdpReceiver receiver;
    std::vector<host::Arrival> arrivals;
    std::size_t arrived = 0;
    for (;;) {
        receiver.clear();
        arrivals.clear();
        receiver.read(socket.fd(), &arrivals);
        if (arrivals.empty()) break;
        for (const host::Arrival &arrival : arrivals) {
            promise(arrived < sent.size(), "no more packets than datagrams");
            const Sent &one = sent[arrived++];
            promise(are_equal(one.payload, arrival.data, arrival.bytes),
                    "a packet holds what was sent");
            promise(arrival.ip_marked == ((one.tos & 3) == 3), "and the mark that it had");
        }
    }
    promise(arrived == sent.size(), "no datagram is lost between socket and packet");
}

}  // namespace ina::testing
