"""Plan a run: its program, its settings and their fingerprint, and the jobs that have no result yet."""

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import version
from typing import Any

import dspy

from agenticiqa.configs import Config, StageConfig
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.backends.engine import Model
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.batch.results_file import Identity, ResultsFile, Resumed, Row, question_of, resume
from agenticiqa.programs.batch.summary import failed_before
from agenticiqa.programs.errors import AgenticIQAError, ImageError, UserError
from agenticiqa.programs.fusion.profile import read_fusion_profile
from agenticiqa.programs.images import ImageSource, LoadedImage, UndecodedImage, name_of
from agenticiqa.programs.images.files import digest, one_line, printable_path, sha256_of
from agenticiqa.programs.images.names import closest, folded
from agenticiqa.programs.images.sources import StoredImage, local_path
from agenticiqa.programs.saving import prompts_of
from agenticiqa.programs.stages.ask import CheckedPredict
from agenticiqa.programs.tools.metrics.learned_iqa import adapter_in
from agenticiqa.programs.tools.tool_curves import read_tool_curves


@dataclass(frozen=True)
class RunPlan:
    """A planned run: all its jobs, and those that have no current result (``todo``).

    ``again`` counts the jobs of ``todo`` that have an outdated result, by reason. ``incomplete`` has the number of
    the earlier row of those where it is incomplete (see ``Resumed``).
    """

    program: AgenticIQA
    settings: Mapping[str, Any]
    jobs: Sequence[Job]
    todo: list[Job]
    again: Counter[str] = field(default_factory=Counter)
    incomplete: Mapping[Job, int] = field(default_factory=dict)

    @property
    def finished(self) -> int:
        """The number of jobs that have a current result."""
        return len(self.jobs) - len(self.todo)


def plan_run(config: Config, jobs: Sequence[Job], results: ResultsFile | None) -> RunPlan:
    """Plan a run over ``jobs``, without jobs that have a current result in ``results``.

    Images that failed in the last run come last, because they may fail again and end the run.
    """
    program = AgenticIQA.from_config(config)
    settings = run_settings(program, config)
    if results is None:
        return RunPlan(program, settings, jobs, list(jobs))
    resumed, failed = find_finished(jobs, results, settings), failed_before(results)
    todo = [job for job in jobs if job not in resumed.finished]
    todo.sort(key=lambda job: one_line(job.name) in failed)
    return RunPlan(program, settings, jobs, todo, resumed.again, resumed.incomplete)


def run_settings(program: dspy.Module, config: Config) -> dict[str, Any]:
    """Return the settings that determine the results of ``program``, made from ``config``, as plain JSON types.

    - ``version``: the version of this package
    - ``config``: the keys of the resolved configuration that change results, without what offline stages ignore
    - ``tool_curves``: a digest of the curves and their residuals, independent of the name of their file
    - ``prompts``: a digest of instructions, field descriptions and worked examples, tuned or not
    - ``asked``: the form of answer first requested from the first model of each predictor

    Addresses of servers, names of keys and paths of tool curves are not included; a fusion profile and an adapter are
    included by their content. Raises ToolError if the tool curves cannot be read, and UserError if one of these cannot.
    """
    config = config.with_tuned_fusion().in_mode()
    resolved = config.recorded() | {name: _stage(section) for name, section in config.sections.items()}
    profile = config.fusion.profile
    resolved["fusion"]["profile"] = profile and digest(read_fusion_profile(profile).model_dump(mode="json"))
    if config.adapter is not None:
        resolved["adapter"] = adapter_in(config.adapter).about["digest"]
    curves = {
        tool: [curve.betas, curve.raw_range, curve.residual]
        for tool, curve in read_tool_curves(config.tool_curves).items()
    }
    return {
        "version": version("agenticiqa"),
        "config": resolved,
        "tool_curves": digest(curves),
        "prompts": digest(prompts_of(program)),
        "asked": asked_of(program),
    }


def _stage(stage: StageConfig) -> dict[str, Any]:
    if stage.is_offline:
        return {"backend": stage.backend}
    # The backend comes first, because an error about other settings names the first difference.
    return {"backend": stage.backend, **stage.recorded()}


def asked_of(program: dspy.Module) -> Mapping[str, Mapping[str, Any]]:
    """Return, by predictor, the form of answer that is first requested from its first model."""
    asking = {name: part for name, part in program.named_sub_modules() if isinstance(part, CheckedPredict)}
    return {name: _of_model(part.models[0]) for name, part in asking.items()}


def _of_model(lm: dspy.BaseLM) -> dict[str, Any]:
    engine = getattr(lm, "engine", None)
    if isinstance(engine, Model):
        return {"form": engine.features.first_form, "top_logprobs": engine.features.first_logprobs}
    return {"model": lm.model}


def refuse_other_settings(place: str | os.PathLike[str], earlier: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raise UserError, with the first difference, if the results of a folder were made with other settings."""
    before, after = dict(_leaves(earlier)), dict(_leaves(json.loads(json.dumps(now))))
    if different := [key for key in after | before if after.get(key) != before.get(key)]:
        key, *others = different
        more = f" (and {len(others)} more differences)" if others else ""
        raise UserError(
            f"{printable_path(place)}: the earlier run used {key} {_short(before.get(key))}, not "
            f"{_short(after.get(key))}{more}; name another folder, or use the earlier settings"
        )


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}" if path else key)
    else:
        yield path, value


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:24]}..."


def fingerprint_of(job: Job, settings: Mapping[str, Any]) -> str:
    """Return the ``run_fingerprint`` of a job's row: a digest of the settings of the run and of the job."""
    return digest({**settings, "resize_reference": job.resize_reference and job.reference is not None})


def find_finished(jobs: Sequence[Job], results: ResultsFile, settings: Mapping[str, Any]) -> Resumed[Job]:
    """Return the jobs with a current result in the file, and how many other jobs have only an outdated result.

    Paths are compared as absolute paths. A relative path in the file is resolved from the current folder or, if that
    is not an image of the jobs, from the file's folder. Therefore the file and its images can be moved together. An
    image that was moved or renamed otherwise is assessed again. Names are compared as ``names.closest`` does.
    """
    if not results.length:  # an empty file needs no hash of every image
        return Resumed({}, Counter())
    wanted = {job: identity_of(job, fingerprint_of(job, settings)) for job in jobs}
    return resume(results.outlines(), wanted, row_identifier({identity.image for identity in wanted.values()}, results))


def saved_rows(jobs: Sequence[Job], results: ResultsFile, settings: Mapping[str, Any]) -> Iterator[tuple[Job, Row]]:
    """Yield each job that has a result in the file with its last result, in the order of the file.

    Jobs are distinguished and matched with rows as in ``find_finished``.
    """
    wanted = {identity_of(job, fingerprint_of(job, settings)): job for job in jobs}
    identify = row_identifier({identity.image for identity in wanted}, results)
    last: dict[Identity, int] = {}
    for number, row in results.outlines():
        if "error" not in row and (identity := identify(row)) in wanted:
            last.pop(identity, None)
            last[identity] = number
    yield from zip((wanted[identity] for identity in last), results.rows(last.values()), strict=True)


def row_identifier(images: Collection[str], results: ResultsFile) -> Callable[[Row], Identity]:
    """Return a function that returns the identity of a row, with paths resolved to these images."""
    here, beside = os.getcwd(), os.path.dirname(os.path.realpath(results.path))
    by_name: dict[str, list[str]] = {}
    for image in images:
        by_name.setdefault(folded(image), []).append(image)

    def identify(row: Row) -> Identity:
        identity = _identity_of_row(row, here)
        for placed in (identity, identity if here == beside else _identity_of_row(row, beside)):
            alike = closest(placed.image, by_name.get(folded(placed.image), ()), str)
            if len(alike) == 1:
                return placed._replace(image=alike[0])
        return identity

    return identify


def identity_of(job: Job, run_fingerprint: str) -> Identity:
    """Return the identity of a job's result; its files are read to hash them."""
    reference = job.reference
    return Identity(
        image=absolute(job.name, os.getcwd()),
        image_sha256=hash_of(job.image),
        reference=None if reference is None else folded(absolute(name_of(reference), os.getcwd())),
        reference_sha256=None if reference is None else hash_of(reference),
        query=job.asked,
        run_fingerprint=run_fingerprint,
    )


def absolute(name: str, folder: str) -> str:
    """Return an absolute path with links among its folders resolved; return other names (``<stdin>``) unchanged."""
    if name.startswith("<") and name.endswith(">"):
        return name
    parent, file = os.path.split(os.path.join(folder, name))
    return os.path.join(_real(parent), file)


@lru_cache(maxsize=4096)
def _real(folder: str) -> str:
    return os.path.realpath(folder)


def _identity_of_row(row: Row, folder: str) -> Identity:
    reference = row.get("reference")
    return Identity(
        image=absolute(str(row.get("image")), folder),
        image_sha256=row.get("image_sha256"),
        reference=None if reference is None else folded(absolute(str(reference), folder)),
        reference_sha256=row.get("reference_sha256"),
        query=question_of(row),
        run_fingerprint=row.get("run_fingerprint"),
    )


def hash_of(source: ImageSource) -> str | None:
    """Return the hash of an image's bytes; ``None`` if they cannot be read, and for an array."""
    match source:
        case LoadedImage():
            return source.sha256
        case UndecodedImage(content=bytes(data)) | (bytes() as data):
            return hashlib.sha256(data).hexdigest()
        case StoredImage():
            try:
                return hashlib.sha256(source.read_content()).hexdigest()
            except AgenticIQAError:  # as below
                return None
        case str() | os.PathLike():
            try:
                return sha256_of(local_path(source))
            except (OSError, ImageError):  # the job is assessed, and fails with the reason
                return None
        case _:
            return None
