// Classic pcap files (not pcapng): microsecond and nanosecond magics, both byte orders to read;
// host byte order and nanoseconds to write. Link type Ethernet.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

namespace ina::sw {

struct FileCloser {
    void operator()(std::FILE *file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, FileCloser>;

class PcapReader {
  public:
    // Reads the whole file once to check it. Throws std::system_error when it cannot be read,
    // std::invalid_argument (path, byte offset, what is wrong) when it is not a whole pcap file.
    explicit PcapReader(const std::string &path);

    struct Record {
        uint32_t bytes = 0;
        uint64_t time_ns = 0;  // since 1970
    };
    // The next record's header; false at the end. Its data is then read by data().
    bool next(Record *record);
    void data(uint8_t *frame, const Record &record);

    static constexpr uint32_t kMaxRecordBytes = 65535;

  private:
    [[noreturn]] void refuse(const std::string &why) const;
    uint32_t word(uint32_t raw) const;
    void read_header();

    std::string path_;
    File file_;
    uint64_t offset_ = 0;
    bool swapped_ = false;
    uint64_t ns_per_fraction_ = 1000;
};

class PcapWriter {
  public:
    explicit PcapWriter(const std::string &path);  // throws std::system_error
    bool write(const uint8_t *frame, uint32_t bytes, uint64_t time_ns);
    bool flush();

  private:
    File file_;
};

}  // namespace ina::sw
