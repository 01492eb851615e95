// Python bindings of what verifies sums: what a worker says of it, and the arithmetic, for tests.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "host/bind.hpp"
#include "host/core/sum_check.hpp"

namespace nb = nanobind;

namespace ina::host {
namespace {

const std::uint8_t *bytes_of(const nb::bytes &wire) {
    return static_cast<const std::uint8_t *>(wire.data());
}

const WeighKernels &weigh_kernels_named(const std::string &name) {
    for (const WeighKernels *kernels : available_weigh_kernels()) {
        if (name == kernels->name) return *kernels;
    }
    throw std::invalid_argument("this processor has no kernels named '" + name + "'");
}

std::uint64_t weigh(const std::string &name, const nb::bytes &wire,
                    const std::vector<std::uint32_t> &low, const std::vector<std::uint32_t> &high) {
    const std::size_t values = std::min({wire.size() / wire::kValueBytes, low.size(), high.size()});
    return weigh_kernels_named(name).wide(bytes_of(wire), low.data(), high.data(), values);
}

std::uint32_t used_bits(const std::string &name, const nb::bytes &values) {
    return weigh_kernels_named(name).used_bits(bytes_of(values), values.size() / wire::kValueBytes);
}

RoundTag tag(std::uint64_t number, std::uint64_t digest, int type, std::uint8_t exponent,
             std::size_t value_count) {
    return {number, digest, value_type_of(type), exponent, static_cast<std::uint16_t>(value_count)};
}

}  // namespace

SecretKey secret_key(const nb::bytes &key) {
    SecretKey secret{};
    if (key.size() != secret.size()) {
        throw std::invalid_argument("a key has 16 bytes, got " + std::to_string(key.size()));
    }
    std::copy_n(bytes_of(key), secret.size(), secret.begin());
    return secret;
}

void bind_verify(nb::module_ &m) {
    nb::enum_<VerifyMode>(m, "VerifyMode")
        .value("OFF", VerifyMode::kOff)
        .value("ACCIDENTS", VerifyMode::kAccidents)
        .value("KEYED", VerifyMode::kKeyed);

    nb::class_<Corruption>(m, "Corruption")
        .def_ro("operation", &Corruption::tensor)
        .def_ro("seq", &Corruption::seq)
        .def_ro("results", &Corruption::results)
        .def_ro("all_results", &Corruption::all_results)
        .def_ro("same", &Corruption::same)
        .def_ro("own_is_missing", &Corruption::own_is_missing)
        .def_ro("first_value", &Corruption::first_value);
}

void bind_check(nb::module_ &m) {
    nb::enum_<Claim>(m, "Claim")
        .value("NONE", Claim::kNone)
        .value("SCALE", Claim::kScale)
        .value("TOO_LARGE", Claim::kTooLarge)
        .value("NON_FINITE", Claim::kNonFinite);

    m.def("siphash", [](const nb::bytes &key, std::uint64_t a, std::uint64_t b, std::uint64_t c) {
        return SipHash(secret_key(key)).of(SipWords{a, b, c});
    });
    m.def("weigh_kernel_names", [] {
        std::vector<std::string> names;
        for (const WeighKernels *kernels : available_weigh_kernels()) {
            names.emplace_back(kernels->name);
        }
        return names;
    });
    m.def("used_bits", &used_bits, nb::arg("kernels"), nb::arg("values"));
    m.def("weigh", &weigh, nb::arg("kernels"), nb::arg("wire"), nb::arg("low"), nb::arg("high"));

    nb::class_<SumCheck>(m, "SumCheck")
        .def(
            "__init__",
            [](SumCheck *self, VerifyMode mode, const nb::bytes &key, std::uint32_t epoch,
               std::uint32_t rank, std::uint32_t workers, std::size_t values) {
                new (self) SumCheck(mode, secret_key(key), epoch, rank, workers, values);
            },
            nb::arg("mode"), nb::arg("key"), nb::arg("epoch"), nb::arg("rank"), nb::arg("workers"),
            nb::arg("values"))
        // The check, and what verify() needs.
        .def(
            "contribute",
            [](const SumCheck &self, std::uint64_t number, std::uint64_t digest, int type,
               std::uint8_t exponent, Claim claim, const nb::bytes &wire) {
                const std::size_t count = wire.size() / wire::kValueBytes;
                const auto made = self.contribute(tag(number, digest, type, exponent, count), claim,
                                                  bytes_of(wire));
                return std::pair(made.check, made.expected);
            },
            nb::arg("number"), nb::arg("digest"), nb::arg("value_type"), nb::arg("exponent"),
            nb::arg("claim"), nb::arg("wire"))
        // Each of the three pairs: the least and the most workers that make the claim.
        .def(
            "verify",
            [](const SumCheck &self, std::uint64_t number, std::uint64_t digest, int type,
               std::uint8_t exponent, std::uint64_t expected, const nb::bytes &wire,
               std::uint32_t check, std::pair<std::uint32_t, std::uint32_t> scale,
               std::pair<std::uint32_t, std::uint32_t> too_large,
               std::pair<std::uint32_t, std::uint32_t> non_finite) {
                const std::size_t count = wire.size() / wire::kValueBytes;
                const ClaimBounds claims{{scale.first, scale.second},
                                         {too_large.first, too_large.second},
                                         {non_finite.first, non_finite.second}};
                return self.verify(tag(number, digest, type, exponent, count), claims, expected,
                                   bytes_of(wire), check);
            },
            nb::arg("number"), nb::arg("digest"), nb::arg("value_type"), nb::arg("exponent"),
            nb::arg("expected"), nb::arg("wire"), nb::arg("check"), nb::arg("scale"),
            nb::arg("too_large"), nb::arg("non_finite"));
}

}  // namespace ina::host
