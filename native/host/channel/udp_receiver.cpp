#include "host/channel/udp_receiver.hpp"

#include <netinet/in.h>
#include <netinet/ip.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace ina::host {
namespace {

constexpr int kUdpGro = 104;  // from linux/udp.h, which older libc headers do not carry
constexpr std::size_t kTrains = 8;
constexpr std::size_t kBytes = 65536;

}  // namespace

struct UdpReceiver::Area {
    std::array<std::array<std::uint8_t, kBytes>, kTrains> buffers;
    std::array<std::array<std::uint8_t, 64>, kTrains> controls;
    std::array<iovec, kTrains> vectors;
    std::array<mmsghdr, kTrains> messages;
};

bool UdpReceiver::ask_for_trains(int fd) {
    const int on = 1;
    return ::setsockopt(fd, IPPROTO_UDP, kUdpGro, &on, sizeof on) == 0;
}

UdpReceiver::UdpReceiver() : area_(std::make_unique<Area>()) {}

UdpReceiver::~UdpReceiver() = default;

bool UdpReceiver::is_full() const { return used_ == kTrains; }

bool UdpReceiver::read(int fd, std::vector<Arrival> *arrivals) {
    Area &area = *area_;
    for (std::size_t i = used_; i < kTrains; ++i) {
        area.vectors[i] = {area.buffers[i].data(), kBytes};
        msghdr &header = area.messages[i].msg_hdr;
        header = {};
        header.msg_iov = &area.vectors[i];
        header.msg_iovlen = 1;
        header.msg_control = area.controls[i].data();
        header.msg_controllen = area.controls[i].size();
    }
    const int count = ::recvmmsg(fd, area.messages.data() + used_,
                                 static_cast<unsigned>(kTrains - used_), MSG_DONTWAIT, nullptr);
    if (count < 0) return false;
    const std::size_t end = used_ + static_cast<std::size_t>(count);
    for (; used_ < end; ++used_) {
        const std::size_t bytes = area.messages[used_].msg_len;
        std::size_t packet_bytes = kBytes;  // of all but the last, which may be shorter
        bool ip_marked = false;
        msghdr &header = area.messages[used_].msg_hdr;
        for (cmsghdr *entry = CMSG_FIRSTHDR(&header); entry != nullptr;
             entry = CMSG_NXTHDR(&header, entry)) {
            if (entry->cmsg_level == IPPROTO_UDP && entry->cmsg_type == kUdpGro) {
                int segment_bytes = 0;  // the kernel passes an int
                std::memcpy(&segment_bytes, CMSG_DATA(entry), sizeof segment_bytes);
                if (segment_bytes > 0) packet_bytes = static_cast<std::size_t>(segment_bytes);
            } else if (entry->cmsg_level == IPPROTO_IP && entry->cmsg_type == IP_TOS) {
                ip_marked = (*CMSG_DATA(entry) & IPTOS_ECN_MASK) == IPTOS_ECN_CE;
            }
        }
        std::size_t offset = 0;
        do {  // an empty datagram is one packet, too
            const std::size_t here = std::min(bytes - offset, packet_bytes);
            arrivals->push_back({area.buffers[used_].data() + offset, here, ip_marked});
            offset += here;
        } while (offset < bytes);
    }
    return true;
}

}  // namespace ina::host
