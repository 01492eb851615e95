// Windows that Python decides (ina.congestion.Window), called once a batch of results.
//
// A transport's thread takes the interpreter's lock for that call and for no other: what packets()
// and pace() say is kept here. What the class raises is kept in Python; the window then stays as it
// is, and is not called again.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "congestion/algorithms.hpp"

namespace ina::congestion {

// `own`: an ina.congestion.own.Own.
std::shared_ptr<const Maker> python_maker(nanobind::object own);
// The one that a choice was made with; None: its algorithm is in the table.
nanobind::object python_object(const Choice &choice);
// Sees to it that no thread is in Python, or comes to it, once the interpreter ends. Call once.
void watch_python();

}  // namespace ina::congestion
