// A transport as Python has it.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <utility>

#include "host/transport/transport.hpp"

namespace ina::host {

// Python lets go of one with its lock held, for which a thread may wait that has a window in
// Python.
class OwnedTransport final : public Transport {
  public:
    OwnedTransport(std::unique_ptr<Channel> channel, const WorkerConfig &config,
                   const TransportOptions &options)
        : Transport(std::move(channel), config, options) {
        start();
    }
    ~OwnedTransport() override {
        const nanobind::gil_scoped_release unlocked;
        close();
    }
};

using BoundTransport = nanobind::class_<OwnedTransport, TransportEngine>;

// Its ways over RoCEv2 that need no NIC.
void bind_soft_roce(nanobind::module_ &m, BoundTransport &transport);

}  // namespace ina::host
