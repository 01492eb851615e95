#include "switch/afpacket_port.hpp"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <system_error>

#include "switch/frame.hpp"
#include "switch/offload.hpp"

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23
#endif

namespace ina::sw {

namespace {
constexpr size_t kVlanTagBytes = 4;
constexpr size_t kMacBytes = 12;  // both addresses: the tag goes behind them
constexpr size_t kScratchBytes = kVlanTagBytes + 65536 + 64;
constexpr size_t kMaxMessages = 64;
constexpr int kSocketBufferBytes = 32 << 20;

void require_option(int fd, int level, int name, const void *value, size_t bytes) {
    if (setsockopt(fd, level, name, value, static_cast<socklen_t>(bytes)) < 0)
        throw std::system_error(errno, std::generic_category(), "setsockopt");
}
}  // namespace

AfPacketPort::AfPacketPort(uint32_t number, const std::string &interface, double loss_probability,
                           uint64_t loss_seed)
    : Port(number, loss_probability, loss_seed), scratch_(new uint8_t[kScratchBytes]) {
    const unsigned index = if_nametoindex(interface.c_str());
    if (index == 0) throw std::system_error(errno, std::generic_category(), "if_nametoindex");
    // Protocol 0: nothing arrives before bind(), so no other interface's frames get in.
    fd_ = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd_ < 0) throw std::system_error(errno, std::generic_category(), "socket");
    try {
        configure(static_cast<int>(index));
    } catch (...) {
        ::close(fd_);
        throw;
    }
}

AfPacketPort::~AfPacketPort() { AfPacketPort::close(); }

void AfPacketPort::close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
}

void AfPacketPort::configure(int interface_index) {
    const int on = 1;
    require_option(fd_, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof on);
    require_option(fd_, SOL_PACKET, PACKET_AUXDATA, &on, sizeof on);
    // Linux 4.20; receive() looks at the packet type on older ones.
    setsockopt(fd_, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on);
    const int bytes = kSocketBufferBytes;
    setsockopt(fd_, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes);
    setsockopt(fd_, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes);
    packet_mreq membership{};
    membership.mr_ifindex = interface_index;
    membership.mr_type = PACKET_MR_PROMISC;
    require_option(fd_, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &membership, sizeof membership);
    sockaddr_ll local{};
    local.sll_family = AF_PACKET;
    local.sll_protocol = htons(ETH_P_ALL);
    local.sll_ifindex = interface_index;
    if (bind(fd_, reinterpret_cast<sockaddr *>(&local), sizeof local) < 0)
        throw std::system_error(errno, std::generic_category(), "bind");
}

void AfPacketPort::receive(FrameBatch *batch) {
    while (batch->has_room()) {
        VnetHeader offload{};
        iovec parts[2] = {{&offload, sizeof offload},
                          {scratch_.get() + kVlanTagBytes, kScratchBytes - kVlanTagBytes}};
        sockaddr_ll from;
        alignas(cmsghdr) uint8_t control[CMSG_SPACE(sizeof(tpacket_auxdata))];
        msghdr message{};
        message.msg_name = &from;
        message.msg_namelen = sizeof from;
        message.msg_iov = parts;
        message.msg_iovlen = 2;
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        const ssize_t bytes = recvmsg(fd_, &message, 0);
        if (bytes < 0 && errno == EINTR) continue;
        if (bytes < 0) return;  // EAGAIN, or ENETDOWN: the interface went away
        if (from.sll_pkttype == PACKET_OUTGOING) continue;
        if (static_cast<size_t>(bytes) < sizeof offload + kEthernetBytes ||
            (message.msg_flags & MSG_TRUNC)) {
            counters_.malformed_packets.add(1);
            continue;
        }
        accept(message, offload, static_cast<size_t>(bytes) - sizeof offload, batch);
    }
}

void AfPacketPort::accept(const msghdr &message, const VnetHeader &offload, size_t bytes,
                          FrameBatch *batch) {
    uint8_t *frame = scratch_.get() + kVlanTagBytes;
    VnetHeader header = offload;
    // Its sender's kernel left the checksum to a card, or this one's card has checked it.
    bool checked = header.flags & (kNeedsChecksum | kChecksumValid);
    auto *c = CMSG_FIRSTHDR(&message);
    if (c && c->cmsg_level == SOL_PACKET && c->cmsg_type == PACKET_AUXDATA) {
        tpacket_auxdata aux;
        std::memcpy(&aux, CMSG_DATA(c), sizeof aux);
        // Not TP_STATUS_CSUM_VALID: before Linux 6.1 it says only that the card made a sum.
        checked = checked || aux.tp_status & TP_STATUS_CSUMNOTREADY;
        if (aux.tp_status & TP_STATUS_VLAN_VALID) {  // the kernel took the tag out
            std::memmove(frame - kVlanTagBytes, frame, kMacBytes);
            frame -= kVlanTagBytes;
            bytes += kVlanTagBytes;
            const bool named = aux.tp_status & TP_STATUS_VLAN_TPID_VALID;
            store_be16(frame + kMacBytes, named ? aux.tp_vlan_tpid : ETH_P_8021Q);
            store_be16(frame + kMacBytes + 2, aux.tp_vlan_tci);
            header.csum_start = static_cast<uint16_t>(header.csum_start + kVlanTagBytes);
        }
    }
    size_t packets = 1;
    if (header.gso_type != kGsoNone) {
        packets = split_segments(header, frame, bytes, number(), batch,
                                 [this] { return !loses_arrival(); });
        if (packets == 0) counters_.malformed_packets.add(1);
    } else if ((header.flags & kNeedsChecksum) && !complete_checksum(header, frame, bytes)) {
        counters_.malformed_packets.add(1);
    } else if (!checked && has_wrong_checksum(frame, bytes)) {
        counters_.wrong_checksum_packets.add(1);
    } else if (!loses_arrival()) {
        uint8_t *space = batch->reserve(bytes);
        std::memcpy(space, frame, bytes);
        batch->commit(bytes, number(), batch->now_ns);
    }
    counters_.rx_packets.add(packets);
    counters_.rx_bytes.add(bytes);
}

void AfPacketPort::transmit(const std::vector<ina_packet_out> &packets) {
    static const VnetHeader kPlain{};  // nothing left to the card
    const uint64_t deadline_ns = monotonic_ns() + kSendPatienceNs;
    bool blocked = false;
    size_t sent = 0;
    while (sent < packets.size()) {
        mmsghdr messages[kMaxMessages] = {};
        iovec parts[kMaxMessages][2];
        const size_t count = std::min(packets.size() - sent, kMaxMessages);
        for (size_t i = 0; i < count; ++i) {
            parts[i][0] = {const_cast<VnetHeader *>(&kPlain), sizeof kPlain};
            parts[i][1] = {packets[sent + i].data, packets[sent + i].length};
            messages[i].msg_hdr.msg_iov = parts[i];
            messages[i].msg_hdr.msg_iovlen = 2;
        }
        const int done = sendmmsg(fd_, messages, static_cast<unsigned>(count), MSG_DONTWAIT);
        if (done > 0) {
            for (int i = 0; i < done; ++i) count_sent(1, packets[sent++].length);
            continue;
        }
        if (errno == EINTR) continue;
        if (errno == EAGAIN || errno == ENOBUFS) {
            blocked = blocked || !wait_writable(fd_, deadline_ns);
            if (!blocked) continue;
            counters_.blocked_packets.add(1);
        } else {
            counters_.failed_packets.add(1);  // over the MTU, or the interface is down
        }
        ++sent;
    }
}

void AfPacketPort::extra_stats(std::vector<std::pair<std::string, uint64_t>> *stats) const {
    tpacket_stats drops{};
    socklen_t bytes = sizeof drops;
    // Reading resets the kernel's count: the sum is kept here.
    if (getsockopt(fd_, SOL_PACKET, PACKET_STATISTICS, &drops, &bytes) == 0)
        kernel_drop_packets_.fetch_add(drops.tp_drops);
    stats->emplace_back("kernel_drop_packets", kernel_drop_packets_.load());
}

}  // namespace ina::sw
