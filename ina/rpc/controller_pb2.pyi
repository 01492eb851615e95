from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CreateJobRequest(_message.Message):
    __slots__ = ("name", "world_size", "slots")
    NAME_FIELD_NUMBER: _ClassVar[int]
    WORLD_SIZE_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    name: str
    world_size: int
    slots: int
    def __init__(self, name: _Optional[str] = ..., world_size: _Optional[int] = ..., slots: _Optional[int] = ...) -> None: ...

class CreateJobReply(_message.Message):
    __slots__ = ("job", "switch_host", "switch_udp_port", "values_per_packet", "slots")
    JOB_FIELD_NUMBER: _ClassVar[int]
    SWITCH_HOST_FIELD_NUMBER: _ClassVar[int]
    SWITCH_UDP_PORT_FIELD_NUMBER: _ClassVar[int]
    VALUES_PER_PACKET_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    job: int
    switch_host: str
    switch_udp_port: int
    values_per_packet: int
    slots: int
    def __init__(self, job: _Optional[int] = ..., switch_host: _Optional[str] = ..., switch_udp_port: _Optional[int] = ..., values_per_packet: _Optional[int] = ..., slots: _Optional[int] = ...) -> None: ...

class JoinRequest(_message.Message):
    __slots__ = ("name", "rank", "host", "udp_port", "timeout_s", "switch_port")
    NAME_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    UDP_PORT_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_S_FIELD_NUMBER: _ClassVar[int]
    SWITCH_PORT_FIELD_NUMBER: _ClassVar[int]
    name: str
    rank: int
    host: str
    udp_port: int
    timeout_s: float
    switch_port: int
    def __init__(self, name: _Optional[str] = ..., rank: _Optional[int] = ..., host: _Optional[str] = ..., udp_port: _Optional[int] = ..., timeout_s: _Optional[float] = ..., switch_port: _Optional[int] = ...) -> None: ...

class JoinReply(_message.Message):
    __slots__ = ("job", "epoch", "world_size", "slots")
    JOB_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    WORLD_SIZE_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    job: int
    epoch: int
    world_size: int
    slots: int
    def __init__(self, job: _Optional[int] = ..., epoch: _Optional[int] = ..., world_size: _Optional[int] = ..., slots: _Optional[int] = ...) -> None: ...

class LeaveRequest(_message.Message):
    __slots__ = ("name", "rank", "epoch")
    NAME_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    name: str
    rank: int
    epoch: int
    def __init__(self, name: _Optional[str] = ..., rank: _Optional[int] = ..., epoch: _Optional[int] = ...) -> None: ...

class LeaveReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListJobsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Job(_message.Message):
    __slots__ = ("name", "job", "epoch", "world_size", "joined", "first_slot", "slots", "state")
    NAME_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    WORLD_SIZE_FIELD_NUMBER: _ClassVar[int]
    JOINED_FIELD_NUMBER: _ClassVar[int]
    FIRST_SLOT_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    name: str
    job: int
    epoch: int
    world_size: int
    joined: _containers.RepeatedScalarFieldContainer[int]
    first_slot: int
    slots: int
    state: str
    def __init__(self, name: _Optional[str] = ..., job: _Optional[int] = ..., epoch: _Optional[int] = ..., world_size: _Optional[int] = ..., joined: _Optional[_Iterable[int]] = ..., first_slot: _Optional[int] = ..., slots: _Optional[int] = ..., state: _Optional[str] = ...) -> None: ...

class ListJobsReply(_message.Message):
    __slots__ = ("jobs",)
    JOBS_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedCompositeFieldContainer[Job]
    def __init__(self, jobs: _Optional[_Iterable[_Union[Job, _Mapping]]] = ...) -> None: ...

class ShowSwitchRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class TableEntry(_message.Message):
    __slots__ = ("table", "match", "action")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    MATCH_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    table: str
    match: str
    action: str
    def __init__(self, table: _Optional[str] = ..., match: _Optional[str] = ..., action: _Optional[str] = ...) -> None: ...

class Counter(_message.Message):
    __slots__ = ("name", "index", "label", "packets", "bytes")
    NAME_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    PACKETS_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    name: str
    index: int
    label: str
    packets: int
    bytes: int
    def __init__(self, name: _Optional[str] = ..., index: _Optional[int] = ..., label: _Optional[str] = ..., packets: _Optional[int] = ..., bytes: _Optional[int] = ...) -> None: ...

class ShowSwitchReply(_message.Message):
    __slots__ = ("program", "device_id", "slots_total", "slots_used", "entries", "counters")
    PROGRAM_FIELD_NUMBER: _ClassVar[int]
    DEVICE_ID_FIELD_NUMBER: _ClassVar[int]
    SLOTS_TOTAL_FIELD_NUMBER: _ClassVar[int]
    SLOTS_USED_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    COUNTERS_FIELD_NUMBER: _ClassVar[int]
    program: str
    device_id: int
    slots_total: int
    slots_used: int
    entries: _containers.RepeatedCompositeFieldContainer[TableEntry]
    counters: _containers.RepeatedCompositeFieldContainer[Counter]
    def __init__(self, program: _Optional[str] = ..., device_id: _Optional[int] = ..., slots_total: _Optional[int] = ..., slots_used: _Optional[int] = ..., entries: _Optional[_Iterable[_Union[TableEntry, _Mapping]]] = ..., counters: _Optional[_Iterable[_Union[Counter, _Mapping]]] = ...) -> None: ...
