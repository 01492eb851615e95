// How a transport changes from one mapping to another while it works (docs/resize.md).
//
// What makes it right is that one worker of the job has sent nothing of the first operation of the
// new mapping, or of any later one, by the old mapping, and sends nothing: so no worker ever gets a
// result of theirs there. They are taken out of the old mapping's cores, sent or not, before any
// core of the new one has them: an operation's memory is the caller's again once it is done.
#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "common/clock.hpp"
#include "host/transport/transport.hpp"

namespace ina::host {
namespace {

// Bits of an operation, for the shares of each of two mappings.
constexpr std::uint32_t kBitsOfMapping = 32;

// The same with what the worker has learnt of the network.
WorkerConfig warmed(WorkerConfig config, const Mapping &by) {
    std::int64_t rto_ns = 0;
    for (const auto &share : by.shares) {
        const std::lock_guard lock(share->mutex);
        const RttEstimator &rtt = share->core.recovery().rtt();
        if (rtt.srtt_ns() > 0) rto_ns = std::max(rto_ns, rtt.timeout_ns());
    }
    if (rto_ns > 0) config.rto.initial_ns = std::min(rto_ns, config.rto.max_ns);
    return config;
}

// Those of the older mapping stay where they are in the list: its shares know them by number.
std::vector<Way> with_ways(std::vector<Way> ways, const Mapping &older,
                           const std::vector<Tree> &newer) {
    for (Way &way : ways) way.jobs.clear();
    add_ways(older.trees, &ways);
    add_ways(newer, &ways);
    return ways;
}

}  // namespace

void Transport::begin_remap(const WorkerConfig &config, std::uint32_t max_in_flight,
                            const congestion::Choice &congestion) {
    const std::lock_guard remapping(remap_mutex_);
    Layout before;
    {
        const std::lock_guard lock(mutex_);
        check_remap(false, false);
        before = layout_;
    }
    Layout layout = before;
    const Mapping &older = *layout.mappings[0];
    if (static_cast<std::uint16_t>(config.epoch) == static_cast<std::uint16_t>(older.epoch)) {
        throw std::invalid_argument("the new mapping has the epoch of the old one, " +
                                    std::to_string(config.epoch));
    }
    layout.ways = with_ways(layout.ways, older, trees_of(config));
    PacketMemory memory;
    if (workers_.size() == 1) {
        memory =
            frames_beside(workers_[0]->channel->packet_memory(), older.memory, window_of(config));
    }
    const auto newer = std::make_shared<Mapping>(
        warmed(config, older), most_in_flight(config, max_in_flight), congestion, channels(),
        layout.ways, memory, older.first_bit == 0 ? kBitsOfMapping : 0);
    newer->set_congestion(nullptr, most_packets_);
    newer->is_open = false;
    layout.mappings.push_back(newer);
    publish(layout);
    await_adoption();
    std::string refused;
    {
        const std::lock_guard lock(mutex_);
        refused.swap(redirect_error_);
    }
    if (refused.empty()) return;
    publish(before);
    throw std::runtime_error(refused);
}

std::uint64_t Transport::reserve(std::int64_t news_ns) {
    const std::lock_guard remapping(remap_mutex_);
    const std::lock_guard lock(mutex_);
    check_remap(true, false);
    if (first_of_new_ == 0) first_of_new_ = next_id_ + submit_times_.since(now_ns() - news_ns);
    return first_of_new_;
}

void Transport::cut_over(std::uint64_t first, bool may_send) {
    const std::lock_guard remapping(remap_mutex_);
    Layout layout;
    {
        const std::lock_guard lock(mutex_);
        check_remap(true, is_cut_);
        if (first_of_new_ != 0 && first_of_new_ != first) {
            throw std::logic_error("the first operation of the new mapping is " +
                                   std::to_string(first_of_new_) + ", not " +
                                   std::to_string(first));
        }
        if (first == 0 || (!is_cut_ && agreed_ >= first)) {
            throw std::invalid_argument("operation " + std::to_string(agreed_) +
                                        " has results by the old mapping, and " +
                                        std::to_string(first) + " is to be the new one's first");
        }
        first_of_new_ = first;
        layout = layout_;
    }
    Mapping &newer = *layout.mappings[1];
    if (!is_cut_) {
        for (const auto &share : layout.mappings[0]->shares) {
            const std::lock_guard owned(share->mutex);
            {
                const std::lock_guard lock(mutex_);
                std::vector<Submission> &inbox = share->inbox;
                inbox.erase(
                    std::remove_if(inbox.begin(), inbox.end(),
                                   [&](const auto &one) { return one.request.id >= first; }),
                    inbox.end());
            }
            share->core.withdraw_from(first);
        }
    }
    layout.parts = newer.parts();
    {
        const std::lock_guard lock(mutex_);
        if (!is_cut_) place_from(first, newer);
        is_cut_ = true;
        newer.is_open = newer.is_open || may_send;
    }
    publish(layout);
}

bool Transport::wait_cut(std::int64_t timeout_ns) {
    std::uint64_t first = 0;
    {
        const std::lock_guard lock(mutex_);
        check_remap(true, true);
        first = first_of_new_;
    }
    return operations_.wait_before(first, timeout_ns);
}

void Transport::end_remap() {
    const std::lock_guard remapping(remap_mutex_);
    Layout layout;
    {
        const std::lock_guard lock(mutex_);
        check_remap(true, true);
        if (!operations_.wait_before(first_of_new_, 0)) {
            throw std::logic_error("operations before " + std::to_string(first_of_new_) +
                                   " are not done");
        }
        layout = layout_;
        retiring_ = layout.mappings[0];
        layout.mappings.erase(layout.mappings.begin());
        layout.mappings[0]->is_open = true;
        is_cut_ = false;
        first_of_new_ = 0;
    }
    publish(layout);
    await_adoption();  // what it counted is then final
    WorkerCounters counted;
    for (const auto &share : retiring_->shares) {
        const std::lock_guard lock(share->mutex);
        add_counters(&counted, share->core.counters());
    }
    const std::lock_guard lock(mutex_);
    add_counters(&retired_, counted);
    retiring_.reset();
}

void Transport::cancel_remap() {
    const std::lock_guard remapping(remap_mutex_);
    Layout layout;
    {
        const std::lock_guard lock(mutex_);
        check_remap(true, false);
        layout = layout_;
        layout.mappings.pop_back();
        if (first_of_new_ != 0) place_from(first_of_new_, *layout.mappings[0]);
        first_of_new_ = 0;
    }
    publish(layout);
}

// With mutex_ held, too.
void Transport::check_remap(bool has_second, bool is_cut) const {
    if (is_ending()) throw std::logic_error("the transport has ended, or is frozen");
    if ((layout_.mappings.size() > 1) != has_second) {
        throw std::logic_error(has_second ? "no change of mapping has begun"
                                          : "a change of mapping is under way");
    }
    if (is_cut_ != is_cut) {
        throw std::logic_error(is_cut ? "operations do not go by the new mapping yet"
                                      : "operations go by the new mapping already");
    }
}

// What waits for it, or was taken back: by this mapping. With mutex_ held, too.
void Transport::place_from(std::uint64_t first, Mapping &mapping) {
    for (const TensorRequest &request : submissions_.from(first)) place(mapping, request);
}

void Transport::publish(const Layout &layout) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t version = layout_.version + 1;
    layout_ = layout;
    version_ = layout_.version = version;
    wake_all();
}

// Until each thread works by what was published last, or the threads end.
void Transport::await_adoption() {
    std::unique_lock lock(mutex_);
    adopted_.wait(lock, [&] {
        const auto has_adopted = [&](const auto &worker) {
            return worker->adopted == layout_.version;
        };
        return is_ending() || std::all_of(workers_.begin(), workers_.end(), has_adopted);
    });
}

}  // namespace ina::host
