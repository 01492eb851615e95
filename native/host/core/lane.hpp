// A lane: one packet at a time, sent, waited for, and followed by the next. What it does is the
// table below, of states and events: whatever is not in it cannot happen.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <stdexcept>
#include <string>

#include "host/core/integers.hpp"
#include "host/core/submission.hpp"

namespace ina::host {

// As the exponent of a tensor's first chunk on a lane: some worker does not know it. A block of
// values from 2^127 on has the same exponent, and just takes a round of its own.
inline constexpr std::uint8_t kUnknownExponent = 255;

// Ready: its packet waits for room in the window. Waiting: it is in flight. By kind of round.
enum class LaneState : std::uint8_t {
    kIdle,
    kValuesReady,  // values, by an exponent that is agreed, or integers
    kValuesWaiting,
    kExponentReady,  // no values: to agree on an exponent
    kExponentWaiting,
    kGuessReady,  // values, by an exponent that is not agreed, or that might wrap
    kGuessWaiting,
};

enum class LaneEvent : std::uint8_t {
    kNextKnown,    // a chunk is to be sent next, whose exponent is agreed or which needs none,
    kNextUnknown,  // whose exponent is not known,
    kNextGuessed,  // or guessed from what the lane had before
    kSent,         // there was room in the window
    kSums,         // a result that brought the chunk's sums
    kAgreement,    // a result that brought no sums: the chunk's exponent, that a guess was wrong,
                   // or the first half of integers
    kWithdrawn,    // the tensor is not this core's any more
};

struct LaneStep {
    LaneState from;
    LaneEvent event;
    LaneState to;
};

inline constexpr LaneStep kLaneSteps[] = {
    {LaneState::kIdle, LaneEvent::kNextKnown, LaneState::kValuesReady},
    {LaneState::kIdle, LaneEvent::kNextUnknown, LaneState::kExponentReady},
    {LaneState::kIdle, LaneEvent::kNextGuessed, LaneState::kGuessReady},
    {LaneState::kValuesReady, LaneEvent::kSent, LaneState::kValuesWaiting},
    {LaneState::kValuesWaiting, LaneEvent::kSums, LaneState::kIdle},
    {LaneState::kValuesWaiting, LaneEvent::kAgreement, LaneState::kValuesReady},
    {LaneState::kExponentReady, LaneEvent::kSent, LaneState::kExponentWaiting},
    {LaneState::kExponentWaiting, LaneEvent::kAgreement, LaneState::kValuesReady},
    {LaneState::kGuessReady, LaneEvent::kSent, LaneState::kGuessWaiting},
    {LaneState::kGuessWaiting, LaneEvent::kSums, LaneState::kIdle},
    {LaneState::kGuessWaiting, LaneEvent::kAgreement, LaneState::kValuesReady},
    {LaneState::kValuesReady, LaneEvent::kWithdrawn, LaneState::kIdle},
    {LaneState::kValuesWaiting, LaneEvent::kWithdrawn, LaneState::kIdle},
    {LaneState::kExponentReady, LaneEvent::kWithdrawn, LaneState::kIdle},
    {LaneState::kExponentWaiting, LaneEvent::kWithdrawn, LaneState::kIdle},
    {LaneState::kGuessReady, LaneEvent::kWithdrawn, LaneState::kIdle},
    {LaneState::kGuessWaiting, LaneEvent::kWithdrawn, LaneState::kIdle},
};

inline constexpr std::size_t kLaneStates = 7;
inline constexpr std::size_t kLaneEvents = 7;
using LaneTable = std::array<std::array<LaneState, kLaneEvents>, kLaneStates>;

// The same as a matrix, for speed; where there is no step it has kLaneStates, which is no state.
constexpr LaneTable lane_table() {
    LaneTable table{};
    for (auto &row : table) {
        for (auto &to : row) to = static_cast<LaneState>(kLaneStates);
    }
    for (const LaneStep &step : kLaneSteps) {
        table[static_cast<std::size_t>(step.from)][static_cast<std::size_t>(step.event)] = step.to;
    }
    return table;
}

// Throws std::logic_error when the table has no such step: a defect of the core, of which nothing
// that comes from the network can be the cause.
inline LaneState next_state(LaneState state, LaneEvent event) {
    static constexpr LaneTable kTable = lane_table();
    const LaneState next = kTable[static_cast<std::size_t>(state)][static_cast<std::size_t>(event)];
    if (next != static_cast<LaneState>(kLaneStates)) return next;
    throw std::logic_error("a lane in state " + std::to_string(static_cast<int>(state)) +
                           " has no step for event " + std::to_string(static_cast<int>(event)));
}

// A submission that has lanes of this core, until they are done with it.
struct Tensor : Submission {
    std::uint64_t chunks_left = 0;  // on this core's lanes
};

// Results of one packet that did not verify.
struct FailedCheck {
    std::uint32_t count = 0;
    std::uint64_t first = 0;           // a fingerprint of the first of them
    bool same = true;                  // as all that followed
    std::uint16_t digest = 0;          // of the newest
    std::uint32_t digest_repeats = 0;  // how many before it, in a row, had the same
};

struct Lane {
    struct Assignment {  // its part of a tensor: chunks first_chunk, + W, + 2W ...
        Tensor *tensor;
        std::uint64_t first_chunk;
    };
    enum class Kept : std::uint8_t { kNowhere, kInTensor, kHere, kOwnPart };
    struct Accepted {  // its last result
        std::uint64_t tensor = 0;
        std::uint64_t chunk = 0;
        bool has_sums = false;    // the round made some
        bool non_finite = false;  // which are NaN
        std::uint32_t bytes = 0;  // of what is kept
        Kept kept = Kept::kNowhere;
    };

    std::uint32_t seq = 0;     // of the packet being prepared or in flight
    std::uint64_t number = 0;  // the same, not wrapped around at 2^32
    LaneState state = LaneState::kIdle;
    bool non_finite = false;     // the chunk to send holds Inf or NaN
    std::uint8_t exponent = 0;   // agreed, or guessed, for the chunk to send
    std::uint8_t announced = 0;  // in its packet, for what comes next; all agree on no less
    std::uint8_t next_tensor_exponent = kUnknownExponent;  // agreed for its first chunk
    std::uint64_t expected = 0;  // SumCheck::Contribution::expected of the packet
    FailedCheck failed;          // results of the packet that did not verify
    bool splits = false;         // the tensor's integers might wrap: they go as halves from here on
    // In a stream: the own block that is not zero and comes next, once the chunk's packet is
    // written; and whether the chunk is zero here, so that its packet has no values.
    std::uint64_t next_own = 0;
    bool is_zero = false;
    bool has_history = false;  // at least one result was accepted
    Tensor *tensor = nullptr;
    std::uint64_t chunk = 0;
    std::size_t packet_bytes = 0;
    Accepted accepted;
    std::deque<Assignment> queue;

    void on(LaneEvent event) { state = next_state(state, event); }
    bool is_waiting() const {
        return state == LaneState::kValuesWaiting || state == LaneState::kExponentWaiting ||
               state == LaneState::kGuessWaiting;
    }
    // 0: of values, 1: of exponents, 2: of a guess, 3: of upper halves, 4: of values that are
    // gathered.
    std::uint8_t round() const {
        if (flow() != 0) return 4;
        if (is_guess()) return 2;
        if (is_half() && exponent == static_cast<std::uint8_t>(IntegerPart::kUpper)) return 3;
        return has_values() ? 0 : 1;
    }
    bool has_values() const {  // in the packet being prepared or in flight
        return state != LaneState::kExponentReady && state != LaneState::kExponentWaiting;
    }
    bool is_guess() const {
        return state == LaneState::kGuessReady || state == LaneState::kGuessWaiting;
    }
    bool is_half() const {  // the packet being prepared or in flight has halves of integers
        return exponent != 0 && splits;
    }
    std::uint64_t order() const { return tensor->first_order + chunk; }
    std::uint8_t flow() const { return flow_of(tensor->shape); }
    // Of the packet being prepared or in flight, as of all ranks'.
    Shape shape() const { return has_values() ? tensor->shape : Shape::kSum; }
    // Whether its packet, or the result that it waits for, may have values.
    bool moves_values() const {
        return has_values() && tensor->request.kind != CollectiveKind::kBarrier;
    }
    bool gives() const { return has_values() && tensor->gives(chunk); }
    bool gets() const { return tensor->gets(chunk); }
};

}  // namespace ina::host
