// What the binding files share.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <vector>

#include "common/bind_fields.hpp"
#include "host/core/siphash.hpp"
#include "host/core/worker_types.hpp"

namespace ina::host {

void bind_block_words(nanobind::module_ &m);
void bind_core(nanobind::module_ &m);
void bind_handover(nanobind::module_ &m);
void bind_recovery(nanobind::module_ &m);
void bind_verify(nanobind::module_ &m);

// Throws std::invalid_argument unless it has 16 bytes.
SecretKey secret_key(const nanobind::bytes &key);
inline nanobind::bytes bytes_of(const std::vector<std::uint8_t> &data) {
    return nanobind::bytes(data.data(), data.size());
}
// Throws std::invalid_argument.
ValueType value_type_of(int type);
TensorRequest tensor_request(std::uint64_t id, std::uintptr_t in, std::uintptr_t out,
                             const nanobind::tuple &collective);
// As ina.protocol.collective.Collective has them: value type, elements, reduction, kind.
nanobind::tuple numbers_of(const Collective &what);
// The id, and the numbers.
nanobind::object described(const TensorRequest &request);

}  // namespace ina::host
