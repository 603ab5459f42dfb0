"""Files of users: anything but a regular file of a limited size is refused in one line, wherever it is read."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agenticiqa.configs import ConfigError, load_config
from agenticiqa.configs.policy import load_policy
from agenticiqa.eval.cli import main
from agenticiqa.eval.report.splits import splits_of_file
from agenticiqa.programs import AgenticIQA
from agenticiqa.programs.batch.find_jobs import read_jobs
from agenticiqa.programs.cli.status import USAGE
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.fusion.profile import read_fusion_profile
from agenticiqa.programs.images.files import sha256_of
from agenticiqa.programs.saving import load
from agenticiqa.programs.tools.metrics.learned_iqa import adapter_in
from agenticiqa.programs.tools.tool_curves import read_tool_curves

READERS: dict[str, Callable[[Path], object]] = {
    "adapter": adapter_in,
    "configuration": load_config,
    "policy": load_policy,
    "fusion profile": read_fusion_profile,
    "tool curves": lambda path: read_tool_curves(str(path)),
    "prompts": lambda path: load(AgenticIQA.offline(), path),
    "jobs": lambda path: read_jobs(str(path), "Rate it."),
    "splits": lambda path: splits_of_file(path, [], []),
    "image of a label": sha256_of,
}


def special(kind: str, folder: Path) -> Path:
    """Return a file of this kind, named as a file of the user may be."""
    path = folder / "given.yaml"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "link to /dev/zero":
        path.symlink_to("/dev/zero")
    else:
        with path.open("wb") as file:
            file.truncate(2**29 + 1)
    return path


@pytest.mark.parametrize("kind", ["pipe", "folder", "link to /dev/zero", "sparse file"])
@pytest.mark.parametrize("reader", READERS)
def test_only_regular_files_up_to_a_size_are_read(reader: str, kind: str, tmp_path: Path) -> None:
    if (reader, kind) in {("image of a label", "sparse file"), ("prompts", "folder")}:
        pytest.skip("it is read in blocks, or a folder is allowed")
    with pytest.raises((UserError, ConfigError, OSError)) as refused:
        READERS[reader](special(kind, tmp_path))
    message = str(refused.value)
    assert "at most" in message if kind == "sparse file" else "regular file" in message or "folder" in message
    assert len(message.splitlines()) == 1


COMMANDS = ("evaluate {}", "calibrate adapter {}", "assess --jobs {}", "assess {} --parquet out")


@pytest.mark.parametrize("kind", ["pipe", "link to /dev/zero"])
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_do_not_wait_for_a_pipe(
    command: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = special(kind, tmp_path).rename(tmp_path / "labels.csv")
    assert main(command.format(file).split()) == USAGE
    assert "labels.csv" in capsys.readouterr().err
