"""The tables, as the migrations that made them, in SQLite's words.

A released migration is never changed: what is to be different comes as the next one.
"""

from __future__ import annotations

APPLICATION_ID = 0x696E6163
"""Marks the file as a controller's ("inac"), for SQLite and for ``file``; PostgreSQL's lock."""

_NODES = ("nodes", "other_nodes")


def _copies_below(table: str) -> str:
    """Of trees that had further roots: a tree of its own below each. Places are below 10,000."""

    def of_top(root: str, else_: str) -> str:
        return f"CASE WHEN below.parent = 0 THEN root.{root} ELSE {else_} END"

    return f"""INSERT INTO {table} (job, place, switch_name, parent, child, port_down, port_up,
            ranks, first_slot, slots, reserved_slots, host_address, host_udp_port, host_mac,
            shared, tree)
        SELECT below.job, below.place + 10000 * root.place, below.switch_name,
            {of_top("place", "below.parent + 10000 * root.place")}, below.child,
            {of_top("port_down", "below.port_down")}, {of_top("port_up", "below.port_up")},
            below.ranks, below.first_slot, below.slots, below.reserved_slots, below.host_address,
            below.host_udp_port, below.host_mac, below.shared, root.place
        FROM {table} root JOIN {table} below ON below.job = root.job
        WHERE root.parent IS NULL AND root.place > 0 AND below.parent IS NOT NULL"""


MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        # Who may write: the controller that claimed last. One row.
        """CREATE TABLE claim (
            one INTEGER PRIMARY KEY CHECK (one = 1),
            generation INTEGER NOT NULL,
            holder TEXT NOT NULL,
            claimed_unix_s REAL NOT NULL
        )""",
        "INSERT INTO claim VALUES (1, 0, '', 0)",
        # The last epoch issued, 0 to 2**32 - 1; no row: none was. At most one row.
        """CREATE TABLE last_epoch (
            one INTEGER PRIMARY KEY CHECK (one = 1),
            epoch INTEGER NOT NULL CHECK (epoch BETWEEN 0 AND 4294967295)
        )""",
        # Jobs that have not ended.
        """CREATE TABLE jobs (
            number INTEGER PRIMARY KEY,
            name TEXT NOT NULL UNIQUE,
            state TEXT NOT NULL CHECK (state IN ('joining', 'starting', 'running', 'leaving')),
            epoch INTEGER NOT NULL,
            world_size INTEGER NOT NULL,
            first_slot INTEGER NOT NULL,
            slots INTEGER NOT NULL,
            reserved_slots INTEGER NOT NULL,
            tenant TEXT NOT NULL,
            priority INTEGER NOT NULL,
            window_packets INTEGER NOT NULL,
            created_unix_s REAL NOT NULL,
            token_hash BLOB NOT NULL,
            key_seed BLOB NOT NULL
        )""",
        # Their workers. here: has not left; a started job keeps the endpoints of those that have.
        """CREATE TABLE members (
            job INTEGER NOT NULL REFERENCES jobs (number) ON DELETE CASCADE,
            rank INTEGER NOT NULL,
            address TEXT NOT NULL,
            udp_port INTEGER NOT NULL,
            switch_port INTEGER NOT NULL,
            mac INTEGER,
            here INTEGER NOT NULL CHECK (here IN (0, 1)),
            PRIMARY KEY (job, rank)
        ) WITHOUT ROWID""",
    ),
    # Where a worker listens for results by IP multicast; NULL: it wants results of its own.
    ("ALTER TABLE members ADD COLUMN results_group TEXT",),
    (
        # Whose store it is: where workers reach the switch of who claimed last; empty: not known.
        "ALTER TABLE claim ADD COLUMN switch_addr TEXT NOT NULL DEFAULT ''",
        # How far a rank had come that has left: the last operation it has begun, and the last of
        # those it has had all results of; NULL: it is here, or did not say.
        "ALTER TABLE members ADD COLUMN submitted INTEGER",
        "ALTER TABLE members ADD COLUMN finished INTEGER",
    ),
    # Which switch sums a job, by name; empty: the only one, which had no name then. The claim's
    # switch_addr is since then that of all switches, with ", " between them.
    ("ALTER TABLE jobs ADD COLUMN switch_name TEXT NOT NULL DEFAULT ''",),
    # How a job's workers verify its sums.
    ("ALTER TABLE jobs ADD COLUMN verify TEXT NOT NULL DEFAULT 'off'",),
    (
        # Slots that a job asked for at each of its switches; 0: what is usual.
        "ALTER TABLE jobs ADD COLUMN slots_asked INTEGER NOT NULL DEFAULT 0",
        # The tree of switches that a job is summed over, and its slots on each. place: 0 the root,
        # parents before their children. parent: the place of the switch above; NULL: the root.
        # child: its index among the parent's switches. ranks: its workers by index, with commas.
        # first_slot: NULL: the switch has nothing of the job any more. Since this version the
        # table jobs says nothing of switches and slots: its columns are 0 and ''.
        """CREATE TABLE nodes (
            job INTEGER NOT NULL REFERENCES jobs (number) ON DELETE CASCADE,
            place INTEGER NOT NULL,
            switch_name TEXT NOT NULL,
            parent INTEGER,
            child INTEGER NOT NULL,
            port_down INTEGER NOT NULL,
            port_up INTEGER NOT NULL,
            ranks TEXT NOT NULL,
            first_slot INTEGER,
            slots INTEGER NOT NULL,
            reserved_slots INTEGER NOT NULL,
            PRIMARY KEY (job, place)
        ) WITHOUT ROWID""",
        # ranks '*': all of the job's.
        """INSERT INTO nodes
            SELECT number, 0, switch_name, NULL, 0, 0, 0, '*', first_slot, slots, reserved_slots
            FROM jobs""",
        "UPDATE jobs SET switch_name = '', first_slot = 0, slots = 0, reserved_slots = 0",
    ),
    (
        # Of a node on a host of workers, where the switch above sees it; NULL: it is a switch. Its
        # switch_name is for people, the lowest of its ranks runs it, and port_down is the switch's.
        "ALTER TABLE nodes ADD COLUMN host_address TEXT",
        "ALTER TABLE nodes ADD COLUMN host_udp_port INTEGER",
        "ALTER TABLE nodes ADD COLUMN host_mac INTEGER",
    ),
    (
        # What a job's packets carry as their epoch and job number, once its mapping has changed; 0:
        # what is in its row. Operations from first_operation on are sent by the mapping it has.
        "ALTER TABLE jobs ADD COLUMN mapping_epoch INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE jobs ADD COLUMN mapping_number INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE jobs ADD COLUMN first_operation INTEGER NOT NULL DEFAULT 0",
        # Its first slot on nodes on hosts of its workers.
        "ALTER TABLE jobs ADD COLUMN host_first INTEGER NOT NULL DEFAULT 0",
        # Changes of running jobs' mappings: how far they are, and what is beside the mapping that
        # the job has; its switches are in other_nodes, of which the columns are as those of nodes.
        """CREATE TABLE changes (
            job INTEGER PRIMARY KEY REFERENCES jobs (number) ON DELETE CASCADE,
            stage TEXT NOT NULL,
            epoch INTEGER NOT NULL,
            number INTEGER NOT NULL,
            window_packets INTEGER NOT NULL,
            host_first INTEGER NOT NULL,
            in_place INTEGER NOT NULL CHECK (in_place IN (0, 1)),
            first_operation INTEGER NOT NULL,
            why TEXT NOT NULL,
            since_unix_s REAL NOT NULL
        )""",
        """CREATE TABLE other_nodes (
            job INTEGER NOT NULL REFERENCES changes (job) ON DELETE CASCADE,
            place INTEGER NOT NULL,
            switch_name TEXT NOT NULL,
            parent INTEGER,
            child INTEGER NOT NULL,
            port_down INTEGER NOT NULL,
            port_up INTEGER NOT NULL,
            ranks TEXT NOT NULL,
            first_slot INTEGER,
            slots INTEGER NOT NULL,
            reserved_slots INTEGER NOT NULL,
            host_address TEXT,
            host_udp_port INTEGER,
            host_mac INTEGER,
            PRIMARY KEY (job, place)
        ) WITHOUT ROWID""",
    ),
    (
        # Whether a job has slots of its own on its switches; which of them share theirs instead:
        # there reserved_slots are those that it may claim. A node on a host that is the root is an
        # aggregator, and runs with rank 0.
        "ALTER TABLE jobs ADD COLUMN mode TEXT NOT NULL DEFAULT 'pool'",
        "ALTER TABLE nodes ADD COLUMN shared INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE other_nodes ADD COLUMN shared INTEGER NOT NULL DEFAULT 0",
    ),
    (
        # The mode of the mapping beside the one that the job has; the job's mode is that one's.
        "ALTER TABLE changes ADD COLUMN mode TEXT NOT NULL DEFAULT 'pool'",
        # What rank 0's process runs to make the job's results, whether its mapping needs it or not;
        # NULL: nothing. switch_port is the switch's towards it, uplink_port its own.
        "ALTER TABLE members ADD COLUMN aggregator_address TEXT",
        "ALTER TABLE members ADD COLUMN aggregator_udp_port INTEGER",
        "ALTER TABLE members ADD COLUMN aggregator_mac INTEGER",
        "ALTER TABLE members ADD COLUMN aggregator_switch_port INTEGER",
        "ALTER TABLE members ADD COLUMN aggregator_uplink_port INTEGER",
        # As mapping_number and number, for further roots of their trees, with commas. Such a root
        # is a node without a parent, above the same one as the first: port_up is that one's port.
        "ALTER TABLE jobs ADD COLUMN further_numbers TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE changes ADD COLUMN further_numbers TEXT NOT NULL DEFAULT ''",
    ),
    (
        # Several trees a job: by number which one a node is of; places go through all of them. A
        # switch may be a node of several: each row says what it has in all. Of roots: the tree's
        # share of the lanes. rank_ports: by worker the switch's port towards it, with commas;
        # empty: those that they joined with. further_numbers are of the trees after the first.
        *(f"ALTER TABLE {it} ADD COLUMN tree INTEGER NOT NULL DEFAULT 0" for it in _NODES),
        *(f"ALTER TABLE {it} ADD COLUMN share INTEGER NOT NULL DEFAULT 1" for it in _NODES),
        *(f"ALTER TABLE {it} ADD COLUMN rank_ports TEXT NOT NULL DEFAULT ''" for it in _NODES),
        # Further roots: below each a copy of what is below the first.
        *(_copies_below(it) for it in _NODES),
        *(
            f"UPDATE {it} SET tree = place, port_down = 0, port_up = 0 WHERE parent IS NULL"
            for it in _NODES
        ),
    ),
    # Links ("leaf1-spine1") and switches of the fabric that somebody has said are down.
    ("CREATE TABLE down (name TEXT PRIMARY KEY)",),
    (
        # The controllers of this store, and by key digests of their configurations, in JSON.
        """CREATE TABLE controllers (
            name TEXT PRIMARY KEY,
            digests TEXT NOT NULL,
            seen_unix_s REAL NOT NULL
        )""",
    ),
)


def in_postgres(statement: str) -> str:
    """The same statement in PostgreSQL's words."""
    for ours, theirs in _POSTGRES:
        statement = statement.replace(ours, theirs)
    return statement


_POSTGRES = (
    ("INTEGER", "BIGINT"),
    ("REAL", "DOUBLE PRECISION"),
    ("BLOB", "BYTEA"),
    (" WITHOUT ROWID", ""),
)
