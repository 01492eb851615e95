// Packets at a worker: noise, and what a switch would answer with some of it changed. A packet that
// is not what a lane waits for is counted, once, and changes nothing else.
#include "host/core/worker_core.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "congestion/algorithms.hpp"
#include "testing/doors.hpp"

namespace ina::testing {

namespace {

constexpr std::int64_t kTickNs = 1'000'000;
constexpr std::size_t kMostTensors = 8;
constexpr std::size_t kMostElems = 64;
constexpr std::size_t kLargestBatch = 64;

// One switch, or two trees; the core has all of one, or the upper half of its lanes.
void deal(Input *input, std::uint32_t window, host::WorkerConfig *config) {
    const std::uint32_t first = input->byte() % window;  // 0: one switch
    const bool is_second = input->byte() % 2 != 0 && first > 0;
    if (first > 0) {
        const std::uint32_t child = input->byte() % 32;
        const std::uint32_t path = (child << 5 | input->byte() % 32) << (wire::kPathBits - 10);
        const std::uint32_t bitmap = 1u << child | input->number(4);
        const auto worker = static_cast<int>(input->byte() % 32);
        std::vector<std::uint16_t> owners(input->byte() % 2 != 0 ? config->world_size : 0);
        for (std::uint16_t &owner : owners) owner = path >> host::kOwnerShift;
        config->trees = {{config->job, worker, path, bitmap, 0, first, {}, owners},
                         {11, config->rank, path, bitmap, first, window - first, {}, owners}};
    }
    config->first_lane = is_second ? first : 0;
    config->lanes = first == 0 ? window : is_second ? window - first : first;
    const std::uint32_t half = config->lanes / 2;
    if (half == 0 || input->byte() % 2 == 0) return;
    config->first_lane += config->lanes - half;
    config->lanes = half;
}

host::WorkerConfig config_of(Input *input) {
    host::WorkerConfig config;
    config.job = 7;
    config.epoch = 0x30009;
    config.world_size = 1 + static_cast<int>(input->byte() % 4);
    config.rank = static_cast<int>(input->byte()) % config.world_size;
    config.slots = 2u << (input->byte() % 4);
    config.values_per_packet = 1 + input->byte() % 8;
    config.stall_timeout_ns = 1'000'000'000;
    const std::uint32_t window = host::window_of(config);
    config.first_seq = 2 * window * (0u - input->byte() % 2);  // 0, or just before it wraps
    deal(input, window, &config);
    config.keep_results = input->byte() % 2 != 0;
    return config;
}

struct Tensor {
    Bytes in;
    Bytes out;
};

// A worker whose switch is the input.
class Bench {
  public:
    explicit Bench(Input *input)
        : input_(input), config_(host::checked(config_of(input))), tree_(host::own_tree(config_)),
          order_(config_),
          core_(config_,
                congestion::make_control({}, host::room_of(config_, host::window_of(config_)))),
          in_flight_(core_.lane_count()) {}

    void run() {
        submit();
        while (!input_->is_empty()) {
            switch (input_->byte() % 6) {
                case 0: submit(); break;
                case 1: wait(input_->number(2)); break;
                case 2: receive(input_->take(input_->number(2)), false); break;
                case 3: receive(answer(), false); break;
                case 4: receive(answer(), true); break;
                case 5: look(); break;
            }
            transmit();
        }
        look();
    }

  private:
    void submit() {
        if (tensors_.size() == kMostTensors) return;
        host::TensorRequest request;
        const int type = input_->byte() % 12;
        request.kind = static_cast<host::CollectiveKind>(input_->byte() % host::kCollectiveKinds);
        const bool is_summed = host::is_value_type(type) && type != wire::kValueTypeBytes;
        request.type = request.is_moved()
                           ? host::ValueType::kBytes
                           : static_cast<host::ValueType>(is_summed ? type : type % 4);
        request.op = static_cast<host::Reduction>(input_->byte() % 2);
        request.elems = input_->byte() % (kMostElems + 1);
        if (request.kind == host::CollectiveKind::kBarrier) request.elems = 0;
        const std::size_t parts = request.has_parts() ? config_.world_size : 1;
        const std::size_t bytes = parts * request.elems * host::bytes_per_elem(request.type);
        auto tensor = std::make_unique<Tensor>();
        tensor->in = input_->take(std::min<std::size_t>(input_->byte(), bytes));
        tensor->in.resize(bytes);
        tensor->in.shrink_to_fit();
        tensor->out.resize(bytes);
        request.id = tensors_.size() + 1;
        request.in = tensor->in.data();
        request.out = tensor->out.data();
        tensors_.push_back(std::move(tensor));
        core_.submit(order_.next(request), now_ns_);
    }

    void wait(std::uint32_t ticks) {
        const std::int64_t deadline_ns = core_.next_deadline_ns(now_ns_);
        now_ns_ += ticks * kTickNs;
        if (ticks == 0 && deadline_ns != host::kNever) now_ns_ = std::max(now_ns_, deadline_ns);
    }

    void transmit() {
        host::PacketView views[kLargestBatch];
        std::size_t count = 0;
        do {
            count = core_.poll_transmit(now_ns_, views, kLargestBatch);
            for (std::size_t i = 0; i < count; ++i) {
                Bytes packet(views[i].data, views[i].data + views[i].bytes);
                wire::Header header;
                promise(wire::parse_packet(packet.data(), packet.size(), header) ==
                                wire::Parse::kOk &&
                            header.kind == wire::kKindContribution && header.job == tree_.job &&
                            header.worker == tree_.worker && host::is_of(tree_, header.path) &&
                            header.slot < 2 * tree_.lanes,
                        "a worker sends contributions of its own");
                const std::uint32_t lane = (header.seq & (core_.window() - 1)) - core_.first_lane();
                in_flight_.at(lane) = std::move(packet);
            }
        } while (count == kLargestBatch);
    }

    // What the switch would say to a packet that was sent, and the input's changes to that.
    Bytes answer() {
        Bytes packet = in_flight_[input_->byte() % in_flight_.size()];
        if (packet.empty()) return packet;
        wire::Header header = wire::load_header(packet.data());
        header.kind = wire::kKindResult;
        header.contributors = tree_.expected_bitmap;
        header.digest = static_cast<std::uint16_t>(header.digest *
                                                   static_cast<std::uint32_t>(config_.summands));
        wire::store_header(packet.data(), header);
        for (std::uint32_t left = input_->byte() % 4; left > 0; --left) {
            const std::size_t at = input_->byte() % packet.size();
            packet[at] = static_cast<std::uint8_t>(packet[at] ^ input_->byte());
        }
        return packet;
    }

    // `apart`: its values lie elsewhere than its header.
    void receive(const Bytes &packet, bool apart) {
        ++received_;
        const std::size_t head_bytes = std::min(packet.size(), wire::kHeaderBytes);
        const Bytes head(packet.data(), packet.data() + head_bytes);
        const Bytes values(packet.data() + head_bytes, packet.data() + packet.size());
        const bool marked = received_ % 8 == 0;
        if (apart) {
            core_.on_result(begin_of(head), packet.size(), now_ns_, marked, begin_of(values));
        } else {
            core_.on_result(begin_of(packet), packet.size(), now_ns_, marked);
        }
        adds_up();
        for (const std::uint64_t id : core_.take_completions()) {
            promise(id >= 1 && id <= tensors_.size(), "what completes was submitted");
        }
    }

    void adds_up() {
        const host::WorkerCounters counters = core_.counters();
        promise(counters.packets_received == received_, "each packet is counted");
        const std::uint64_t told = counters.malformed + counters.foreign + counters.stale +
                                   counters.duplicates + counters.mismatched +
                                   counters.exponent_rounds + counters.chunks_done +
                                   (core_.mismatch() ? 1 : 0);
        promise(told == received_, "each packet is one thing");
        const host::RecoveryCounters &recovery = counters.recovery;
        promise(recovery.losses + recovery.spurious + recovery.probes <= recovery.retransmissions,
                "each retransmission has one reason");
        promise(counters.tensors_done <= counters.tensors_submitted, "no tensor is done twice");
    }

    void look() {
        const host::LaneSnapshot lanes = core_.lanes(now_ns_);
        promise(lanes.seqs.size() == core_.lane_count(), "each lane has a number");
        for (std::uint32_t i = 0; i < core_.lane_count(); ++i) {
            const host::LaneResult result = core_.lane_result(core_.first_lane() + i);
            touch(result.data.data(), result.data.size());
        }
        for (const host::PendingTensor &pending : core_.pending()) {
            promise(!pending.undone.empty(), "what is pending lacks a chunk");
        }
    }

    Input *input_;
    const host::WorkerConfig config_;
    const host::Tree tree_;
    host::SubmissionOrder order_;
    host::WorkerCore core_;
    std::vector<std::unique_ptr<Tensor>> tensors_;
    std::vector<Bytes> in_flight_;  // by lane; also what has been answered
    std::int64_t now_ns_ = 1'000'000'000;
    std::uint64_t received_ = 0;
};

}  // namespace

void enter_worker_core(Input input) { Bench(&input).run(); }

}  // namespace ina::testing
