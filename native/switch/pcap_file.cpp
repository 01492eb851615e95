#include "switch/pcap_file.hpp"

#include <errno.h>

#include <stdexcept>
#include <system_error>

namespace ina::sw {

namespace {
constexpr uint32_t kMagicMicroseconds = 0xa1b2c3d4;
constexpr uint32_t kMagicNanoseconds = 0xa1b23c4d;
constexpr uint32_t kMagicPcapng = 0x0a0d0d0a;
constexpr uint32_t kLinkTypeEthernet = 1;
constexpr uint64_t kHeaderBytes = 24;
constexpr uint64_t kNsPerSecond = 1'000'000'000;

struct FileHeader {
    uint32_t magic;
    uint16_t major, minor;
    uint32_t zone, sigfigs, snap_bytes, link_type;
};
struct RecordHeader {
    uint32_t seconds, fraction, bytes, original_bytes;
};

File open_file(const std::string &path, const char *mode) {
    File file(std::fopen(path.c_str(), mode));
    if (!file) throw std::system_error(errno, std::generic_category(), path);
    return file;
}
}  // namespace

PcapReader::PcapReader(const std::string &path) : path_(path), file_(open_file(path, "rbe")) {
    read_header();
    Record record;
    while (next(&record)) {
        uint8_t ignored[4096];
        for (uint32_t left = record.bytes; left > 0;) {
            const uint32_t part = left < sizeof ignored ? left : sizeof ignored;
            if (std::fread(ignored, 1, part, file_.get()) != part)
                refuse("the file ends inside a packet");
            left -= part;
        }
        offset_ += record.bytes;
    }
    std::fseek(file_.get(), kHeaderBytes, SEEK_SET);
    offset_ = kHeaderBytes;
}

void PcapReader::refuse(const std::string &why) const {
    throw std::invalid_argument(path_ + ", byte " + std::to_string(offset_) + ": " + why);
}

uint32_t PcapReader::word(uint32_t raw) const { return swapped_ ? __builtin_bswap32(raw) : raw; }

void PcapReader::read_header() {
    FileHeader header;
    static_assert(sizeof header == kHeaderBytes);
    if (std::fread(&header, sizeof header, 1, file_.get()) != 1)
        refuse("shorter than a pcap file header (24 bytes)");
    for (swapped_ = false;; swapped_ = true) {
        const uint32_t magic = word(header.magic);
        if (magic == kMagicMicroseconds) break;
        if (magic == kMagicNanoseconds) {
            ns_per_fraction_ = 1;
            break;
        }
        if (magic == kMagicPcapng) refuse("pcapng, not pcap (convert it: editcap -F pcap)");
        if (swapped_) refuse("not a pcap file (unknown magic number)");
    }
    if ((word(header.link_type) & 0xffff) != kLinkTypeEthernet)
        refuse("link type " + std::to_string(word(header.link_type)) + " is not Ethernet (1)");
    offset_ = kHeaderBytes;
}

bool PcapReader::next(Record *record) {
    RecordHeader header;
    const size_t read = std::fread(&header, 1, sizeof header, file_.get());
    if (read == 0) return false;
    if (read != sizeof header) refuse("the file ends inside a packet header");
    record->bytes = word(header.bytes);
    record->time_ns =
        word(header.seconds) * kNsPerSecond + word(header.fraction) * ns_per_fraction_;
    if (record->bytes > kMaxRecordBytes)
        refuse("packet of " + std::to_string(record->bytes) + " bytes (limit 65535)");
    offset_ += sizeof header;
    return true;
}

void PcapReader::data(uint8_t *frame, const Record &record) {
    if (std::fread(frame, 1, record.bytes, file_.get()) != record.bytes)
        refuse("the file became shorter while it was read");
    offset_ += record.bytes;
}

PcapWriter::PcapWriter(const std::string &path) : file_(open_file(path, "wbe")) {
    const FileHeader header{kMagicNanoseconds, 2, 4, 0, 0, PcapReader::kMaxRecordBytes,
                            kLinkTypeEthernet};
    if (std::fwrite(&header, sizeof header, 1, file_.get()) != 1 || !flush())
        throw std::system_error(errno, std::generic_category(), path);
}

bool PcapWriter::write(const uint8_t *frame, uint32_t bytes, uint64_t time_ns) {
    const RecordHeader header{static_cast<uint32_t>(time_ns / kNsPerSecond),
                              static_cast<uint32_t>(time_ns % kNsPerSecond), bytes, bytes};
    return std::fwrite(&header, sizeof header, 1, file_.get()) == 1 &&
           std::fwrite(frame, 1, bytes, file_.get()) == bytes;
}

bool PcapWriter::flush() { return std::fflush(file_.get()) == 0; }

}  // namespace ina::sw
