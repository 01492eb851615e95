// Configurations in Python are filled by the names of their fields.
#pragma once

#include <nanobind/nanobind.h>

#include <new>
#include <string>

namespace ina {

// The __init__ of a bound struct whose fields are bound with def_rw. Throws TypeError for a name
// that is no field's.
template <typename Config>
void init_by_name(nanobind::pointer_and_handle<Config> self, const nanobind::kwargs &fields) {
    new (self.p) Config{};
    nanobind::inst_mark_ready(self.h);
    for (const auto &[name, value] : fields) {
        if (!nanobind::hasattr(self.h, name)) {
            const std::string text = nanobind::cast<std::string>(name);
            throw nanobind::type_error(("there is no field '" + text + "'").c_str());
        }
        nanobind::setattr(self.h, name, value);
    }
}

}  // namespace ina
