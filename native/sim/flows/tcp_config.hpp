// How the hosts at both ends of TCP connections are set up.
#pragma once

#include <cstdint>
#include <memory>

#include "sim/flows/tcp_window.hpp"

namespace ina::sim {

enum class TcpAlgorithm : std::uint8_t { kCubic, kDctcp };

struct TcpConfig {
    TcpAlgorithm algorithm = TcpAlgorithm::kCubic;
    // Data is ECN-capable; DCTCP's always is.
    bool ecn = false;
    std::uint8_t dscp = 0;
    std::uint32_t mss_bytes = 1460;
    std::uint32_t initial_window_segments = 10;            // RFC 6928
    std::int64_t receive_window_bytes = (16 << 20) - 256;  // as far as the header reaches
    std::int64_t initial_rto_ns = 10'000'000;  // before the first round trip, as the next two
    std::int64_t min_rto_ns = 10'000'000;      // RFC 6298 has a second, data centres 10 ms
    std::int64_t max_rto_ns = 60'000'000'000;
    // Every second segment is acknowledged at once, others after so long (RFC 1122).
    std::int64_t delayed_ack_ns = 500'000;
    // So many timeouts on end end the connection.
    std::uint32_t most_timeouts = 15;

    bool is_ecn() const { return ecn || algorithm == TcpAlgorithm::kDctcp; }
};

std::unique_ptr<TcpWindow> make_tcp_window(const TcpConfig &config);

}  // namespace ina::sim
