// Python bindings of native/switch.
#include <nanobind/nanobind.h>

namespace ina::sw {
void bind(nanobind::module_ &m) { m.doc() = "Packet ports of the soft switch."; }
}  // namespace ina::sw
