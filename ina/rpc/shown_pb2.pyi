from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Program(_message.Message):
    __slots__ = ("mode", "target", "values", "slots", "jobs", "members", "workers")
    MODE_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    mode: str
    target: str
    values: int
    slots: int
    jobs: int
    members: int
    workers: int
    def __init__(self, mode: _Optional[str] = ..., target: _Optional[str] = ..., values: _Optional[int] = ..., slots: _Optional[int] = ..., jobs: _Optional[int] = ..., members: _Optional[int] = ..., workers: _Optional[int] = ...) -> None: ...

class TreeNode(_message.Message):
    __slots__ = ("switch", "parent", "level", "ranks", "children", "first_slot", "slots", "unread", "contributions", "results", "replays", "passed_down", "duplicates", "stale", "shared", "flushes", "collisions", "bypassed", "late", "missed", "evictions", "tree", "share")
    SWITCH_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    RANKS_FIELD_NUMBER: _ClassVar[int]
    CHILDREN_FIELD_NUMBER: _ClassVar[int]
    FIRST_SLOT_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    UNREAD_FIELD_NUMBER: _ClassVar[int]
    CONTRIBUTIONS_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    REPLAYS_FIELD_NUMBER: _ClassVar[int]
    PASSED_DOWN_FIELD_NUMBER: _ClassVar[int]
    DUPLICATES_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    SHARED_FIELD_NUMBER: _ClassVar[int]
    FLUSHES_FIELD_NUMBER: _ClassVar[int]
    COLLISIONS_FIELD_NUMBER: _ClassVar[int]
    BYPASSED_FIELD_NUMBER: _ClassVar[int]
    LATE_FIELD_NUMBER: _ClassVar[int]
    MISSED_FIELD_NUMBER: _ClassVar[int]
    EVICTIONS_FIELD_NUMBER: _ClassVar[int]
    TREE_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    switch: str
    parent: str
    level: int
    ranks: _containers.RepeatedScalarFieldContainer[int]
    children: _containers.RepeatedScalarFieldContainer[str]
    first_slot: int
    slots: int
    unread: str
    contributions: int
    results: int
    replays: int
    passed_down: int
    duplicates: int
    stale: int
    shared: bool
    flushes: int
    collisions: int
    bypassed: int
    late: int
    missed: int
    evictions: int
    tree: int
    share: int
    def __init__(self, switch: _Optional[str] = ..., parent: _Optional[str] = ..., level: _Optional[int] = ..., ranks: _Optional[_Iterable[int]] = ..., children: _Optional[_Iterable[str]] = ..., first_slot: _Optional[int] = ..., slots: _Optional[int] = ..., unread: _Optional[str] = ..., contributions: _Optional[int] = ..., results: _Optional[int] = ..., replays: _Optional[int] = ..., passed_down: _Optional[int] = ..., duplicates: _Optional[int] = ..., stale: _Optional[int] = ..., shared: _Optional[bool] = ..., flushes: _Optional[int] = ..., collisions: _Optional[int] = ..., bypassed: _Optional[int] = ..., late: _Optional[int] = ..., missed: _Optional[int] = ..., evictions: _Optional[int] = ..., tree: _Optional[int] = ..., share: _Optional[int] = ...) -> None: ...

class ShowSwitchRequest(_message.Message):
    __slots__ = ("switch",)
    SWITCH_FIELD_NUMBER: _ClassVar[int]
    switch: str
    def __init__(self, switch: _Optional[str] = ...) -> None: ...

class TableEntry(_message.Message):
    __slots__ = ("table", "match", "action", "job", "foreign")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    MATCH_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    FOREIGN_FIELD_NUMBER: _ClassVar[int]
    table: str
    match: str
    action: str
    job: str
    foreign: bool
    def __init__(self, table: _Optional[str] = ..., match: _Optional[str] = ..., action: _Optional[str] = ..., job: _Optional[str] = ..., foreign: _Optional[bool] = ...) -> None: ...

class Counter(_message.Message):
    __slots__ = ("name", "index", "label", "packets", "bytes", "job", "switch")
    NAME_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    PACKETS_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    SWITCH_FIELD_NUMBER: _ClassVar[int]
    name: str
    index: int
    label: str
    packets: int
    bytes: int
    job: str
    switch: str
    def __init__(self, name: _Optional[str] = ..., index: _Optional[int] = ..., label: _Optional[str] = ..., packets: _Optional[int] = ..., bytes: _Optional[int] = ..., job: _Optional[str] = ..., switch: _Optional[str] = ...) -> None: ...

class ShowSwitchReply(_message.Message):
    __slots__ = ("program", "device_id", "slots_total", "slots_used", "entries", "counters", "switch", "runs", "slots_shared", "holds")
    PROGRAM_FIELD_NUMBER: _ClassVar[int]
    DEVICE_ID_FIELD_NUMBER: _ClassVar[int]
    SLOTS_TOTAL_FIELD_NUMBER: _ClassVar[int]
    SLOTS_USED_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    COUNTERS_FIELD_NUMBER: _ClassVar[int]
    SWITCH_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    SLOTS_SHARED_FIELD_NUMBER: _ClassVar[int]
    HOLDS_FIELD_NUMBER: _ClassVar[int]
    program: str
    device_id: int
    slots_total: int
    slots_used: int
    entries: _containers.RepeatedCompositeFieldContainer[TableEntry]
    counters: _containers.RepeatedCompositeFieldContainer[Counter]
    switch: str
    runs: Program
    slots_shared: int
    holds: _containers.RepeatedCompositeFieldContainer[SlotHold]
    def __init__(self, program: _Optional[str] = ..., device_id: _Optional[int] = ..., slots_total: _Optional[int] = ..., slots_used: _Optional[int] = ..., entries: _Optional[_Iterable[_Union[TableEntry, _Mapping]]] = ..., counters: _Optional[_Iterable[_Union[Counter, _Mapping]]] = ..., switch: _Optional[str] = ..., runs: _Optional[_Union[Program, _Mapping]] = ..., slots_shared: _Optional[int] = ..., holds: _Optional[_Iterable[_Union[SlotHold, _Mapping]]] = ...) -> None: ...

class SlotHold(_message.Message):
    __slots__ = ("job", "first_slot", "slots", "shared")
    JOB_FIELD_NUMBER: _ClassVar[int]
    FIRST_SLOT_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    SHARED_FIELD_NUMBER: _ClassVar[int]
    job: str
    first_slot: int
    slots: int
    shared: bool
    def __init__(self, job: _Optional[str] = ..., first_slot: _Optional[int] = ..., slots: _Optional[int] = ..., shared: _Optional[bool] = ...) -> None: ...

class RemoveForeignRequest(_message.Message):
    __slots__ = ("switch",)
    SWITCH_FIELD_NUMBER: _ClassVar[int]
    switch: str
    def __init__(self, switch: _Optional[str] = ...) -> None: ...

class RemoveForeignReply(_message.Message):
    __slots__ = ("removed",)
    REMOVED_FIELD_NUMBER: _ClassVar[int]
    removed: _containers.RepeatedCompositeFieldContainer[TableEntry]
    def __init__(self, removed: _Optional[_Iterable[_Union[TableEntry, _Mapping]]] = ...) -> None: ...

class ShowFabricRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class FabricSwitch(_message.Message):
    __slots__ = ("name", "target", "data_addr", "slots_total", "slots_used", "unreachable", "down")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    DATA_ADDR_FIELD_NUMBER: _ClassVar[int]
    SLOTS_TOTAL_FIELD_NUMBER: _ClassVar[int]
    SLOTS_USED_FIELD_NUMBER: _ClassVar[int]
    UNREACHABLE_FIELD_NUMBER: _ClassVar[int]
    DOWN_FIELD_NUMBER: _ClassVar[int]
    name: str
    target: str
    data_addr: str
    slots_total: int
    slots_used: int
    unreachable: str
    down: bool
    def __init__(self, name: _Optional[str] = ..., target: _Optional[str] = ..., data_addr: _Optional[str] = ..., slots_total: _Optional[int] = ..., slots_used: _Optional[int] = ..., unreachable: _Optional[str] = ..., down: _Optional[bool] = ...) -> None: ...

class FabricLink(_message.Message):
    __slots__ = ("switch_a", "port_a", "switch_b", "port_b", "rate_gbit", "busy_s", "down", "bits_per_s", "back_bits_per_s")
    SWITCH_A_FIELD_NUMBER: _ClassVar[int]
    PORT_A_FIELD_NUMBER: _ClassVar[int]
    SWITCH_B_FIELD_NUMBER: _ClassVar[int]
    PORT_B_FIELD_NUMBER: _ClassVar[int]
    RATE_GBIT_FIELD_NUMBER: _ClassVar[int]
    BUSY_S_FIELD_NUMBER: _ClassVar[int]
    DOWN_FIELD_NUMBER: _ClassVar[int]
    BITS_PER_S_FIELD_NUMBER: _ClassVar[int]
    BACK_BITS_PER_S_FIELD_NUMBER: _ClassVar[int]
    switch_a: str
    port_a: str
    switch_b: str
    port_b: str
    rate_gbit: float
    busy_s: float
    down: bool
    bits_per_s: float
    back_bits_per_s: float
    def __init__(self, switch_a: _Optional[str] = ..., port_a: _Optional[str] = ..., switch_b: _Optional[str] = ..., port_b: _Optional[str] = ..., rate_gbit: _Optional[float] = ..., busy_s: _Optional[float] = ..., down: _Optional[bool] = ..., bits_per_s: _Optional[float] = ..., back_bits_per_s: _Optional[float] = ...) -> None: ...

class FabricHost(_message.Message):
    __slots__ = ("address", "switch", "port")
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    SWITCH_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    address: str
    switch: str
    port: str
    def __init__(self, address: _Optional[str] = ..., switch: _Optional[str] = ..., port: _Optional[str] = ...) -> None: ...

class FabricJob(_message.Message):
    __slots__ = ("name", "state", "world_size", "nodes", "has_shapes", "lacks_shapes")
    NAME_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    WORLD_SIZE_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    HAS_SHAPES_FIELD_NUMBER: _ClassVar[int]
    LACKS_SHAPES_FIELD_NUMBER: _ClassVar[int]
    name: str
    state: str
    world_size: int
    nodes: _containers.RepeatedCompositeFieldContainer[TreeNode]
    has_shapes: bool
    lacks_shapes: str
    def __init__(self, name: _Optional[str] = ..., state: _Optional[str] = ..., world_size: _Optional[int] = ..., nodes: _Optional[_Iterable[_Union[TreeNode, _Mapping]]] = ..., has_shapes: _Optional[bool] = ..., lacks_shapes: _Optional[str] = ...) -> None: ...

class ShowFabricReply(_message.Message):
    __slots__ = ("switches", "links", "hosts", "jobs", "load")
    SWITCHES_FIELD_NUMBER: _ClassVar[int]
    LINKS_FIELD_NUMBER: _ClassVar[int]
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    LOAD_FIELD_NUMBER: _ClassVar[int]
    switches: _containers.RepeatedCompositeFieldContainer[FabricSwitch]
    links: _containers.RepeatedCompositeFieldContainer[FabricLink]
    hosts: _containers.RepeatedCompositeFieldContainer[FabricHost]
    jobs: _containers.RepeatedCompositeFieldContainer[FabricJob]
    load: FabricLoad
    def __init__(self, switches: _Optional[_Iterable[_Union[FabricSwitch, _Mapping]]] = ..., links: _Optional[_Iterable[_Union[FabricLink, _Mapping]]] = ..., hosts: _Optional[_Iterable[_Union[FabricHost, _Mapping]]] = ..., jobs: _Optional[_Iterable[_Union[FabricJob, _Mapping]]] = ..., load: _Optional[_Union[FabricLoad, _Mapping]] = ...) -> None: ...

class FabricLoad(_message.Message):
    __slots__ = ("step_s", "limit", "bound_s", "bound")
    STEP_S_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    BOUND_S_FIELD_NUMBER: _ClassVar[int]
    BOUND_FIELD_NUMBER: _ClassVar[int]
    step_s: float
    limit: str
    bound_s: float
    bound: str
    def __init__(self, step_s: _Optional[float] = ..., limit: _Optional[str] = ..., bound_s: _Optional[float] = ..., bound: _Optional[str] = ...) -> None: ...

class ListTenantsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Tenant(_message.Message):
    __slots__ = ("name", "configured", "jobs", "slots", "workers", "jobs_limit", "slots_limit", "workers_limit", "max_priority")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CONFIGURED_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    JOBS_LIMIT_FIELD_NUMBER: _ClassVar[int]
    SLOTS_LIMIT_FIELD_NUMBER: _ClassVar[int]
    WORKERS_LIMIT_FIELD_NUMBER: _ClassVar[int]
    MAX_PRIORITY_FIELD_NUMBER: _ClassVar[int]
    name: str
    configured: bool
    jobs: int
    slots: int
    workers: int
    jobs_limit: int
    slots_limit: int
    workers_limit: int
    max_priority: int
    def __init__(self, name: _Optional[str] = ..., configured: _Optional[bool] = ..., jobs: _Optional[int] = ..., slots: _Optional[int] = ..., workers: _Optional[int] = ..., jobs_limit: _Optional[int] = ..., slots_limit: _Optional[int] = ..., workers_limit: _Optional[int] = ..., max_priority: _Optional[int] = ...) -> None: ...

class ListTenantsReply(_message.Message):
    __slots__ = ("tenants",)
    TENANTS_FIELD_NUMBER: _ClassVar[int]
    tenants: _containers.RepeatedCompositeFieldContainer[Tenant]
    def __init__(self, tenants: _Optional[_Iterable[_Union[Tenant, _Mapping]]] = ...) -> None: ...

class ShowControllerRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ShowControllerReply(_message.Message):
    __slots__ = ("role", "election_id", "switch_addr", "switch_state", "store", "jobs", "started_unix_s", "last_epoch", "slots_total", "slots_used", "standby_reason", "switches", "differs")
    ROLE_FIELD_NUMBER: _ClassVar[int]
    ELECTION_ID_FIELD_NUMBER: _ClassVar[int]
    SWITCH_ADDR_FIELD_NUMBER: _ClassVar[int]
    SWITCH_STATE_FIELD_NUMBER: _ClassVar[int]
    STORE_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    STARTED_UNIX_S_FIELD_NUMBER: _ClassVar[int]
    LAST_EPOCH_FIELD_NUMBER: _ClassVar[int]
    SLOTS_TOTAL_FIELD_NUMBER: _ClassVar[int]
    SLOTS_USED_FIELD_NUMBER: _ClassVar[int]
    STANDBY_REASON_FIELD_NUMBER: _ClassVar[int]
    SWITCHES_FIELD_NUMBER: _ClassVar[int]
    DIFFERS_FIELD_NUMBER: _ClassVar[int]
    role: str
    election_id: int
    switch_addr: str
    switch_state: str
    store: str
    jobs: int
    started_unix_s: float
    last_epoch: int
    slots_total: int
    slots_used: int
    standby_reason: str
    switches: _containers.RepeatedCompositeFieldContainer[SwitchStatus]
    differs: _containers.RepeatedCompositeFieldContainer[ConfigDifference]
    def __init__(self, role: _Optional[str] = ..., election_id: _Optional[int] = ..., switch_addr: _Optional[str] = ..., switch_state: _Optional[str] = ..., store: _Optional[str] = ..., jobs: _Optional[int] = ..., started_unix_s: _Optional[float] = ..., last_epoch: _Optional[int] = ..., slots_total: _Optional[int] = ..., slots_used: _Optional[int] = ..., standby_reason: _Optional[str] = ..., switches: _Optional[_Iterable[_Union[SwitchStatus, _Mapping]]] = ..., differs: _Optional[_Iterable[_Union[ConfigDifference, _Mapping]]] = ...) -> None: ...

class ConfigDifference(_message.Message):
    __slots__ = ("controller", "keys")
    CONTROLLER_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    controller: str
    keys: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, controller: _Optional[str] = ..., keys: _Optional[_Iterable[str]] = ...) -> None: ...

class SwitchStatus(_message.Message):
    __slots__ = ("name", "address", "data_addr", "state", "election_id", "slots_total", "slots_used")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    DATA_ADDR_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    ELECTION_ID_FIELD_NUMBER: _ClassVar[int]
    SLOTS_TOTAL_FIELD_NUMBER: _ClassVar[int]
    SLOTS_USED_FIELD_NUMBER: _ClassVar[int]
    name: str
    address: str
    data_addr: str
    state: str
    election_id: int
    slots_total: int
    slots_used: int
    def __init__(self, name: _Optional[str] = ..., address: _Optional[str] = ..., data_addr: _Optional[str] = ..., state: _Optional[str] = ..., election_id: _Optional[int] = ..., slots_total: _Optional[int] = ..., slots_used: _Optional[int] = ...) -> None: ...

class ListDecisionsRequest(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: str
    def __init__(self, job: _Optional[str] = ...) -> None: ...

class Decision(_message.Message):
    __slots__ = ("unix_s", "job", "what", "slots_before", "slots", "reason")
    UNIX_S_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    WHAT_FIELD_NUMBER: _ClassVar[int]
    SLOTS_BEFORE_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    unix_s: float
    job: str
    what: str
    slots_before: int
    slots: int
    reason: str
    def __init__(self, unix_s: _Optional[float] = ..., job: _Optional[str] = ..., what: _Optional[str] = ..., slots_before: _Optional[int] = ..., slots: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class ListDecisionsReply(_message.Message):
    __slots__ = ("policy", "decisions", "forgotten")
    POLICY_FIELD_NUMBER: _ClassVar[int]
    DECISIONS_FIELD_NUMBER: _ClassVar[int]
    FORGOTTEN_FIELD_NUMBER: _ClassVar[int]
    policy: str
    decisions: _containers.RepeatedCompositeFieldContainer[Decision]
    forgotten: int
    def __init__(self, policy: _Optional[str] = ..., decisions: _Optional[_Iterable[_Union[Decision, _Mapping]]] = ..., forgotten: _Optional[int] = ...) -> None: ...

class PlanJobRequest(_message.Message):
    __slots__ = ("name", "world_size", "slots", "tenant", "priority", "deadline_unix_s", "steps", "like", "step", "hosts", "placement")
    NAME_FIELD_NUMBER: _ClassVar[int]
    WORLD_SIZE_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_UNIX_S_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    LIKE_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    PLACEMENT_FIELD_NUMBER: _ClassVar[int]
    name: str
    world_size: int
    slots: int
    tenant: str
    priority: int
    deadline_unix_s: float
    steps: int
    like: str
    step: StepTimes
    hosts: _containers.RepeatedScalarFieldContainer[str]
    placement: str
    def __init__(self, name: _Optional[str] = ..., world_size: _Optional[int] = ..., slots: _Optional[int] = ..., tenant: _Optional[str] = ..., priority: _Optional[int] = ..., deadline_unix_s: _Optional[float] = ..., steps: _Optional[int] = ..., like: _Optional[str] = ..., step: _Optional[_Union[StepTimes, _Mapping]] = ..., hosts: _Optional[_Iterable[str]] = ..., placement: _Optional[str] = ...) -> None: ...

class StepTimes(_message.Message):
    __slots__ = ("compute_s", "overlap_s", "bytes", "round_trip_s", "line_bytes_per_s")
    COMPUTE_S_FIELD_NUMBER: _ClassVar[int]
    OVERLAP_S_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    ROUND_TRIP_S_FIELD_NUMBER: _ClassVar[int]
    LINE_BYTES_PER_S_FIELD_NUMBER: _ClassVar[int]
    compute_s: float
    overlap_s: float
    bytes: float
    round_trip_s: float
    line_bytes_per_s: float
    def __init__(self, compute_s: _Optional[float] = ..., overlap_s: _Optional[float] = ..., bytes: _Optional[float] = ..., round_trip_s: _Optional[float] = ..., line_bytes_per_s: _Optional[float] = ...) -> None: ...

class PlanJobReply(_message.Message):
    __slots__ = ("policy", "slots", "refusal", "useful_slots", "step_s", "step_alone_s", "step_without_s", "others", "route")
    POLICY_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    REFUSAL_FIELD_NUMBER: _ClassVar[int]
    USEFUL_SLOTS_FIELD_NUMBER: _ClassVar[int]
    STEP_S_FIELD_NUMBER: _ClassVar[int]
    STEP_ALONE_S_FIELD_NUMBER: _ClassVar[int]
    STEP_WITHOUT_S_FIELD_NUMBER: _ClassVar[int]
    OTHERS_FIELD_NUMBER: _ClassVar[int]
    ROUTE_FIELD_NUMBER: _ClassVar[int]
    policy: str
    slots: int
    refusal: str
    useful_slots: int
    step_s: float
    step_alone_s: float
    step_without_s: float
    others: _containers.RepeatedCompositeFieldContainer[Decision]
    route: RoutePlan
    def __init__(self, policy: _Optional[str] = ..., slots: _Optional[int] = ..., refusal: _Optional[str] = ..., useful_slots: _Optional[int] = ..., step_s: _Optional[float] = ..., step_alone_s: _Optional[float] = ..., step_without_s: _Optional[float] = ..., others: _Optional[_Iterable[_Union[Decision, _Mapping]]] = ..., route: _Optional[_Union[RoutePlan, _Mapping]] = ...) -> None: ...

class RoutePlan(_message.Message):
    __slots__ = ("placement", "trees", "step_s", "step_without_s", "step_alone_s", "limit", "slowed", "supposed")
    PLACEMENT_FIELD_NUMBER: _ClassVar[int]
    TREES_FIELD_NUMBER: _ClassVar[int]
    STEP_S_FIELD_NUMBER: _ClassVar[int]
    STEP_WITHOUT_S_FIELD_NUMBER: _ClassVar[int]
    STEP_ALONE_S_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    SLOWED_FIELD_NUMBER: _ClassVar[int]
    SUPPOSED_FIELD_NUMBER: _ClassVar[int]
    placement: str
    trees: _containers.RepeatedCompositeFieldContainer[PlannedTree]
    step_s: float
    step_without_s: float
    step_alone_s: float
    limit: str
    slowed: _containers.RepeatedCompositeFieldContainer[SlowedJob]
    supposed: bool
    def __init__(self, placement: _Optional[str] = ..., trees: _Optional[_Iterable[_Union[PlannedTree, _Mapping]]] = ..., step_s: _Optional[float] = ..., step_without_s: _Optional[float] = ..., step_alone_s: _Optional[float] = ..., limit: _Optional[str] = ..., slowed: _Optional[_Iterable[_Union[SlowedJob, _Mapping]]] = ..., supposed: _Optional[bool] = ...) -> None: ...

class PlannedTree(_message.Message):
    __slots__ = ("share", "switches")
    SHARE_FIELD_NUMBER: _ClassVar[int]
    SWITCHES_FIELD_NUMBER: _ClassVar[int]
    share: float
    switches: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, share: _Optional[float] = ..., switches: _Optional[_Iterable[str]] = ...) -> None: ...

class SlowedJob(_message.Message):
    __slots__ = ("name", "before_s", "after_s")
    NAME_FIELD_NUMBER: _ClassVar[int]
    BEFORE_S_FIELD_NUMBER: _ClassVar[int]
    AFTER_S_FIELD_NUMBER: _ClassVar[int]
    name: str
    before_s: float
    after_s: float
    def __init__(self, name: _Optional[str] = ..., before_s: _Optional[float] = ..., after_s: _Optional[float] = ...) -> None: ...
