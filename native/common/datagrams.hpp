// A UDP socket that is read and written in batches, for services with threads of their own.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/peer.hpp"
#include "common/peer_socket.hpp"

namespace ina {

// Packets that have come.
class Datagrams {
  public:
    static constexpr std::size_t kBatch = 64;

    // Longer packets are cut.
    explicit Datagrams(std::size_t packet_bytes)
        : bytes_(packet_bytes), memory_(kBatch * packet_bytes) {
        for (std::size_t i = 0; i < kBatch; ++i) {
            vectors_[i] = {memory_.data() + i * bytes_, bytes_};
            messages_[i].msg_hdr.msg_iov = &vectors_[i];
            messages_[i].msg_hdr.msg_iovlen = 1;
        }
    }
    Datagrams(const Datagrams &) = delete;
    Datagrams &operator=(const Datagrams &) = delete;

    // Calls take(from, packet, bytes) for what is there, without waiting. True: more may be.
    template <typename Take>
    bool receive(int fd, const Take &take) {
        for (std::size_t i = 0; i < kBatch; ++i) {
            messages_[i].msg_hdr.msg_name = &sources_[i];
            messages_[i].msg_hdr.msg_namelen = sizeof sources_[i];
        }
        const int count = ::recvmmsg(fd, messages_.data(), kBatch, MSG_DONTWAIT, nullptr);
        for (int i = 0; i < count; ++i) {
            const auto at = static_cast<std::size_t>(i);
            take(peer_at(sources_[at]), memory_.data() + at * bytes_,
                 std::size_t{messages_[at].msg_len});
        }
        return count == static_cast<int>(kBatch);
    }

  private:
    std::size_t bytes_;
    std::vector<std::uint8_t> memory_;
    std::array<sockaddr_in, kBatch> sources_{};
    std::array<iovec, kBatch> vectors_{};
    std::array<mmsghdr, kBatch> messages_{};
};

struct Datagram {
    Peer to;  // nobody: whom the socket is connected to
    const std::uint8_t *data;
    std::size_t bytes;
};

// Sends what packet(i) names, for i below `count`. Returns how many the kernel did not take: they
// are lost.
template <typename Packet>
std::size_t send_datagrams(int fd, std::size_t count, const Packet &packet) {
    constexpr std::size_t kBatch = Datagrams::kBatch;
    std::array<mmsghdr, kBatch> messages;
    std::array<iovec, kBatch> vectors;
    std::array<sockaddr_in, kBatch> names;
    std::size_t lost = 0;
    for (std::size_t done = 0; done < count;) {
        const std::size_t now = count - done < kBatch ? count - done : kBatch;
        for (std::size_t i = 0; i < now; ++i) {
            const Datagram one = packet(done + i);
            names[i] = socket_address(one.to);
            vectors[i] = {const_cast<std::uint8_t *>(one.data), one.bytes};
            messages[i] = {};
            messages[i].msg_hdr.msg_iov = &vectors[i];
            messages[i].msg_hdr.msg_iovlen = 1;
            if (!one.to.is_known()) continue;
            messages[i].msg_hdr.msg_name = &names[i];
            messages[i].msg_hdr.msg_namelen = sizeof names[i];
        }
        const int sent = ::sendmmsg(fd, messages.data(), static_cast<unsigned>(now),
                                    MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        lost += sent <= 0;
        done += sent <= 0 ? 1 : static_cast<std::size_t>(sent);
    }
    return lost;
}

}  // namespace ina
