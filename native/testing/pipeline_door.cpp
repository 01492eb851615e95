// Frames at a compiled program, in one part or two: what leaves lies where the caller said, and
// nothing is read past a frame's ends.
#include <cstring>
#include <memory>

#include "switch/frame.hpp"
#include "testing/doors.hpp"

namespace ina::testing {

namespace {

constexpr std::size_t kArenaBytes = 1 << 16;
constexpr std::size_t kPackets = 64;
constexpr std::uint32_t kSwitchAddress = 0x0a0000fe;
constexpr std::size_t kMostFrames = 32;
constexpr std::uint8_t kEct0 = 2;

// What fuzz/pipeline_setup.py writes: records of 32-bit numbers, each of which begins with its
// kind, and of the 64-bit words of entries; in little endian.
class Setup {
  public:
    Setup(const ina_pipeline *pipeline, void *state, const Bytes &records)
        : pipeline_(pipeline), state_(state), input_(records.data(), records.size()) {}

    void apply() {
        while (!input_.is_empty()) {
            switch (input_.number(4)) {
                case 0: insert(); break;
                case 1: set_group(); break;
                default: promise(false, "a setup has entries and groups");
            }
        }
    }

  private:
    std::vector<std::uint64_t> words(std::uint32_t count) {
        std::vector<std::uint64_t> words(count);
        for (std::uint64_t &word : words) {
            const std::uint64_t low = input_.number(4);
            word = low | std::uint64_t{input_.number(4)} << 32;
        }
        return words;
    }

    void insert() {
        const std::uint32_t table = input_.number(4), action = input_.number(4);
        const std::uint32_t key_words = input_.number(4), param_words = input_.number(4);
        const std::vector<std::uint64_t> key = words(key_words), mask = words(key_words),
                                         params = words(param_words);
        const ina_entry entry{key.data(), mask.data(), 0, action, params.data()};
        promise(pipeline_->table_insert(state_, table, &entry) >= 0, "a setup's entry is one");
    }

    void set_group() {
        const std::uint32_t group = input_.number(4), count = input_.number(4);
        std::vector<ina_replica> replicas(count);
        for (ina_replica &replica : replicas) {
            replica.egress_port = input_.number(4);
            replica.rid = input_.number(4);
        }
        promise(pipeline_->multicast_set(state_, group, replicas.data(), count) == INA_OK,
                "a setup's group is one");
    }

    const ina_pipeline *pipeline_;
    void *state_;
    Input input_;
};

class Bench {
  public:
    Bench(const ina_pipeline *pipeline, const Bytes &setup)
        : pipeline_(pipeline), state_(pipeline->create(), pipeline->destroy), arena_(kArenaBytes),
          depths_(INA_MAX_PORTS) {
        promise(state_ != nullptr, "there is memory for a pipeline's state");
        Setup(pipeline, state_.get(), setup).apply();
        output_.arena = arena_.data();
        output_.arena_bytes = arena_.size();
        output_.packets = packets_;
        output_.capacity = kPackets;
        output_.depth_pkts = depths_.data();
    }

    void run(Input *input) {
        for (std::size_t i = 0; i < kMostFrames && !input->is_empty(); ++i) {
            const std::uint8_t how = input->byte();
            const std::uint32_t port = input->byte();
            const std::size_t cut = input->byte();
            Bytes bytes = input->take(input->number(2));
            if (how % 2 != 0) bytes = from_member(port, bytes);
            output_.share_tails = how / 2 % 2 * (how / 8 % 2 != 0 ? INA_TRAILERS : 1);
            process(bytes, port, how / 4 % 2 != 0 ? cut : bytes.size());
        }
    }

  private:
    // The payload in a frame from the address of the member behind this port.
    static Bytes from_member(std::uint32_t port, const Bytes &payload) {
        Bytes frame(sw::kFrameHeaderBytes + payload.size());
        const Peer member{0x0a000000 + port, static_cast<std::uint16_t>(3999 + port)};
        sw::write_frame_header(frame.data(), member, {kSwitchAddress, 17760}, kEct0,
                               payload.size());
        std::copy(payload.begin(), payload.end(),
                  frame.begin() + static_cast<std::ptrdiff_t>(sw::kFrameHeaderBytes));
        return frame;
    }

    // `cut`: where the frame goes on elsewhere.
    void process(const Bytes &frame, std::uint32_t port, std::size_t cut) {
        const std::size_t head_bytes = std::min(cut, frame.size());
        const Bytes head(frame.data(), frame.data() + head_bytes);
        const Bytes tail(frame.data() + head_bytes, frame.data() + frame.size());
        ina_packet_in in{};
        in.data = begin_of(head);
        in.length = static_cast<std::uint32_t>(head.size());
        in.port = port;
        in.now_ns = ++now_ns_;
        in.tail = tail.empty() ? nullptr : tail.data();
        in.tail_length = static_cast<std::uint32_t>(tail.size());
        output_.count = output_.arena_used = 0;
        // One packet's few copies fit, unless it is about as long as the arena.
        const std::size_t done = pipeline_->process(state_.get(), &in, 1, &output_);
        promise(done == 1 || frame.size() >= kArenaBytes / 8, "a short frame is taken");
        promise(output_.count <= kPackets && output_.arena_used <= kArenaBytes,
                "what leaves has room");
        for (std::size_t i = 0; i < output_.count; ++i) leaves(packets_[i]);
    }

    void leaves(const ina_packet_out &packet) {
        lies_in_the_arena(packet.data, packet.length);
        lies_in_the_arena(packet.tail, packet.tail_length);
        promise(packet.port < INA_MAX_PORTS, "what leaves has a port");
        promise(packet.tail == nullptr || output_.share_tails != 0,
                "tails are only for who reads them");
        promise(packet.trailer_length == 0 ||
                    (packet.tail != nullptr && packet.trailer_length <= packet.length &&
                     output_.share_tails == INA_TRAILERS),
                "trailers are behind tails, for who reads them");
    }

    void lies_in_the_arena(const std::uint8_t *data, std::size_t bytes) {
        promise(bytes == 0 ||
                    (data >= arena_.data() && data + bytes <= arena_.data() + arena_.size()),
                "what leaves lies in the arena");
        touch(data, bytes);
    }

    const ina_pipeline *pipeline_;
    std::unique_ptr<void, void (*)(void *)> state_;
    Bytes arena_;
    std::vector<std::uint32_t> depths_;
    ina_packet_out packets_[kPackets];
    ina_output output_{};
    std::uint64_t now_ns_ = 0;
};

}  // namespace

void enter_pipeline(const ina_pipeline *pipeline, const Bytes &setup, Input input) {
    Bench(pipeline, setup).run(&input);
}

}  // namespace ina::testing
