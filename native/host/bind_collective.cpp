// What Python says of collectives, and is told: ina.protocol.collective.Collective, as a tuple.
#include <nanobind/nanobind.h>

#include <stdexcept>
#include <string>

#include "host/bind.hpp"

namespace nb = nanobind;

namespace ina::host {

namespace {

Collective collective_of(const nb::tuple &numbers) {
    if (numbers.size() != 6) throw std::invalid_argument("a collective has 6 numbers");
    const int op = nb::cast<int>(numbers[2]);
    const int kind = nb::cast<int>(numbers[3]);
    const int rounding = nb::cast<int>(numbers[5]);
    if (op < 0 || op > 1 || kind < 0 || kind >= kCollectiveKinds || rounding < 0 || rounding > 1) {
        throw std::invalid_argument("unknown collective: reduction " + std::to_string(op) +
                                    ", kind " + std::to_string(kind) + ", rounding " +
                                    std::to_string(rounding));
    }
    const Collective what = {value_type_of(nb::cast<int>(numbers[0])),
                             nb::cast<std::uint64_t>(numbers[1]),
                             static_cast<Reduction>(op),
                             static_cast<CollectiveKind>(kind),
                             nb::cast<std::uint16_t>(numbers[4]),
                             static_cast<Rounding>(rounding)};
    if (what.is_moved() != (what.type == ValueType::kBytes)) {
        throw std::invalid_argument(what.is_moved() ? "what is moved, not summed, is of bytes"
                                                    : "bytes are moved, not summed");
    }
    return what;
}

}  // namespace

ValueType value_type_of(int type) {
    if (!is_value_type(type)) {
        throw std::invalid_argument("unknown value type " + std::to_string(type));
    }
    return static_cast<ValueType>(type);
}

nb::tuple numbers_of(const Collective &what) {
    return nb::make_tuple(static_cast<int>(what.type), what.elems, static_cast<int>(what.op),
                          static_cast<int>(what.kind), static_cast<int>(what.root),
                          static_cast<int>(what.rounding));
}

TensorRequest tensor_request(std::uint64_t id, std::uintptr_t in, std::uintptr_t out,
                             const nb::tuple &collective) {
    TensorRequest request{collective_of(collective)};
    request.id = id;
    request.in = reinterpret_cast<const void *>(in);
    request.out = reinterpret_cast<void *>(out);
    return request;
}

nb::object described(const TensorRequest &request) {
    return nb::make_tuple(request.id, numbers_of(request));
}

}  // namespace ina::host
