// Sockets for results that the switch sends to several workers at once, by IP multicast.
//
// A worker listens at the group's address and port, and the socket is connected to the switch, so
// that it gets nobody else's packets. What comes there carries wire::kAllWorkers. Answers to
// resends come to the worker's own socket, so what a network loses of the group's packets, or all
// of them, is repaired like any loss.
//
// The kernel hands a group's packet to every socket that listens there, not to one as it does with
// a group of SO_REUSEPORT. So each thread's socket has a filter for its lanes.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "host/channel/channel.hpp"
#include "host/channel/descriptor.hpp"

namespace ina::host {

// Threads' sockets like `listening`, which is bound to a group and connected to the switch: those
// of the threads from 1 on; `listening` itself becomes thread 0's. They are no members of the
// group by themselves: they get its packets as long as `listening` is one. `configure` sets a new
// socket's options before packets can come to it.
//
// Throws std::system_error, which says what the kernel refused; `listening` is then as before.
std::vector<Descriptor> divide_group(int listening, const LaneParts &parts,
                                     const std::function<void(int fd)> &configure);

// From now on the socket of this thread takes its lanes by these parts. Throws std::system_error.
void take_lanes(int fd, const LaneParts &parts, std::uint32_t thread);

// Undoes what that did to `listening`.
void take_all_lanes(int listening);

// From now on nothing comes to the socket. Thread-safe.
void take_nothing(int listening);

// An epoll descriptor that is readable when either socket is. Throws std::system_error.
Descriptor watch_both(int own, int listening);

}  // namespace ina::host
