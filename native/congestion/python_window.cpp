#include "congestion/python_window.hpp"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <utility>

#include "common/clock.hpp"

namespace nb = nanobind;

namespace ina::congestion {
namespace {

// A thread that asks for the interpreter's lock while the interpreter ends is ended itself, in the
// middle of our functions. So at its end Python waits for those that are inside, and no other
// enters.
constexpr std::int64_t kEndPatienceNs = 2'000'000'000;  // a class that takes longer is at fault
constexpr std::int64_t kEndLookNs = 100'000;
std::atomic<int> inside{0};
std::atomic<bool> ended{false};

class Visit {
  public:
    Visit() {
        ++inside;
        entered_ = !ended;
    }
    ~Visit() { --inside; }
    Visit(const Visit &) = delete;
    Visit &operator=(const Visit &) = delete;
    explicit operator bool() const { return entered_; }

  private:
    bool entered_ = false;
};

void end_visits() {
    ended = true;
    const nb::gil_scoped_release unlocked;
    const std::int64_t until_ns = host::now_ns() + kEndPatienceNs;
    while (inside > 0 && host::now_ns() < until_ns) {
        std::this_thread::sleep_for(std::chrono::nanoseconds(kEndLookNs));
    }
}

// What Python knows a thread by, kept from its first call to its end: to make it and its stack anew
// takes ten times as long as the call.
class ThreadState {
  public:
    ThreadState() {
        if (PyGILState_GetThisThreadState() != nullptr) return;  // one of Python's own threads
        PyGILState_Ensure();
        PyEval_SaveThread();
        is_ours_ = true;
    }
    ~ThreadState() {
        const Visit visit;
        if (!is_ours_ || !visit) return;
        PyGILState_Ensure();
        PyGILState_Release(PyGILState_LOCKED);
        PyGILState_Release(PyGILState_UNLOCKED);  // the first one, of the constructor
    }
    ThreadState(const ThreadState &) = delete;
    ThreadState &operator=(const ThreadState &) = delete;

  private:
    bool is_ours_ = false;
};

// A Python object that any thread may let go of.
class Held {
  public:
    explicit Held(nb::object object) : object_(std::move(object)) {}
    ~Held() {
        const Visit visit;
        if (!visit) {  // the interpreter's end takes it
            object_.release();
            return;
        }
        const nb::gil_scoped_acquire locked;
        object_.reset();
    }
    Held(const Held &) = delete;
    Held &operator=(const Held &) = delete;

    const nb::object &get() const { return object_; }  // with the interpreter's lock

  private:
    nb::object object_;
};

// What a window's function is told, besides the time: the fields of ina.congestion.Batch.
struct Batch {
    std::uint32_t answers = 0;
    std::uint32_t marked = 0;
    std::uint32_t marked_here = 0;
    std::uint32_t losses = 0;
    std::uint32_t timeouts = 0;
    std::uint32_t in_flight = 0;
    RoundTrips round_trips;
    std::uint32_t was_last = 0;
    std::int64_t was_last_sum_ns = 0;
    std::int64_t was_last_shortest_ns = 0;

    std::int64_t was_last_mean_ns() const { return was_last > 0 ? was_last_sum_ns / was_last : 0; }
};

// What it says.
struct Numbers {
    std::uint32_t packets = 1;
    Pace pace;
};

Numbers numbers_of(const nb::handle &told, std::size_t first) {
    return {nb::cast<std::uint32_t>(told[first]),
            {nb::cast<std::int64_t>(told[first + 1]), nb::cast<std::uint32_t>(told[first + 2])}};
}

class PythonWindow final : public Window {
  public:
    // `made`: what Own.window() returns. With the interpreter's lock.
    explicit PythonWindow(const nb::object &made)
        : function_(nb::object(made[0])), numbers_(numbers_of(made, 1)) {}

    void on_answer(std::int64_t, const Answer &answer) override {
        if (batch_.answers++ == 0) batch_.in_flight = answer.in_flight;
        batch_.marked += answer.marked;
        batch_.marked_here += answer.marked_here;
        batch_.round_trips = answer.round_trips;
        const std::int64_t latest_ns = answer.round_trips.latest_ns;
        if (!answer.was_last || latest_ns <= 0) return;
        const std::int64_t shortest_ns = batch_.was_last_shortest_ns;
        batch_.was_last_shortest_ns =
            batch_.was_last++ == 0 ? latest_ns : std::min(shortest_ns, latest_ns);
        batch_.was_last_sum_ns += latest_ns;
    }
    void on_loss(std::int64_t, const RoundTrips &) override { ++batch_.losses; }
    void on_timeout(std::int64_t, const RoundTrips &) override { ++batch_.timeouts; }

    void on_batch(std::int64_t now_ns) override {
        const Batch batch = std::exchange(batch_, {});
        if (failed_) return;
        const Visit visit;
        if (!visit) return;
        static thread_local const ThreadState state;
        const nb::gil_scoped_acquire locked;
        try {
            const nb::object told = function_.get()(
                now_ns, batch.answers, batch.marked, batch.marked_here, batch.losses,
                batch.timeouts, batch.in_flight, batch.round_trips.latest_ns,
                batch.round_trips.mean_ns, batch.round_trips.shortest_ns, batch.was_last,
                batch.was_last_mean_ns(), batch.was_last_shortest_ns);
            failed_ = told.is_none();
            if (!failed_) numbers_ = numbers_of(told, 0);
        } catch (nb::python_error &error) {  // not of the class: Own keeps what that raises
            failed_ = true;
            error.discard_as_unraisable(function_.get());
        }
    }

    std::uint32_t packets() const override { return numbers_.packets; }
    Pace pace() const override { return numbers_.pace; }

  private:
    const Held function_;
    Numbers numbers_;
    Batch batch_;
    bool failed_ = false;
};

class PythonMaker final : public Maker {
  public:
    explicit PythonMaker(nb::object own) : own_(std::move(own)) {}

    Control make(const Room &room) const override {
        const nb::gil_scoped_acquire locked;
        return {std::make_shared<PythonWindow>(own_.get().attr("window")(room.packets))};
    }
    const nb::object &own() const { return own_.get(); }

  private:
    const Held own_;
};

}  // namespace

std::shared_ptr<const Maker> python_maker(nb::object own) {
    return std::make_shared<PythonMaker>(std::move(own));
}

nb::object python_object(const Choice &choice) {
    const auto *maker = dynamic_cast<const PythonMaker *>(choice.own.get());
    return maker == nullptr ? nb::none() : maker->own();
}

void watch_python() {
    // A forked child has none of the threads that were inside.
    pthread_atfork(nullptr, nullptr, [] { inside = 0; });
    nb::module_::import_("atexit").attr("register")(nb::cpp_function(&end_visits));
}

}  // namespace ina::congestion
