"""``INA_HOST`` that is another host's: the rank that has it says so."""

from __future__ import annotations

import datetime

import pytest
from torch._C._distributed_c10d import HashStore

from ina.torch.env import Settings
from ina.torch.errors import SettingError
from ina.torch.process_group import ProcessGroupIna


def test_a_host_that_is_not_this_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INA_HOST", "203.0.113.1")
    with pytest.raises(SettingError, match=r"^INA_HOST=203\.0\.113\.1: this host has no IPv4"):
        ProcessGroupIna(
            HashStore(), 0, 1, datetime.timedelta(seconds=5), settings=Settings.from_environ()
        )
