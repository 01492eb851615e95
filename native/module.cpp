// The extension module ina._native: each submodule has one Python owner.
#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace ina::congestion {
void bind(nb::module_ &m);
}
namespace ina::embed {
void bind(nb::module_ &m);
}
namespace ina::host {
void bind(nb::module_ &m);
void bind_blocks(nb::module_ &m);
void bind_check(nb::module_ &m);
void bind_quantize(nb::module_ &m);
void bind_rdma(nb::module_ &m);
}  // namespace ina::host
namespace ina::infer {
void bind(nb::module_ &m);
}
namespace ina::shm {
void bind(nb::module_ &m);
}
namespace ina::sim {
void bind(nb::module_ &m);
}
namespace ina::sw {
void bind(nb::module_ &m);
}
namespace ina::testing {
void bind(nb::module_ &m);
}

NB_MODULE(_native, m) {
    // PyTorch keeps process groups, and with them closed sessions, to the end of the process (FSDP2
    // does): nanobind would call them leaks, in forty lines a worker.
    nb::set_leak_warnings(false);
    m.doc() =
        "Native cores of ina: window algorithms, the host's WorkerCore and transport, the soft "
        "switch's ports, the virtual network, embeddings, inference; the doors of all that for "
        "fuzzers.";
    m.attr("SOURCES_SHA256") = INA_SOURCES_SHA256;  // ina.extension compares it
    auto congestion = m.def_submodule("congestion");
    ina::congestion::bind(congestion);
    auto embed = m.def_submodule("embed");
    ina::embed::bind(embed);
    auto host = m.def_submodule("host");
    ina::host::bind(host);  // first: check names its types
    auto infer = m.def_submodule("infer");
    ina::infer::bind(infer);  // behind host, whose types it names
    auto blocks = m.def_submodule("blocks");
    ina::host::bind_blocks(blocks);
    auto check = m.def_submodule("check");
    ina::host::bind_check(check);
    auto quantize = m.def_submodule("quantize");
    ina::host::bind_quantize(quantize);
    auto shm = m.def_submodule("shm");
    ina::shm::bind(shm);
    auto rdma = m.def_submodule("rdma");
    ina::host::bind_rdma(rdma);
    auto sim = m.def_submodule("sim");
    ina::sim::bind(sim);
    auto sw = m.def_submodule("switch");
    ina::sw::bind(sw);
    auto testing = m.def_submodule("testing");
    ina::testing::bind(testing);
}
