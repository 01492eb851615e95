// Reads what has come to a worker's sockets: single datagrams, and trains (UDP_GRO).
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "host/channel/channel.hpp"

namespace ina::host {

class UdpReceiver {
  public:
    // False: the kernel has no UDP_GRO, and datagrams come one by one.
    static bool ask_for_trains(int fd);

    UdpReceiver();
    ~UdpReceiver();

    // What was read is no longer needed; there is room again.
    void clear() { used_ = 0; }
    bool is_full() const;

    // Appends what is in the socket's queue, as far as there is room; never blocks. It stays valid
    // until clear(). False: the call failed, and errno says why (EAGAIN: nothing is there).
    bool read(int fd, std::vector<Arrival> *arrivals);

  private:
    struct Area;

    std::size_t used_ = 0;  // datagrams and trains
    std::unique_ptr<Area> area_;
};

}  // namespace ina::host
