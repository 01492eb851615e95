#include "host/channel/udp_error_queue.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ctime>

#include <linux/errqueue.h>  // needs struct timespec

namespace ina::host {
namespace {

constexpr int kMostErrors = 256;  // at a time; the others make the next poll() return at once

void count(const sock_extended_err &error, UdpErrors *errors) {
    if (error.ee_origin != SO_EE_ORIGIN_ICMP) return;  // this host's: send() has seen it
    if (error.ee_errno == ECONNREFUSED) {
        ++errors->refused;
    } else {
        ++errors->unreachable;
    }
}

}  // namespace

UdpErrors take_udp_errors(int fd) {
    UdpErrors errors;
    for (int taken = 0; taken < kMostErrors; ++taken) {
        // Also the address of who reported it comes, behind the error. The packet itself is cut.
        alignas(cmsghdr) std::array<std::uint8_t, 256> control;
        msghdr message{};
        message.msg_control = control.data();
        message.msg_controllen = control.size();
        if (::recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) break;
        for (cmsghdr *entry = CMSG_FIRSTHDR(&message); entry != nullptr;
             entry = CMSG_NXTHDR(&message, entry)) {
            if (entry->cmsg_level != IPPROTO_IP || entry->cmsg_type != IP_RECVERR) continue;
            sock_extended_err error{};
            std::memcpy(&error, CMSG_DATA(entry), sizeof error);
            count(error, &errors);
        }
    }
    return errors;
}

}  // namespace ina::host
