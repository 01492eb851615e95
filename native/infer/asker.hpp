// A client with a UDP socket, that works in the threads of its callers, while they wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "common/datagrams.hpp"
#include "host/channel/descriptor.hpp"
#include "infer/client.hpp"

namespace ina::infer {

class Asker {
  public:
    // Works on its own duplicate of `fd`, a bound UDP socket. Throws std::invalid_argument,
    // std::system_error.
    Asker(int fd, ClientConfig config);

    // Sends what the window admits. As Client's.
    std::uint32_t ask(const std::int32_t *in, std::size_t blocks, std::int32_t *out,
                      std::int64_t patience_ns);
    // At most so long.
    Outcome wait(std::uint32_t request, std::int64_t timeout_ns);
    void forget(std::uint32_t request);

    template <class Look>
    auto with_client(const Look &look) {
        const std::lock_guard lock(mutex_);
        return look(client_);
    }

  private:
    void flush(std::int64_t now_ns);

    host::Descriptor socket_;
    Datagrams received_;
    std::mutex mutex_;
    Outbox outbox_;
    Client client_;
};

}  // namespace ina::infer
