// The window algorithms by name. A new one is a header with a class like FixedWindow, and a row in
// algorithms.cpp; Python (ina.congestion) and what it checks follow from that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "congestion/slot_claims.hpp"
#include "congestion/window.hpp"

namespace ina::congestion {

// A number that an algorithm can be given.
struct Option {
    const char *name;
    double usual;  // unless it is given
    double least;
    double most;
    const char *what;  // with its unit, for people
};

// In the order of the algorithm's options.
using OptionValues = std::vector<double>;

// What an algorithm makes for some lanes: their window, and what claims slots for them, which may
// be one object.
struct Control {
    std::shared_ptr<Window> window;
    std::shared_ptr<SlotClaims> claims = nullptr;  // null: all lanes claim slots
};

struct Algorithm {
    const char *name;
    const char *what;  // for people
    std::vector<Option> options;
    Control (*make)(const Room &room, const OptionValues &values);
};

const std::vector<Algorithm> &algorithms();

inline constexpr const char *kUsualAlgorithm = "ina";

// Makes windows that are not in the table.
class Maker {
  public:
    virtual ~Maker() = default;
    virtual Control make(const Room &room) const = 0;
};

struct Choice {
    std::string algorithm = kUsualAlgorithm;
    std::vector<std::pair<std::string, double>> options;  // others have their usual values
    std::shared_ptr<const Maker> own = nullptr;           // if it is not in the table
};

// Throws std::invalid_argument: no such algorithm or option, or a value out of its range.
Control make_control(const Choice &choice, const Room &room);

}  // namespace ina::congestion
