#include "sim/flows/udp_stream.hpp"

#include <algorithm>
#include <stdexcept>

#include "sim/flows/checksum.hpp"

namespace ina::sim {

UdpStream::UdpStream(Network *network, const std::string &name, const UdpStreamConfig &config,
                     Host *source, Host *destination)
    : network_(network), config_(config), source_(source), random_(network->stream(name)),
      from_{source->address(), source->free_port(kUdp)},
      to_{destination->address(), destination->free_port(kUdp)} {
    if (source == destination) throw std::invalid_argument(name + ": it has one host only");
    if (!(config.mean_gap_ns > 0)) throw std::invalid_argument(name + ": gaps must be above 0");
    if (config.payload_bytes < kStampBytes || config.payload_bytes > sw::kMaxPayloadBytes) {
        throw std::invalid_argument(name + ": a payload has 16 to 65507 bytes");
    }
    destination->listen(kUdp, to_.udp_port, this);
    if (config.is_poisson) {
        put_next(config.start_ns);
    } else {
        network->engine().at(config.start_ns, this);
    }
}

void UdpStream::put_next(std::int64_t from_ns) {
    gap_rest_ns_ += config_.mean_gap_ns * (config_.is_poisson ? random_.exponential() : 1);
    const auto gap_ns = static_cast<std::int64_t>(gap_rest_ns_);
    gap_rest_ns_ -= static_cast<double>(gap_ns);
    if (from_ns + gap_ns < config_.stop_ns) network_->engine().at(from_ns + gap_ns, this);
}

void UdpStream::on_event(std::uint64_t) {
    const std::int64_t now_ns = network_->now_ns();
    if (now_ns >= config_.stop_ns) return;
    Frame frame = network_->frames().make(sw::kFrameHeaderBytes + config_.payload_bytes);
    sw::write_frame_header(frame.data(), from_, to_, static_cast<std::uint8_t>(config_.dscp << 2),
                           config_.payload_bytes);
    std::uint8_t *const payload = frame.data() + sw::kFrameHeaderBytes;
    std::memset(payload, 0, config_.payload_bytes);
    const auto put = [&](std::uint8_t *to, std::uint64_t word) {
        sw::store_be32(to, static_cast<std::uint32_t>(word >> 32));
        sw::store_be32(to + 4, static_cast<std::uint32_t>(word));
    };
    put(payload, counters_.sent_packets++);
    put(payload + 8, static_cast<std::uint64_t>(now_ns));
    std::uint8_t *const ip = frame.data() + sw::kEthernetBytes;
    const std::uint16_t checksum = transport_checksum(ip, sw::kUdpBytes + kStampBytes);
    // 0 would say that there is none.
    sw::store_be16(ip + sw::kIpv4Bytes + 6, checksum == 0 ? UINT16_MAX : checksum);
    source_->send(std::move(frame));
    put_next(now_ns);
}

void UdpStream::receive(Frame frame) {
    sw::Datagram datagram;
    if (!sw::parse_udp_frame(frame.data(), frame.bytes(), &datagram) ||
        !(datagram.source == from_) || datagram.payload_bytes != config_.payload_bytes ||
        transport_checksum(frame.data() + sw::kEthernetBytes,
                           sw::kUdpBytes + datagram.payload_bytes) != 0) {
        return;
    }
    const std::uint64_t sent_ns = std::uint64_t{sw::load_be32(datagram.payload + 8)} << 32 |
                                  sw::load_be32(datagram.payload + 12);
    const std::int64_t delay_ns = network_->now_ns() - static_cast<std::int64_t>(sent_ns);
    ++counters_.received_packets;
    counters_.received_bytes += datagram.payload_bytes;
    counters_.delay_ns += delay_ns;
    counters_.longest_delay_ns = std::max(counters_.longest_delay_ns, delay_ns);
}

}  // namespace ina::sim
