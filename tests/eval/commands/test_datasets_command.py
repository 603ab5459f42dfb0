"""``agenticiqa datasets``, and a data set's name in ``agenticiqa evaluate``."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from agenticiqa.eval.cli import main
from agenticiqa.eval.questions.catalog import QUESTION_TASKS
from agenticiqa.eval.tasks.catalog import TASKS
from support import archives, question_archives


def test_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["datasets"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in (*TASKS, *QUESTION_TASKS))


def test_a_data_set_is_described_and_its_copy_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = archives.kadid10k(tmp_path)
    assert main(["datasets", "kadid10k"]) == 0
    assert "database.mmsp-kn.de" in capsys.readouterr().out
    (folder / "images/I01.png").unlink()
    assert main(["datasets", "kadid10k", "--root", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "4 of 10125 labels" in out
    assert "1.2 to 4.57" in out
    assert "missing files: 1, such as" in out
    assert "I01.png" in out


def test_evaluate_takes_a_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archives.kadid10k(tmp_path)
    run = tmp_path / "run"
    command = ["evaluate", "kadid10k", "--root", str(tmp_path), "--workers", "1", "--out", str(run)]
    assert main(command) == 2
    assert "add --partial" in capsys.readouterr().err
    command.append("--partial")
    assert main(command) == 0
    rows = [json.loads(line) for line in (run / "results.jsonl").read_text().splitlines()]
    assert rows[0]["name"] == "images/I01_01_01.png"
    assert {row["content"] for row in rows} == {"I01", "I02"}
    archives.kadid10k(tmp_path / "other", scores=(4.57, 4.3, 1.5, 1.3))
    command[3] = str(tmp_path / "other")
    assert main(command) == 2
    assert "the earlier run used labels" in capsys.readouterr().err


def test_evaluate_needs_a_folder_for_a_data_set_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "kadid10k"]) == 2
    assert "--root" in capsys.readouterr().err
    assert main(["evaluate", "labels.csv", "--root", str(tmp_path)]) == 2
    assert "labels.csv: cannot be read as a table of labels" in capsys.readouterr().err
    archives.kadid10k(tmp_path)
    (tmp_path / "kadid10k/images/I02.png").unlink()
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(TASKS, "kadid10k", replace(TASKS["kadid10k"], count=4))
        assert main(["evaluate", "kadid10k", "--root", str(tmp_path)]) == 2
    assert "1 files are missing" in capsys.readouterr().err


def test_evaluate_warns_if_file_names_are_used_as_scenes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archives.images(tmp_path, ["a.png", "b.png"])
    (tmp_path / "labels.csv").write_text("image,mos,distortion\na.png,3,noise\nb.png,4,blur\n")
    assert main(["evaluate", str(tmp_path / "labels.csv"), "--workers", "1", "--out", str(tmp_path / "run")]) == 0
    assert "no column content (the scene of an image)" in capsys.readouterr().err


def test_a_benchmark_of_questions_is_described_and_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    question_archives.qbench(tmp_path)
    assert main(["datasets", "qbench"]) == 0
    shown = capsys.readouterr().out
    assert "images.tar of nanyangtu/LLVisionQA-QBench (Hugging Face); unpack it to DIR/" in shown
    assert main(["datasets", "qbench", "--root", str(tmp_path)]) == 1  # the copy is incomplete
    out = capsys.readouterr().out
    assert "5 of 1495 questions" in out
    assert "- type: how 2, what 1, yes-or-no 2" in out


@pytest.mark.parametrize(
    ("name", "found"),
    [("CLIVE", "clive: "), ("kadid-10k", "kadid10k: "), ("TID 2013", "tid2013: "), ("Q-Bench", "qbench: ")],
)
def test_a_name_may_have_other_case_and_hyphens(name: str, found: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["datasets", name]) == 0
    assert capsys.readouterr().out.startswith(found)


@pytest.mark.parametrize(
    ("name", "like"), [("koniq", "koniq10k"), ("tid", "tid2008 or tid2013"), ("biqq2021", "biq2021")]
)
def test_an_unknown_name_is_reported_with_similar_ones(
    name: str, like: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (["datasets", name], ["evaluate", name, "--partial"]):
        assert main(command) == 2
        assert f"(did you mean {like}?); known names: " in capsys.readouterr().err


def test_evaluate_takes_a_name_in_another_case(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archives.kadid10k(tmp_path)
    command = ["evaluate", "KADID-10k", "--root", str(tmp_path), "--partial", "--scorer", "PIQE", "--workers", "1"]
    assert main([*command, "--out", str(tmp_path / "run")]) == 0


def test_names_are_never_wrapped(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("agenticiqa.eval.report.model.PLAIN_WIDTH", 60)
    assert main(["datasets"]) == 0
    words = {line.split()[0] for line in capsys.readouterr().out.splitlines() if line.strip()}
    assert {*TASKS, *QUESTION_TASKS} <= words
