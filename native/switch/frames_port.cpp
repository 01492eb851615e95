#include "switch/frames_port.hpp"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <system_error>

#include "common/peer_socket.hpp"

namespace ina::sw {

namespace {
constexpr size_t kMostFrameBytes = 65536;
constexpr size_t kMostPeers = 1024;  // who else sends is heard, and gets nothing
constexpr int kSocketBufferBytes = 8 << 20;
constexpr size_t kMacBytes = 6;

uint64_t mac_at(const uint8_t *p) {
    return static_cast<uint64_t>(load_be16(p)) << 32 | load_be32(p + 2);
}
bool is_group(const uint8_t *mac) { return mac[0] & 1; }
}  // namespace

FramesPort::FramesPort(uint32_t number, uint32_t address, uint16_t udp_port,
                       double loss_probability, uint64_t loss_seed)
    : Port(number, loss_probability, loss_seed), received_(new uint8_t[kMostFrameBytes]) {
    fd_ = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd_ < 0) throw std::system_error(errno, std::generic_category(), "socket");
    sockaddr_in local = socket_address({address, udp_port});
    socklen_t bytes = sizeof local;
    if (bind(fd_, reinterpret_cast<sockaddr *>(&local), sizeof local) < 0 ||
        getsockname(fd_, reinterpret_cast<sockaddr *>(&local), &bytes) < 0) {
        const int error = errno;
        close();
        throw std::system_error(error, std::generic_category(), "bind");
    }
    bound_ = peer_at(local);
    for (const int name : {SO_RCVBUF, SO_SNDBUF})
        setsockopt(fd_, SOL_SOCKET, name, &kSocketBufferBytes, sizeof kSocketBufferBytes);
}

FramesPort::~FramesPort() { FramesPort::close(); }

void FramesPort::close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
}

void FramesPort::learn(const uint8_t *frame, const Peer &from) {
    const uint8_t *const source = frame + kMacBytes;
    if (is_group(source)) return;
    if (std::find(peers_.begin(), peers_.end(), from) == peers_.end()) {
        if (peers_.size() == kMostPeers) return;
        peers_.push_back(from);
    }
    const uint64_t mac = mac_at(source);
    if (by_mac_.size() < kMostPeers || by_mac_.count(mac) != 0) by_mac_[mac] = from;
}

void FramesPort::receive(FrameBatch *batch) {
    while (batch->has_room()) {
        sockaddr_in from;
        socklen_t from_bytes = sizeof from;
        const ssize_t bytes = recvfrom(fd_, received_.get(), kMostFrameBytes, 0,
                                       reinterpret_cast<sockaddr *>(&from), &from_bytes);
        if (bytes < 0 && errno == EINTR) continue;
        if (bytes < 0) return;  // EAGAIN; anything else is about a datagram sent earlier
        counters_.rx_packets.add(1);
        counters_.rx_bytes.add(static_cast<uint64_t>(bytes));
        if (static_cast<size_t>(bytes) < kEthernetBytes) {
            counters_.malformed_packets.add(1);
            continue;
        }
        learn(received_.get(), peer_at(from));
        if (has_wrong_checksum(received_.get(), static_cast<size_t>(bytes))) {
            counters_.wrong_checksum_packets.add(1);
            continue;
        }
        if (loses_arrival()) continue;
        uint8_t *frame = batch->reserve(static_cast<size_t>(bytes));
        std::memcpy(frame, received_.get(), static_cast<size_t>(bytes));
        batch->commit(static_cast<size_t>(bytes), number(), batch->now_ns);
    }
}

void FramesPort::transmit(const std::vector<ina_packet_out> &packets) {
    for (const ina_packet_out &packet : packets) {
        if (packet.length < kEthernetBytes) {
            counters_.undeliverable_packets.add(1);
            continue;
        }
        const auto found = by_mac_.find(mac_at(packet.data));
        if (found != by_mac_.end()) {
            deliver(packet, found->second);
            continue;
        }
        // To all, as an Ethernet switch does.
        if (peers_.empty()) counters_.undeliverable_packets.add(1);
        for (const Peer &peer : peers_) deliver(packet, peer);
    }
}

void FramesPort::deliver(const ina_packet_out &packet, const Peer &to) {
    const sockaddr_in address = socket_address(to);
    const uint64_t deadline_ns = monotonic_ns() + kSendPatienceNs;
    while (true) {
        const ssize_t sent = sendto(fd_, packet.data, packet.length, MSG_DONTWAIT,
                                    reinterpret_cast<const sockaddr *>(&address), sizeof address);
        if (sent >= 0) {
            count_sent(1, packet.length);
            return;
        }
        if (errno == EINTR) continue;
        if ((errno == EAGAIN || errno == ENOBUFS) && wait_writable(fd_, deadline_ns)) continue;
        if (errno == EAGAIN || errno == ENOBUFS) {
            counters_.blocked_packets.add(1);
        } else {
            counters_.failed_packets.add(1);
        }
        return;
    }
}

}  // namespace ina::sw
