"""Offline means offline: no command looks up a name, opens a connection, or writes outside its outputs and our cache.

Every command runs in its offline form, with an empty home folder and without ``CI`` in the environment, where telemetry
of dependencies keeps silent. LiteLLM may download its prices here, because the variable that prevents it is not set.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agenticiqa.eval.cli import COMMANDS
from agenticiqa.programs.backends.provider_batches.manifest import Manifest
from support.fusion_rows import rows_of_a_model

LABELS = Path(__file__).parents[2] / "examples" / "labels.csv"
KEPT = ("PATH", "SYSTEMROOT", "TMPDIR", "TEMP")  # of the environment
TELEMETRY_STARTS = 16  # seconds after which onnxruntime 1.32 has looked up its host
RUN = """
import json, sys, time
from agenticiqa.eval.cli import main
statuses = [main(command.split()) for command in json.loads(sys.argv[2])]
time.sleep(float(sys.argv[1]))
sys.exit(max(statuses))
"""
# One process runs the commands of a row one after the other, in a folder with album/, labels.csv and what earlier runs
# with a model left. Those of the last row name a model and only estimate.
CHAINS = {
    "one photo": ["assess album/chelsea_noise.png --json"],
    "images": [
        "assess album/coffee_jpeg.jpg --reference album/coffee.webp --save-maps maps",
        "compare album/coffee_jpeg.jpg album/coffee.webp --html both.html",
        "measure ssim niqe album/coffee_jpeg.jpg --reference album/coffee.webp",
        "gate album/coffee.webp --html gate.html",
        "tools",
        "mcp --root album",
    ],
    "folders": [
        "assess album --workers 2 --jsonl rows.jsonl --html sheet.html",
        "assess album --parquet scores",
        "report rows.jsonl --html again.html",
        "rate album --out rate.html --scores rows.jsonl",
    ],
    "runs": [
        "evaluate {labels} --limit 8 --out run",
        "evaluate {labels} --limit 8 --scorer BRISQUE --out brisque --workers 2",
        "compare run brisque --markdown table.md",
        "report run --html page.html",
        "evaluate agenticiqa-eval --root sets --out answers",
        "datasets",
        "cite",
    ],
    "fits": [
        "calibrate adapter {labels} --save-anyway",
        "calibrate fusion saved.jsonl",
    ],
    "models": [
        "backends",
        "batches asked.jsonl",
        "assess album --backend openai.gpt-4o --dry-run",
        "calibrate fusion album --backend openai.gpt-4o --dry-run",
        "optimize {labels} --backend openai.gpt-4o --reflection-backend openai.gpt-4o --out tuned --dry-run",
    ],
}
TRACED = "connect,sendto,sendmsg,sendmmsg,open,openat,creat,mkdir,mkdirat,rename,renameat,renameat2,unlink,unlinkat"
WRITTEN = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|\b(?:creat|mkdir|rename|unlink)\w*\(")
NEVER_KEPT = ("/dev/", "/proc/")
STRACE = shutil.which("strace")
WITHOUT_STRACE = [pytest.mark.slow, pytest.mark.skipif(bool(STRACE), reason="with strace, the next test shows it, too")]


def test_every_command_is_run() -> None:
    lines = [line for chain in CHAINS.values() for line in chain]
    leaves = [name for name, command in COMMANDS.items() if command.module]
    assert [name for name in leaves if not any(f"{line} ".startswith(f"{name} ") for line in lines)] == []


@pytest.mark.parametrize("name", ["one photo", *(pytest.param(name, marks=WITHOUT_STRACE) for name in [*CHAINS][1:])])
def test_a_command_writes_only_its_outputs_and_our_cache(name: str, examples: Path, tmp_path: Path) -> None:
    ended = ran(name, examples, tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert_home_is_clean(name, tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(not STRACE, reason="needs strace, which sees what native code does")
@pytest.mark.parametrize("name", CHAINS)
def test_no_command_connects_or_writes_elsewhere(name: str, examples: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    seconds = TELEMETRY_STARTS if name == "one photo" else 0
    strace = ["strace", "-f", "-qq", "--seccomp-bpf", "-s", "999", "-e", f"trace={TRACED}", "-o", str(trace)]
    ended = ran(name, examples, tmp_path, *strace, seconds=seconds)
    lines = trace.read_text().splitlines()
    if "ptrace" in ended.stderr and not lines:
        pytest.skip("strace may not trace here")
    assert ended.returncode == 0, ended.stderr
    assert any(str(tmp_path / "work") in line for line in lines), "the trace has the calls of the command"
    outside = [line for line in lines if re.search(r"AF_INET|sin_addr|/run/nscd|htons", line)]
    assert not outside, outside[:5]
    changed = [path for line in lines if WRITTEN.search(line) and " = -1 " not in line for path in paths_in(line)]
    elsewhere = [path for path in changed if not path.startswith((str(tmp_path), *NEVER_KEPT))]
    assert not elsewhere, elsewhere[:5]
    assert_home_is_clean(name, tmp_path)


def paths_in(line: str) -> list[str]:
    """Return the absolute paths that a traced call names, without those of compiled modules."""
    return [path for path in re.findall(r'"(/[^"]*)"', line) if "__pycache__" not in path]


def assert_home_is_clean(name: str, folder: Path) -> None:
    """Check that the home folder has files only in our cache folder, and in that of DSPy if a model was named."""
    home = folder / "home"
    own = [home / (".cache" if sys.platform == "linux" else "Library/Caches") / "agenticiqa"]
    own += [home / ".dspy_cache"] if name == "models" else []
    written = [path for path in home.rglob("*") if path.is_file() and not any(map(path.is_relative_to, own))]
    assert not written, written


def ran(name: str, examples: Path, folder: Path, *tracer: str, seconds: float = 0) -> subprocess.CompletedProcess[str]:
    """Run a chain in ``folder``/work with the home ``folder``/home, then wait, all under a tracer if one is given."""
    home, work, temporary = (folder / part for part in ("home", "work", "temporary"))
    for each in (home, temporary):
        each.mkdir()
    prepare(work, examples)
    environment = {name: os.environ[name] for name in KEPT if name in os.environ}
    environment |= {"HOME": str(home), "TMPDIR": str(temporary), "OPENAI_API_KEY": "not-a-key"}
    lines = json.dumps([line.format(labels=LABELS) for line in CHAINS[name]])
    command = [*tracer, sys.executable, "-c", RUN, str(seconds), lines]
    return subprocess.run(
        command, cwd=work, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )


def prepare(work: Path, examples: Path) -> None:
    """Make a folder with an album, a question benchmark, rows that a model rated, and an empty list of batches."""
    shutil.copytree(examples, work / "album")
    questions = work / "sets" / "AgenticIQA-Eval"
    questions.mkdir(parents=True)
    shutil.copy(examples / "chelsea_noise.png", questions / "noise.png")
    question = {"question": "Is it noisy?", "options": {"A": "Yes", "B": "No"}, "answer": "A", "reference_mode": "NR"}
    asked = {**question, "task_type": "summarizer", "image_path": "noise.png", "reference_path": None}
    (questions / "questions.json").write_text(json.dumps([asked]))
    (work / "saved.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows_of_a_model()))
    Manifest(work / "asked.jsonl.batches").close()
