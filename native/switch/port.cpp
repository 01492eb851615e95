#include "switch/port.hpp"

#include <poll.h>
#include <time.h>

#include <algorithm>

namespace ina::sw {

Port::Port(uint32_t number, double loss_probability, uint64_t loss_seed)
    : number_(number),
      // Distinct streams for each port and direction; SplitMix64 scrambles neighbouring seeds.
      loss_in_(loss_probability, loss_seed * 2654435761u + number * 2ull),
      loss_out_(loss_probability, (loss_seed * 2654435761u + number * 2ull + 1) ^ (1ull << 63)) {}

void Port::send(std::vector<ina_packet_out> *packets) {
    if (loss_out_.never()) {
        leave(*packets);
        return;
    }
    const auto kept = std::remove_if(packets->begin(), packets->end(),
                                     [&](const ina_packet_out &) { return loss_out_.strikes(); });
    counters_.loss_out_packets.add(static_cast<uint64_t>(packets->end() - kept));
    packets->erase(kept, packets->end());
    leave(*packets);
}

void Port::leave(const std::vector<ina_packet_out> &packets) {
    if (packets.empty()) return;
    if (delay_.delay_ns == 0) {
        transmit(packets);
        return;
    }
    if (const size_t left_out = delay_.put(packets, monotonic_ns()))
        counters_.blocked_packets.add(left_out);
}

void Port::send_due(uint64_t now_ns) {
    const std::vector<ina_packet_out> &packets = delay_.due(now_ns);
    if (packets.empty()) return;
    transmit(packets);
    delay_.drop(packets.size());
}

bool Port::loses_arrival() {
    if (!loss_in_.strikes()) return false;
    counters_.loss_in_packets.add(1);
    return true;
}

uint64_t monotonic_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

bool wait_writable(int fd, uint64_t deadline_ns) {
    const uint64_t now = monotonic_ns();
    if (now >= deadline_ns) return false;
    pollfd waiting{fd, POLLOUT, 0};
    const int timeout_ms = static_cast<int>((deadline_ns - now + 999'999) / 1'000'000);
    return poll(&waiting, 1, timeout_ms) > 0;
}

}  // namespace ina::sw
