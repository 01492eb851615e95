// A worker's half of shared memory, as the switch sees it: a Hello, rings in memory that the worker
// writes as it likes, bytes on the connection. The worst that it gets is to be dropped.
#include <sys/socket.h>

#include <cstring>
#include <memory>

#include "switch/shm_peer.hpp"
#include "testing/doors.hpp"
#include "testing/shared_memory.hpp"

namespace ina::testing {

namespace {

constexpr std::uint32_t kPort = 3;
constexpr Peer kWorker{0x7f400001, 1};
constexpr Peer kSwitch{0x7f400000, 17760};
constexpr std::size_t kMostSegmentBytes = 1 << 20;  // a larger one is only slower
constexpr std::size_t kMostResultBytes = 4096;

class SilentPort final : public sw::Port {
  public:
    SilentPort() : Port(kPort, 0.0, 0) {}
    int fd() const override { return -1; }
    void receive(sw::FrameBatch *) override {}
    void close() override {}

  protected:
    void transmit(const std::vector<ina_packet_out> &) override {}
};

// Its descriptors, as the switch's Welcome has them. False: no descriptors came.
bool take_descriptors(int fd, int *fds, shm::Welcome *welcome) {
    iovec part{welcome, sizeof *welcome};
    alignas(cmsghdr) std::uint8_t control[CMSG_SPACE(2 * sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    promise(::recvmsg(fd, &message, MSG_CMSG_CLOEXEC) == sizeof *welcome,
            "who says Hello is told how it went");
    const cmsghdr *const entry = CMSG_FIRSTHDR(&message);
    if (entry == nullptr) return false;
    std::memcpy(fds, CMSG_DATA(entry), 2 * sizeof(int));
    return true;
}

class Bench {
  public:
    explicit Bench(Input *input) : input_(input) {
        int ends[2];
        connect_pair(ends);
        worker_ = std::make_unique<Descriptor>(ends[1]);
        results_.open();
        peer_ = std::make_unique<sw::ShmPeer>(ends[0], &results_);
    }

    void run() {
        if (!attach()) return;
        while (!input_->is_empty() && is_there_) {
            switch (input_->byte() % 10) {
                case 0: scribble(input_, bytes(), shape_.segment_bytes()); break;
                case 1: scribble(input_, to_switch_.control); break;
                case 2: scribble(input_, to_worker_.control); break;
                case 3: scribble(input_, to_switch_); break;
                case 4: put(); break;
                case 5: receive(); break;
                case 6: send(); break;
                case 7: peer_->reclaim(); break;
                case 8: talk(); break;
                case 9: sleep(); break;
            }
        }
        peer_.reset();
        promise(results_.held_cells() == 0, "who is gone holds no results");
    }

  private:
    std::uint8_t *bytes() { return static_cast<std::uint8_t *>(segment_.data()); }

    // False: the worker was refused.
    bool attach() {
        shm::Hello hello;
        const bool is_plain = input_->byte() % 4 != 0;
        hello.cells = shm::kMinCells << (input_->byte() % 3);
        hello.payload_bytes = static_cast<std::uint32_t>(wire::packet_bytes(8));
        if (!is_plain) {
            const Bytes said = input_->take(sizeof hello);
            std::memcpy(&hello, begin_of(said), said.size());
        }
        shape_ = {hello.cells, hello.payload_bytes};
        if (shape_.is_valid() && shape_.segment_bytes() > kMostSegmentBytes) return false;
        // In two parts, as a slow connection may bring it.
        const std::size_t first = input_->byte() % (sizeof hello + 1);
        const auto *const said = reinterpret_cast<const std::uint8_t *>(&hello);
        (void)::send(worker_->get(), said, first, MSG_NOSIGNAL);
        promise(first == 0 ||
                    peer_->hear() == (first == sizeof hello ? sw::ShmPeer::Heard::kHello
                                                            : sw::ShmPeer::Heard::kNothing),
                "a Hello is heard when it is whole");
        if (first < sizeof hello) {
            (void)::send(worker_->get(), said + first, sizeof hello - first, MSG_NOSIGNAL);
            promise(peer_->hear() == sw::ShmPeer::Heard::kHello, "a Hello is heard in parts");
        }
        const shm::Status status = peer_->attach(kPort, kWorker, kSwitch);
        shm::Welcome welcome;
        int fds[2] = {-1, -1};
        const bool has_memory = take_descriptors(worker_->get(), fds, &welcome);
        const Descriptor memory(fds[0]), results(fds[1]);
        promise(status == welcome.status && has_memory == (status == shm::Status::kAttached) &&
                    peer_->is_attached() == has_memory,
                "memory comes with a yes, and with nothing else");
        promise(has_memory == (hello.magic == shm::kMagic && hello.version == shm::kVersion &&
                               shape_.is_valid()),
                "a Hello that is none is refused");
        if (!has_memory) return false;
        segment_ = shm::Segment(memory.get(), shape_.segment_bytes(), shm::Access::kWrite,
                                shm::Fill::kLater);
        to_switch_ = shm::ring_to_switch(segment_.data(), shape_);
        to_worker_ = shm::ring_to_worker(segment_.data(), shape_, nullptr, 0);
        producer_ = shm::Producer(to_switch_);
        return true;
    }

    // A packet as an honest worker puts it.
    void put() {
        const Bytes packet = input_->take(std::min(input_->byte() % 64u, shape_.payload_bytes));
        const auto at = static_cast<std::uint32_t>(input_->byte() * shm::kLineBytes);
        const std::size_t head_bytes = std::min(packet.size(), shm::kHeadBytes);
        std::uint8_t *const rest = shm::frames(segment_.data(), shape_) + at;
        std::copy(packet.begin() + static_cast<std::ptrdiff_t>(head_bytes), packet.end(),
                  at + packet.size() < shape_.frames_bytes() ? rest : bytes());
        producer_.put(begin_of(packet), packet.size(), at, false);
        producer_.publish();
    }

    void receive() {
        sw::FrameBatch batch;
        const std::uint32_t limit = input_->byte();
        is_there_ = peer_->receive(&batch, &port_, limit);
        promise(batch.packets().size() <= limit, "no worker takes more than its turn");
        // The worker may write on while its packets wait.
        if (input_->byte() % 2 != 0) scribble(input_, bytes(), shape_.segment_bytes());
        for (const ina_packet_in &packet : batch.packets()) {
            sw::Datagram datagram;
            promise(sw::parse_udp_frame(packet.data, packet.length, &datagram, packet.tail,
                                        packet.tail_length),
                    "each packet is a frame");
            promise(datagram.source == kWorker && datagram.destination == kSwitch &&
                        packet.port == kPort,
                    "a worker's packets are from that worker");
            promise(datagram.payload_bytes + datagram.tail_bytes <= shape_.payload_bytes,
                    "no packet is longer than the worker said");
            touch(packet.tail, packet.tail_length);
        }
    }

    // A result, as the port sends it on: whole, or with values that other workers get, too.
    void send() {
        const std::size_t head_bytes = input_->byte();
        const std::size_t tail_bytes = input_->number(2) % kMostResultBytes;
        const Bytes head(head_bytes, 0x5a), tail(tail_bytes, 0xa5);
        sw::Datagram datagram;
        datagram.source = kSwitch;
        datagram.destination = kWorker;
        datagram.tos = input_->byte();
        datagram.payload = begin_of(head);
        datagram.payload_bytes = head.size();
        datagram.tail = begin_of(tail);
        datagram.tail_bytes = tail.size();
        results_.forget();
        peer_->send(datagram);
        peer_->publish();
    }

    void talk() {
        const Bytes said = input_->take(input_->byte() % 16);
        if (said.empty()) {
            worker_->close();
        } else {
            (void)::send(worker_->get(), said.data(), said.size(), MSG_NOSIGNAL);
        }
        if (peer_->hear() == sw::ShmPeer::Heard::kEnd) is_there_ = false;
    }

    void sleep() {
        (void)peer_->has_packets();
        (void)peer_->prepare_sleep();
        peer_->wake(input_->byte() % 2 != 0);
        peer_->wake_up();
        peer_->ask_to_leave(input_->byte());
    }

    Input *input_;
    std::unique_ptr<Descriptor> worker_;
    sw::ShmResults results_;
    std::unique_ptr<sw::ShmPeer> peer_;
    SilentPort port_;
    shm::Shape shape_;
    shm::Segment segment_;
    shm::Ring to_switch_, to_worker_;
    shm::Producer producer_;
    bool is_there_ = true;
};

}  // namespace

void enter_shm_switch(Input input) { Bench(&input).run(); }

}  // namespace ina::testing
