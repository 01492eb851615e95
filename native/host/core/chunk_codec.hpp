// What a lane's packet says, and what its result brings: between a tensor's memory and the wire.
#pragma once

#include <cstdint>
#include <vector>

#include "common/ina_wire.hpp"
#include "host/core/block_finder.hpp"
#include "host/core/codec.hpp"
#include "host/core/integers.hpp"
#include "host/core/lane.hpp"
#include "host/core/quantize.hpp"
#include "host/core/round_claims.hpp"
#include "host/core/schedule.hpp"
#include "host/core/sum_check.hpp"
#include "host/core/worker_config.hpp"

namespace ina::host {

class ChunkCodec {
  public:
    enum class Verdict : std::uint8_t {
        kFits,       // what the lane waits for
        kElse,       // not that: another slot, type, size or exponent, or not all contributions
        kDisagrees,  // workers have submitted different things
        kCorrupt,    // not the sum of what the workers have sent
    };

    // config: as checked() gives it.
    explicit ChunkCodec(const WorkerConfig &config);

    // Writes the packet for the lane's round to `packet`: the header, and room for the values of
    // one packet. Sets the lane's packet_bytes, and what it must know of the packet until its
    // result is here.
    void write_packet(Lane &lane, std::uint8_t *packet) const;
    // Of a result with the lane's sequence number. `values`: as on the wire.
    Verdict judge(const Lane &lane, const wire::Header &header, const std::uint8_t *values) const;
    // Whether a result that fits brings sums; else it tells the exponent alone, or brings the first
    // half of integers.
    bool has_sums(const Lane &lane, const wire::Header &header) const;
    // Writes the sums of a result that has them to `out`, as they lie in a tensor. `values`: as on
    // the wire. `room`: of a packet's values, that nobody needs any more.
    void read_sums(const Lane &lane, std::uint8_t flags, const std::uint8_t *values,
                   std::uint8_t *room, std::uint8_t *out);
    // What the header says of whose packet it is, and in rounds of a shape, whose chunk.
    std::uint32_t path_of(const Lane &lane) const {
        const Tensor &tensor = *lane.tensor;
        if (lane.shape() == Shape::kSum) return tree_.path;
        return tree_.path | tree_.owners[tensor.owner(lane.chunk)];
    }
    // Of a part that all ranks gather, its owner's.
    static void copy_own(const Tensor &tensor, std::uint64_t chunk);
    // In a stream: the chunk that a result which fits names as the lane's next.
    std::uint64_t named_next(const Lane &lane, const std::uint8_t *values) const;
    // What the lane's chunks between its own and the next one have: zeros, of all ranks.
    void clear_between(const Lane &lane, std::uint64_t next) const;
    // Keeps those of a first half until the second is here.
    void keep_lower(const Lane &lane, const std::uint8_t *values);
    // Whether its packet, or the result that it waits for, may have values: in a stream a barrier's
    // has the number of the next block, too.
    bool moves_values(const Lane &lane) const {
        return config_.is_stream ? lane.has_values() : lane.moves_values();
    }
    // Whether the result of a round with values has none, as who gets none may be told it.
    static bool is_bare(const Lane &lane, const wire::Header &header) {
        return lane.has_values() && header.value_count == 0;
    }

  private:
    void write_values(const Lane &lane, bool summed, std::uint8_t *to) const;
    void look_ahead(Lane &lane) const;
    void announce_next(Lane &lane, wire::Header &header) const;
    Block block_of(const Lane &lane) const;
    BlockScan scan(const Tensor &tensor, std::uint64_t chunk) const;
    bool fits(const Lane &lane, const wire::Header &header, const std::uint8_t *values) const;
    bool verifies(const Lane &lane, const wire::Header &header, const std::uint8_t *values) const;
    std::uint8_t *lower_of(const Lane &lane);
    RoundTag tag_of(const Lane &lane, const wire::Header &header) const {
        const std::uint32_t values = lane.moves_values() ? config_.values_per_packet : 0;
        return round_tag(lane, header.exponent, static_cast<std::uint16_t>(values));
    }
    const std::uint8_t *with_own(const Lane &lane, const std::uint8_t *sums,
                                 std::uint8_t *room) const;

    WorkerConfig config_;
    Tree tree_;
    std::uint32_t window_;  // W
    Schedule schedule_;
    const Kernels &kernels_;
    BlockFinder finder_;
    SumCheck check_;
    std::vector<std::uint8_t> lower_;  // sums of lower halves, of all lanes, once a lane has some
};

}  // namespace ina::host
