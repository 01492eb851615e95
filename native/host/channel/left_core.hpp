// A core that a thread leaves to another one: to that of the switch. A worker that shares the
// switch's core waits for the switch, the other workers for it and the switch for them, and the
// core that idles meanwhile gets neither: Linux keeps a thread that has just run where its cache is
// (fair.c, task_hot).
#pragma once

#include <cstdint>

namespace ina::host {

class LeftCore {
  public:
    // The thread that calls this first stays off this core until the next call with another, from
    // any thread; 1 + its number, 0: none. A thread that may run on no other core stays there, and
    // one that may not say where it runs goes on as before.
    void leave(std::uint32_t core);

  private:
    int thread_ = 0;  // of the kernel's numbers
    std::uint32_t asked_ = 0;
    std::uint32_t left_ = 0;  // taken out of the cores on which the thread may run
};

}  // namespace ina::host
