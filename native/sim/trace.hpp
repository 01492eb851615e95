// What happened to frames, for people: as a list of records, and as a pcap file.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "sim/frame.hpp"
#include "sim/link.hpp"
#include "switch/frame.hpp"
#include "switch/pcap_file.hpp"

namespace ina::sim {

struct TraceRecord {
    static constexpr std::size_t kHeadBytes = 96;  // Ethernet, IPv4, UDP, BTH and ina's header
    std::uint32_t port = 0;                        // which of the trace's
    Fate fate = Fate::kArrives;
    std::int64_t sent_ns = 0;     // the last bit; where the queue was full: when it came
    std::int64_t arrives_ns = 0;  // if it does
    std::uint32_t bytes = 0;
    std::uint8_t head[kHeadBytes] = {};
};

class Trace {
  public:
    // most_records: the newest of them are kept; 0: none. pcap: empty, or a file to write.
    Trace(std::size_t most_records, const std::string &pcap) : most_(most_records) {
        if (!pcap.empty()) pcap_ = std::make_unique<sw::PcapWriter>(pcap);
    }

    std::uint32_t add_port(const std::string &name) {
        ports_.push_back(name);
        return static_cast<std::uint32_t>(ports_.size() - 1);
    }
    void add(std::uint32_t port, const Frame &frame, Fate fate, std::int64_t sent_ns,
             std::int64_t arrives_ns) {
        if (pcap_ && fate == Fate::kArrives) {
            pcap_->write(frame.data(), frame.bytes(), static_cast<std::uint64_t>(sent_ns));
        }
        if (most_ == 0) return;
        TraceRecord record;
        record.port = port;
        record.fate = fate;
        record.sent_ns = sent_ns;
        record.arrives_ns = arrives_ns;
        record.bytes = frame.bytes();
        std::memcpy(record.head, frame.data(),
                    std::min<std::size_t>(frame.bytes(), TraceRecord::kHeadBytes));
        if (records_.size() < most_) {
            records_.push_back(record);
        } else {
            records_[first_] = record;
            first_ = (first_ + 1) % most_;
        }
    }
    void flush() {
        if (pcap_) pcap_->flush();
    }

    const std::vector<std::string> &ports() const { return ports_; }
    // The oldest first.
    std::vector<TraceRecord> records() const {
        std::vector<TraceRecord> sorted(records_.begin() + static_cast<std::ptrdiff_t>(first_),
                                        records_.end());
        sorted.insert(sorted.end(), records_.begin(),
                      records_.begin() + static_cast<std::ptrdiff_t>(first_));
        return sorted;
    }

  private:
    std::size_t most_;
    std::size_t first_ = 0;
    std::vector<TraceRecord> records_;
    std::vector<std::string> ports_;
    std::unique_ptr<sw::PcapWriter> pcap_;
};

}  // namespace ina::sim
