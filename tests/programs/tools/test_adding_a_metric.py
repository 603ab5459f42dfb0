"""A metric is added as CONTRIBUTING describes: by its file, its line in the ranking, and the measured tables.

Done to a copy of the package, which is then asked from outside like any user's.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
FACE = ROOT / "programs/face"

METRIC = '''"""DARK-SHARE: the share of dark pixels. Lower is better."""

import numpy as np

from agenticiqa.programs.tools.numerics.pixels import RGB, Plane, check_image, gray_levels
from agenticiqa.programs.tools.tool import Tool


def dark_share(image: RGB) -> float:
    """The share of pixels with a gray level under 64: 0..1."""
    check_image(image)
    return float(np.mean(gray_levels(image) < 64))


def dark_share_map(image: RGB) -> Plane:
    """1 where a pixel is dark, else 0."""
    return (gray_levels(image) < 64).astype(float)


TOOL = Tool(
    name="DARK-SHARE",
    kind="NR",
    higher_is_better=False,
    raw_range=(0.0, 1.0),
    measures="Brightness change",
    description="Share of dark pixels.",
    source="own",
    cost_ms=1,
    measure=dark_share,
    map=dark_share_map,
    map_end=1.0,
)
'''
LINE = "from agenticiqa.programs.tools.metrics.dark_share import dark_share as dark_share\n"
CURVE = '  DARK-SHARE: {betas: [0, 0, 0, -4, 5], raw_range: [0.0, 1.0], fitted_on: "by hand, n=0"}\n'
ROW = "    DARK-SHARE: {by_hand: {srcc: 0.99, n: 10}}\n"

ASK = """
import json, sys
import numpy as np
from PIL import Image
from agenticiqa.programs import tools
from agenticiqa.programs.assess import AgenticIQA

photo = sys.argv[1]
program = AgenticIQA.offline()
named = program(photo, "Rate the quality with DARK-SHARE.")
chosen = program(photo, "Is it too dark?")
print(json.dumps({
    "file": tools.__file__,
    "value": tools.dark_share(np.asarray(Image.open(photo).convert("RGB"))),
    "log": [call.model_dump() for call in named.executor_evidence.tool_log],
    "score": named.final_answer,
    "chosen": [call.tool for call in chosen.executor_evidence.tool_log],
    "line": tools.toolbox()["DARK-SHARE"].line(),
}))
"""


def copied(source: str, target: str) -> None:
    """Code and tables are copied, so that they can be changed; the rest is linked."""
    if source.endswith((".py", ".yaml")):
        shutil.copyfile(source, target)
    else:
        os.symlink(source, target)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Make a copy of the installed package ``agenticiqa``."""
    folder = tmp_path / "agenticiqa"
    ignore = shutil.ignore_patterns("__pycache__", "face")
    shutil.copytree(FACE, folder, copy_function=copied)
    for name in ("configs", "signatures", "programs", "eval"):
        shutil.copytree(ROOT / name, folder / name, copy_function=copied, ignore=ignore)
    return folder


def add_line(file: Path, after: str, line: str) -> None:
    """Add a line after the first one that starts with ``after``."""
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    at = next(number for number, text in enumerate(lines) if text.startswith(after))
    file.write_text("".join([*lines[: at + 1], line, *lines[at + 1 :]]), encoding="utf-8")


def test_a_metric_is_added_by_its_file_a_line_of_the_ranking_and_the_tables(package: Path, examples: Path) -> None:
    (package / "programs/tools/metrics/dark_share.py").write_text(METRIC, encoding="utf-8")
    add_line(package / "programs/tools/ranking.py", "from", LINE)
    add_line(package / "configs/tool_curves/default.yaml", "tools:", CURVE)
    add_line(package / "configs/tool_table.yaml", "  Brightness change:", ROW)

    environment = os.environ | {"PYTHONPATH": str(package.parent)}
    photo = str(examples / "coffee.webp")
    done = subprocess.run([sys.executable, "-c", ASK, photo], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert Path(shown["file"]).is_relative_to(package), "the copy was asked"
    call = shown["log"][0]  # the program's own tool runs as well, for comparison
    assert (call["tool"], call["error"], call["raw"]) == ("DARK-SHARE", None, shown["value"])
    assert call["calibrated"] == pytest.approx(5 - 4 * shown["value"])
    assert 1 <= shown["score"] <= 5
    assert "DARK-SHARE" in shown["chosen"], "the table says that it follows brightness best"
    assert shown["line"] == ("DARK-SHARE (NR): Share of dark pixels. Best for: Brightness change: SRCC 0.99 (n=10).")
