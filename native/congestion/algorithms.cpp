#include "congestion/algorithms.hpp"

#include <iterator>
#include <sstream>
#include <stdexcept>
#include <type_traits>

#include "congestion/a2tp.hpp"
#include "congestion/adaptive.hpp"
#include "congestion/aimd.hpp"
#include "congestion/dctcp.hpp"
#include "congestion/fixed.hpp"
#include "congestion/ina.hpp"
#include "congestion/lane_claims.hpp"
#include "congestion/panama.hpp"
#include "congestion/swift.hpp"

namespace ina::congestion {
namespace {

// Claims: a class of its own; else the window's, if it is one, or none.
template <typename Kind, typename Claims = Kind>
Algorithm algorithm(const char *name, const char *what) {
    return {name,
            what,
            {std::begin(Kind::kOptions), std::end(Kind::kOptions)},
            [](const Room &room, const OptionValues &values) -> Control {
                auto window = std::make_shared<Kind>(room, values);
                if constexpr (!std::is_same_v<Kind, Claims>) {
                    return {window, std::make_shared<Claims>()};
                } else if constexpr (std::is_base_of_v<SlotClaims, Kind>) {
                    return {window, window};
                } else {
                    return {window};
                }
            }};
}

const Algorithm &named(const std::string &name) {
    std::string known;
    for (const Algorithm &one : algorithms()) {
        if (name == one.name) return one;
        known += std::string(known.empty() ? "" : ", ") + one.name;
    }
    throw std::invalid_argument("no congestion algorithm is named '" + name + "'; there are " +
                                known);
}

// `value` with as many digits as it needs.
std::string plain(double value) {
    std::ostringstream text;
    text << value;
    return text.str();
}

}  // namespace

const std::vector<Algorithm> &algorithms() {
    static const std::vector<Algorithm> all = {
        algorithm<InaWindow, LaneClaims>(kUsualAlgorithm,
                                         "dctcp for whom the sums wait; keeps its link busy"),
        algorithm<AdaptiveWindow>("adaptive",
                                  "as large as it may be; gives way to queues that overflow or "
                                  "mark, and grows back"),
        algorithm<FixedWindow>("fixed", "one size"),
        algorithm<A2tpWindow>("a2tp", "A2TP's: one for links, one for slots that others want"),
        algorithm<AimdWindow>("aimd", "ATP's: halves at a mark or a loss"),
        algorithm<DctcpWindow>("dctcp", "gives way to marks by as much as there are"),
        algorithm<PanamaWindow>("panama", "PANAMA's: dctcp, a window for each tree"),
        algorithm<SwiftWindow>("swift", "keeps what packets take near a target"),
    };
    return all;
}

Control make_control(const Choice &choice, const Room &room) {
    if (choice.own) return choice.own->make(room);
    const Algorithm &chosen = named(choice.algorithm);
    OptionValues values;
    for (const Option &option : chosen.options) values.push_back(option.usual);
    for (const auto &[name, value] : choice.options) {
        std::size_t i = 0;
        while (i < chosen.options.size() && name != chosen.options[i].name) ++i;
        if (i == chosen.options.size()) {
            throw std::invalid_argument(std::string("the congestion algorithm '") + chosen.name +
                                        "' has no option '" + name + "'");
        }
        const Option &option = chosen.options[i];
        if (!(value >= option.least && value <= option.most)) {
            throw std::invalid_argument(std::string("the option '") + option.name + "' of '" +
                                        chosen.name + "' must be " + plain(option.least) + " to " +
                                        plain(option.most) + ", got " + plain(value));
        }
        values[i] = value;
    }
    return chosen.make(room, values);
}

}  // namespace ina::congestion
