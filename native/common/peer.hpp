// Who sends, and who is sent to: one end of UDP datagrams. What lets packets in or addresses them
// goes by it; of the same in tables, ina/protocol/peer.py.
#pragma once

#include <cstdint>

namespace ina {

struct Peer {
    std::uint32_t ipv4 = 0;  // host byte order; 0: nobody
    std::uint16_t udp_port = 0;

    bool is_known() const { return ipv4 != 0; }
    bool operator==(const Peer &other) const {
        return ipv4 == other.ipv4 && udp_port == other.udp_port;
    }
    bool operator!=(const Peer &other) const { return !(*this == other); }
};

}  // namespace ina
