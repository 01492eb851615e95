// PANAMA's (Gebara et al., MLSys 2021): DCTCP's reaction to marks that switches OR on the tree,
// each result an acknowledgement, and a window for each tree. All algorithms have one for each tree
// here, so that nothing but the name is its own: a job over k trees takes as much as k DCTCP flows.
#pragma once

#include "congestion/dctcp.hpp"

namespace ina::congestion {

class PanamaWindow final : public DctcpWindow {
  public:
    using DctcpWindow::DctcpWindow;
};

}  // namespace ina::congestion
