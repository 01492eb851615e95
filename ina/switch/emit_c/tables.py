"""Tables to C: specification, key packing, lookup with the action's code in place."""

from __future__ import annotations

from dataclasses import dataclass

from ina.switch.emit_c.early import early_tables
from ina.switch.emit_c.layout import Layout
from ina.switch.emit_c.statements import Statements
from ina.switch.emit_c.writer import Writer
from ina.switch.errors import UnsupportedProgramError
from ina.switch.ir.expr import Expr, FieldRef
from ina.switch.ir.program import Action, MatchKind, Table
from ina.switch.ir.stmt import Apply, Exit
from ina.switch.ir.walk import walk

_KINDS = {MatchKind.EXACT: "INA_EXACT", MatchKind.LPM: "INA_LPM"}
MAX_KEY_WORDS = 64


def words_of(width_bits: int) -> int:
    """64-bit words that a value takes in the C ABI."""
    return (width_bits + 63) // 64


@dataclass(frozen=True)
class Part:
    """Bits of a key field in a packed word: (field word >> source_shift) << shift."""

    field: int
    field_word: int
    word: int
    shift: int
    swapped_bytes: int = 0
    """Whole bytes kept in wire order (the first lowest), so that they load as they stand; 0: no."""


class TableLayout:
    """How a table's key is packed: fields share words where they fit, ranges stand alone."""

    def __init__(self, table: Table, c_name: str, layout: Layout) -> None:
        self.table = table
        self.c_name = c_name
        self.in_ingress = any(
            isinstance(node, Apply) and node.table == table.name
            for node in walk(layout.program.ingress)
        )
        self.parts: list[Part] = []
        self.range_words = 0
        word, used = -1, 64
        for number, key in enumerate(table.keys):
            for field_word in range(words_of(key.width_bits)):
                bits = min(64, key.width_bits - 64 * field_word)
                alone = key.kind is MatchKind.RANGE
                if alone or used + bits > 64:
                    word, used = word + 1, 0
                swapped = 0 if alone else _wire_bytes(layout, key.value)
                self.parts.append(Part(number, field_word, word, used, swapped))
                used = 64 if alone else used + bits
                if alone:
                    self.range_words |= 1 << word
        self.key_words = word + 1
        if self.key_words > MAX_KEY_WORDS:
            raise UnsupportedProgramError(
                f"the very long key of table {table.name!r}", str(table.source)
            )
        self.param_words = max(
            (
                sum(words_of(param.width_bits) for param in action.params)
                for action in table.actions
            ),
            default=0,
        )

    @property
    def kind(self) -> str:
        """INA_EXACT, INA_LPM or INA_SCAN."""
        lpm_fields = sum(key.kind is MatchKind.LPM for key in self.table.keys)
        if any(key.kind not in (MatchKind.EXACT, MatchKind.LPM) for key in self.table.keys):
            return "INA_SCAN"
        return "INA_LPM" if lpm_fields else "INA_EXACT"

    @property
    def remembers_last(self) -> bool:
        """Whether the entry that was found last is tried first: an exact key of less than a word,
        in ingress (copies of one packet that leave have keys of their own)."""
        short = 0 < sum(key.width_bits for key in self.table.keys) < 64
        return self.kind == "INA_EXACT" and self.key_words == 1 and short and self.in_ingress

    @property
    def slot_bytes(self) -> str:
        """Of one entry, in C."""
        return f"INA_SLOT_BYTES({self.kind}, {self.key_words}, {self.param_words})"

    @property
    def index_words(self) -> str:
        """Of ``ina_table.index``, in C."""
        if self.kind == "INA_SCAN":
            return str(max(self.capacity, 1))
        return f"INA_INDEX_ROOM({self.capacity})"

    @property
    def capacity(self) -> int:
        """Entries."""
        return self.table.max_size


def _wire_bytes(layout: Layout, value: Expr) -> int:
    """Bytes of a key that is one field of whole bytes of a header; else 0."""
    if not isinstance(value, FieldRef) or value.signed or value.width_bits > 64:
        return 0
    header = layout.program.headers[value.header]
    if header.metadata:
        return 0
    field = header.type.by_name[value.field]
    whole = field.offset_bits % 8 == 0 and field.width_bits % 8 == 0
    return field.width_bits // 8 if whole else 0


def param_offsets(action: Action) -> tuple[int, ...]:
    """Where each parameter's words begin."""
    offsets, at = [], 0
    for param in action.params:
        offsets.append(at)
        at += words_of(param.width_bits)
    return tuple(offsets)


class TableEmitter:
    """Emits table code; :meth:`apply` is what :class:`Statements` calls for an Apply."""

    def __init__(self, layout: Layout, out: Writer) -> None:
        self.layout = self._layout = layout
        self._out = out
        self.to = Statements(layout, out, self.apply)
        self.tables = {
            table.name: TableLayout(table, layout.names.get("table", table.name), layout)
            for table in layout.program.tables
        }

        applied = {node.table for node in walk(layout.program.egress) if isinstance(node, Apply)}
        self.fixed = [
            info
            for info in self.tables.values()
            if info.key_words == 0 and info.table.name in applied
        ]
        """Egress's tables without a key: what they do is the same for all copies of a packet."""
        early = [self.tables[name] for name in early_tables(layout)]
        self.early = [info for info in early if not info.remembers_last]  # that is short as it is
        """Tables that packets of the main path are looked up in before ingress."""
        self.in_egress = False
        """Whether what is emitted now is egress."""

    def early_type(self) -> None:
        """A struct of the entries of :attr:`early`."""
        if not self.early:
            return
        with self._out.block("typedef struct", tail="} early_entries;"):
            for info in self.early:
                self._out.line(f"ina_slot *{info.c_name};")
                self._out.line(f"bool {info.c_name}_hit;")
        self._out.line()

    def find_early(self) -> str:
        """Looks them up for a packet of the main path; returns the argument for its ingress."""
        if not self.early:
            return ""
        self._out.line("early_entries early;")
        self._layout.on_main = True
        for info in self.early:
            with self._out.block(""):
                self._look_up(info, f"early.{info.c_name}", f"early.{info.c_name}_hit")
        self._layout.on_main = False
        return ", &early"

    def fixed_type(self) -> None:
        """A struct of what the tables of :attr:`fixed` do."""
        if not self.fixed:
            return
        with self._out.block("typedef struct", tail="} fixed_entries;"):
            for info in self.fixed:
                self._out.line(f"uint32_t {info.c_name}_action;")
                self._out.line(f"uint64_t {info.c_name}_args[{max(info.param_words, 1)}];")
        self._out.line()

    def read_fixed(self) -> str:
        """Reads it before the copies are made; returns the argument for ``egress``."""
        if not self.fixed:
            return ""
        self._out.line("fixed_entries fixed;")
        for info in self.fixed:
            at = f"S->{info.c_name}_slots + {info.capacity} * {info.slot_bytes}"
            entry = f"((const ina_slot *)({at}))"
            self._out.line(f"fixed.{info.c_name}_action = {entry}->action;")
            for word in range(info.param_words):
                value = f"{entry}->words[{word}]"
                self._out.line(f"fixed.{info.c_name}_args[{word}] = {value};")
        return ", &fixed"

    def specs(self) -> None:
        """One ``ina_table_spec`` a table."""
        for info in self.tables.values():
            table = info.table
            flags = f"{str(table.is_const).lower()}, {str(table.default_is_const).lower()}"
            self._out.line(
                f"static const ina_table_spec {info.c_name}_spec = "
                f"{{{info.kind}, {info.key_words}, {info.param_words}, {info.capacity}, "
                f"{info.range_words:#x}, {flags}}}; // {table.name}",
                table.source,
            )
        self._out.line()

    def apply(self, stmt: Apply) -> None:
        """Look up, count, run the action, branch."""
        info, out = self.tables[stmt.table], self._out
        table = info.table
        with out.block("", source=stmt.source):
            out.line(
                f"// table {table.name}: "
                + ", ".join(f"{key.name} ({key.kind.value})" for key in table.keys)
            )
            if self._layout.on_main and info in self.early:
                out.line(f"const bool hit = early->{info.c_name}_hit;")
                out.line(f"ina_slot *const entry = early->{info.c_name};")
            else:
                self._look_up(info, "ina_slot *const entry", "hit")
            if table.has_direct_counter:
                out.line("entry->packets++;")
                out.line("entry->bytes += p->length;")
            args, action = f"ina_slot_params(entry, {info.kind}, {info.key_words})", "entry->action"
            if self.in_egress and info in self.fixed:
                args, action = f"fixed->{info.c_name}_args", f"fixed->{info.c_name}_action"
            out.line(f"const uint64_t *const args = {args};")
            out.line("(void)entry;")
            out.line("(void)args;")
            self._actions(stmt, table, action)
            if stmt.on_hit or stmt.on_miss:
                self._hit_or_miss(stmt)

    def _look_up(self, info: TableLayout, entry: str, hit: str) -> None:
        """Declares ``hit`` (or sets it, if it is a member) and the entry."""
        out = self._out
        words: list[list[str]] = [[] for _ in range(info.key_words)]
        for run in self._runs(info):
            code = self._raw(info, run) if run[0].swapped_bytes else self._key_part(info, *run)
            shift = run[0].shift
            words[run[0].word].append(f"{code} << {shift}" if shift else code)
        if words:
            values = ", ".join(" | ".join(terms) for terms in words)
            out.line(f"const uint64_t key[{info.key_words}] = {{{values}}};")
        key = "key" if words else "NULL"
        if "." not in hit:
            out.line(f"bool {hit};")
        where = f"&S->{info.c_name}, S->{info.c_name}_slots, S->{info.c_name}_index"
        if info.remembers_last:
            arguments = f"{where}, {info.param_words}, {info.capacity}, key[0], &{hit}"
            out.line(f"{entry} = ina_lookup_again({arguments});")
        else:
            out.line(
                f"{entry} = ina_lookup({where}, {info.kind}, {info.key_words}, "
                f"{info.param_words}, {info.capacity}, {info.range_words:#x}, {key}, &{hit});"
            )

    def _hit_or_miss(self, stmt: Apply) -> None:
        out = self._out
        if stmt.on_hit:
            with out.block("if (INA_LIKELY(hit))"):
                self.to.block(stmt.on_hit)
        if stmt.on_miss:
            with out.block("else" if stmt.on_hit else "if (!hit)"):
                self.to.block(stmt.on_miss)

    def _actions(self, stmt: Apply, table: Table, chosen: str) -> None:
        out, followers = self._out, dict(stmt.on_action)
        actions = list(table.actions)
        if table.default.action not in {action.index for action in actions}:
            actions.append(self._layout.program.actions[table.default.action])
        if not any(action.body or action.index in followers for action in actions):
            return
        likely = [action.index for action in actions if action.index != table.default.action]
        if len(likely) == 1:
            chosen = f"__builtin_expect({chosen}, {likely[0]})"
        with out.block(f"switch ({chosen})"):
            for action in actions:
                with out.block(f"case {action.index}:", source=action.source):
                    out.line(f"// action {action.name}")
                    self.to.expr.param_offsets = param_offsets(action)
                    self.to.block(action.body)
                    follower = followers.get(action.index, ())
                    self.to.block(follower)
                    if not any(isinstance(node, Exit) for node in action.body[-1:]):
                        out.line("break;")
            out.line("default: break;")

    def _runs(self, info: TableLayout) -> list[list[Part]]:
        """The parts, those together that lie one behind the other in the packet and in a word."""
        runs: list[list[Part]] = []
        for part in info.parts:
            last = runs[-1][-1] if runs else part
            if runs and self._follows(info, last, part):
                runs[-1].append(part)
            else:
                runs.append([part])
        return runs

    def _follows(self, info: TableLayout, last: Part, part: Part) -> bool:
        a, b = info.table.keys[last.field].value, info.table.keys[part.field].value
        if not (last.swapped_bytes and part.swapped_bytes and last.word == part.word):
            return False
        assert isinstance(a, FieldRef)
        assert isinstance(b, FieldRef)
        by_name = self._layout.program.headers[a.header].type.by_name
        return (
            a.header == b.header
            and self._layout.stands_in_packet(a)
            and self._layout.stands_in_packet(b)
            and by_name[a.field].offset_bits + a.width_bits == by_name[b.field].offset_bits
        )

    def _raw(self, info: TableLayout, run: list[Part]) -> str:
        """Neighbouring fields in wire order; those of an invalid header are 0."""
        ref = info.table.keys[run[0].field].value
        assert isinstance(ref, FieldRef)
        valid = self._layout.valid(ref.header)
        size = sum(part.swapped_bytes for part in run)
        if not self._layout.stands_in_packet(ref):
            return f"({valid} ? ina_reverse({self._layout.field(ref)}, {size}) : 0)"
        header_type = self._layout.program.headers[ref.header].type
        first = header_type.by_name[ref.field].offset_bits // 8
        at = f"{self._layout.wire(ref.header)} + {first}"
        if size in (1, 2, 4, 8):
            load = f"ina_load_raw({at}, {size})"
        elif first + 8 <= header_type.width_bits // 8:
            load = f"(ina_load_raw({at}, 8) & INA_MASK({8 * size}))"
        else:
            load = f"ina_reverse(ina_load({at}, {size}), {size})"
        return f"({valid} ? {load} : 0)"

    def _key_part(self, info: TableLayout, part: Part) -> str:
        """One word of a key field; a field of an invalid header is 0."""
        value = info.table.keys[part.field].value
        width_bits = info.table.keys[part.field].width_bits
        code = self.to.expr.exact(value, max(64, 128 if width_bits > 64 else 64))
        if width_bits > 64:
            code = f"(uint64_t)({code} >> 64)" if part.field_word else f"(uint64_t){code}"
        headers = {node.header for node in walk(value) if isinstance(node, FieldRef)}
        for header in headers:
            if not self._layout.program.headers[header].metadata:
                code = f"({self._layout.valid(header)} ? {code} : 0)"
        return code
