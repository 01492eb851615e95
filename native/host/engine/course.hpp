// By which mapping each operation goes: the one, or the older or the newer of two while the job
// changes (docs/resize.md). Not thread-safe: it has the engine's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "host/engine/operation.hpp"
#include "host/engine/station.hpp"
#include "host/engine/submissions.hpp"

namespace ina::host {

class Course {
  public:
    explicit Course(Operations *operations) : operations_(operations) {}

    // The next operation; the request's id is set. It is placed, unless it is the newer mapping's
    // and it is not known yet what was submitted before.
    std::shared_ptr<Operation> submit(TensorRequest *request, std::int64_t now_ns);
    // So many were summed elsewhere before the first one here: random bits go by the number among
    // all.
    void count_on_from(std::uint64_t tensors) { before_ = tensors; }
    // The next operation's id, which counts.
    std::uint64_t take_id() { return next_id_++; }
    // Those that wait for this mapping, or were taken back, from that one on.
    void place_from(std::uint64_t first, Mapping &mapping);

    // These throw std::logic_error out of turn. has_second: there are two mappings; is_cut: the
    // operations from the first of the newer one go by that.
    void check(bool has_second, bool is_cut) const;
    // The first operation of the newer mapping: after those to come that are expected in `news_ns`.
    std::uint64_t reserve(std::int64_t now_ns, std::int64_t news_ns);
    // It is this one. agreed: WorkerCore::agreed of all shares. Throws std::invalid_argument: one
    // of them has results by the older mapping.
    void set_first(std::uint64_t first, std::uint64_t agreed);

    // Threads that have something new in an inbox that they should look at, since the last call.
    struct Due {
        std::size_t thread;
        bool is_little;  // of few packets
    };
    std::vector<Due> take_due() { return std::exchange(due_, {}); }
    Submissions &submissions() { return submissions_; }
    const Submissions &submissions() const { return submissions_; }
    std::uint64_t submitted() const { return submitted_; }

    Layout layout;

  private:
    void place(Mapping &mapping, const TensorRequest &request);

    Operations *const operations_;
    RecentTimes submit_times_;
    Submissions submissions_;
    std::vector<Due> due_;
    std::uint64_t next_id_ = 1;
    std::uint64_t before_ = 0;
    std::uint64_t submitted_ = 0;
};

}  // namespace ina::host
