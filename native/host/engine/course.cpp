#include "host/engine/course.hpp"

#include <stdexcept>
#include <string>

namespace ina::host {
namespace {

// Tensors that a share has no part in wait in its inbox until it is looked at, or there are so
// many.
constexpr std::size_t kInboxLimit = 64;

// What has no more packets than these may be sent by who submits it: it takes him less time than to
// wake another thread.
constexpr std::uint64_t kFewPackets = 4;

constexpr std::uint32_t kNotPlacedBit = 63;  // of an operation that no share has yet

}  // namespace

std::shared_ptr<Operation> Course::submit(TensorRequest *request, std::int64_t now_ns) {
    request->id = take_id();
    request->before = before_;
    ++submitted_;
    submit_times_.add(now_ns);
    submissions_.add(*request);
    const bool is_new = layout.first_of_new != 0 && request->id >= layout.first_of_new;
    const std::uint64_t shares = request->is_empty() ? 0 : std::uint64_t{1} << kNotPlacedBit;
    auto operation = operations_->add(request->id, request->elems, shares, now_ns);
    if (!is_new || layout.is_cut) place(*layout.mappings[is_new ? 1 : 0], *request);
    return operation;
}

void Course::place(Mapping &mapping, const TensorRequest &request) {
    const Submission placed = mapping.order.next(request);
    const std::uint64_t takers = mapping.takers(placed);
    operations_->reassign(request.id, takers);
    for (std::size_t i = 0; i < mapping.shares.size(); ++i) {
        Share &share = *mapping.shares[i];
        share.inbox.push_back(placed);
        const bool is_due = (takers & mapping.bit_of(i)) != 0 || share.inbox.size() >= kInboxLimit;
        if (is_due) due_.push_back({share.owner, placed.place.chunks <= kFewPackets});
    }
}

void Course::place_from(std::uint64_t first, Mapping &mapping) {
    for (const TensorRequest &request : submissions_.from(first)) place(mapping, request);
}

void Course::check(bool has_second, bool is_cut) const {
    if ((layout.mappings.size() > 1) != has_second) {
        throw std::logic_error(has_second ? "no change of mapping has begun"
                                          : "a change of mapping is under way");
    }
    if (layout.is_cut != is_cut) {
        throw std::logic_error(is_cut ? "operations do not go by the new mapping yet"
                                      : "operations go by the new mapping already");
    }
}

std::uint64_t Course::reserve(std::int64_t now_ns, std::int64_t news_ns) {
    check(true, false);
    if (layout.first_of_new == 0) {
        layout.first_of_new = next_id_ + submit_times_.since(now_ns - news_ns);
    }
    return layout.first_of_new;
}

void Course::set_first(std::uint64_t first, std::uint64_t agreed) {
    check(true, layout.is_cut);
    const std::uint64_t known = layout.first_of_new;
    if (known != 0 && known != first) {
        throw std::logic_error("the first operation of the new mapping is " +
                               std::to_string(known) + ", not " + std::to_string(first));
    }
    if (first == 0 || (!layout.is_cut && agreed >= first)) {
        throw std::invalid_argument("operation " + std::to_string(agreed) +
                                    " has results by the old mapping, and " +
                                    std::to_string(first) + " is to be the new one's first");
    }
    layout.first_of_new = first;
}

}  // namespace ina::host
