"""What ``print(ina.torch.stats())`` shows."""

from __future__ import annotations

from dataclasses import replace

from ina.torch.stats import GroupStats

STATS = GroupStats(
    job="train",
    rank=0,
    world_size=2,
    controller="10.0.0.1:17700",
    network_all_reduces=5,
    network_reduce_scatters=0,
    network_elems=256_000,
    network_bytes=1_024_000,
    fallbacks=3,
    fallback_reasons={"all_reduce MAX of float32": 3},
    other_collectives={"broadcast": 4},
    session={"packets_sent": 20, "bytes_sent": 20_500, "timeouts": 0, "srtt_ns": 150_322,
             "gso": False, "transport": "udp", "passed_on": 0},
    switch={"program": "pool, 256 values a packet", "rx_packets": 40, "loss_in_packets": 0,
            "counters": [
                {"name": "job_results", "index": 1, "label": "job train", "packets": 20,
                 "bytes": 22_000},
                {"name": "member_packets", "index": 0, "label": "job train rank 0", "packets": 20,
                 "bytes": 20_500},
                {"name": "drops", "index": 3, "label": "job", "packets": 0, "bytes": 0}]},
    switch_loss=None,
)  # fmt: skip

TABLE = """\
job train, rank 0 of 2, controller 10.0.0.1:17700

through the network
  all_reduces                5
  reduce_scatters            0
  elements                   256000
  bytes                      0.98 MiB

through Gloo
  all_reduce MAX of float32  3
  broadcast                  4

rank 0's packets
  packets sent               20
  bytes sent                 20 KiB
  srtt                       150 µs
  gso                        no
  transport                  udp

the switch in this process: pool, 256 values a packet
  rx packets                 40
  job_results                20 packets, 21.5 KiB
  member_packets rank 0      20 packets, 20 KiB

0: timeouts, passed on"""


def test_it_is_a_table() -> None:
    assert str(STATS) == TABLE


def test_a_lost_switch_and_nothing_over_gloo_are_said() -> None:
    loss = {"reason": "the switch is gone", "unix_s": 1.8e9, "recovery_s": 0.25}
    shown = str(replace(STATS, switch=None, switch_loss=loss, fallback_reasons={},
                        other_collectives={})).splitlines()  # fmt: skip
    start = shown.index("the switch was lost")
    assert [line.split(maxsplit=1) for line in shown[start + 1 : start + 4]] == [
        ["reason", "the switch is gone"],
        ["when", shown[start + 2].split(maxsplit=1)[1]],
        ["recovery", "250 ms"],
    ]
    assert shown[shown.index("through Gloo") + 1] == "  none"
    assert not any("return" in line for line in shown)
    assert not any(line.startswith("the switch in this") for line in shown)


def test_a_return_to_the_network_is_said() -> None:
    loss = {"reason": "gone", "unix_s": 1.8e9, "returned_unix_s": 1.8e9, "away_s": 1.5}
    shown = str(replace(STATS, switch_loss=loss, switch_returns=2)).splitlines()
    start = shown.index("the switch was lost")
    rows = dict(line.split(maxsplit=1) for line in shown[start + 1 : start + 6])
    assert rows["returned"] == rows["when"]
    assert (rows["away"], rows["returns"]) == ("1.5 s", "2")


def test_what_sparse_sums_left_out_is_said() -> None:
    stats = replace(
        STATS, sparse_all_reduces=3, sparse_blocks=2000, sparse_own_blocks=30,
        sparse_union_blocks=101,
    )  # fmt: skip
    assert (stats.density, stats.union) == (0.015, 0.0505)
    shown = [line.split() for line in str(stats).splitlines()]
    assert ["sparse", "all_reduces", "3"] in shown
    assert ["blocks", "of", "those", "not", "zero", "here", "1.50%"] in shown
    assert ["blocks", "of", "those", "sent", "5.05%"] in shown
    assert (STATS.density, STATS.union) == (0.0, 0.0)
