"""Emits the Wireshark dissector (Lua), which reads only what a packet really holds."""

from __future__ import annotations

from enum import IntEnum

from ina.protocol import spec
from ina.protocol.bth import BTH_BYTES, RC_SENDS, ROCE_UDP_PORT, UC_SENDS
from ina.protocol.emit.notice import notice
from ina.protocol.icrc import ICRC_BYTES
from ina.protocol.layout import LAYOUT, FieldLayout

_ENUMS: dict[str, type[IntEnum]] = {
    "kind": spec.Kind,
    "shape": spec.Shape,
    "value_type": spec.ValueType,
}

_DISSECTOR = """\
local too_short = ProtoExpert.new("ina.too_short", "Shorter than the header says",
    expert.group.MALFORMED, expert.severity.ERROR)
local too_long = ProtoExpert.new("ina.too_long", "Bytes follow the values",
    expert.group.MALFORMED, expert.severity.ERROR)
local bad_version = ProtoExpert.new("ina.bad_version", "Unknown version",
    expert.group.UNDECODED, expert.severity.WARN)
ina.experts = { too_short, too_long, bad_version }

local function announced_bytes(buffer, offset)
    local count = buffer(offset + VALUE_COUNT_OFFSET, 2):bitfield(4, 12)
    return HEADER_BYTES + count * VALUE_BYTES
end

-- Bytes of each packet in a datagram: one, or, where the sender's kernel left the cutting to the
-- network card (UDP_SEGMENT), several of the first one's size and a shorter last one.
local function packet_bytes(buffer)
    if buffer:len() < HEADER_BYTES then return buffer:len() end
    local step = announced_bytes(buffer, 0)
    local offset = 0
    while offset < buffer:len() do
        local left = buffer:len() - offset
        if left < HEADER_BYTES or buffer(offset, 1):bitfield(0, 4) ~= VERSION
            or kinds[buffer(offset, 1):bitfield(4, 4)] == nil
            or announced_bytes(buffer, offset) ~= math.min(step, left) then
            return buffer:len()
        end
        offset = offset + step
    end
    return step
end

-- A word holds two or four signed columns, the lowest first; one that is negative has borrowed from
-- the one above.
local function add_columns(tree, place, per_word)
    local left, size = place:int(), 2 ^ (32 / per_word)
    for _ = 1, per_word do
        local column = (left + size / 2) % size - size / 2
        tree:add(fields.column, place, math.floor(column))
        left = math.floor((left - column) / size)
    end
end

-- Returns what the info column says.
local function dissect_packet(buffer, root)
    local tree = root:add(ina, buffer)
    if buffer:len() < HEADER_BYTES then
        tree:add_proto_expert_info(too_short)
        return "too short"
    end
    if buffer(0, 1):bitfield(0, 4) ~= VERSION then
        tree:add_proto_expert_info(bad_version)
        return "unknown version"
    end
    local shape = buffer(SHAPE_OFFSET, 1):bitfield(SHAPE_BIT, 4)
    for _, item in ipairs(places) do
        local shown = tree:add(fields[item.name], buffer(item.offset, item.bytes))
        if item.name == "path" and shape ~= 0 then
            shown:add(fields.whose, buffer(item.offset, item.bytes))
            shown:add(fields.owner, buffer(item.offset, item.bytes))
        end
    end
    for _, flag in ipairs(flags) do
        tree:add(fields[flag], buffer(FLAGS_OFFSET, 1))
    end
    local kind = kinds[buffer(0, 1):bitfield(4, 4)] or "unknown kind"
    local job, worker = buffer(JOB_OFFSET, 2):uint(), buffer(WORKER_OFFSET, 1):uint()
    local count = buffer(VALUE_COUNT_OFFSET, 2):bitfield(4, 12)
    local held = math.min(count, math.floor((buffer:len() - HEADER_BYTES) / VALUE_BYTES))
    if held > 0 then
        local values = tree:add(ina, buffer(HEADER_BYTES, held * VALUE_BYTES), "Values")
        local per_word = values_per_word[buffer(VALUE_COUNT_OFFSET, 2):bitfield(0, 4)] or 1
        for i = 0, held - 1 do
            local place = buffer(HEADER_BYTES + i * VALUE_BYTES, VALUE_BYTES)
            local word = values:add(fields.value, place)
            if per_word > 1 then add_columns(word, place, per_word) end
        end
    end
    if buffer:len() < announced_bytes(buffer, 0) then
        tree:add_proto_expert_info(too_short)
    elseif buffer:len() > announced_bytes(buffer, 0) then
        tree:add_proto_expert_info(too_long)
    end
    local of_shape = shape == 0 and "" or " " .. (shapes[shape] or "of unknown shape")
    return string.format("%s%s job %d worker %d seq %d, %d values",
        kind, of_shape, job, worker, buffer(SEQ_OFFSET, 4):uint(), count)
end

local function begins(buffer, offset)
    return buffer:len() >= offset + HEADER_BYTES and buffer(offset, 1):bitfield(0, 4) == VERSION
        and kinds[buffer(offset, 1):bitfield(4, 4)] ~= nil
end

-- The packets in what is between BTH and the last ICRC of a RoCEv2 SEND: one, or, uncut, several
-- with ICRC and BTH between them. None: it is of others.
local function packets_in_send(buffer)
    local found, offset = {}, 0
    while begins(buffer, offset) do
        local length = announced_bytes(buffer, offset)
        local left = buffer:len() - offset
        if length > left then return {} end
        table.insert(found, buffer(offset, length))
        if length == left then return found end
        offset = offset + length + ICRC_BYTES + BTH_BYTES
    end
    return {}
end

local function say(pinfo, said)
    pinfo.cols.protocol = "INA"
    pinfo.cols.info = table.concat(said, "; ")
end

local by_udp_port = DissectorTable.get("udp.port")

function ina.dissector(buffer, pinfo, root)
    if buffer:len() > 0 and sends[buffer(0, 1):uint()] and begins(buffer, BTH_BYTES) then
        -- A tunnel's, to or from a soft switch's port rocev2.
        return by_udp_port:get_dissector(ROCE_UDP_PORT):call(buffer, pinfo, root)
    end
    local step = packet_bytes(buffer)
    local said = {}
    for offset = 0, math.max(0, buffer:len() - 1), math.max(1, step) do
        local part = buffer(offset, math.min(step, buffer:len() - offset))
        table.insert(said, dissect_packet(part, root))
    end
    say(pinfo, said)
    return buffer:len()
end

by_udp_port:add(UDP_PORT, ina)

local opcode = Field.new("infiniband.bth.opcode")

ina:register_heuristic("infiniband.payload", function(buffer, pinfo, root)
    local of_bth = opcode()
    if of_bth == nil or not sends[of_bth.value] then return false end
    local said = {}
    for _, packet in ipairs(packets_in_send(buffer)) do
        table.insert(said, dissect_packet(packet, root))
    end
    if #said == 0 then return false end
    say(pinfo, said)
    return true
end)
"""


def render() -> str:
    """Returns the text of ``tools/wireshark/ina.lua``."""
    flags = [str(flag.name).lower() for flag in spec.Flag]
    return "\n".join(
        [
            *notice("--"),
            "-- Use: wireshark -X lua_script:tools/wireshark/ina.lua, or copy it to the plugins.",
            "",
            'local ina = Proto("ina", "In-Network Aggregation")',
            f"local VERSION, UDP_PORT = {spec.VERSION}, {spec.UDP_PORT}",
            f"local ROCE_UDP_PORT = {ROCE_UDP_PORT}",
            f"local HEADER_BYTES, VALUE_BYTES = {spec.HEADER_BYTES}, {spec.VALUE_BYTES}",
            *(
                f"local {name.upper()}_OFFSET = {_field(name).word_offset_bytes}"
                for name in ("flags", "job", "worker", "shape", "value_count", "seq")
            ),
            f"local SHAPE_BIT = {_first_bit(_field('shape'))}",
            *(_value_names(name, members) for name, members in _ENUMS.items()),
            f"local BTH_BYTES, ICRC_BYTES = {BTH_BYTES}, {ICRC_BYTES}",
            f"local sends = {{ {_sends()} }}",
            f"local values_per_word = {{ {_per_word()} }}",
            "local fields = {",
            *(f"    {field.name} = {_proto_field(field)}," for field in LAYOUT),
            *(f"    flag_{str(f.name).lower()} = {_proto_flag(f)}," for f in spec.Flag),
            f"    whose = {_half(0)},",
            f"    owner = {_half(1)},",
            '    value = ProtoField.int32("ina.value", "value"),',
            '    column = ProtoField.int32("ina.column", "column"),',
            "}",
            "ina.fields = fields",
            "",
            "-- In wire order; offset and bytes of the word that holds the field.",
            "local places = {",
            *(
                f'    {{ name = "{field.name}", offset = {field.word_offset_bytes},'
                f" bytes = {field.word_bits // 8} }},"
                for field in LAYOUT
            ),
            "}",
            "local flags = { " + ", ".join(f'"flag_{flag}"' for flag in flags) + " }",
            "",
            _DISSECTOR,
        ]
    )


def _per_word() -> str:
    packed = [it for it in spec.ValueType if it.per_word > 1]
    return ", ".join(f"[{it.value}] = {it.per_word}" for it in packed)


def _sends() -> str:
    return ", ".join(f"[0x{opcode:02x}] = true" for opcode in (*UC_SENDS, *RC_SENDS))


def _field(name: str) -> FieldLayout:
    return next(field for field in LAYOUT if field.name == name)


def _value_names(name: str, members: type[IntEnum]) -> str:
    rows = ", ".join(f'[{member.value}] = "{member.name.lower()}"' for member in members)
    return f"local {name}s = {{ {rows} }}"


def _proto_field(field: FieldLayout) -> str:
    is_hex = field.name in ("flags", "contributors", "path")
    base = "base.HEX" if is_hex else "base.DEC"
    names = f"{field.name}s" if field.name in _ENUMS else "nil"
    mask = f", 0x{field.mask << field.shift:x}" if field.bits < field.word_bits else ""
    kind = f"ProtoField.uint{field.word_bits}"
    return f'{kind}("ina.{field.name}", "{field.name}", {base}, {names}{mask})'


def _first_bit(field: FieldLayout) -> int:
    """In its word, from the uppermost on."""
    return field.word_bits - field.shift - field.bits


def _half(lower: int) -> str:
    """Of the path in rounds of another shape than SUM: whose packet it is, or whose chunk."""
    field, name = _field("path"), ("whose", "owner")[lower]
    shift = field.shift + (0 if lower else spec.OWNER_BITS)
    mask = (1 << (spec.OWNER_BITS if lower else spec.PATH_BITS - spec.OWNER_BITS)) - 1 << shift
    return f'ProtoField.uint{field.word_bits}("ina.{name}", "{name}", base.HEX, nil, 0x{mask:x})'


def _proto_flag(flag: spec.Flag) -> str:
    name = str(flag.name).lower()
    return f'ProtoField.bool("ina.flags.{name}", "{name}", 8, nil, 0x{flag.value:02x})'
