"""``evaluate --batch`` and ``calibrate --batch``: the same rows as without, and nothing sent at once."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from agenticiqa.eval.cli import main
from agenticiqa.programs.backends.batches import run
from support.batch_runs import KEY_VARIABLE, configuration, rows, script
from support.batch_server import BatchServer, batch_server
from support.distortion_levels import blur, scene
from support.providers import OPENAI, provider_server

KEY = "sk-batch-key"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[BatchServer]:
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    monkeypatch.setattr(run, "FIRST_LOOK", 0.02)
    monkeypatch.setattr(run, "LONGEST_LOOK", 0.05)
    with batch_server(OPENAI, script(), key=KEY) as running:
        yield running


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    for mos, amount in ((5, 1), (4, 2), (2, 4)):
        Image.fromarray(blur(amount, scene())).resize((128, 96)).save(tmp_path / f"{mos}.png")
    table = tmp_path / "labels.csv"
    table.write_text("image,mos\n" + "".join(f"{mos}.png,{mos}\n" for mos in (5, 4, 2)))
    return table


def test_a_benchmark_has_the_rows_that_it_has_without_batches(
    labels: Path, server: BatchServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["evaluate", str(labels), "--mos-range", "1", "5", "--no-cache"]
    with provider_server(OPENAI, script(), key=KEY) as at_once:
        plain = configuration(tmp_path, at_once.url)
        assert main([*asked, "--config", str(plain), "--out", str(tmp_path / "plain")]) == 0
    begun = [*asked, "--config", str(configuration(tmp_path, server.url)), "--out", str(tmp_path / "batch"), "--batch"]
    assert main([*begun, "--dry-run"]) == 0
    assert "As batches: 12 requests" in capsys.readouterr().out
    assert main([*begun, "--max-calls", "3"]) == 2
    assert "take at least 6 calls" in capsys.readouterr().err
    assert not server.log
    assert main(begun) == 0
    assert not server.at_once
    assert rows(tmp_path / "batch" / "results.jsonl") == rows(tmp_path / "plain" / "results.jsonl")
    assert main(["batches", str(tmp_path / "batch"), "--json"]) == 0


@pytest.mark.slow
def test_a_profile_is_fitted_to_answers_of_batches(server: BatchServer, tmp_path: Path) -> None:
    for number in range(10):  # the fewest that a profile takes
        Image.fromarray(blur(1, scene(seed=number))).resize((128, 96)).save(tmp_path / f"{number}.png")
    config, out = configuration(tmp_path, server.url), tmp_path / "fusion.yaml"
    asked = ["calibrate", *map(str, tmp_path.glob("*.png")), "--config", str(config), "--out", str(out), "--batch"]
    assert main(asked) == 0
    assert not server.at_once
    assert len(rows(tmp_path / "fusion.rows.jsonl")) == 10
    assert out.is_file()


@pytest.mark.parametrize("more", [["--scorer", "NIQE"], ["--ablate", "planner"]])
def test_what_sends_no_requests_of_the_program_is_refused(more: list[str], labels: Path, tmp_path: Path) -> None:
    config = configuration(tmp_path, "http://127.0.0.1:1/v1")
    named = [] if more[0] == "--scorer" else ["--config", str(config)]
    assert main(["evaluate", str(labels), "--mos-range", "1", "5", *named, "--batch", *more]) == 2
