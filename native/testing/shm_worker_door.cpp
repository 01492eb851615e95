// A switch's half of shared memory, as the worker sees it: a segment and the results' area, which
// the switch writes as it likes, and bytes on the connection.
#include <sys/socket.h>

#include <memory>
#include <stdexcept>
#include <system_error>

#include "host/channel/shm_channel.hpp"
#include "testing/doors.hpp"
#include "testing/shared_memory.hpp"

namespace ina::testing {

namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kMostArrivals = 4096;  // a switch that lies may show the same cells for ever

class Bench {
  public:
    explicit Bench(Input *input)
        : input_(input), shape_{shm::kMinCells << (input->byte() % 3),
                                static_cast<std::uint32_t>(wire::packet_bytes(8))},
          results_bytes_((1 + input->byte() % 4) * kPageBytes),
          memory_(new_memory(shape_.segment_bytes() + input->byte() / 128)),
          results_(new_memory(results_bytes_)) {
        int ends[2];
        connect_pair(ends);
        switch_ = std::make_unique<Descriptor>(ends[0]);
        connection_ = std::make_unique<Descriptor>(ends[1]);
    }

    void run() {
        try {
            channel_ = std::make_unique<host::ShmChannel>(connection_->get(), memory_.get(),
                                                          results_.get(), shape_);
        } catch (const std::invalid_argument &) {
            return;  // of another size than was asked for
        }
        const KeptCores cores;
        segment_ = shm::Segment(memory_.get(), shape_.segment_bytes(), shm::Access::kWrite,
                                shm::Fill::kLater);
        area_ =
            shm::Segment(results_.get(), results_bytes_, shm::Access::kWrite, shm::Fill::kLater);
        to_switch_ = shm::ring_to_switch(segment_.data(), shape_);
        to_worker_ = shm::ring_to_worker(segment_.data(), shape_, nullptr, 0);
        producer_ = shm::Producer(to_worker_);
        while (!input_->is_empty()) {
            switch (input_->byte() % 9) {
                case 0: scribble(input_, bytes(segment_), shape_.segment_bytes()); break;
                case 1: scribble(input_, bytes(area_), results_bytes_); break;
                case 2: scribble(input_, to_switch_.control); break;
                case 3: scribble(input_, to_worker_.control); break;
                case 4: scribble(input_, to_worker_); break;
                case 5: put(); break;
                case 6: receive(); break;
                case 7: send(); break;
                case 8: sleep(); break;
            }
        }
        channel_->close();
    }

  private:
    static std::uint8_t *bytes(const shm::Segment &segment) {
        return static_cast<std::uint8_t *>(segment.data());
    }

    // A packet as an honest switch puts it.
    void put() {
        const Bytes packet = input_->take(std::min(input_->byte() % 64u, shape_.payload_bytes));
        const std::uint8_t *const data = begin_of(packet);
        const std::size_t head_bytes = std::min(packet.size(), shm::kHeadBytes);
        producer_.put_copy(data, packet.size(), data + head_bytes, input_->byte() % 2 != 0);
        producer_.publish();
    }

    void receive() {
        std::vector<host::Arrival> arrivals;
        std::size_t seen = 0;
        bool is_more = true;
        while (is_more && seen < kMostArrivals) {
            is_more = channel_->receive(&arrivals);
            seen += arrivals.size() + 1;
            for (const host::Arrival &arrival : arrivals) {
                promise(arrival.bytes <= shape_.payload_bytes,
                        "no packet is longer than the worker said");
                const std::size_t head_bytes = std::min(arrival.bytes, shm::kHeadBytes);
                touch(arrival.data, head_bytes);
                touch(arrival.values, arrival.bytes - head_bytes);
            }
            channel_->release();
        }
    }

    void send() {
        const host::PacketMemory frames = channel_->packet_memory();
        const std::size_t frame = input_->byte();
        const std::uint8_t *const packet =
            frames.base + frames.stride_bytes * (frame % frames.frames) + shm::kPayloadOffset;
        const host::PacketView view{packet, input_->byte() % (shape_.payload_bytes + 1)};
        channel_->send(&view, 1, 1, 0);
    }

    void sleep() {
        const Bytes said = input_->take(input_->byte() % 4);
        if (said.empty()) switch_->close();
        (void)::send(switch_->get(), begin_of(said), said.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        channel_->prepare_sleep(input_->byte());
    }

    Input *input_;
    const shm::Shape shape_;
    const std::size_t results_bytes_;
    const Descriptor memory_, results_;
    std::unique_ptr<Descriptor> switch_, connection_;
    std::unique_ptr<host::ShmChannel> channel_;
    shm::Segment segment_, area_;
    shm::Ring to_switch_, to_worker_;
    shm::Producer producer_;
};

}  // namespace

void enter_shm_worker(Input input) { Bench(&input).run(); }

}  // namespace ina::testing
