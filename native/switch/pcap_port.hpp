// A port that reads its packets from one pcap file and writes what leaves to another.
#pragma once

#include <optional>

#include "switch/pcap_file.hpp"
#include "switch/port.hpp"

namespace ina::sw {

class PcapPort final : public Port {
  public:
    // An empty path: nothing arrives, or what leaves is counted as undeliverable.
    PcapPort(uint32_t number, const std::string &read, const std::string &write,
             double loss_probability, uint64_t loss_seed);

    int fd() const override { return -1; }
    bool finished() const override { return finished_; }
    void close() override {
        reader_.reset();
        writer_.reset();
    }
    void receive(FrameBatch *batch) override;
    void extra_stats(std::vector<std::pair<std::string, uint64_t>> *stats) const override;

  protected:
    void transmit(const std::vector<ina_packet_out> &packets) override;

  private:
    std::optional<PcapReader> reader_;
    std::optional<PcapWriter> writer_;
    std::atomic<bool> finished_;
};

}  // namespace ina::sw
