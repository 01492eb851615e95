// How a worker in the virtual network changes to another mapping of its job: in the steps, and by
// the rules, of host::Transport (host/transport/transport_remap.cpp).
#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "sim/worker.hpp"

namespace ina::sim {

void Worker::begin_remap(const host::WorkerConfig &config, std::uint32_t max_in_flight,
                         const congestion::Choice &window) {
    check_remap(false, false);
    if (static_cast<std::uint16_t>(config.epoch) ==
        static_cast<std::uint16_t>(mappings_.front()->epoch)) {
        throw std::invalid_argument("the new mapping has the epoch of the old one, " +
                                    std::to_string(config.epoch));
    }
    mappings_.push_back(std::make_unique<Mapping>(config, setup_, max_in_flight, window));
    mappings_.back()->set_congestion(nullptr, most_packets_);
    mappings_.back()->is_open = false;
}

std::uint64_t Worker::reserve(std::int64_t news_ns) {
    check_remap(true, false);
    if (first_of_new_ == 0) {
        first_of_new_ = next_id_ + submit_times_.since(engine_->now_ns() - news_ns);
    }
    return first_of_new_;
}

void Worker::cut_over(std::uint64_t first, bool may_send) {
    check_remap(true, is_cut_);
    if (first_of_new_ != 0 && first_of_new_ != first) {
        throw std::logic_error("the first operation of the new mapping is " +
                               std::to_string(first_of_new_) + ", not " + std::to_string(first));
    }
    if (first == 0 || (!is_cut_ && agreed() >= first)) {
        throw std::invalid_argument("operation " + std::to_string(agreed()) +
                                    " has results by the old mapping, and " +
                                    std::to_string(first) + " is to be the new one's first");
    }
    if (!is_cut_) {
        first_of_new_ = first;
        is_cut_ = true;
        for (const auto &share : mappings_.front()->shares) {
            share->core.withdraw_from(first);
            share->audit.withdrawn_from(first);
        }
        place_from(first, *mappings_.back());
    }
    if (may_send) open(*mappings_.back());
    work_at(engine_->now_ns());
}

bool Worker::wait_cut(std::int64_t) const {
    check_remap(true, true);
    return next_id_ >= first_of_new_ &&
           (pending_.empty() || pending_.begin()->first >= first_of_new_);
}

void Worker::end_remap() {
    if (!wait_cut(0)) {
        throw std::logic_error("operations before " + std::to_string(first_of_new_) +
                               " are not done");
    }
    for (const auto &share : mappings_.front()->shares) {
        host::add_counters(&retired_, share->core.counters());
    }
    mappings_.erase(mappings_.begin());
    is_cut_ = false;
    first_of_new_ = 0;
    open(*mappings_.front());
    work_at(engine_->now_ns());
}

void Worker::cancel_remap() {
    check_remap(true, false);
    mappings_.pop_back();
    if (first_of_new_ != 0) place_from(first_of_new_, *mappings_.front());
    first_of_new_ = 0;
    work_at(engine_->now_ns());
}

std::vector<std::pair<std::uint32_t, std::uint32_t>> Worker::mappings() const {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> found;
    for (const auto &mapping : mappings_) found.emplace_back(mapping->epoch, mapping->window);
    return found;
}

void Worker::check_remap(bool has_second, bool is_cut) const {
    newest();
    if ((mappings_.size() > 1) != has_second) {
        throw std::logic_error(has_second ? "no change of mapping has begun"
                                          : "a change of mapping is under way");
    }
    if (is_cut_ != is_cut) {
        throw std::logic_error(is_cut ? "operations do not go by the new mapping yet"
                                      : "operations go by the new mapping already");
    }
}

void Worker::place_from(std::uint64_t first, Mapping &mapping) {
    for (const host::TensorRequest &request : submissions_.from(first)) place(mapping, request);
}

void Worker::open(Mapping &mapping) {
    mapping.is_open = true;
    for (const host::Submission &placed : std::exchange(mapping.held, {})) give(mapping, placed);
}

}  // namespace ina::sim
