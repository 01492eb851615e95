#include "embed/service.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <stdexcept>
#include <system_error>

#include "common/clock.hpp"
#include "common/short_slices.hpp"

namespace ina::embed {
namespace {

constexpr int kBufferBytes = 8 << 20;                  // asked for; the kernel grants what it likes
constexpr std::int64_t kLongestSleepNs = 100'000'000;  // what wakes it may be lost by nobody

[[noreturn]] void fail(const char *what) {
    throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

Service::Service(int fd, const GroupConfig &config, const ClientConfig &own,
                 std::vector<Peer> peers, const Losses &losses)
    : socket_(::fcntl(fd, F_DUPFD_CLOEXEC, 0)), bell_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      peers_(std::move(peers)), received_(kHeaderBytes + kMaskBytes + config.part_bytes),
      node_(config, own), losses_(losses), chance_(losses.seed), asked_(config.tables.size()) {
    if (!(losses.rate >= 0.0 && losses.rate < 1.0)) {
        throw std::invalid_argument("loss rate must be 0 to below 1");
    }
    if (peers_.size() != config.hosts) throw std::invalid_argument("want a peer for each host");
    if (socket_.get() < 0) fail("dup of the UDP socket");
    if (bell_.get() < 0) fail("eventfd");
    for (const int name : {SO_RCVBUF, SO_SNDBUF}) {
        (void)::setsockopt(socket_.get(), SOL_SOCKET, name, &kBufferBytes, sizeof kBufferBytes);
    }
    thread_ = std::thread([this] { run(); });
}

Service::~Service() { close(); }

void Service::close() {
    {
        const std::lock_guard lock(mutex_);
        is_closed_ = true;
    }
    wake();
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
}

// So that the thread does not sleep beyond a timeout that it does not know of.
void Service::wake_in_time() {
    if (node_.next_deadline_ns() < sleeps_until_ns_) wake();
}

void Service::wake() {
    const std::uint64_t one = 1;
    (void)!::write(bell_.get(), &one, sizeof one);
}

Client::Ticket Service::look_up(std::uint32_t step, std::uint16_t table, const BagSource &bags,
                                bool with_state) {
    const std::lock_guard lock(mutex_);
    return node_.client().look_up(step, table, bags, with_state);
}

void Service::take(Client::Ticket ticket, float *vectors) {
    const std::lock_guard lock(mutex_);
    node_.client().take(ticket, vectors);
}

void Service::add_gradients(std::uint32_t step, std::uint16_t table, const BagSource &bags,
                            const float *vectors) {
    const std::lock_guard lock(mutex_);
    node_.client().add_gradients(step, table, bags, vectors);
    flush();
    wake_in_time();
}

std::vector<Client::Ticket> Service::look_up(std::uint32_t step, const Batch &batch) {
    std::vector<Client::Ticket> tickets;
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < batch.size(); ++i) {
        const BagSource asked = batch.asked(i);
        tickets.push_back(node_.client().look_up(step, batch.table(i), asked));
        TableCounters &table = asked_[batch.table(i)];
        (batch.is_by_row(i) ? table.rows : table.bags) += asked.bags;
    }
    flush();
    wake_in_time();
    return tickets;
}

void Service::take(const Batch &batch, const std::vector<Client::Ticket> &tickets,
                   const std::vector<float *> &vectors) {
    std::vector<float> came;
    for (std::size_t i = 0; i < batch.size(); ++i) {
        if (batch.is_by_row(i) && !batch.is_plain(i)) {
            take(tickets[i], vectors[i]);
            continue;
        }
        came.resize(batch.asked(i).bags * batch.dim(i));
        take(tickets[i], came.data());
        batch.pool(i, came.data(), vectors[i]);
    }
}

void Service::add_gradients(std::uint32_t step, const Batch &batch,
                            const std::vector<const float *> &gradients) {
    std::vector<float> sums;
    for (std::size_t i = 0; i < batch.size(); ++i) {
        if (gradients[i] == nullptr) continue;
        sums.resize(batch.asked(i).bags * batch.dim(i));
        batch.spread(i, gradients[i], sums.data());
        add_gradients(step, batch.table(i), batch.asked(i), sums.data());
    }
}

void Service::end_step(std::uint32_t step, float rate) {
    const std::lock_guard lock(mutex_);
    node_.client().end_step(step, rate);
    flush();
    wake_in_time();
}

template <class IsDone>
Outcome Service::wait_until(std::int64_t timeout_ns, IsDone is_done) {
    std::unique_lock lock(mutex_);
    flush();
    wake_in_time();
    const auto over = [&] {
        return is_done() || is_closed_ || node_.client().failure() != nullptr ||
               !node_.owner().fault().empty();
    };
    changed_.wait_for(lock, std::chrono::nanoseconds(timeout_ns), over);
    if (is_done()) return Outcome::kDone;
    return over() ? Outcome::kFailed : Outcome::kNotYet;
}

Outcome Service::wait(const std::vector<Client::Ticket> &tickets, std::int64_t timeout_ns) {
    const auto is_done = [&](Client::Ticket one) { return node_.client().is_done(one); };
    return wait_until(timeout_ns,
                      [&] { return std::all_of(tickets.begin(), tickets.end(), is_done); });
}

Outcome Service::wait_for_gradients(std::int64_t timeout_ns) {
    return wait_until(timeout_ns, [&] { return node_.client().are_gradients_received(); });
}

Outcome Service::wait_for_version(std::uint32_t version, std::int64_t timeout_ns) {
    return wait_until(timeout_ns, [&] { return node_.owner().version() == version; });
}

Failure Service::failure() {
    const std::lock_guard lock(mutex_);
    if (!node_.owner().fault().empty()) {
        return {node_.config().host, node_.owner().version(), node_.owner().fault()};
    }
    if (const Failure *const failure = node_.client().failure()) return *failure;
    return {node_.config().host, node_.owner().version(), "is closed"};
}

Traffic Service::traffic() {
    const std::lock_guard lock(mutex_);
    return traffic_;
}

TableCounters Service::table_counters(std::size_t table) {
    const std::lock_guard lock(mutex_);
    TableCounters counters = asked_.at(table);
    counters.hot_hits = node_.client().hot().hits(table);
    const CacheCounters cache = node_.client().cache().counters(table);
    counters.cache_hits = cache.hits;
    counters.cache_misses = cache.misses;
    return counters;
}

void Service::run() {
    take_short_slices(SCHED_OTHER);
    for (;;) {
        std::int64_t sleep_ns = kLongestSleepNs;
        {
            const std::lock_guard lock(mutex_);
            if (is_closed_) return;
            const std::int64_t deadline_ns = node_.next_deadline_ns();
            if (deadline_ns != INT64_MAX) {
                sleep_ns = std::clamp<std::int64_t>(deadline_ns - host::now_ns(), 0, sleep_ns);
            }
            sleeps_until_ns_ = host::now_ns() + sleep_ns;
        }
        std::array<pollfd, 2> ready{{{socket_.get(), POLLIN, 0}, {bell_.get(), POLLIN, 0}}};
        const timespec limit{0, static_cast<long>(sleep_ns)};
        (void)::ppoll(ready.data(), ready.size(), &limit, nullptr);
        std::uint64_t rung = 0;
        (void)!::read(bell_.get(), &rung, sizeof rung);
        while (read()) {
        }
        changed_.notify_all();
    }
}

// True: more may be waiting.
bool Service::read() {
    std::unique_lock lock(mutex_, std::defer_lock);  // what the kernel copies is before it
    std::int64_t now_ns = 0;
    const bool is_full = received_.receive(
        socket_.get(), [&](const Peer &sender, const std::uint8_t *packet, std::size_t bytes) {
            if (!lock.owns_lock()) {
                lock.lock();
                now_ns = host::now_ns();
            }
            const auto from = std::find(peers_.begin(), peers_.end(), sender);
            ++traffic_.received_packets;
            traffic_.received_bytes += bytes;
            if (from == peers_.end()) {
                ++traffic_.strangers;
                return;
            }
            node_.receive(static_cast<std::uint16_t>(from - peers_.begin()), packet, bytes, now_ns);
        });
    if (!lock.owns_lock()) lock.lock();
    flush();
    return is_full && !is_closed_;
}

std::vector<Packet> Service::leaving() {
    const std::int64_t now_ns = host::now_ns();
    node_.poll(now_ns);
    std::vector<Packet> packets = node_.take_packets(now_ns);
    if (losses_.rate == 0.0) return packets;
    const auto is_lost = [&](const Packet &) {
        return std::generate_canonical<double, 53>(chance_) < losses_.rate;
    };
    const auto kept = std::remove_if(packets.begin(), packets.end(), is_lost);
    traffic_.lost += static_cast<std::uint64_t>(packets.end() - kept);
    packets.erase(kept, packets.end());
    return packets;
}

void Service::flush() {
    const std::vector<Packet> packets = leaving();
    for (const Packet &packet : packets) traffic_.sent_bytes += packet.bytes.size();
    traffic_.sent_packets += packets.size();
    // What the kernel does not take is sent again, as what is lost.
    traffic_.send_drops += send_datagrams(socket_.get(), packets.size(), [&](std::size_t i) {
        const Packet &packet = packets[i];
        return Datagram{peers_[packet.to], packet.bytes.data(), packet.bytes.size()};
    });
}

}  // namespace ina::embed
