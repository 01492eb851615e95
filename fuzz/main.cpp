// libFuzzer's way into the door that INA_DOOR names: one of native/testing/doors.hpp, or
// `pipeline`.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "testing/doors.hpp"

extern "C" const ina_pipeline *ina_pipeline_get(void);  // of the generated program

namespace {

using ina::testing::Bytes;
using ina::testing::Door;
using ina::testing::Input;

void enter_program(Input input) {
    static const Bytes setup = [] {
        std::ifstream file(INA_SETUP, std::ios::binary);
        return Bytes(std::istreambuf_iterator<char>(file), {});
    }();
    ina::testing::enter_pipeline(ina_pipeline_get(), setup, input);
}

void (*door_named(const std::string &name))(Input) {
    for (const Door &door : ina::testing::kDoors) {
        if (name == door.name) return door.enter;
    }
    if (name == "pipeline") return enter_program;
    std::fprintf(stderr, "error: INA_DOOR: no door is called '%s'\n", name.c_str());
    std::exit(2);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t bytes) {
    static const auto enter = door_named(std::getenv("INA_DOOR") ? std::getenv("INA_DOOR") : "");
    try {
        enter(Input(data, bytes));
    } catch (const ina::testing::BrokenPromise &broken) {
        std::fprintf(stderr, "error: broken promise: %s\n", broken.what());
        std::abort();
    }
    return 0;
}
