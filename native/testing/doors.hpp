// The doors through which bytes from outside come into the C++: each is entered with an input, and
// throws BrokenPromise where what it promises does not hold. Fuzzers and tests enter the same ones.
#pragma once

#include <cstdint>
#include <vector>

#include "switch/pipeline_abi.h"
#include "testing/input.hpp"

namespace ina::testing {

void enter_frame(Input input);
void enter_offload(Input input);
void enter_udp_port(Input input);
void enter_udp_receiver(Input input);
void enter_soft_roce(Input input);
void enter_ring(Input input);
void enter_pcap_file(Input input);
void enter_worker_core(Input input);
void enter_shm_switch(Input input);
void enter_shm_worker(Input input);

struct Door {
    const char *name;
    void (*enter)(Input input);
};

inline constexpr Door kDoors[] = {
    {"frame", enter_frame},           {"offload", enter_offload},
    {"udp_port", enter_udp_port},     {"udp_receiver", enter_udp_receiver},
    {"soft_roce", enter_soft_roce},   {"ring", enter_ring},
    {"pcap_file", enter_pcap_file},   {"worker_core", enter_worker_core},
    {"shm_switch", enter_shm_switch}, {"shm_worker", enter_shm_worker},
};

// One more: frames at a compiled program. `setup`: what its tables hold (pipeline_door.cpp).
void enter_pipeline(const ina_pipeline *pipeline, const Bytes &setup, Input input);

}  // namespace ina::testing
