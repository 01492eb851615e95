// ICMP errors of a UDP socket that is not connected. Such a socket reports them only with
// IP_RECVERR, in a queue of its own (ip(7)). That takes room from the receive buffer, and while
// anything is in it poll() does not sleep: it has to be read.
#pragma once

#include <cstdint>

namespace ina::host {

struct UdpErrors {
    std::uint64_t refused = 0;
    std::uint64_t unreachable = 0;  // any other error
};

// Takes what is in the queue, a bounded number, and counts what came as ICMP. Never blocks.
UdpErrors take_udp_errors(int fd);

}  // namespace ina::host
