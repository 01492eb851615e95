#include "testing/loopback.hpp"

#include <errno.h>
#include <netinet/ip.h>
#include <sys/socket.h>
#include <unistd.h>

#include <system_error>

#include "common/peer_socket.hpp"

namespace ina::testing {

namespace {

constexpr int kUdpSegment = 103;  // linux/udp.h
constexpr std::size_t kMostSends = 8;
constexpr std::size_t kMostBytes = 60'000;  // of all
constexpr std::size_t kMostSegments = 64;   // of a train; the kernel's limit

int new_socket() {
    const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) throw std::system_error(errno, std::generic_category(), "socket");
    return fd;
}

sockaddr_in loopback(std::uint16_t udp_port) { return socket_address({INADDR_LOOPBACK, udp_port}); }

void set_option(int fd, int level, int name, int value) {
    ::setsockopt(fd, level, name, &value, sizeof value);
}

}  // namespace

std::vector<Sent> send_datagrams(Input *input, std::uint16_t udp_port) {
    std::vector<Sent> sent;
    const int fd = new_socket();
    const sockaddr_in to = loopback(udp_port);
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < kMostSends && !input->is_empty() && bytes < kMostBytes; ++i) {
        const auto tos = static_cast<std::uint8_t>(input->byte());
        const std::size_t segment_bytes = input->number(2);
        const Bytes whole = input->take(std::min<std::size_t>(input->number(2), kMostBytes));
        bytes += whole.size();
        const bool is_train = segment_bytes > 0 && segment_bytes < whole.size() &&
                              whole.size() <= kMostSegments * segment_bytes;
        set_option(fd, IPPROTO_IP, IP_TOS, tos);
        set_option(fd, IPPROTO_UDP, kUdpSegment, is_train ? static_cast<int>(segment_bytes) : 0);
        const ssize_t done = ::sendto(fd, whole.data(), whole.size(), 0,
                                      reinterpret_cast<const sockaddr *>(&to), sizeof to);
        if (done < 0) continue;  // longer than a datagram, or a segment longer than the MTU
        const std::size_t step = is_train ? segment_bytes : std::max<std::size_t>(whole.size(), 1);
        std::size_t at = 0;
        do {
            const std::size_t end = std::min(at + step, whole.size());
            sent.push_back({Bytes(whole.data() + at, whole.data() + end), tos});
            at = end;
        } while (at < whole.size());
    }
    ::close(fd);
    return sent;
}

LoopbackSocket::LoopbackSocket() : fd_(new_socket()) {
    const sockaddr_in address = loopback(0);
    if (::bind(fd_, reinterpret_cast<const sockaddr *>(&address), sizeof address) < 0) {
        ::close(fd_);
        throw std::system_error(errno, std::generic_category(), "bind");
    }
    set_option(fd_, IPPROTO_IP, IP_RECVTOS, 1);
}

LoopbackSocket::~LoopbackSocket() { ::close(fd_); }

std::uint16_t LoopbackSocket::udp_port() const {
    sockaddr_in address{};
    socklen_t bytes = sizeof address;
    ::getsockname(fd_, reinterpret_cast<sockaddr *>(&address), &bytes);
    return ntohs(address.sin_port);
}

}  // namespace ina::testing
