"""The number of cores that a process may use."""

import os
from pathlib import Path

import pytest

from agenticiqa.programs.backends import cores


@pytest.mark.parametrize(
    ("limit", "expected"),
    [("max 100000", 8), ("250000 100000", 3), ("50000 100000", 1), ("6400000 100000", 8), ("?", 8), (None, 8)],
)
def test_a_containers_share_limits_the_cores(
    limit: str | None, expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)), raising=False)
    monkeypatch.setattr(cores, "CPU_MAX", tmp_path / "cpu.max")
    if limit is not None:
        (tmp_path / "cpu.max").write_text(f"{limit}\n")
    assert cores.available_cores() == expected


def test_without_a_known_affinity_every_core_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(cores, "CPU_MAX", tmp_path / "cpu.max")
    monkeypatch.setattr(os, "cpu_count", lambda: 5)
    assert cores.available_cores() == 5
