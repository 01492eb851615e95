"""Emits the C++ header: constants, offsets, and a codec that never reads past a packet's end."""

from __future__ import annotations

from enum import IntEnum, IntFlag
from itertools import groupby

from ina.protocol import spec
from ina.protocol.emit.notice import notice
from ina.protocol.layout import LAYOUT, FieldLayout

_LOADS = """\
inline std::uint8_t load_be8(const std::uint8_t *p) { return p[0]; }
inline std::uint16_t load_be16(const std::uint8_t *p) {
    return static_cast<std::uint16_t>(p[0] << 8 | p[1]);
}
inline std::uint32_t load_be32(const std::uint8_t *p) {
    return std::uint32_t{p[0]} << 24 | std::uint32_t{p[1]} << 16 | std::uint32_t{p[2]} << 8 | p[3];
}
inline void store_be8(std::uint8_t *p, std::uint8_t value) { p[0] = value; }
inline void store_be16(std::uint8_t *p, std::uint16_t value) {
    p[0] = static_cast<std::uint8_t>(value >> 8);
    p[1] = static_cast<std::uint8_t>(value);
}
inline void store_be32(std::uint8_t *p, std::uint32_t value) {
    store_be16(p, static_cast<std::uint16_t>(value >> 16));
    store_be16(p + 2, static_cast<std::uint16_t>(value));
}

// RFC 1982: true when sequence number a is newer than b (less than 2^31 ahead of it).
inline bool seq_newer(std::uint32_t a, std::uint32_t b) {
    return static_cast<std::int32_t>(a - b) > 0;
}
"""

_PARSE = """\
enum class Parse : std::uint8_t {
    kOk,
    kTruncated,       // shorter than the header, or than the values that the header announces
    kOverlong,        // bytes follow the values
    kUnknownVersion,
    kUnknownKind,
};

// Reads the header of one UDP payload. `header` is set only when the result is kOk; the values
// then lie at data + kHeaderBytes, header.value_count of them, big endian.
inline Parse parse_packet(const std::uint8_t *data, std::size_t bytes, Header &header) {
    if (bytes < kHeaderBytes) return Parse::kTruncated;
    const Header read = load_header(data);
    if (read.version != kVersion) return Parse::kUnknownVersion;
    if (!is_known_kind(read.kind)) return Parse::kUnknownKind;
    const std::size_t expected = packet_bytes(read.value_count);
    if (bytes < expected) return Parse::kTruncated;
    if (bytes > expected) return Parse::kOverlong;
    header = read;
    return Parse::kOk;
}
"""


def render() -> str:
    """Returns the text of ``native/common/ina_wire.hpp``."""
    return "\n".join(
        [
            *notice("//"),
            "// clang-format off",
            "#ifndef INA_COMMON_INA_WIRE_HPP",
            "#define INA_COMMON_INA_WIRE_HPP",
            "",
            "#include <cstddef>",
            "#include <cstdint>",
            "",
            "namespace ina::wire {",
            "",
            *_constants(),
            "",
            *_offsets(),
            "",
            "// A decoded header; wider than the wire where a field has no machine type.",
            *_struct(),
            "",
            _LOADS,
            *_load_header(),
            "",
            *_store_header(),
            "",
            *_known_kind(),
            "",
            "// UDP payload bytes of a packet with so many values.",
            "constexpr std::size_t packet_bytes(std::size_t value_count) {",
            "    return kHeaderBytes + kValueBytes * value_count;",
            "}",
            "",
            _PARSE,
            "}  // namespace ina::wire",
            "",
            "#endif  // INA_COMMON_INA_WIRE_HPP",
            "",
        ]
    )


def _camel(name: str) -> str:
    return "".join(word.capitalize() for word in name.lower().split("_"))


def _type(bits: int) -> str:
    return f"std::uint{next(width for width in (8, 16, 32) if bits <= width)}_t"


def _hex(value: int) -> str:
    return f"0x{value:02x}" if value > 9 else str(value)


def _enum(name: str, members: type[IntEnum]) -> list[str]:
    rows = [f"inline constexpr std::uint8_t k{name}{_camel(m.name)} = {m.value};" for m in members]
    return ["", *rows]


def _flags(members: type[IntFlag]) -> list[str]:
    rows = [
        f"inline constexpr std::uint8_t kFlag{_camel(str(m.name))} = 0x{m.value:02x};"
        for m in members
    ]
    return ["", *rows]


def _constants() -> list[str]:
    return [
        f"inline constexpr std::uint8_t kVersion = {spec.VERSION};",
        f"inline constexpr std::uint16_t kUdpPort = {spec.UDP_PORT};  // of the switch",
        f"inline constexpr std::size_t kHeaderBytes = {spec.HEADER_BYTES};",
        f"inline constexpr std::size_t kValueBytes = {spec.VALUE_BYTES};",
        f"inline constexpr int kMaxWorkers = {spec.MAX_WORKERS};",
        f"inline constexpr int kMaxWorldSize = {spec.MAX_WORLD_SIZE};",
        f"inline constexpr int kPathBits = {spec.PATH_BITS};",
        f"inline constexpr int kOwnerBits = {spec.OWNER_BITS};",
        f"inline constexpr std::uint8_t kAllWorkers = {spec.ALL_WORKERS};  // in a result",
        f"inline constexpr int kExponentBias = {spec.EXPONENT_BIAS};",
        "inline constexpr std::uint8_t kExponentAllZero = 0;",
        *_enum("Kind", spec.Kind),
        *_flags(spec.Flag),
        *_enum("Shape", spec.Shape),
        *_enum("ValueType", spec.ValueType),
    ]


def _offsets() -> list[str]:
    return [
        "// Bytes from the header's start to the big-endian word that holds the field.",
        *(
            f"inline constexpr std::size_t k{_camel(field.name)}Offset = {field.word_offset_bytes};"
            for field in LAYOUT
        ),
    ]


def _struct() -> list[str]:
    rows = []
    for field in LAYOUT:
        default = "kVersion" if field.name == "version" else "0"
        rows.append(f"    {_type(field.bits)} {field.name} = {default};  // {field.meaning}")
    return ["struct Header {", *rows, "};"]


def _load(field: FieldLayout) -> str:
    word = f"load_be{field.word_bits}(p + k{_camel(field.name)}Offset)"
    if field.bits == field.word_bits:
        return f"    h.{field.name} = {word};"
    if field.shift:
        word = f"({word} >> {field.shift})"
    return f"    h.{field.name} = static_cast<{_type(field.bits)}>({word} & {_hex(field.mask)});"


def _load_header() -> list[str]:
    return [
        "// Reads kHeaderBytes bytes.",
        "inline Header load_header(const std::uint8_t *p) {",
        "    Header h;",
        *(_load(field) for field in LAYOUT),
        "    return h;",
        "}",
    ]


def _store_header() -> list[str]:
    rows = []
    for offset_bytes, group in groupby(LAYOUT, key=lambda field: field.word_offset_bytes):
        fields = list(group)
        bits = fields[0].word_bits
        parts = [f"(h.{field.name} & {_hex(field.mask)}) << {field.shift}" for field in fields]
        value = f"h.{fields[0].name}"
        if len(fields) > 1:
            value = f"static_cast<{_type(bits)}>({' | '.join(parts).removesuffix(' << 0')})"
        rows.append(f"    store_be{bits}(p + {offset_bytes}, {value});")
    return [
        "// Writes kHeaderBytes bytes. Bits of a value that do not fit its field are cut off.",
        "inline void store_header(std::uint8_t *p, const Header &h) {",
        *rows,
        "}",
    ]


def _known_kind() -> list[str]:
    tests = " || ".join(f"kind == kKind{_camel(kind.name)}" for kind in spec.Kind)
    return [
        "constexpr bool is_known_kind(std::uint8_t kind) {",
        f"    return {tests};",
        "}",
    ]
