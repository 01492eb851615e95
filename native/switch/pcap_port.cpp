#include "switch/pcap_port.hpp"

#include <time.h>

#include <stdexcept>

#include "switch/frame.hpp"

namespace ina::sw {

PcapPort::PcapPort(uint32_t number, const std::string &read, const std::string &write,
                   double loss_probability, uint64_t loss_seed)
    : Port(number, loss_probability, loss_seed), finished_(read.empty()) {
    if (!read.empty()) reader_.emplace(read);
    if (!write.empty()) writer_.emplace(write);
}

void PcapPort::receive(FrameBatch *batch) {
    PcapReader::Record record;
    try {
        while (!finished_ && batch->has_room()) {
            if (!reader_->next(&record)) {
                finished_ = true;
                return;
            }
            uint8_t *frame = batch->reserve(record.bytes);
            reader_->data(frame, record);
            counters_.rx_packets.add(1);
            counters_.rx_bytes.add(record.bytes);
            if (has_wrong_checksum(frame, record.bytes))
                counters_.wrong_checksum_packets.add(1);
            else if (!loses_arrival())
                batch->commit(record.bytes, number(), record.time_ns);
        }
    } catch (const std::invalid_argument &) {  // it was whole when the port was opened
        counters_.malformed_packets.add(1);
        finished_ = true;
    }
}

void PcapPort::transmit(const std::vector<ina_packet_out> &packets) {
    timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const uint64_t now_ns =
        static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
    for (const ina_packet_out &packet : packets) {
        if (!writer_)
            counters_.undeliverable_packets.add(1);
        else if (writer_->write(packet.data, packet.length, now_ns))
            count_sent(1, packet.length);
        else
            counters_.failed_packets.add(1);
    }
    if (writer_) writer_->flush();
}

void PcapPort::extra_stats(std::vector<std::pair<std::string, uint64_t>> *stats) const {
    stats->emplace_back("finished", finished_);
}

}  // namespace ina::sw
