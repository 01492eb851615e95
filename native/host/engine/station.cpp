#include "host/engine/station.hpp"

#include <utility>

namespace ina::host {

void Station::take(Layout taken) {
    layout = std::move(taken);
    work.clear();
    own.clear();
    for (const auto &mapping : layout.mappings) {
        std::uint32_t bit = mapping->first_bit;
        for (const auto &share : mapping->shares) {
            if (number == kAll || share->owner == number) {
                own.push_back(static_cast<std::uint32_t>(work.size()));
            }
            work.push_back({mapping.get(), share.get(), bit++});
        }
    }
}

}  // namespace ina::host
