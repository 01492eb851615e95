// Python bindings of what cuts tensors into blocks. Memory is passed as addresses; the Python side
// keeps the arrays alive and checks that they fit. All of it without Python's lock.
#include <nanobind/nanobind.h>

#include "host/bind.hpp"
#include "host/core/blocks.hpp"

namespace nb = nanobind;

namespace ina::host {
namespace {

using Unlocked = nb::call_guard<nb::gil_scoped_release>;

template <class T>
const T *read(std::uintptr_t address) {
    return reinterpret_cast<const T *>(address);
}

template <class T>
T *written(std::uintptr_t address) {
    return reinterpret_cast<T *>(address);
}

std::size_t mark(int type, std::uintptr_t tensor, std::size_t bytes, std::size_t block_bytes,
                 std::uintptr_t marks) {
    return mark_blocks(value_type_of(type), read<void>(tensor), {bytes, block_bytes},
                       written<std::uint8_t>(marks));
}

void groups(std::uintptr_t marks, std::size_t blocks, std::size_t group_blocks,
            std::uintptr_t group_marks) {
    mark_groups(read<std::uint8_t>(marks), blocks, group_blocks,
                written<std::uint8_t>(group_marks));
}

void pack(std::uintptr_t marks, std::size_t blocks, unsigned bits, std::uintptr_t words) {
    pack_marks(read<std::uint8_t>(marks), blocks, bits, written<std::uint32_t>(words));
}

std::size_t count(std::uintptr_t words, std::size_t blocks, unsigned bits) {
    return count_marked(read<std::uint32_t>(words), blocks, bits);
}

void find(std::uintptr_t words, std::size_t blocks, unsigned bits, std::uintptr_t found) {
    find_marked(read<std::uint32_t>(words), blocks, bits, written<std::int64_t>(found));
}

void gather(std::uintptr_t tensor, std::size_t bytes, std::size_t block_bytes, std::uintptr_t which,
            std::size_t count, std::uintptr_t compact) {
    gather_blocks(read<void>(tensor), {bytes, block_bytes}, read<std::int64_t>(which), count,
                  written<void>(compact));
}

void spread(std::uintptr_t compact, std::size_t bytes, std::size_t block_bytes,
            std::uintptr_t which, std::size_t count, std::uint8_t others, std::uintptr_t marks,
            std::uintptr_t tensor) {
    spread_blocks(read<void>(compact), {bytes, block_bytes}, read<std::int64_t>(which), count,
                  static_cast<Others>(others), read<std::uint8_t>(marks), written<void>(tensor));
}

void rows(std::uintptr_t rows, std::size_t row_bytes, std::uintptr_t own, std::size_t own_count,
          std::uintptr_t all, std::size_t all_count, std::uintptr_t spread) {
    spread_rows(read<void>(rows), row_bytes, read<std::int64_t>(own), own_count,
                read<std::int64_t>(all), all_count, written<void>(spread));
}

}  // namespace

void bind_blocks(nb::module_ &m) {
    m.def("mark", &mark, nb::arg("value_type"), nb::arg("tensor"), nb::arg("bytes"),
          nb::arg("block_bytes"), nb::arg("marks"), Unlocked());
    m.def("mark_groups", &groups, nb::arg("marks"), nb::arg("blocks"), nb::arg("group_blocks"),
          nb::arg("group_marks"), Unlocked());
    m.def("pack", &pack, nb::arg("marks"), nb::arg("blocks"), nb::arg("bits"), nb::arg("words"),
          Unlocked());
    m.def("count_marked", &count, nb::arg("words"), nb::arg("blocks"), nb::arg("bits"), Unlocked());
    m.def("find_marked", &find, nb::arg("words"), nb::arg("blocks"), nb::arg("bits"),
          nb::arg("found"), Unlocked());
    m.def("gather", &gather, nb::arg("tensor"), nb::arg("bytes"), nb::arg("block_bytes"),
          nb::arg("which"), nb::arg("count"), nb::arg("compact"), Unlocked());
    m.def("spread", &spread, nb::arg("compact"), nb::arg("bytes"), nb::arg("block_bytes"),
          nb::arg("which"), nb::arg("count"), nb::arg("others"), nb::arg("marks"),
          nb::arg("tensor"), Unlocked());
    m.def("spread_rows", &rows, nb::arg("rows"), nb::arg("row_bytes"), nb::arg("own"),
          nb::arg("own_count"), nb::arg("all"), nb::arg("all_count"), nb::arg("spread"),
          Unlocked());
}

}  // namespace ina::host
