#include "sim/nic.hpp"

#include <cstring>
#include <stdexcept>
#include <utility>

#include "common/roce.hpp"
#include "switch/frame.hpp"

namespace ina::sim {
namespace {

constexpr std::uint8_t kEcnBits = 3;
constexpr std::uint8_t kCongestionExperienced = 3;

bool is_marked(const sw::Datagram &datagram) {
    return (datagram.tos & kEcnBits) == kCongestionExperienced;
}

// A UDP socket.
class UdpNic final : public Nic {
  public:
    UdpNic(const NicSetup &setup, Host *host, FramePool *frames)
        : setup_(setup), host_(host), frames_(frames) {}

    void listen(Endpoint *endpoint) override {
        host_->listen(kUdp, setup_.own.udp_port, endpoint);
        if (endpoint != nullptr && setup_.results.is_known()) {
            host_->join_group(setup_.results, endpoint);
        }
    }
    void leave_group(Endpoint *endpoint) override { host_->leave_groups(endpoint); }

    void send(const host::PacketView *packets, std::size_t count, const Peer &node, std::int64_t,
              std::vector<Frame> *out) override {
        for (std::size_t i = 0; i < count; ++i) {
            Frame frame = frames_->make(sw::kFrameHeaderBytes + packets[i].bytes);
            sw::write_frame_header(frame.data(), setup_.own, node, setup_.tos, packets[i].bytes);
            std::memcpy(frame.data() + sw::kFrameHeaderBytes, packets[i].data, packets[i].bytes);
            out->push_back(std::move(frame));
        }
    }
    std::optional<Result> take(const Frame &frame, std::int64_t, std::vector<Frame> *) override {
        sw::Datagram datagram;
        if (!sw::parse_udp_frame(frame.data(), frame.bytes(), &datagram)) return std::nullopt;
        return Result{{datagram.payload, datagram.payload_bytes, is_marked(datagram)},
                      datagram.source};
    }

  private:
    const NicSetup setup_;
    Host *const host_;
    FramePool *const frames_;
};

// A queue pair of an unreliable connection to a switch.
class UcNic final : public Nic {
  public:
    UcNic(const NicSetup &setup, Host *host, FramePool *frames)
        : setup_(setup), ends_(*setup.pair), endpoint_(ends_), host_(host), frames_(frames) {}

    void listen(Endpoint *endpoint) override { host_->listen_queue_pair(ends_.own_qp, endpoint); }

    void send(const host::PacketView *packets, std::size_t count, const Peer &, std::int64_t,
              std::vector<Frame> *out) override {
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t bytes = packets[i].bytes + host::UcEndpoint::kAroundBytes;
            Frame frame = frames_->make(sw::kFrameHeaderBytes + bytes);
            sw::write_frame_header(frame.data(), ends_.own, ends_.node, setup_.tos, bytes);
            endpoint_.put(packets[i], frame.data() + sw::kFrameHeaderBytes);
            out->push_back(std::move(frame));
        }
    }
    std::optional<Result> take(const Frame &frame, std::int64_t, std::vector<Frame> *) override {
        const Peer from{ends_.node.ipv4, ends_.own.udp_port};
        sw::Datagram datagram;
        if (!sw::parse_udp_frame(frame.data(), frame.bytes(), &datagram) ||
            datagram.source != from) {
            ++others_;
            return std::nullopt;
        }
        Result result{{}, setup_.to};
        const host::Arrival came{datagram.payload, datagram.payload_bytes, is_marked(datagram)};
        if (!endpoint_.take(came, &result.packet)) return std::nullopt;
        return result;
    }

    std::uint64_t damaged() const override { return endpoint_.damaged() + others_; }

  private:
    const NicSetup setup_;
    const host::SoftRoceEnds ends_;
    host::UcEndpoint endpoint_;
    Host *const host_;
    FramePool *const frames_;
    std::uint64_t others_ = 0;
};

// Queue pairs of reliable connections to the next worker of a ring, and from the one before.
class RingNic final : public Nic {
  public:
    RingNic(const NicSetup &setup, Host *host, FramePool *frames, std::uint32_t lanes)
        : to_(setup.to), address_{setup.ring->own.ipv4, roce::kUdpPort},
          endpoint_(*setup.ring, lanes, setup.tos), host_(host), frames_(frames) {}

    void listen(Endpoint *endpoint) override { host_->listen_at(address_, endpoint); }

    void send(const host::PacketView *packets, std::size_t count, const Peer &, std::int64_t now_ns,
              std::vector<Frame> *out) override {
        Sink sink(frames_, out);
        endpoint_.send(packets, count, now_ns, &sink);
    }
    std::optional<Result> take(const Frame &frame, std::int64_t now_ns,
                               std::vector<Frame> *out) override {
        Sink sink(frames_, out);
        arrivals_.clear();
        endpoint_.take(frame.data(), frame.bytes(), now_ns, &arrivals_, &sink);
        if (arrivals_.empty()) return std::nullopt;
        return Result{arrivals_.front(), to_};
    }
    void look_at_timers(std::int64_t now_ns, std::vector<Frame> *out) override {
        Sink sink(frames_, out);
        endpoint_.look_at_timers(now_ns, &sink);
    }
    std::int64_t deadline_ns() const override { return endpoint_.deadline_ns(); }

    bool owes() const override { return endpoint_.owes(); }
    bool has_failed() const override { return endpoint_.has_failed(); }
    std::uint64_t damaged() const override { return endpoint_.damaged(); }

  private:
    class Sink final : public host::FrameSink {
      public:
        Sink(FramePool *frames, std::vector<Frame> *out) : frames_(frames), out_(out) {}
        std::uint8_t *add(std::size_t bytes) override {
            out_->push_back(frames_->make(bytes));
            return out_->back().data();
        }

      private:
        FramePool *const frames_;
        std::vector<Frame> *const out_;
    };

    const Peer to_;
    const Peer address_;
    host::RingEndpoint endpoint_;
    Host *const host_;
    FramePool *const frames_;
    std::vector<host::Arrival> arrivals_;  // of one frame
};

}  // namespace

std::unique_ptr<Nic> make_nic(const NicSetup &setup, Host *host, FramePool *frames,
                              std::uint32_t lanes) {
    if (setup.pair && setup.ring) {
        throw std::invalid_argument("a NIC has a queue pair to a switch, or those of a ring");
    }
    if (setup.pair) return std::make_unique<UcNic>(setup, host, frames);
    if (setup.ring) return std::make_unique<RingNic>(setup, host, frames, lanes);
    return std::make_unique<UdpNic>(setup, host, frames);
}

}  // namespace ina::sim
