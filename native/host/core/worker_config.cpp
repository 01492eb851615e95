#include "host/core/worker_config.hpp"

#include <stdexcept>
#include <string>

#include "common/ina_wire.hpp"

namespace ina::host {
namespace {

void require(bool holds, const std::string &what, std::int64_t got) {
    if (!holds) throw std::invalid_argument(what + ", got " + std::to_string(got));
}

}  // namespace

std::uint32_t window_of(const WorkerConfig &config) {
    require(config.slots >= 2 && config.slots <= 65536, "slots must be 2..65536", config.slots);
    // A power of two, so that seq mod 2W stays continuous when sequence numbers wrap at 2^32.
    std::uint32_t window = 1;
    while (window * 4 <= config.slots) window *= 2;
    return window;
}

WorkerConfig checked(WorkerConfig config) {
    const std::uint32_t window = window_of(config);
    const int workers = config.world_size;
    require(workers >= 1 && workers <= wire::kMaxWorkers, "world_size must be 1..32", workers);
    require(config.rank >= 0 && config.rank < workers,
            "rank must be 0.." + std::to_string(workers - 1), config.rank);
    require(config.values_per_packet >= 1 && config.values_per_packet <= 4095,
            "values_per_packet must be 1..4095", config.values_per_packet);
    require(config.first_seq % (2 * window) == 0, "first_seq must be a multiple of 2 W",
            config.first_seq);
    const std::uint32_t shares = config.shares;
    require(shares >= 1 && (shares & (shares - 1)) == 0 && shares <= window,
            "shares must be a power of two, at most W = " + std::to_string(window), shares);
    require(config.share < shares, "share must be 0.." + std::to_string(shares - 1), config.share);
    if (config.expected_bitmap == 0) {
        config.expected_bitmap = static_cast<std::uint32_t>((std::uint64_t{1} << workers) - 1);
    }
    if (config.summands == 0) config.summands = workers;
    if (config.divisor == 0) config.divisor = workers;
    require((config.expected_bitmap >> config.rank & 1u) != 0,
            "expected_bitmap must have the bit of rank " + std::to_string(config.rank),
            config.expected_bitmap);
    require(config.summands >= 1 && config.summands <= 65535, "summands must be 1..65535",
            config.summands);
    require(config.divisor >= 1, "divisor must be 1 or more", config.divisor);
    return config;
}

}  // namespace ina::host
