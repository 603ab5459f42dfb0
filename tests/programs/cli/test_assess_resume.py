"""``assess --jsonl --resume``: which images are assessed again and which are skipped."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from agenticiqa import configs
from agenticiqa.programs.cli.main import main


def picture(path: Path, seed: int = 0) -> Path:
    random = np.random.default_rng(seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(random.integers(0, 256, (8, 8, 3), dtype=np.uint8)).resize((64, 64)).save(path)
    return path


@pytest.fixture
def album(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two images, in a folder of the current one."""
    monkeypatch.chdir(tmp_path)
    for number, name in enumerate(("a.png", "b.png")):
        picture(tmp_path / "album" / name, number)
    return tmp_path / "album"


def assess(*arguments: str | Path) -> int:
    return main(["assess", *map(str, arguments), "--jsonl", "scores.jsonl", "--resume"])


def rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path("scores.jsonl").read_text().splitlines()]


def shown(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().err


def config(text: str) -> tuple[str, str]:
    Path("mine.yaml").write_text(text)
    return "--config", "mine.yaml"


@pytest.mark.parametrize("name", ["album/Zürich.png", "album/Zu\u0308rich.PNG"])
def test_a_name_in_another_form_of_unicode_is_the_same_image(
    album: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (album / "a.png").rename(name)
    assert assess("album") == 0
    lines = Path("scores.jsonl").read_text().replace("ü", "u\u0308").replace("PNG", "png")
    Path("scores.jsonl").write_text(lines)
    capsys.readouterr()
    assert assess("album", "--csv", "t.csv") == 0
    assert "2 of 2 images were already assessed" in shown(capsys)
    assert name in Path("t.csv").read_text()


@pytest.mark.parametrize(
    "text",
    ["fusion: {eta: 0.5}", "fusion: {model_error: 0.0}", "tool_curves: table5", "max_replan_iterations: 0"],
)
def test_another_configuration_is_assessed_again_but_not_after_switching_back(
    album: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    assert assess(album) == 0
    assert assess(album, *config(text)) == 0
    assert len(rows()) == 4
    assert "0 of 2 images were already assessed; assessed again: 2 of another configuration" in shown(capsys)
    assert assess(album) == 0
    assert len(rows()) == 4


def test_a_changed_curve_with_the_same_name_is_assessed_again(album: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shipped = Path(configs.__file__).parent / "tool_curves" / "default.yaml"
    shutil.copy(shipped, "curves.yaml")
    assert assess(album) == 0
    assert assess(album, *config("tool_curves: curves.yaml")) == 0
    assert len(rows()) == 2, "the same curves"
    text = Path("curves.yaml").read_text()
    first = text.partition("betas: [")[2].partition(",")[0]
    Path("curves.yaml").write_text(text.replace(f"[{first},", f"[{float(first) * 1.01},", 1))
    assert assess(album, *config("tool_curves: curves.yaml")) == 0
    assert len(rows()) == 4
    assert "2 of another configuration" in shown(capsys)


def test_the_summary_describes_the_last_run(album: Path) -> None:
    assert assess("album") == 0
    picture(album / "b.png", 9)
    (album / "c.png").write_bytes(b"broken")
    (album / "d.cr2").touch()
    (album / "e.png").symlink_to("nowhere")
    assert assess("album", "gone.png") == 1
    summary = json.loads(Path("scores.jsonl.summary.json").read_text())
    counts = {name: summary[name] for name in ("images", "assessed", "assessed_before", "not_assessed", "rows")}
    assert counts == {"images": 4, "assessed": 1, "assessed_before": 1, "not_assessed": 0, "rows": 2}
    assert summary["replaced_rows"] == 0
    assert summary["assessed_again"] == {"of an image or reference that has changed": 1}
    assert summary["skipped"] == {".cr2": 1, "broken link": 1}
    assert [line.partition(":")[0] for line in summary["failed"]] == ["gone.png", "album/c.png"]
    assert summary["settings"]["config"]["fusion"]["eta"] is None
    assert "finished" in summary


def test_rows_have_the_fingerprint_of_their_run(album: Path) -> None:
    assert assess("album", "--reference", picture(album.parent / "r.png", 3)) == 0
    for row in rows():
        assert len(row["run_fingerprint"]) == 16
        assert len(row["reference_sha256"]) == len(row["image_sha256"]) == 64
    assert rows()[0]["run_fingerprint"] == rows()[1]["run_fingerprint"]


@pytest.mark.parametrize("name", [b"caf\xe9.png", b"a\nb.png"], ids=["not UTF-8", "line break"])
def test_an_unusual_name_is_recognized_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: bytes) -> None:
    monkeypatch.chdir(tmp_path)
    picture(Path(os.fsdecode(name)))
    for _ in range(2):
        assert assess(".") == 0
    assert [row["image"] for row in rows()] == [name.decode("utf-8", "backslashreplace")]
