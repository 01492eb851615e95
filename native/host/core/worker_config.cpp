#include "host/core/worker_config.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "common/ina_wire.hpp"

namespace ina::host {
namespace {

void require(bool holds, const std::string &what, std::int64_t got) {
    if (!holds) throw std::invalid_argument(what + ", got " + std::to_string(got));
}

// As an Ethernet frame.
std::uint32_t frame_bytes(const WorkerConfig &config, int values) {
    constexpr std::size_t kFrameHeaderBytes = 14 + 20 + 8;  // Ethernet, IPv4, UDP
    return static_cast<std::uint32_t>(kFrameHeaderBytes + config.framing.bytes() +
                                      wire::packet_bytes(values));
}

// How many bits a root's index of a child takes in a path, one of all ones being nobody's: as
// ina.protocol.spec.index_bits says.
int root_index_bits(int children) {
    int bits = 0;
    while (children >> bits != 0) ++bits;
    return bits;
}

// One switch, whose children are the ranks.
Tree only_tree(const WorkerConfig &config, std::uint32_t window) {
    const int workers = config.world_size;
    require(workers <= wire::kMaxWorkers, "world_size without trees must be 1..32", workers);
    Tree tree;
    tree.job = config.job;
    tree.worker = config.rank;
    const int bits = root_index_bits(workers);
    tree.path = static_cast<std::uint32_t>(config.rank) << (wire::kPathBits - bits);
    tree.expected_bitmap = config.expected_bitmap;
    if (tree.expected_bitmap == 0) {
        tree.expected_bitmap = static_cast<std::uint32_t>((std::uint64_t{1} << workers) - 1);
    }
    tree.lanes = window;
    for (int rank = 0; rank < workers && !config.is_stream; ++rank) {
        tree.owners.push_back(static_cast<std::uint16_t>(rank << (wire::kOwnerBits - bits)));
    }
    return tree;
}

void check_owners(const WorkerConfig &config, const Tree &tree) {
    const std::vector<std::uint16_t> &owners = tree.owners;
    if (owners.empty()) return;
    require(owners.size() == static_cast<std::size_t>(config.world_size),
            "a tree's owners must be none or world_size = " + std::to_string(config.world_size),
            static_cast<std::int64_t>(owners.size()));
    const std::uint16_t largest = *std::max_element(owners.begin(), owners.end());
    require(largest >> wire::kOwnerBits == 0, "a tree's owners must have 12 bits", largest);
    const auto own = static_cast<std::size_t>(config.rank);
    require(static_cast<std::uint32_t>(owners[own]) << kOwnerShift == tree.path,
            "a tree's owners must have its path " + std::to_string(tree.path) + " for rank " +
                std::to_string(own),
            owners[own]);
}

void check_tree(const WorkerConfig &config, const Tree &tree, std::uint32_t next_lane) {
    const std::uint32_t window = window_of(config);
    require(tree.worker >= 0 && tree.worker < wire::kMaxWorkers, "a tree's worker must be 0..31",
            tree.worker);
    require(tree.path >> wire::kPathBits == 0, "a tree's path must have 24 bits", tree.path);
    require(tree.expected_bitmap != 0, "a tree's expected_bitmap must not be empty", 0);
    check_owners(config, tree);
    require(tree.first_lane == next_lane,
            "a tree's first_lane must be " + std::to_string(next_lane), tree.first_lane);
    require(tree.lanes >= 1 && tree.lanes <= window - next_lane,
            "a tree's lanes must be 1.." + std::to_string(window - next_lane), tree.lanes);
}

}  // namespace

std::uint32_t window_of(const WorkerConfig &config) {
    require(config.slots >= 2 && config.slots <= 65536, "slots must be 2..65536", config.slots);
    // A power of two, so that seq mod 2W stays continuous when sequence numbers wrap at 2^32.
    std::uint32_t window = 1;
    while (window * 4 <= config.slots) window *= 2;
    return window;
}

std::vector<Tree> trees_of(const WorkerConfig &config) {
    const std::uint32_t window = window_of(config);
    std::vector<Tree> trees = config.trees;
    if (trees.empty()) trees.push_back(only_tree(config, window));
    require(trees.size() <= kMaxTrees, "there must be at most 16 trees",
            static_cast<std::int64_t>(trees.size()));
    std::uint32_t next_lane = 0;
    for (const Tree &tree : trees) {
        require(next_lane < window, "trees must have W lanes together", window);
        check_tree(config, tree, next_lane);
        next_lane += tree.lanes;
    }
    require(next_lane == window,
            "trees must have W = " + std::to_string(window) + " lanes together", next_lane);
    return trees;
}

const Tree &own_tree(const WorkerConfig &config) {
    std::size_t index = config.trees.size() - 1;
    while (config.trees[index].first_lane > config.first_lane) --index;
    return config.trees[index];
}

congestion::Room room_of(const WorkerConfig &config, std::uint32_t packets) {
    return {std::max(packets, 1u), frame_bytes(config, config.values_per_packet),
            static_cast<std::uint32_t>(std::max(config.world_size, 1))};
}

double small_share(const WorkerConfig &config) {
    return static_cast<double>(frame_bytes(config, 0)) /
           frame_bytes(config, config.values_per_packet);
}

std::uint32_t values_per_chunk(const WorkerConfig &config) {
    return config.values_per_packet - (config.is_stream ? 1 : 0);
}

bool has_shapes(const WorkerConfig &config) {
    const std::vector<Tree> trees = trees_of(config);
    return std::none_of(trees.begin(), trees.end(),
                        [](const Tree &tree) { return tree.owners.empty(); });
}

WorkerConfig checked(WorkerConfig config) {
    const std::uint32_t window = window_of(config);
    const int workers = config.world_size;
    require(workers >= 1 && workers <= wire::kMaxWorldSize, "world_size must be 1..1024", workers);
    require(config.rank >= 0 && config.rank < workers,
            "rank must be 0.." + std::to_string(workers - 1), config.rank);
    require(config.values_per_packet >= 1 && config.values_per_packet <= 4095,
            "values_per_packet must be 1..4095", config.values_per_packet);
    require(config.framing.prefix_bytes() <= Framing::kMostPrefixBytes,
            "there must be at most 32 bytes in front of the header",
            static_cast<std::int64_t>(config.framing.prefix_bytes()));
    require(config.framing.suffix.size() <= Framing::kMostSuffixBytes,
            "there must be at most 32 bytes behind the values",
            static_cast<std::int64_t>(config.framing.suffix.size()));
    if (config.is_stream) {
        require(config.values_per_packet >= 2, "values_per_packet of a stream must be 2..4095",
                config.values_per_packet);
        require(config.verify == VerifyMode::kOff, "verify of a stream must be off",
                static_cast<int>(config.verify));
        require(!config.keep_results, "keep_results of a stream must be 0", config.keep_results);
    }
    require(config.first_seq % (2 * window) == 0, "first_seq must be a multiple of 2 W",
            config.first_seq);
    if (config.summands == 0) config.summands = workers;
    if (config.divisor == 0) config.divisor = workers;
    require(config.summands >= 1 && config.summands <= 65535, "summands must be 1..65535",
            config.summands);
    require(config.divisor >= 1, "divisor must be 1 or more", config.divisor);
    config.trees = trees_of(config);
    if (config.lanes == 0) config.lanes = window;
    require(config.first_lane < window, "first_lane must be below W = " + std::to_string(window),
            config.first_lane);
    const Tree &tree = own_tree(config);
    const std::uint32_t most = tree.first_lane + tree.lanes - config.first_lane;
    require(config.lanes <= most,
            "a core's lanes must be of one tree, from lane " + std::to_string(config.first_lane) +
                " on at most " + std::to_string(most),
            config.lanes);
    return config;
}

}  // namespace ina::host
