// Peers as the kernel's sockets name them.
#pragma once

#include <netinet/in.h>

#include "common/peer.hpp"

namespace ina {

inline sockaddr_in socket_address(const Peer &peer) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(peer.ipv4);
    address.sin_port = htons(peer.udp_port);
    return address;
}

inline Peer peer_at(const sockaddr_in &address) {
    return {ntohl(address.sin_addr.s_addr), ntohs(address.sin_port)};
}

}  // namespace ina
