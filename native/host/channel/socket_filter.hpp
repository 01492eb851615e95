// Classic BPF on sockets (socket(7)): which packets the kernel puts into a socket's queue.
#pragma once

#include <linux/filter.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <system_error>
#include <vector>

#include "host/channel/channel.hpp"

namespace ina::host {

constexpr std::uint32_t kWholePacket = 0xffffffff;  // what a filter returns; 0: drop it
constexpr std::uint32_t kUdpHeaderBytes = 8;        // a filter sees a datagram from this header on

// Throws std::system_error, which names the option: `what`.
inline void attach(int fd, int option, std::vector<sock_filter> code, const char *what) {
    const sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
    if (::setsockopt(fd, SOL_SOCKET, option, &program, sizeof program) != 0) {
        throw std::system_error(errno, std::generic_category(), what);
    }
}

// lane >> shift is the number of its thread.
inline std::uint32_t lane_shift(const LaneParts &parts) {
    std::uint32_t shift = 0;
    while (parts.lanes >> shift > parts.threads) ++shift;
    return shift;
}

}  // namespace ina::host
