"""Offline means offline: no name is looked up, and nothing is written outside our cache folder and what was asked for.

The run has an empty HOME and no ``CI`` in its environment, where telemetry of dependencies keeps silent.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

KEPT = ("PATH", "SYSTEMROOT", "TMPDIR", "TEMP")  # of the environment
TELEMETRY_STARTS = 16  # seconds after which onnxruntime 1.32 has looked up its host
RUN = """
import sys, time
from agenticiqa.eval.cli import main
status = main(sys.argv[2:])
time.sleep(float(sys.argv[1]))
sys.exit(status)
"""
COMMANDS = {
    "one photo": "assess {examples}/chelsea_noise.png --json",
    "maps of a pair": "assess {examples}/coffee_jpeg.jpg --reference {examples}/coffee.webp --save-maps maps",
    "a folder in several processes": "assess {examples} --workers 2 --jsonl rows.jsonl --html sheet.html",
    "a run": "evaluate {labels} --out run --workers 2",
    "a comparison": "compare {examples}/coffee_jpeg.jpg {examples}/coffee.webp",
}


def command(name: str, examples: Path, folder: Path, seconds: float) -> list[str]:
    labels = folder / "labels.csv"
    rows = [f"{path},{mos}" for mos, path in enumerate(sorted(examples.glob("*.png")), 1)]
    labels.write_text("\n".join(["image,mos", *rows]))
    arguments = COMMANDS[name].format(examples=examples, labels=labels).split()
    return [sys.executable, "-c", RUN, str(seconds), *arguments]


def environment(home: Path) -> dict[str, str]:
    return {name: os.environ[name] for name in KEPT if name in os.environ} | {
        "HOME": str(home),
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }


@pytest.mark.parametrize(
    "name", ["one photo", *(pytest.param(name, marks=pytest.mark.slow) for name in [*COMMANDS][1:])]
)
def test_an_offline_run_writes_only_to_the_cache_folder(name: str, examples: Path, tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    ended = subprocess.run(
        command(name, examples, work, 0.0), cwd=work, env=environment(home), capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    own = home / (".cache" if sys.platform == "linux" else "Library/Caches") / "agenticiqa"
    written = [path for path in home.rglob("*") if path.is_file() and not path.is_relative_to(own)]
    assert not written, written


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace, which sees what native code looks up")
@pytest.mark.parametrize(
    ("name", "seconds"),
    [("one photo", TELEMETRY_STARTS), ("a folder in several processes", 0)],  # no process of a worker stays so long
)
def test_an_offline_run_looks_up_no_name_and_opens_no_connection(
    name: str, seconds: int, examples: Path, tmp_path: Path
) -> None:
    trace = tmp_path / "trace"
    traced = ["strace", "-f", "-qq", "-e", "trace=connect,sendto,sendmsg,sendmmsg", "-o", str(trace)]
    ended = subprocess.run(
        [*traced, *command(name, examples, tmp_path, seconds)],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    if "ptrace" in ended.stderr and not trace.read_text():
        pytest.skip("strace may not trace here")
    assert ended.returncode == 0, ended.stderr
    outside = [line for line in trace.read_text().splitlines() if re.search(r"AF_INET|sin_addr|/run/nscd|htons", line)]
    assert not outside, outside[:5]
