"""Manage a run's folder and its description (``run.json``), so that it never mixes results of different runs."""

import json
import math
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dspy

from agenticiqa.configs import Config
from agenticiqa.configs.user_files import read_text
from agenticiqa.configs.yaml_json import json_value
from agenticiqa.eval.scorers.scorer import Scorer
from agenticiqa.programs.assess import AgenticIQA, asked_backend
from agenticiqa.programs.backends.addresses import without_secrets
from agenticiqa.programs.batch.plan_run import asked_of, refuse_other_settings, run_settings
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.fusion.configured import curves_digest
from agenticiqa.programs.images.files import digest, write_atomically
from agenticiqa.programs.saving import prompts_of

SAMPLING = ("temperature", "top_p", "max_tokens", "seed")


def default_folder(data: str, split: str | None, backend: str) -> Path:
    """Return ``runs/<data>[-<split>]-<backend>``, in characters that every file system accepts."""
    return Path("runs") / "-".join(map(folder_name, filter(None, (data, split, backend))))


def folder_name(text: str) -> str:
    """Return a text in characters that every file system accepts in a name."""
    return re.sub(r"[^\w.]+", "_", text)


def made_with(program: dspy.Module, config: Config, labels_sha256: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what determines a run's results, as JSON types: settings, hash of the labels and ``options``."""
    return {**run_settings(program, config), "labels": labels_sha256, **options}


def made_by(program: AgenticIQA | Scorer, labels_sha256: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same as ``made_with`` for a scorer, or for a program without a known configuration."""
    if isinstance(program, Scorer):
        direction: dict[str, Any] = {"scorer": program.name, "lower_is_better": program.lower_is_better}
        if program.shorter_side:
            direction["shorter_side"] = program.shorter_side
        return {**direction, "made_of": dict(program.made_of), "labels": labels_sha256, **options}
    tools = getattr(program.executor, "toolbox", {})
    models = [question.models[0].kwargs for question in program.questions]
    return {
        "version": program.version,
        "program": {"backend": asked_backend(program), **program.settings},
        "fusion": program.fusion.settings if program.fusion else None,
        "plain_mean": getattr(program.executor, "plain_mean", None),
        "strict": getattr(getattr(program.summarizer, "score", None), "strict", False),
        "tool_curves": curves_digest(tuple(tools), tools),
        "prompts": digest(prompts_of(program)),
        "asked": asked_of(program),
        "sampling": [{key: settings.get(key) for key in SAMPLING} for settings in models],
        "labels": labels_sha256,
        **options,
    }


def files_of(folder: Path) -> list[Path]:
    """Return the files of a run in its folder."""
    return [folder / name for name in ("results.jsonl", "run.json", "report.json", "report.md")]


def pin(folder: Path, description: Mapping[str, Any]) -> None:
    """Write a run's description into its folder, while its ``results.jsonl`` is locked.

    Raises UserError as ``refuse_other_run`` does.
    """
    refuse_other_run(folder, description)
    if not os.path.exists(folder / "run.json"):
        write_atomically(folder / "run.json", json.dumps(description, indent=2) + "\n")


def refuse_other_run(folder: Path, description: Mapping[str, Any]) -> None:
    """Raise UserError, with the first difference, if a folder has another description, or results without one."""
    file, results = folder / "run.json", folder / "results.jsonl"
    if not os.path.exists(file):
        if results.is_file() and results.stat().st_size:
            raise UserError(
                f"{folder}: there are results but no run.json with their settings; name another folder, or restore "
                "run.json"
            )
        return
    try:
        earlier = json_value(read_text(file))
    except (OSError, ValueError) as error:
        raise UserError(f"{file}: cannot be read ({error}); name another folder") from error
    refuse_other_settings(folder, earlier, description)


def shown_path(path: str | Path) -> str:
    """Return a path for a page: a relative one unchanged, an absolute one as FOLDER/FILE, or as FOLDER."""
    place = Path(path)
    if not place.is_absolute():
        return place.as_posix()
    return "/".join(place.parts[-2:]) if place.suffix else place.name


def about_run(argv: Sequence[str], results: Path) -> dict[str, str]:
    """Return a run's ``command``, without secrets and folders of this disk, and the ``date`` of its last row."""
    words = [shown_path(word) if word.startswith("/") else without_secrets(word) for word in argv]
    day = datetime.fromtimestamp(results.stat().st_mtime, UTC).date()
    return {"command": shlex.join(["agenticiqa", *words]), "date": day.isoformat()}


def prompts_named(config: Config, description: Mapping[str, Any]) -> str | None:
    """Return the file or folder of a run's tuned prompts with a short digest; ``None`` if it uses none."""
    return f"{shown_path(config.prompts)} ({description['prompts'][:8]})" if config.prompts else None


def report_name(folder: Path, limit: int | None) -> str:
    """Return the name, without extension, for a report on the first ``limit`` rows (``None``: all) of a run.

    It is "report", unless a report on more rows has that name. ``limit`` in a report is the number of its rows.
    """
    try:
        earlier = json_value(read_text(folder / "report.json")).get("limit")
    except (OSError, ValueError, AttributeError):  # no report, or an unreadable one
        return "report"
    return "report" if limit is None or (earlier or math.inf) <= limit else f"report-first-{limit}"
