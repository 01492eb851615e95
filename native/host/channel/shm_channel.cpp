#include "host/channel/shm_channel.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <stdexcept>
#include <string>
#include <system_error>

namespace ina::host {
namespace {

// Packets that are built, or read, before the switch gets something to do: few enough to stay in
// the first-level cache.
constexpr std::size_t kBurstPackets = 32;

std::size_t size_of(int fd) {
    struct stat found{};
    if (::fstat(fd, &found) != 0) {
        throw std::system_error(errno, std::generic_category(), "fstat of shared memory");
    }
    return static_cast<std::size_t>(found.st_size);
}

}  // namespace

ShmChannel::ShmChannel(int fd, int memory_fd, int results_fd, const shm::Shape &shape)
    : fd_(::fcntl(fd, F_DUPFD_CLOEXEC, 0)), shape_(shape) {
    if (fd_ < 0) throw std::system_error(errno, std::generic_category(), "dup of the connection");
    std::size_t results_bytes = 0;
    try {
        const std::size_t bytes = size_of(memory_fd);
        if (!shape.is_valid() || bytes != shape.segment_bytes()) {
            throw std::invalid_argument("shared memory of " + std::to_string(bytes) +
                                        " bytes, not of the size that was asked for");
        }
        segment_ = shm::Segment(memory_fd, bytes, shm::Access::kWrite, shm::Fill::kNow);
        results_bytes = size_of(results_fd);
        results_ = shm::Segment(results_fd, results_bytes, shm::Access::kRead, shm::Fill::kLater);
    } catch (...) {
        close();
        throw;
    }
    to_switch_ = shm::Producer(shm::ring_to_switch(segment_.data(), shape));
    from_switch_ =
        shm::Consumer(shm::ring_to_worker(segment_.data(), shape, results_.data(), results_bytes));
}

ShmChannel::~ShmChannel() { close(); }

void ShmChannel::close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
}

std::size_t ShmChannel::burst_packets() const { return kBurstPackets; }

PacketMemory ShmChannel::packet_memory() {
    return {shm::frames(segment_.data(), shape_), shape_.frame_bytes(), shape_.cells};
}

void ShmChannel::send(const PacketView *packets, std::size_t count, std::size_t /*train*/,
                      std::size_t /*way*/) {
    if (is_gone_) {
        ++counters_.refused;
        counters_.send_drops += count;
        return;
    }
    const std::uint8_t *const frames = shm::frames(segment_.data(), shape_);
    for (std::size_t i = 0; i < count; ++i) {
        const PacketView &packet = packets[i];
        const std::uint8_t *const values = packet.data + shm::kHeadBytes;
        const auto at = static_cast<std::size_t>(values - frames);
        // A packet from elsewhere is refused: `at` is then beyond the frames.
        if (at > shape_.frames_bytes() ||
            !to_switch_.put(packet.data, packet.bytes, static_cast<std::uint32_t>(at), false)) {
            ++counters_.send_drops;
        }
    }
    to_switch_.publish();
    wake_switch(true);
}

bool ShmChannel::receive(std::vector<Arrival> *arrivals) {
    arrivals->clear();
    if (has_slept_) {
        has_slept_ = false;
        from_switch_.wake_up();
        drain();
    }
    const std::uint32_t waiting = from_switch_.waiting();
    if (waiting == UINT32_MAX) {
        note_gone();
        return false;
    }
    const std::size_t count = std::min<std::size_t>(waiting, kBurstPackets);
    for (std::size_t i = 0; i < count; ++i) {
        const shm::Consumer::Packet packet = from_switch_.take();
        if (packet.head == nullptr) continue;
        __builtin_prefetch(packet.rest);
        arrivals->push_back({packet.head, packet.bytes, packet.marked, packet.rest});
    }
    return waiting > count;
}

bool ShmChannel::prepare_sleep(std::uint32_t in_flight) {
    if (is_gone_) return from_switch_.waiting() - 1 >= shape_.cells;  // nothing, or nonsense
    wake_switch(false);
    left_core_.leave(from_switch_.core_to_leave());
    has_slept_ = true;
    // Woken for half of the window: a wake costs as much as some tens of packets. The switch wakes
    // for less before it goes to sleep itself, so nobody waits for packets that are here.
    const std::uint32_t wanted = std::clamp<std::uint32_t>(in_flight, 1, shape_.cells / 4);
    if (from_switch_.prepare_sleep(wanted)) return true;
    has_slept_ = false;
    return false;
}

void ShmChannel::wake_switch(bool patient) {
    if (is_gone_ || !to_switch_.must_wake(patient)) return;
    ++counters_.send_calls;
    const char byte = 0;
    if (::send(fd_, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno != EAGAIN &&
        errno != EINTR) {
        note_gone();
    }
}

// Takes the bytes that woke us, and sees whether the switch is still there.
void ShmChannel::drain() {
    if (is_gone_) return;
    std::array<char, 64> ignored;
    ++counters_.receive_calls;
    const ssize_t bytes = ::recv(fd_, ignored.data(), ignored.size(), MSG_DONTWAIT);
    if (bytes > 0 || (bytes < 0 && (errno == EAGAIN || errno == EINTR))) return;
    note_gone();
}

void ShmChannel::note_gone() {
    is_gone_ = true;
    ++counters_.refused;
}

}  // namespace ina::host
