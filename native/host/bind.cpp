// Python bindings of native/host.
#include <nanobind/nanobind.h>

namespace ina::host {
void bind(nanobind::module_ &m) { m.doc() = "WorkerCore, quantisers and UDP transport."; }
}  // namespace ina::host
