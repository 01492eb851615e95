// A sender on 127.0.0.1, of datagrams and of trains of them, for doors that are sockets. Nothing
// that an input says goes anywhere else.
#pragma once

#include <cstdint>
#include <vector>

#include "testing/input.hpp"

namespace ina::testing {

struct Sent {
    Bytes payload;
    std::uint8_t tos;
};

// Sends what the input says to 127.0.0.1:udp_port, and returns the datagrams that the kernel took,
// in order: few enough for any receive buffer.
std::vector<Sent> send_datagrams(Input *input, std::uint16_t udp_port);

// The port of a new socket on 127.0.0.1, nonblocking, which is told of trains and of TOS.
class LoopbackSocket {
  public:
    LoopbackSocket();
    ~LoopbackSocket();
    LoopbackSocket(const LoopbackSocket &) = delete;
    LoopbackSocket &operator=(const LoopbackSocket &) = delete;

    int fd() const { return fd_; }
    std::uint16_t udp_port() const;

  private:
    int fd_;
};

}  // namespace ina::testing
