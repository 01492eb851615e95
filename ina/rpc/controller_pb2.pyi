from ina.rpc import shown_pb2 as _shown_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union
from ina.rpc.shown_pb2 import Program as Program
from ina.rpc.shown_pb2 import TreeNode as TreeNode
from ina.rpc.shown_pb2 import ShowSwitchRequest as ShowSwitchRequest
from ina.rpc.shown_pb2 import TableEntry as TableEntry
from ina.rpc.shown_pb2 import Counter as Counter
from ina.rpc.shown_pb2 import ShowSwitchReply as ShowSwitchReply
from ina.rpc.shown_pb2 import SlotHold as SlotHold
from ina.rpc.shown_pb2 import RemoveForeignRequest as RemoveForeignRequest
from ina.rpc.shown_pb2 import RemoveForeignReply as RemoveForeignReply
from ina.rpc.shown_pb2 import ShowFabricRequest as ShowFabricRequest
from ina.rpc.shown_pb2 import FabricSwitch as FabricSwitch
from ina.rpc.shown_pb2 import FabricLink as FabricLink
from ina.rpc.shown_pb2 import FabricHost as FabricHost
from ina.rpc.shown_pb2 import FabricJob as FabricJob
from ina.rpc.shown_pb2 import ShowFabricReply as ShowFabricReply
from ina.rpc.shown_pb2 import FabricLoad as FabricLoad
from ina.rpc.shown_pb2 import ListTenantsRequest as ListTenantsRequest
from ina.rpc.shown_pb2 import Tenant as Tenant
from ina.rpc.shown_pb2 import ListTenantsReply as ListTenantsReply
from ina.rpc.shown_pb2 import ShowControllerRequest as ShowControllerRequest
from ina.rpc.shown_pb2 import ShowControllerReply as ShowControllerReply
from ina.rpc.shown_pb2 import ConfigDifference as ConfigDifference
from ina.rpc.shown_pb2 import SwitchStatus as SwitchStatus
from ina.rpc.shown_pb2 import ListDecisionsRequest as ListDecisionsRequest
from ina.rpc.shown_pb2 import Decision as Decision
from ina.rpc.shown_pb2 import ListDecisionsReply as ListDecisionsReply
from ina.rpc.shown_pb2 import PlanJobRequest as PlanJobRequest
from ina.rpc.shown_pb2 import StepTimes as StepTimes
from ina.rpc.shown_pb2 import PlanJobReply as PlanJobReply
from ina.rpc.shown_pb2 import RoutePlan as RoutePlan
from ina.rpc.shown_pb2 import PlannedTree as PlannedTree
from ina.rpc.shown_pb2 import SlowedJob as SlowedJob

DESCRIPTOR: _descriptor.FileDescriptor

class EventKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EVENT_UNSPECIFIED: _ClassVar[EventKind]
    JOB_CREATED: _ClassVar[EventKind]
    MEMBER_JOINED: _ClassVar[EventKind]
    JOB_RUNNING: _ClassVar[EventKind]
    MEMBER_LEFT: _ClassVar[EventKind]
    MEMBER_LOST: _ClassVar[EventKind]
    JOB_STALLED: _ClassVar[EventKind]
    JOB_RESUMED: _ClassVar[EventKind]
    JOB_EVICTED: _ClassVar[EventKind]
    SWITCH_LOST: _ClassVar[EventKind]
    JOB_ENDED: _ClassVar[EventKind]
    SWITCH_UNREACHABLE: _ClassVar[EventKind]
    SWITCH_BACK: _ClassVar[EventKind]
    RANKS_DIFFER: _ClassVar[EventKind]
    JOB_REMAPS: _ClassVar[EventKind]
    JOB_REMAPPED: _ClassVar[EventKind]
    JOB_REMAP_OFF: _ClassVar[EventKind]
    JOB_WINDOWS: _ClassVar[EventKind]
    FABRIC_CHANGED: _ClassVar[EventKind]
    SUMS_CORRUPTED: _ClassVar[EventKind]
EVENT_UNSPECIFIED: EventKind
JOB_CREATED: EventKind
MEMBER_JOINED: EventKind
JOB_RUNNING: EventKind
MEMBER_LEFT: EventKind
MEMBER_LOST: EventKind
JOB_STALLED: EventKind
JOB_RESUMED: EventKind
JOB_EVICTED: EventKind
SWITCH_LOST: EventKind
JOB_ENDED: EventKind
SWITCH_UNREACHABLE: EventKind
SWITCH_BACK: EventKind
RANKS_DIFFER: EventKind
JOB_REMAPS: EventKind
JOB_REMAPPED: EventKind
JOB_REMAP_OFF: EventKind
JOB_WINDOWS: EventKind
FABRIC_CHANGED: EventKind
SUMS_CORRUPTED: EventKind

class SetDownRequest(_message.Message):
    __slots__ = ("name", "down")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DOWN_FIELD_NUMBER: _ClassVar[int]
    name: str
    down: bool
    def __init__(self, name: _Optional[str] = ..., down: _Optional[bool] = ...) -> None: ...

class SetDownReply(_message.Message):
    __slots__ = ("changed", "down")
    CHANGED_FIELD_NUMBER: _ClassVar[int]
    DOWN_FIELD_NUMBER: _ClassVar[int]
    changed: bool
    down: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, changed: _Optional[bool] = ..., down: _Optional[_Iterable[str]] = ...) -> None: ...

class CreateJobRequest(_message.Message):
    __slots__ = ("name", "world_size", "slots", "tenant", "priority", "token", "wire_version", "verify", "addresses", "contributions", "deadline_unix_s", "steps", "queue_s", "mode")
    NAME_FIELD_NUMBER: _ClassVar[int]
    WORLD_SIZE_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    WIRE_VERSION_FIELD_NUMBER: _ClassVar[int]
    VERIFY_FIELD_NUMBER: _ClassVar[int]
    ADDRESSES_FIELD_NUMBER: _ClassVar[int]
    CONTRIBUTIONS_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_UNIX_S_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    QUEUE_S_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    name: str
    world_size: int
    slots: int
    tenant: str
    priority: int
    token: str
    wire_version: int
    verify: str
    addresses: _containers.RepeatedScalarFieldContainer[str]
    contributions: int
    deadline_unix_s: float
    steps: int
    queue_s: float
    mode: str
    def __init__(self, name: _Optional[str] = ..., world_size: _Optional[int] = ..., slots: _Optional[int] = ..., tenant: _Optional[str] = ..., priority: _Optional[int] = ..., token: _Optional[str] = ..., wire_version: _Optional[int] = ..., verify: _Optional[str] = ..., addresses: _Optional[_Iterable[str]] = ..., contributions: _Optional[int] = ..., deadline_unix_s: _Optional[float] = ..., steps: _Optional[int] = ..., queue_s: _Optional[float] = ..., mode: _Optional[str] = ...) -> None: ...

class CreateJobReply(_message.Message):
    __slots__ = ("switch_host", "switch_udp_port", "values_per_packet", "slots", "switch_shm", "results_host", "results_udp_port", "wire_version", "switch", "program", "takes_host_nodes", "wants_aggregator", "mode", "first_ring_host", "last_ring_host")
    SWITCH_HOST_FIELD_NUMBER: _ClassVar[int]
    SWITCH_UDP_PORT_FIELD_NUMBER: _ClassVar[int]
    VALUES_PER_PACKET_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    SWITCH_SHM_FIELD_NUMBER: _ClassVar[int]
    RESULTS_HOST_FIELD_NUMBER: _ClassVar[int]
    RESULTS_UDP_PORT_FIELD_NUMBER: _ClassVar[int]
    WIRE_VERSION_FIELD_NUMBER: _ClassVar[int]
    SWITCH_FIELD_NUMBER: _ClassVar[int]
    PROGRAM_FIELD_NUMBER: _ClassVar[int]
    TAKES_HOST_NODES_FIELD_NUMBER: _ClassVar[int]
    WANTS_AGGREGATOR_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    FIRST_RING_HOST_FIELD_NUMBER: _ClassVar[int]
    LAST_RING_HOST_FIELD_NUMBER: _ClassVar[int]
    switch_host: str
    switch_udp_port: int
    values_per_packet: int
    slots: int
    switch_shm: str
    results_host: str
    results_udp_port: int
    wire_version: int
    switch: str
    program: _shown_pb2.Program
    takes_host_nodes: bool
    wants_aggregator: bool
    mode: str
    first_ring_host: str
    last_ring_host: str
    def __init__(self, switch_host: _Optional[str] = ..., switch_udp_port: _Optional[int] = ..., values_per_packet: _Optional[int] = ..., slots: _Optional[int] = ..., switch_shm: _Optional[str] = ..., results_host: _Optional[str] = ..., results_udp_port: _Optional[int] = ..., wire_version: _Optional[int] = ..., switch: _Optional[str] = ..., program: _Optional[_Union[_shown_pb2.Program, _Mapping]] = ..., takes_host_nodes: _Optional[bool] = ..., wants_aggregator: _Optional[bool] = ..., mode: _Optional[str] = ..., first_ring_host: _Optional[str] = ..., last_ring_host: _Optional[str] = ...) -> None: ...

class JoinRequest(_message.Message):
    __slots__ = ("name", "rank", "host", "udp_port", "timeout_s", "switch_port", "token", "takes_shared_results", "process", "switch", "node", "aggregator", "queue_pair", "ring_pairs")
    NAME_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    UDP_PORT_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_S_FIELD_NUMBER: _ClassVar[int]
    SWITCH_PORT_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    TAKES_SHARED_RESULTS_FIELD_NUMBER: _ClassVar[int]
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    SWITCH_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    AGGREGATOR_FIELD_NUMBER: _ClassVar[int]
    QUEUE_PAIR_FIELD_NUMBER: _ClassVar[int]
    RING_PAIRS_FIELD_NUMBER: _ClassVar[int]
    name: str
    rank: int
    host: str
    udp_port: int
    timeout_s: float
    switch_port: int
    token: str
    takes_shared_results: bool
    process: str
    switch: str
    node: HostNode
    aggregator: HostNode
    queue_pair: int
    ring_pairs: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, name: _Optional[str] = ..., rank: _Optional[int] = ..., host: _Optional[str] = ..., udp_port: _Optional[int] = ..., timeout_s: _Optional[float] = ..., switch_port: _Optional[int] = ..., token: _Optional[str] = ..., takes_shared_results: _Optional[bool] = ..., process: _Optional[str] = ..., switch: _Optional[str] = ..., node: _Optional[_Union[HostNode, _Mapping]] = ..., aggregator: _Optional[_Union[HostNode, _Mapping]] = ..., queue_pair: _Optional[int] = ..., ring_pairs: _Optional[_Iterable[int]] = ...) -> None: ...

class HostNode(_message.Message):
    __slots__ = ("rank", "host", "udp_port", "switch_port")
    RANK_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    UDP_PORT_FIELD_NUMBER: _ClassVar[int]
    SWITCH_PORT_FIELD_NUMBER: _ClassVar[int]
    rank: int
    host: str
    udp_port: int
    switch_port: int
    def __init__(self, rank: _Optional[int] = ..., host: _Optional[str] = ..., udp_port: _Optional[int] = ..., switch_port: _Optional[int] = ...) -> None: ...

class JoinReply(_message.Message):
    __slots__ = ("epoch", "world_size", "slots", "window", "lease_s", "heartbeat_s", "member_key", "shares_results", "congestion", "verify", "check_key", "trees", "node_entities", "dscp", "aggregator_entities")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    WORLD_SIZE_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    LEASE_S_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_S_FIELD_NUMBER: _ClassVar[int]
    MEMBER_KEY_FIELD_NUMBER: _ClassVar[int]
    SHARES_RESULTS_FIELD_NUMBER: _ClassVar[int]
    CONGESTION_FIELD_NUMBER: _ClassVar[int]
    VERIFY_FIELD_NUMBER: _ClassVar[int]
    CHECK_KEY_FIELD_NUMBER: _ClassVar[int]
    TREES_FIELD_NUMBER: _ClassVar[int]
    NODE_ENTITIES_FIELD_NUMBER: _ClassVar[int]
    DSCP_FIELD_NUMBER: _ClassVar[int]
    AGGREGATOR_ENTITIES_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    world_size: int
    slots: int
    window: int
    lease_s: float
    heartbeat_s: float
    member_key: bytes
    shares_results: bool
    congestion: Congestion
    verify: str
    check_key: bytes
    trees: _containers.RepeatedCompositeFieldContainer[Tree]
    node_entities: _containers.RepeatedScalarFieldContainer[bytes]
    dscp: int
    aggregator_entities: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, epoch: _Optional[int] = ..., world_size: _Optional[int] = ..., slots: _Optional[int] = ..., window: _Optional[int] = ..., lease_s: _Optional[float] = ..., heartbeat_s: _Optional[float] = ..., member_key: _Optional[bytes] = ..., shares_results: _Optional[bool] = ..., congestion: _Optional[_Union[Congestion, _Mapping]] = ..., verify: _Optional[str] = ..., check_key: _Optional[bytes] = ..., trees: _Optional[_Iterable[_Union[Tree, _Mapping]]] = ..., node_entities: _Optional[_Iterable[bytes]] = ..., dscp: _Optional[int] = ..., aggregator_entities: _Optional[_Iterable[bytes]] = ...) -> None: ...

class Tree(_message.Message):
    __slots__ = ("job", "host", "udp_port", "worker", "path", "expected_bitmap", "first_lane", "lanes", "node", "queue_pair", "ring", "owners")
    JOB_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    UDP_PORT_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_BITMAP_FIELD_NUMBER: _ClassVar[int]
    FIRST_LANE_FIELD_NUMBER: _ClassVar[int]
    LANES_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    QUEUE_PAIR_FIELD_NUMBER: _ClassVar[int]
    RING_FIELD_NUMBER: _ClassVar[int]
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    job: int
    host: str
    udp_port: int
    worker: int
    path: int
    expected_bitmap: int
    first_lane: int
    lanes: int
    node: str
    queue_pair: int
    ring: Ring
    owners: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, job: _Optional[int] = ..., host: _Optional[str] = ..., udp_port: _Optional[int] = ..., worker: _Optional[int] = ..., path: _Optional[int] = ..., expected_bitmap: _Optional[int] = ..., first_lane: _Optional[int] = ..., lanes: _Optional[int] = ..., node: _Optional[str] = ..., queue_pair: _Optional[int] = ..., ring: _Optional[_Union[Ring, _Mapping]] = ..., owners: _Optional[_Iterable[int]] = ...) -> None: ...

class Ring(_message.Message):
    __slots__ = ("address", "next", "previous", "next_pairs", "previous_pairs", "first_psn")
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAIRS_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_PAIRS_FIELD_NUMBER: _ClassVar[int]
    FIRST_PSN_FIELD_NUMBER: _ClassVar[int]
    address: str
    next: str
    previous: str
    next_pairs: _containers.RepeatedScalarFieldContainer[int]
    previous_pairs: _containers.RepeatedScalarFieldContainer[int]
    first_psn: int
    def __init__(self, address: _Optional[str] = ..., next: _Optional[str] = ..., previous: _Optional[str] = ..., next_pairs: _Optional[_Iterable[int]] = ..., previous_pairs: _Optional[_Iterable[int]] = ..., first_psn: _Optional[int] = ...) -> None: ...

class Congestion(_message.Message):
    __slots__ = ("algorithm", "options")
    class OptionsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    ALGORITHM_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    algorithm: str
    options: _containers.ScalarMap[str, float]
    def __init__(self, algorithm: _Optional[str] = ..., options: _Optional[_Mapping[str, float]] = ...) -> None: ...

class Windows(_message.Message):
    __slots__ = ("number", "congestion", "most_packets")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    CONGESTION_FIELD_NUMBER: _ClassVar[int]
    MOST_PACKETS_FIELD_NUMBER: _ClassVar[int]
    number: int
    congestion: Congestion
    most_packets: int
    def __init__(self, number: _Optional[int] = ..., congestion: _Optional[_Union[Congestion, _Mapping]] = ..., most_packets: _Optional[int] = ...) -> None: ...

class WindowState(_message.Message):
    __slots__ = ("number", "congestion", "is_own", "most_packets", "packets", "largest", "shortest_s", "mean_s", "results", "last", "marks", "timeouts")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    CONGESTION_FIELD_NUMBER: _ClassVar[int]
    IS_OWN_FIELD_NUMBER: _ClassVar[int]
    MOST_PACKETS_FIELD_NUMBER: _ClassVar[int]
    PACKETS_FIELD_NUMBER: _ClassVar[int]
    LARGEST_FIELD_NUMBER: _ClassVar[int]
    SHORTEST_S_FIELD_NUMBER: _ClassVar[int]
    MEAN_S_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    MARKS_FIELD_NUMBER: _ClassVar[int]
    TIMEOUTS_FIELD_NUMBER: _ClassVar[int]
    number: int
    congestion: Congestion
    is_own: bool
    most_packets: int
    packets: int
    largest: int
    shortest_s: float
    mean_s: float
    results: int
    last: int
    marks: int
    timeouts: int
    def __init__(self, number: _Optional[int] = ..., congestion: _Optional[_Union[Congestion, _Mapping]] = ..., is_own: _Optional[bool] = ..., most_packets: _Optional[int] = ..., packets: _Optional[int] = ..., largest: _Optional[int] = ..., shortest_s: _Optional[float] = ..., mean_s: _Optional[float] = ..., results: _Optional[int] = ..., last: _Optional[int] = ..., marks: _Optional[int] = ..., timeouts: _Optional[int] = ...) -> None: ...

class Progress(_message.Message):
    __slots__ = ("operations_submitted", "operations_done", "chunks_done", "retransmissions", "in_flight", "silent_s", "oldest_seq", "oldest_waited_s", "lane_seqs", "lanes_waiting", "switch_refuses", "oldest", "shared_results_missing", "losses", "spurious_resends", "probes", "packets_sent", "corrupted_sums", "submitted", "differs_at", "node", "aggregator", "busy_s", "tail_s", "round_trip_s", "step_operations", "deadline_unix_s", "steps", "mapping_epoch", "windows")
    OPERATIONS_SUBMITTED_FIELD_NUMBER: _ClassVar[int]
    OPERATIONS_DONE_FIELD_NUMBER: _ClassVar[int]
    CHUNKS_DONE_FIELD_NUMBER: _ClassVar[int]
    RETRANSMISSIONS_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    SILENT_S_FIELD_NUMBER: _ClassVar[int]
    OLDEST_SEQ_FIELD_NUMBER: _ClassVar[int]
    OLDEST_WAITED_S_FIELD_NUMBER: _ClassVar[int]
    LANE_SEQS_FIELD_NUMBER: _ClassVar[int]
    LANES_WAITING_FIELD_NUMBER: _ClassVar[int]
    SWITCH_REFUSES_FIELD_NUMBER: _ClassVar[int]
    OLDEST_FIELD_NUMBER: _ClassVar[int]
    SHARED_RESULTS_MISSING_FIELD_NUMBER: _ClassVar[int]
    LOSSES_FIELD_NUMBER: _ClassVar[int]
    SPURIOUS_RESENDS_FIELD_NUMBER: _ClassVar[int]
    PROBES_FIELD_NUMBER: _ClassVar[int]
    PACKETS_SENT_FIELD_NUMBER: _ClassVar[int]
    CORRUPTED_SUMS_FIELD_NUMBER: _ClassVar[int]
    SUBMITTED_FIELD_NUMBER: _ClassVar[int]
    DIFFERS_AT_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    AGGREGATOR_FIELD_NUMBER: _ClassVar[int]
    BUSY_S_FIELD_NUMBER: _ClassVar[int]
    TAIL_S_FIELD_NUMBER: _ClassVar[int]
    ROUND_TRIP_S_FIELD_NUMBER: _ClassVar[int]
    STEP_OPERATIONS_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_UNIX_S_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    MAPPING_EPOCH_FIELD_NUMBER: _ClassVar[int]
    WINDOWS_FIELD_NUMBER: _ClassVar[int]
    operations_submitted: int
    operations_done: int
    chunks_done: int
    retransmissions: int
    in_flight: int
    silent_s: float
    oldest_seq: int
    oldest_waited_s: float
    lane_seqs: _containers.RepeatedScalarFieldContainer[int]
    lanes_waiting: bytes
    switch_refuses: bool
    oldest: Operation
    shared_results_missing: bool
    losses: int
    spurious_resends: int
    probes: int
    packets_sent: int
    corrupted_sums: int
    submitted: _containers.RepeatedCompositeFieldContainer[Operation]
    differs_at: int
    node: NodeCounts
    aggregator: NodeCounts
    busy_s: float
    tail_s: float
    round_trip_s: float
    step_operations: int
    deadline_unix_s: float
    steps: int
    mapping_epoch: int
    windows: WindowState
    def __init__(self, operations_submitted: _Optional[int] = ..., operations_done: _Optional[int] = ..., chunks_done: _Optional[int] = ..., retransmissions: _Optional[int] = ..., in_flight: _Optional[int] = ..., silent_s: _Optional[float] = ..., oldest_seq: _Optional[int] = ..., oldest_waited_s: _Optional[float] = ..., lane_seqs: _Optional[_Iterable[int]] = ..., lanes_waiting: _Optional[bytes] = ..., switch_refuses: _Optional[bool] = ..., oldest: _Optional[_Union[Operation, _Mapping]] = ..., shared_results_missing: _Optional[bool] = ..., losses: _Optional[int] = ..., spurious_resends: _Optional[int] = ..., probes: _Optional[int] = ..., packets_sent: _Optional[int] = ..., corrupted_sums: _Optional[int] = ..., submitted: _Optional[_Iterable[_Union[Operation, _Mapping]]] = ..., differs_at: _Optional[int] = ..., node: _Optional[_Union[NodeCounts, _Mapping]] = ..., aggregator: _Optional[_Union[NodeCounts, _Mapping]] = ..., busy_s: _Optional[float] = ..., tail_s: _Optional[float] = ..., round_trip_s: _Optional[float] = ..., step_operations: _Optional[int] = ..., deadline_unix_s: _Optional[float] = ..., steps: _Optional[int] = ..., mapping_epoch: _Optional[int] = ..., windows: _Optional[_Union[WindowState, _Mapping]] = ...) -> None: ...

class NodeCounts(_message.Message):
    __slots__ = ("contributions", "results", "replays", "passed_down", "duplicates", "stale", "flushes", "collisions", "bypassed", "late", "missed", "evictions")
    CONTRIBUTIONS_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    REPLAYS_FIELD_NUMBER: _ClassVar[int]
    PASSED_DOWN_FIELD_NUMBER: _ClassVar[int]
    DUPLICATES_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    FLUSHES_FIELD_NUMBER: _ClassVar[int]
    COLLISIONS_FIELD_NUMBER: _ClassVar[int]
    BYPASSED_FIELD_NUMBER: _ClassVar[int]
    LATE_FIELD_NUMBER: _ClassVar[int]
    MISSED_FIELD_NUMBER: _ClassVar[int]
    EVICTIONS_FIELD_NUMBER: _ClassVar[int]
    contributions: int
    results: int
    replays: int
    passed_down: int
    duplicates: int
    stale: int
    flushes: int
    collisions: int
    bypassed: int
    late: int
    missed: int
    evictions: int
    def __init__(self, contributions: _Optional[int] = ..., results: _Optional[int] = ..., replays: _Optional[int] = ..., passed_down: _Optional[int] = ..., duplicates: _Optional[int] = ..., stale: _Optional[int] = ..., flushes: _Optional[int] = ..., collisions: _Optional[int] = ..., bypassed: _Optional[int] = ..., late: _Optional[int] = ..., missed: _Optional[int] = ..., evictions: _Optional[int] = ...) -> None: ...

class Operation(_message.Message):
    __slots__ = ("number", "elems", "value_type", "reduction", "kind", "root", "rounding")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    ELEMS_FIELD_NUMBER: _ClassVar[int]
    VALUE_TYPE_FIELD_NUMBER: _ClassVar[int]
    REDUCTION_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    ROOT_FIELD_NUMBER: _ClassVar[int]
    ROUNDING_FIELD_NUMBER: _ClassVar[int]
    number: int
    elems: int
    value_type: int
    reduction: int
    kind: int
    root: int
    rounding: int
    def __init__(self, number: _Optional[int] = ..., elems: _Optional[int] = ..., value_type: _Optional[int] = ..., reduction: _Optional[int] = ..., kind: _Optional[int] = ..., root: _Optional[int] = ..., rounding: _Optional[int] = ...) -> None: ...

class HeartbeatRequest(_message.Message):
    __slots__ = ("name", "rank", "epoch", "member_key", "progress", "process")
    NAME_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    MEMBER_KEY_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    name: str
    rank: int
    epoch: int
    member_key: bytes
    progress: Progress
    process: str
    def __init__(self, name: _Optional[str] = ..., rank: _Optional[int] = ..., epoch: _Optional[int] = ..., member_key: _Optional[bytes] = ..., progress: _Optional[_Union[Progress, _Mapping]] = ..., process: _Optional[str] = ...) -> None: ...

class HeartbeatReply(_message.Message):
    __slots__ = ("lease_s", "heartbeat_s", "remaps_to", "ranks_here")
    LEASE_S_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_S_FIELD_NUMBER: _ClassVar[int]
    REMAPS_TO_FIELD_NUMBER: _ClassVar[int]
    RANKS_HERE_FIELD_NUMBER: _ClassVar[int]
    lease_s: float
    heartbeat_s: float
    remaps_to: int
    ranks_here: int
    def __init__(self, lease_s: _Optional[float] = ..., heartbeat_s: _Optional[float] = ..., remaps_to: _Optional[int] = ..., ranks_here: _Optional[int] = ...) -> None: ...

class RemapRequest(_message.Message):
    __slots__ = ("name", "rank", "epoch", "member_key", "to_epoch", "first_operation", "declined", "done", "reason")
    NAME_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    MEMBER_KEY_FIELD_NUMBER: _ClassVar[int]
    TO_EPOCH_FIELD_NUMBER: _ClassVar[int]
    FIRST_OPERATION_FIELD_NUMBER: _ClassVar[int]
    DECLINED_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    name: str
    rank: int
    epoch: int
    member_key: bytes
    to_epoch: int
    first_operation: int
    declined: bool
    done: bool
    reason: str
    def __init__(self, name: _Optional[str] = ..., rank: _Optional[int] = ..., epoch: _Optional[int] = ..., member_key: _Optional[bytes] = ..., to_epoch: _Optional[int] = ..., first_operation: _Optional[int] = ..., declined: _Optional[bool] = ..., done: _Optional[bool] = ..., reason: _Optional[str] = ...) -> None: ...

class RemapReply(_message.Message):
    __slots__ = ("mapping",)
    MAPPING_FIELD_NUMBER: _ClassVar[int]
    mapping: Mapping
    def __init__(self, mapping: _Optional[_Union[Mapping, _Mapping]] = ...) -> None: ...

class Mapping(_message.Message):
    __slots__ = ("epoch", "slots", "window", "congestion", "trees", "first_operation", "waits", "node_entities", "aggregator_entities", "mode")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    CONGESTION_FIELD_NUMBER: _ClassVar[int]
    TREES_FIELD_NUMBER: _ClassVar[int]
    FIRST_OPERATION_FIELD_NUMBER: _ClassVar[int]
    WAITS_FIELD_NUMBER: _ClassVar[int]
    NODE_ENTITIES_FIELD_NUMBER: _ClassVar[int]
    AGGREGATOR_ENTITIES_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    slots: int
    window: int
    congestion: Congestion
    trees: _containers.RepeatedCompositeFieldContainer[Tree]
    first_operation: int
    waits: bool
    node_entities: _containers.RepeatedScalarFieldContainer[bytes]
    aggregator_entities: _containers.RepeatedScalarFieldContainer[bytes]
    mode: str
    def __init__(self, epoch: _Optional[int] = ..., slots: _Optional[int] = ..., window: _Optional[int] = ..., congestion: _Optional[_Union[Congestion, _Mapping]] = ..., trees: _Optional[_Iterable[_Union[Tree, _Mapping]]] = ..., first_operation: _Optional[int] = ..., waits: _Optional[bool] = ..., node_entities: _Optional[_Iterable[bytes]] = ..., aggregator_entities: _Optional[_Iterable[bytes]] = ..., mode: _Optional[str] = ...) -> None: ...

class WatchRequest(_message.Message):
    __slots__ = ("name", "rank", "epoch", "member_key")
    NAME_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    MEMBER_KEY_FIELD_NUMBER: _ClassVar[int]
    name: str
    rank: int
    epoch: int
    member_key: bytes
    def __init__(self, name: _Optional[str] = ..., rank: _Optional[int] = ..., epoch: _Optional[int] = ..., member_key: _Optional[bytes] = ...) -> None: ...

class JobEvent(_message.Message):
    __slots__ = ("kind", "name", "job", "epoch", "ranks", "reason", "fatal", "unix_s", "switch", "windows")
    KIND_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    RANKS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    FATAL_FIELD_NUMBER: _ClassVar[int]
    UNIX_S_FIELD_NUMBER: _ClassVar[int]
    SWITCH_FIELD_NUMBER: _ClassVar[int]
    WINDOWS_FIELD_NUMBER: _ClassVar[int]
    kind: EventKind
    name: str
    job: int
    epoch: int
    ranks: _containers.RepeatedScalarFieldContainer[int]
    reason: str
    fatal: bool
    unix_s: float
    switch: str
    windows: Windows
    def __init__(self, kind: _Optional[_Union[EventKind, str]] = ..., name: _Optional[str] = ..., job: _Optional[int] = ..., epoch: _Optional[int] = ..., ranks: _Optional[_Iterable[int]] = ..., reason: _Optional[str] = ..., fatal: _Optional[bool] = ..., unix_s: _Optional[float] = ..., switch: _Optional[str] = ..., windows: _Optional[_Union[Windows, _Mapping]] = ...) -> None: ...

class LeaveRequest(_message.Message):
    __slots__ = ("name", "rank", "epoch", "member_key", "progress", "reason", "cause")
    NAME_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    MEMBER_KEY_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    name: str
    rank: int
    epoch: int
    member_key: bytes
    progress: Progress
    reason: str
    cause: EventKind
    def __init__(self, name: _Optional[str] = ..., rank: _Optional[int] = ..., epoch: _Optional[int] = ..., member_key: _Optional[bytes] = ..., progress: _Optional[_Union[Progress, _Mapping]] = ..., reason: _Optional[str] = ..., cause: _Optional[_Union[EventKind, str]] = ...) -> None: ...

class LeaveReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListJobsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Job(_message.Message):
    __slots__ = ("name", "job", "epoch", "world_size", "joined", "first_slot", "slots", "state", "tenant", "priority", "created_unix_s", "window", "stall", "traffic", "switch", "switches", "remapping", "mapping_epoch", "mode", "windows", "has_shapes", "lacks_shapes")
    NAME_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    WORLD_SIZE_FIELD_NUMBER: _ClassVar[int]
    JOINED_FIELD_NUMBER: _ClassVar[int]
    FIRST_SLOT_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    CREATED_UNIX_S_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    STALL_FIELD_NUMBER: _ClassVar[int]
    TRAFFIC_FIELD_NUMBER: _ClassVar[int]
    SWITCH_FIELD_NUMBER: _ClassVar[int]
    SWITCHES_FIELD_NUMBER: _ClassVar[int]
    REMAPPING_FIELD_NUMBER: _ClassVar[int]
    MAPPING_EPOCH_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    WINDOWS_FIELD_NUMBER: _ClassVar[int]
    HAS_SHAPES_FIELD_NUMBER: _ClassVar[int]
    LACKS_SHAPES_FIELD_NUMBER: _ClassVar[int]
    name: str
    job: int
    epoch: int
    world_size: int
    joined: _containers.RepeatedScalarFieldContainer[int]
    first_slot: int
    slots: int
    state: str
    tenant: str
    priority: int
    created_unix_s: float
    window: int
    stall: Stall
    traffic: Traffic
    switch: str
    switches: _containers.RepeatedScalarFieldContainer[str]
    remapping: Remapping
    mapping_epoch: int
    mode: str
    windows: JobWindows
    has_shapes: bool
    lacks_shapes: str
    def __init__(self, name: _Optional[str] = ..., job: _Optional[int] = ..., epoch: _Optional[int] = ..., world_size: _Optional[int] = ..., joined: _Optional[_Iterable[int]] = ..., first_slot: _Optional[int] = ..., slots: _Optional[int] = ..., state: _Optional[str] = ..., tenant: _Optional[str] = ..., priority: _Optional[int] = ..., created_unix_s: _Optional[float] = ..., window: _Optional[int] = ..., stall: _Optional[_Union[Stall, _Mapping]] = ..., traffic: _Optional[_Union[Traffic, _Mapping]] = ..., switch: _Optional[str] = ..., switches: _Optional[_Iterable[str]] = ..., remapping: _Optional[_Union[Remapping, _Mapping]] = ..., mapping_epoch: _Optional[int] = ..., mode: _Optional[str] = ..., windows: _Optional[_Union[JobWindows, _Mapping]] = ..., has_shapes: _Optional[bool] = ..., lacks_shapes: _Optional[str] = ...) -> None: ...

class JobWindows(_message.Message):
    __slots__ = ("wanted", "weight", "share_bits_per_s", "bottleneck", "round_trip_s", "limited_by", "why", "ranks")
    WANTED_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    SHARE_BITS_PER_S_FIELD_NUMBER: _ClassVar[int]
    BOTTLENECK_FIELD_NUMBER: _ClassVar[int]
    ROUND_TRIP_S_FIELD_NUMBER: _ClassVar[int]
    LIMITED_BY_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    RANKS_FIELD_NUMBER: _ClassVar[int]
    wanted: Windows
    weight: float
    share_bits_per_s: float
    bottleneck: str
    round_trip_s: float
    limited_by: str
    why: str
    ranks: _containers.RepeatedCompositeFieldContainer[RankWindows]
    def __init__(self, wanted: _Optional[_Union[Windows, _Mapping]] = ..., weight: _Optional[float] = ..., share_bits_per_s: _Optional[float] = ..., bottleneck: _Optional[str] = ..., round_trip_s: _Optional[float] = ..., limited_by: _Optional[str] = ..., why: _Optional[str] = ..., ranks: _Optional[_Iterable[_Union[RankWindows, _Mapping]]] = ...) -> None: ...

class RankWindows(_message.Message):
    __slots__ = ("rank", "least_packets", "most_packets", "goodput_bits_per_s", "last_share", "busy_share")
    RANK_FIELD_NUMBER: _ClassVar[int]
    LEAST_PACKETS_FIELD_NUMBER: _ClassVar[int]
    MOST_PACKETS_FIELD_NUMBER: _ClassVar[int]
    GOODPUT_BITS_PER_S_FIELD_NUMBER: _ClassVar[int]
    LAST_SHARE_FIELD_NUMBER: _ClassVar[int]
    BUSY_SHARE_FIELD_NUMBER: _ClassVar[int]
    rank: int
    least_packets: int
    most_packets: int
    goodput_bits_per_s: float
    last_share: float
    busy_share: float
    def __init__(self, rank: _Optional[int] = ..., least_packets: _Optional[int] = ..., most_packets: _Optional[int] = ..., goodput_bits_per_s: _Optional[float] = ..., last_share: _Optional[float] = ..., busy_share: _Optional[float] = ...) -> None: ...

class Remapping(_message.Message):
    __slots__ = ("epoch", "slots", "window", "first_slot", "first_operation", "waits_for", "in_place", "since_unix_s", "why", "stage", "mode")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    FIRST_SLOT_FIELD_NUMBER: _ClassVar[int]
    FIRST_OPERATION_FIELD_NUMBER: _ClassVar[int]
    WAITS_FOR_FIELD_NUMBER: _ClassVar[int]
    IN_PLACE_FIELD_NUMBER: _ClassVar[int]
    SINCE_UNIX_S_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    STAGE_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    slots: int
    window: int
    first_slot: int
    first_operation: int
    waits_for: _containers.RepeatedScalarFieldContainer[int]
    in_place: bool
    since_unix_s: float
    why: str
    stage: str
    mode: str
    def __init__(self, epoch: _Optional[int] = ..., slots: _Optional[int] = ..., window: _Optional[int] = ..., first_slot: _Optional[int] = ..., first_operation: _Optional[int] = ..., waits_for: _Optional[_Iterable[int]] = ..., in_place: _Optional[bool] = ..., since_unix_s: _Optional[float] = ..., why: _Optional[str] = ..., stage: _Optional[str] = ..., mode: _Optional[str] = ...) -> None: ...

class Traffic(_message.Message):
    __slots__ = ("packets_sent", "losses", "spurious_resends", "probes")
    PACKETS_SENT_FIELD_NUMBER: _ClassVar[int]
    LOSSES_FIELD_NUMBER: _ClassVar[int]
    SPURIOUS_RESENDS_FIELD_NUMBER: _ClassVar[int]
    PROBES_FIELD_NUMBER: _ClassVar[int]
    packets_sent: int
    losses: int
    spurious_resends: int
    probes: int
    def __init__(self, packets_sent: _Optional[int] = ..., losses: _Optional[int] = ..., spurious_resends: _Optional[int] = ..., probes: _Optional[int] = ...) -> None: ...

class ListJobsReply(_message.Message):
    __slots__ = ("jobs",)
    JOBS_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedCompositeFieldContainer[Job]
    def __init__(self, jobs: _Optional[_Iterable[_Union[Job, _Mapping]]] = ...) -> None: ...

class Stall(_message.Message):
    __slots__ = ("seq", "slot", "missing", "waiting", "since_unix_s", "unsure")
    SEQ_FIELD_NUMBER: _ClassVar[int]
    SLOT_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    SINCE_UNIX_S_FIELD_NUMBER: _ClassVar[int]
    UNSURE_FIELD_NUMBER: _ClassVar[int]
    seq: int
    slot: int
    missing: _containers.RepeatedScalarFieldContainer[int]
    waiting: _containers.RepeatedScalarFieldContainer[int]
    since_unix_s: float
    unsure: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, seq: _Optional[int] = ..., slot: _Optional[int] = ..., missing: _Optional[_Iterable[int]] = ..., waiting: _Optional[_Iterable[int]] = ..., since_unix_s: _Optional[float] = ..., unsure: _Optional[_Iterable[int]] = ...) -> None: ...

class Member(_message.Message):
    __slots__ = ("rank", "host", "udp_port", "switch_port", "lease_left_s", "watching", "progress", "progress_unix_s", "process", "switch")
    RANK_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    UDP_PORT_FIELD_NUMBER: _ClassVar[int]
    SWITCH_PORT_FIELD_NUMBER: _ClassVar[int]
    LEASE_LEFT_S_FIELD_NUMBER: _ClassVar[int]
    WATCHING_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_UNIX_S_FIELD_NUMBER: _ClassVar[int]
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    SWITCH_FIELD_NUMBER: _ClassVar[int]
    rank: int
    host: str
    udp_port: int
    switch_port: int
    lease_left_s: float
    watching: bool
    progress: Progress
    progress_unix_s: float
    process: str
    switch: str
    def __init__(self, rank: _Optional[int] = ..., host: _Optional[str] = ..., udp_port: _Optional[int] = ..., switch_port: _Optional[int] = ..., lease_left_s: _Optional[float] = ..., watching: _Optional[bool] = ..., progress: _Optional[_Union[Progress, _Mapping]] = ..., progress_unix_s: _Optional[float] = ..., process: _Optional[str] = ..., switch: _Optional[str] = ...) -> None: ...

class ShowJobRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ShowJobReply(_message.Message):
    __slots__ = ("job", "members", "counters", "history", "tree")
    JOB_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    COUNTERS_FIELD_NUMBER: _ClassVar[int]
    HISTORY_FIELD_NUMBER: _ClassVar[int]
    TREE_FIELD_NUMBER: _ClassVar[int]
    job: Job
    members: _containers.RepeatedCompositeFieldContainer[Member]
    counters: _containers.RepeatedCompositeFieldContainer[_shown_pb2.Counter]
    history: _containers.RepeatedCompositeFieldContainer[JobEvent]
    tree: _containers.RepeatedCompositeFieldContainer[_shown_pb2.TreeNode]
    def __init__(self, job: _Optional[_Union[Job, _Mapping]] = ..., members: _Optional[_Iterable[_Union[Member, _Mapping]]] = ..., counters: _Optional[_Iterable[_Union[_shown_pb2.Counter, _Mapping]]] = ..., history: _Optional[_Iterable[_Union[JobEvent, _Mapping]]] = ..., tree: _Optional[_Iterable[_Union[_shown_pb2.TreeNode, _Mapping]]] = ...) -> None: ...

class WatchJobsRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class EvictJobRequest(_message.Message):
    __slots__ = ("name", "reason")
    NAME_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    name: str
    reason: str
    def __init__(self, name: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class EvictJobReply(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: Job
    def __init__(self, job: _Optional[_Union[Job, _Mapping]] = ...) -> None: ...

class ResizeJobRequest(_message.Message):
    __slots__ = ("name", "slots", "mode")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    name: str
    slots: int
    mode: str
    def __init__(self, name: _Optional[str] = ..., slots: _Optional[int] = ..., mode: _Optional[str] = ...) -> None: ...

class ResizeJobReply(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: Job
    def __init__(self, job: _Optional[_Union[Job, _Mapping]] = ...) -> None: ...
