// A capture file at a port of the switch: refused in one line when the port is opened, or read to
// its end.
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <system_error>

#include "switch/pcap_port.hpp"
#include "testing/doors.hpp"

namespace ina::testing {

namespace {

// A file that is nowhere but in memory, with a name as long as it lives.
class MemoryFile {
  public:
    explicit MemoryFile(const Bytes &content) : fd_(::memfd_create("ina-door", MFD_CLOEXEC)) {
        if (fd_ < 0) throw std::system_error(errno, std::generic_category(), "memfd_create");
        std::size_t done = 0;
        while (done < content.size()) {
            const ssize_t wrote = ::write(fd_, content.data() + done, content.size() - done);
            if (wrote < 0) {
                ::close(fd_);
                throw std::system_error(errno, std::generic_category(), "write");
            }
            done += static_cast<std::size_t>(wrote);
        }
    }
    ~MemoryFile() { ::close(fd_); }
    MemoryFile(const MemoryFile &) = delete;
    MemoryFile &operator=(const MemoryFile &) = delete;

    std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

  private:
    int fd_;
};

void drain(sw::PcapPort *port, std::size_t file_bytes) {
    sw::FrameBatch batch;
    std::size_t bytes = 0;
    while (!port->finished()) {
        port->receive(&batch);
        for (const ina_packet_in &packet : batch.packets()) {
            touch(packet.data, packet.length);
            bytes += packet.length;
        }
        batch.clear();
    }
    const sw::PortCounters &counters = port->counters();
    promise(counters.malformed_packets.get() == 0, "what was whole when opened is read to its end");
    promise(counters.rx_bytes.get() >= bytes && bytes <= file_bytes, "frames are of the file");
}

}  // namespace

void enter_pcap_file(Input input) {
    const Bytes content = input.rest();
    const MemoryFile file(content);
    try {
        sw::PcapPort port(1, file.path(), "", 0.0, 0);
        drain(&port, content.size());
    } catch (const std::invalid_argument &refusal) {
        const std::string why = refusal.what();
        promise(why.rfind(file.path(), 0) == 0, "a refusal names the file");
        promise(why.find('\n') == std::string::npos, "a refusal is one line");
    }
}

}  // namespace ina::testing
