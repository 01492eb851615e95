#include "host/channel/ring_channel.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "common/clock.hpp"
#include "common/ina_wire.hpp"
#include "host/channel/udp_group.hpp"

namespace ina::host {
namespace {

constexpr std::size_t kFrameBytes = 9216;
constexpr std::size_t kBatch = 64;
constexpr std::int64_t kSecond = 1'000'000'000;

[[noreturn]] void fail(const char *what) {
    throw std::system_error(errno, std::generic_category(), what);
}

// The socket's DSCP, and ECN-capable, as NICs with congestion control say.
std::uint8_t tos_of(int fd) {
    int tos = 0;
    socklen_t length = sizeof tos;
    (void)::getsockopt(fd, IPPROTO_IP, IP_TOS, &tos, &length);
    return static_cast<std::uint8_t>((tos & ~IPTOS_ECN_MASK) | IPTOS_ECN_ECT0);
}

}  // namespace

struct RingChannel::Received {
    std::array<std::array<std::uint8_t, kFrameBytes>, kBatch> frames;
    std::array<iovec, kBatch> vectors;
    std::array<mmsghdr, kBatch> messages;
};

RingChannel::RingChannel(int fd, const RingEnds &ends, std::uint32_t lanes,
                         int receive_buffer_bytes)
    : socket_(::fcntl(fd, F_DUPFD_CLOEXEC, 0)),
      timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)),
      endpoint_(ends, lanes, tos_of(fd)), received_(std::make_unique<Received>()),
      out_(4 * kBatch) {
    if (socket_.get() < 0) fail("dup of the UDP socket");
    if (timer_.get() < 0) fail("timerfd_create");
    both_ = watch_both(socket_.get(), timer_.get());
    for (const int name : {SO_RCVBUF, SO_SNDBUF}) {
        (void)::setsockopt(fd, SOL_SOCKET, name, &receive_buffer_bytes,
                           sizeof receive_buffer_bytes);
    }
    socklen_t length = sizeof receive_buffer_bytes_;
    (void)::getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes_, &length);
}

RingChannel::~RingChannel() = default;

void RingChannel::close() {
    both_.close();
    timer_.close();
    socket_.close();
}

std::uint32_t RingChannel::room_packets(std::uint32_t values_per_packet) const {
    // Of each packet a sum and an acknowledgement come.
    const std::size_t charged = 2 * wire::packet_bytes(values_per_packet) + 2048;
    return static_cast<std::uint32_t>(
        std::max<std::size_t>(static_cast<std::size_t>(receive_buffer_bytes_) / charged, 4));
}

void RingChannel::send(const PacketView *packets, std::size_t count, std::size_t /*longest_train*/,
                       std::size_t /*way*/) {
    endpoint_.send(packets, count, now_ns(), this);
    flush();
    tally();
}

bool RingChannel::receive(std::vector<Arrival> *arrivals) {
    arrivals->clear();
    const std::int64_t time_ns = now_ns();
    Received &area = *received_;
    for (std::size_t i = 0; i < kBatch; ++i) {
        area.vectors[i] = {area.frames[i].data(), kFrameBytes};
        area.messages[i] = {};
        area.messages[i].msg_hdr.msg_iov = &area.vectors[i];
        area.messages[i].msg_hdr.msg_iovlen = 1;
    }
    ++counters_.receive_calls;
    const int count =
        ::recvmmsg(socket_.get(), area.messages.data(), kBatch, MSG_DONTWAIT, nullptr);
    if (count < 0 && errno == ECONNREFUSED) ++refused_;
    for (int i = 0; i < count; ++i) {
        endpoint_.take(area.frames[static_cast<std::size_t>(i)].data(),
                       area.messages[static_cast<std::size_t>(i)].msg_len, time_ns, arrivals, this);
    }
    endpoint_.look_at_timers(time_ns, this);
    flush();
    tally();
    return count == static_cast<int>(kBatch);
}

void RingChannel::tally() {
    owes_ = endpoint_.owes();
    counters_.damaged = endpoint_.damaged();
    counters_.refused = refused_;
    counters_.spent = endpoint_.has_failed() ? 1 : 0;
}

bool RingChannel::prepare_sleep(std::uint32_t /*in_flight*/) {
    const std::int64_t at_ns = endpoint_.deadline_ns();
    itimerspec when{};
    if (at_ns != INT64_MAX) {
        when.it_value.tv_sec = at_ns / kSecond;
        when.it_value.tv_nsec = at_ns % kSecond;
    }
    (void)::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
    return true;
}

std::uint8_t *RingChannel::add(std::size_t bytes) {
    if (out_count_ == out_.size()) flush();
    std::vector<std::uint8_t> &frame = out_[out_count_++];
    frame.resize(bytes);
    return frame.data();
}

void RingChannel::flush() {
    std::array<mmsghdr, kBatch> messages;
    std::array<iovec, kBatch> vectors;
    for (std::size_t done = 0; done < out_count_;) {
        const std::size_t count = std::min(kBatch, out_count_ - done);
        for (std::size_t i = 0; i < count; ++i) {
            vectors[i] = {out_[done + i].data(), out_[done + i].size()};
            messages[i] = {};
            messages[i].msg_hdr.msg_iov = &vectors[i];
            messages[i].msg_hdr.msg_iovlen = 1;
        }
        ++counters_.send_calls;
        const int sent = ::sendmmsg(socket_.get(), messages.data(), static_cast<unsigned>(count),
                                    MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent > 0) {
            done += static_cast<std::size_t>(sent);
            continue;
        }
        if (errno == EINTR) continue;
        if (errno == ECONNREFUSED) ++refused_;
        ++counters_.send_drops;  // the connection sends it again
        ++done;
    }
    out_count_ = 0;
}

}  // namespace ina::host
