#include "infer/service.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "common/clock.hpp"
#include "common/short_slices.hpp"

namespace ina::infer {
namespace {

constexpr int kBufferBytes = 8 << 20;  // asked for; the kernel grants what it likes
constexpr std::int64_t kLongestSleepNs = 1'000'000'000;  // what wakes it may be lost by nobody
constexpr std::size_t kTasks = SIZE_MAX;                 // in place of a link: other nodes' socket

int duplicate(int fd) {
    const int own = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own < 0) throw std::system_error(errno, std::generic_category(), "dup of a UDP socket");
    for (const int name : {SO_RCVBUF, SO_SNDBUF}) {
        (void)::setsockopt(own, SOL_SOCKET, name, &kBufferBytes, sizeof kBufferBytes);
    }
    return own;
}

std::vector<StageSums> sums_of(const std::vector<StageLink> &links) {
    std::vector<StageSums> sums;
    for (const StageLink &link : links) sums.push_back({link.stage, link.engine});
    return sums;
}

// Of a datagram: tasks of the plan, and results of its jobs.
std::size_t packet_bytes(const Program &program) {
    return kHeaderBytes + kValueBytes * std::max<std::size_t>(program.packet_values, 4096);
}

}  // namespace

Service::Service(int fd, Program program, const EntryConfig &entry,
                 const std::vector<StageLink> &links, const Losses &losses,
                 std::size_t most_moments)
    : socket_(duplicate(fd)), bell_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      received_(packet_bytes(program)),
      node_(std::move(program), entry, sums_of(links), most_moments), losses_(losses),
      chance_(losses.seed) {
    if (!(losses.rate >= 0.0 && losses.rate < 1.0)) {
        throw std::invalid_argument("loss rate must be 0 to below 1");
    }
    if (bell_.get() < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
    for (const StageLink &link : links) {
        links_.push_back(std::make_unique<host::Descriptor>(duplicate(link.fd)));
        link.engine->set_bell([this] { wake(); });
    }
    sigset_t all;  // signals belong to the interpreter's threads
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { run(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    pthread_setname_np(thread_.native_handle(), "ina-infer");
}

Service::~Service() { close(); }

void Service::close() {
    {
        const std::lock_guard lock(mutex_);
        if (std::exchange(is_closed_, true)) return;
    }
    wake();
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
    for (const StageSums &one : node_.sums()) one.engine->set_bell({});
}

void Service::wake() {
    const std::uint64_t one = 1;
    (void)!::write(bell_.get(), &one, sizeof one);
}

void Service::fail(const Failure &failure) {
    with_node([&](Node &node) { node.fail(failure); });
    wake();
}

bool Service::wait_failed(std::int64_t timeout_ns) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::nanoseconds(timeout_ns), [this] {
        return is_closed_ || node_.failure().fault != Fault::kNone;
    });
}

// 0: there is something to look at.
std::int64_t Service::sleep_ns() {
    const std::int64_t deadline_ns = node_.next_deadline_ns();
    if (!node_.may_wait()) return 0;
    if (deadline_ns == INT64_MAX) return kLongestSleepNs;
    return std::clamp<std::int64_t>(deadline_ns - host::now_ns(), 0, kLongestSleepNs);
}

void Service::run() {
    take_short_slices(SCHED_OTHER);
    thread_id_ = static_cast<int>(::syscall(SYS_gettid));
    std::vector<pollfd> ready{{socket_.get(), POLLIN, 0}, {bell_.get(), POLLIN, 0}};
    for (const auto &link : links_) ready.push_back({link->get(), POLLIN, 0});
    for (;;) {
        std::int64_t wait_ns = 0;
        {
            const std::lock_guard lock(mutex_);
            if (is_closed_) break;
            wait_ns = sleep_ns();
        }
        const timespec limit{static_cast<time_t>(wait_ns / 1'000'000'000),
                             static_cast<long>(wait_ns % 1'000'000'000)};
        (void)::ppoll(ready.data(), ready.size(), &limit, nullptr);
        const std::lock_guard lock(mutex_);
        ++traffic_.wakes;
        node_.awake();
        if ((ready[1].revents & POLLIN) != 0) {
            std::uint64_t rung = 0;
            (void)!::read(bell_.get(), &rung, sizeof rung);
        }
        if (ready[0].revents != 0) read(socket_.get(), kTasks);
        for (std::size_t i = 0; i < links_.size(); ++i) {
            if (ready[i + 2].revents != 0) read(links_[i]->get(), i);
        }
        work();
        if (node_.failure().fault != Fault::kNone) changed_.notify_all();
    }
    for (const StageSums &one : node_.sums()) one.engine->close();
}

void Service::read(int fd, std::size_t link) {
    const std::int64_t now_ns = host::now_ns();
    received_.receive(fd, [&](const Peer &from, const std::uint8_t *packet, std::size_t bytes) {
        ++traffic_.received_packets;
        if (link == kTasks) {
            node_.receive(from, packet, bytes, now_ns);
        } else {
            node_.receive_result(link, packet, bytes, now_ns, false);
        }
    });
}

void Service::work() {
    node_.work(host::now_ns(),
               [&](std::size_t link, const host::PacketView *packets, std::size_t count) {
                   leaving_.clear();
                   const Peer to = node_.sums()[link].engine->node();
                   for (std::size_t i = 0; i < count; ++i) {
                       leaving_.push_back({to, packets[i].data, packets[i].bytes});
                   }
                   send(links_[link]->get(), leaving_);
               });
    Outbox &outbox = node_.outbox();
    leaving_.clear();
    for (const Leaving &packet : outbox.packets()) {
        if (is_lost()) continue;
        leaving_.push_back({packet.to, outbox.data(packet), packet.bytes});
    }
    send(socket_.get(), leaving_);
    outbox.clear();
}

void Service::send(int fd, const std::vector<Datagram> &packets) {
    traffic_.sent_packets += packets.size();
    traffic_.send_drops +=
        send_datagrams(fd, packets.size(), [&](std::size_t i) { return packets[i]; });
}

bool Service::is_lost() {
    if (losses_.rate == 0.0) return false;
    const bool is_lost = std::generate_canonical<double, 53>(chance_) < losses_.rate;
    traffic_.lost += is_lost;
    return is_lost;
}

}  // namespace ina::infer
