#include "switch/shm_peer.hpp"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace ina::sw {

namespace {
constexpr uint8_t kEct0 = 2;  // ECN-capable, as a worker's UDP socket says
constexpr uint8_t kEcnMask = 3;
constexpr size_t kMaxTaken = 64;  // packets at a time

// Each cell ends up in a frame, so that one that is malformed in itself is the program's to judge.
bool is_right(const shm::Hello &hello) {
    return hello.magic == shm::kMagic && hello.version == shm::kVersion &&
           shm::Shape{hello.cells, hello.payload_bytes}.is_valid();
}
}  // namespace

ShmPeer::~ShmPeer() {
    let_go_until(to_worker_.next());
    ::close(fd_);
    if (memory_fd_ >= 0) ::close(memory_fd_);
}

ShmPeer::Heard ShmPeer::hear() {
    // MSG_DONTWAIT each time: the connection's flags are partly the worker's to change, too.
    uint8_t bytes[256];
    if (is_attached()) {
        const ssize_t got = recv(fd_, bytes, sizeof bytes, MSG_DONTWAIT);
        const bool goes_on = got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
        return goes_on ? Heard::kNothing : Heard::kEnd;
    }
    auto *const hello = reinterpret_cast<uint8_t *>(&hello_);
    const ssize_t got = recv(fd_, hello + heard_bytes_, sizeof hello_ - heard_bytes_, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Heard::kNothing;
    if (got <= 0) return Heard::kEnd;
    heard_bytes_ += static_cast<size_t>(got);
    return heard_bytes_ == sizeof hello_ ? Heard::kHello : Heard::kNothing;
}

shm::Status ShmPeer::attach(uint32_t port, Peer source, Peer switch_end) {
    source_ = source;
    switch_end_ = switch_end;
    const shm::Status status = is_right(hello_) ? make_rings() : shm::Status::kBadHello;
    if (!say(status, port, memory_fd_)) segment_ = {};
    if (memory_fd_ >= 0) ::close(memory_fd_);
    memory_fd_ = -1;
    return status;
}

void ShmPeer::refuse(shm::Status status) { say(status, 0, -1); }

shm::Status ShmPeer::make_rings() {
    const shm::Shape shape{hello_.cells, hello_.payload_bytes};
    memory_fd_ = memfd_create("ina-shm", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    // Sealed: a worker that cut it short would have the switch end with SIGBUS.
    if (memory_fd_ < 0 || ftruncate(memory_fd_, static_cast<off_t>(shape.segment_bytes())) < 0 ||
        fcntl(memory_fd_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        return shm::Status::kNoMemory;
    try {
        segment_ =
            shm::Segment(memory_fd_, shape.segment_bytes(), shm::Access::kWrite, shm::Fill::kNow);
    } catch (const std::system_error &) {
        return shm::Status::kNoMemory;
    }
    from_worker_ = shm::Consumer(shm::ring_to_switch(segment_.data(), shape));
    to_worker_ = shm::Producer(shm::ring_to_worker(segment_.data(), shape, nullptr, 0));
    blocks_.assign(shape.cells, ShmResults::kNoBlock);
    return shm::Status::kAttached;
}

bool ShmPeer::say(shm::Status status, uint32_t port, int memory_fd) {
    shm::Welcome welcome;
    welcome.status = status;
    welcome.switch_port = port;
    welcome.address = source_.ipv4;
    welcome.udp_port = source_.udp_port;
    iovec part{&welcome, sizeof welcome};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    const int fds[] = {memory_fd, results_->fd()};
    alignas(cmsghdr) uint8_t control[CMSG_SPACE(sizeof fds)] = {};
    if (status == shm::Status::kAttached) {
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        cmsghdr *const entry = CMSG_FIRSTHDR(&message);
        entry->cmsg_level = SOL_SOCKET;
        entry->cmsg_type = SCM_RIGHTS;
        entry->cmsg_len = CMSG_LEN(sizeof fds);
        std::memcpy(CMSG_DATA(entry), fds, sizeof fds);
    }
    return sendmsg(fd_, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof welcome;
}

bool ShmPeer::receive(FrameBatch *batch, Port *port, uint32_t limit) {
    const uint32_t waiting = from_worker_.waiting();
    if (waiting == UINT32_MAX) return false;
    PortCounters &counters = port->mutable_counters();
    const size_t count = batch->room_for(kFrameHeaderBytes + shm::kHeadBytes,
                                         std::min<size_t>({waiting, limit, kMaxTaken}));
    if (count == 0) return true;
    // All heads first: they lie in another core's cache, and are on their way at the same time.
    std::array<shm::Consumer::Packet, kMaxTaken> packets;
    for (size_t i = 0; i < count; ++i) {
        packets[i] = from_worker_.take();
        __builtin_prefetch(packets[i].rest);
    }
    size_t rx_bytes = 0;
    for (size_t i = 0; i < count; ++i) {
        const shm::Consumer::Packet &packet = packets[i];
        rx_bytes += kFrameHeaderBytes + packet.bytes;
        if (!packet.head) {
            counters.malformed_packets.add(1);
            continue;
        }
        if (port->loses_arrival()) continue;
        append(packet, batch, port->number());
    }
    from_worker_.release();
    counters.rx_packets.add(count);
    counters.rx_bytes.add(rx_bytes);
    return true;
}

void ShmPeer::set_dscp(uint8_t dscp) {
    if (dscp == dscp_) return;
    dscp_ = dscp;
    header_for_bytes_ = SIZE_MAX;
}

void ShmPeer::append(const shm::Consumer::Packet &packet, FrameBatch *batch, uint32_t port) {
    const size_t head_bytes = std::min(packet.bytes, shm::kHeadBytes);
    uint8_t *const frame = batch->reserve(kFrameHeaderBytes + head_bytes);
    if (!frame) return;  // cannot be: there was room for all
    if (packet.bytes != header_for_bytes_) {
        const auto tos = static_cast<uint8_t>(dscp_ << 2 | kEct0);
        write_frame_header(header_, source_, switch_end_, tos, packet.bytes);
        header_for_bytes_ = packet.bytes;
    }
    std::memcpy(frame, header_, kFrameHeaderBytes);
    std::memcpy(frame + kFrameHeaderBytes, packet.head, head_bytes);
    const size_t rest_bytes = packet.bytes - head_bytes;
    batch->commit_with(kFrameHeaderBytes + head_bytes, rest_bytes ? packet.rest : nullptr,
                       rest_bytes, port, batch->now_ns);
}

bool ShmPeer::send(const Datagram &datagram) {
    const bool marked = (datagram.tos & kEcnMask) == kEcnMask;
    const size_t bytes = datagram.payload_bytes + datagram.tail_bytes;
    uint32_t &block = blocks_[to_worker_.cell_index(to_worker_.next())];
    if (block != ShmResults::kNoBlock) reclaim();  // what the cell had before
    if (bytes <= shm::kHeadBytes && datagram.tail_bytes == 0)
        return to_worker_.put_copy(datagram.payload, bytes, nullptr, marked);
    // A program may share a tail that begins elsewhere than behind the header; ina's own does not.
    if (datagram.tail_bytes != 0 && datagram.payload_bytes != shm::kHeadBytes)
        return send_gathered(datagram, marked);
    const uint8_t *const rest =
        datagram.tail_bytes != 0 ? datagram.tail : datagram.payload + shm::kHeadBytes;
    const ShmResults::Location location = results_->put(rest, bytes - shm::kHeadBytes);
    if (location.block == ShmResults::kNoBlock)
        return to_worker_.put_copy(datagram.payload, bytes, rest, marked);
    if (!to_worker_.put(datagram.payload, bytes, location.at, marked)) return false;
    block = location.block;
    results_->hold(block);
    return true;
}

bool ShmPeer::send_gathered(const Datagram &datagram, bool marked) {
    std::vector<uint8_t> whole(datagram.payload, datagram.payload + datagram.payload_bytes);
    whole.insert(whole.end(), datagram.tail, datagram.tail + datagram.tail_bytes);
    const uint8_t *const rest = whole.data() + std::min(whole.size(), shm::kHeadBytes);
    return to_worker_.put_copy(whole.data(), whole.size(), rest, marked);
}

void ShmPeer::reclaim() { let_go_until(to_worker_.released()); }

void ShmPeer::let_go_until(uint32_t position) {
    for (; reclaimed_ != position; ++reclaimed_) {
        uint32_t &block = blocks_[to_worker_.cell_index(reclaimed_)];
        if (block != ShmResults::kNoBlock) results_->let_go(block);
        block = ShmResults::kNoBlock;
    }
}

void ShmPeer::publish() {
    to_worker_.publish();
    wake(false);
}

void ShmPeer::wake(bool all) {
    if (!to_worker_.must_wake(!all)) return;
    const uint8_t byte = 0;
    // EAGAIN: the worker has not read earlier ones, so it is awake. Anything else: hear() says.
    [[maybe_unused]] const ssize_t sent = ::send(fd_, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace ina::sw
