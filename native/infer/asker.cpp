#include "infer/asker.hpp"

#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "common/clock.hpp"

namespace ina::infer {
namespace {

constexpr int kBufferBytes = 8 << 20;          // asked for; the kernel grants what it likes
constexpr std::int64_t kSliceNs = 50'000'000;  // another thread may have read what this waits for

}  // namespace

Asker::Asker(int fd, ClientConfig config)
    : socket_(::fcntl(fd, F_DUPFD_CLOEXEC, 0)),
      received_(kHeaderBytes + kValueBytes * std::size_t{config.packet_values}),
      client_(std::move(config), &outbox_) {
    if (socket_.get() < 0) {
        throw std::system_error(errno, std::generic_category(), "dup of the UDP socket");
    }
    for (const int name : {SO_RCVBUF, SO_SNDBUF}) {
        (void)::setsockopt(socket_.get(), SOL_SOCKET, name, &kBufferBytes, sizeof kBufferBytes);
    }
}

std::uint32_t Asker::ask(const std::int32_t *in, std::size_t blocks, std::int32_t *out,
                         std::int64_t patience_ns) {
    const std::lock_guard lock(mutex_);
    const std::int64_t now_ns = host::now_ns();
    const std::uint32_t request = client_.ask(in, blocks, out, now_ns + patience_ns);
    flush(now_ns);
    return request;
}

void Asker::forget(std::uint32_t request) {
    const std::lock_guard lock(mutex_);
    client_.forget(request);
}

Outcome Asker::wait(std::uint32_t request, std::int64_t timeout_ns) {
    const std::int64_t until_ns = host::now_ns() + timeout_ns;
    for (;;) {
        std::int64_t wait_ns = 0;
        {
            const std::lock_guard lock(mutex_);
            const std::int64_t now_ns = host::now_ns();
            while (received_.receive(
                socket_.get(), [&](const Peer &from, const std::uint8_t *data, std::size_t bytes) {
                    client_.receive(from, data, bytes, now_ns);
                })) {
            }
            flush(now_ns);
            const Outcome outcome = client_.outcome(request);
            if (outcome != Outcome::kPending || now_ns >= until_ns) return outcome;
            const std::int64_t next_ns = std::min(client_.next_deadline_ns(), until_ns);
            wait_ns = std::clamp<std::int64_t>(next_ns - now_ns, 0, kSliceNs);
        }
        pollfd ready{socket_.get(), POLLIN, 0};
        const timespec limit{0, static_cast<long>(wait_ns)};
        (void)::ppoll(&ready, 1, &limit, nullptr);
    }
}

void Asker::flush(std::int64_t now_ns) {
    client_.poll(now_ns);
    const std::vector<Leaving> &packets = outbox_.packets();
    (void)send_datagrams(socket_.get(), packets.size(), [&](std::size_t i) {
        return Datagram{packets[i].to, outbox_.data(packets[i]), packets[i].bytes};
    });
    outbox_.clear();
}

}  // namespace ina::infer
