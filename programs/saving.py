"""Tuned prompts on disk: DSPy's state, under a header that says what it was made for.

DSPy restores fields by position and ignores predictors that vanished, so a state for other signatures would load
silently and wrongly. The header's fingerprint covers every predictor's name and fields, and a mismatch is refused.
Models are left out: DSPy would write their addresses, headers and, with the whole program, their keys.
"""

import hashlib
import json
import logging
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import dspy

from agenticiqa.programs.errors import StateError
from agenticiqa.programs.images.files import write_atomically
from agenticiqa.programs.stages.inputs import ImageProgram

logger = logging.getLogger(__name__)

PROGRAM = "AgenticIQA"


class SavedProgram(ImageProgram):
    """A program that saves and loads its tuned prompts."""

    def save(
        self,
        path: str | os.PathLike[str],
        created_with: Mapping[str, object] | None = None,
        *,
        save_program: bool = False,
        modules_to_serialize: Sequence[ModuleType] = (),
    ) -> None:
        """Write the tuned prompts, with a header that says which signatures they are for; never a model or its key.

        With ``save_program`` the program itself is written to the folder ``path``, for ``dspy.load``: see
        ``save_whole``. ``modules_to_serialize`` are modules of your own stages, which DSPy then writes with it.
        """
        if save_program:
            save_whole(self, path, modules_to_serialize)
        else:
            save(self, path, created_with or {})

    def load(self, path: str | os.PathLike[str]) -> None:
        """Read tuned prompts, also a JSON state of DSPy's. Raises StateError when they are for other signatures."""
        load(self, path)


def fingerprints(program: dspy.Module) -> dict[str, str]:
    """For each predictor a digest of its fields: names, order, kinds and types, but not the tuned wording."""
    return {name: _fingerprint(predictor.signature) for name, predictor in program.named_predictors()}


def prompts_of(program: dspy.Module) -> dict[str, Any]:
    """For each predictor what tuning may change, as plain JSON types: instructions, field descriptions and examples."""
    return {name: _bare(predictor).dump_state() for name, predictor in program.named_predictors()}


def save(program: dspy.Module, path: str | os.PathLike[str], created_with: Mapping[str, Any]) -> None:
    """Write the state of ``program``; ``created_with`` (data set, seed, scores) is kept in the header."""
    header = {
        "program": PROGRAM,
        "version": version("agenticiqa"),
        "dspy": dspy.__version__,
        "fingerprints": fingerprints(program),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "created_with": dict(created_with),
    }
    write_atomically(path, json.dumps({"header": header, "state": prompts_of(program)}, indent=2, ensure_ascii=False))


def load(program: dspy.Module, path: str | os.PathLike[str]) -> None:
    """Read a state into ``program``, whose models stay as they are; nothing in the file is executed.

    A state that ``dspy.Module.save`` wrote as JSON has no header: it is taken, with a warning in the log, when it has
    the same predictors with the same number of fields under the same prefixes. Raises StateError when the file is no
    state, or was made for other signatures.
    """
    try:
        saved = json.loads(Path(path).read_text(encoding="utf-8"))
        plain = "header" not in saved and "dependency_versions" in saved["metadata"]
        state = {name: saved[name] for name in saved.keys() - {"metadata"}} if plain else saved["state"]
        header = {} if plain else saved["header"]
        made_for: dict[str, Any] = {name: _layout(state[name]) for name in state} if plain else header["fingerprints"]
        made_for = dict(made_for)
    except OSError as error:
        raise StateError(f"{path}: no saved program can be read from it ({error.strerror})") from error
    except (ValueError, KeyError, TypeError) as error:
        raise StateError(f"{path}: no saved program can be read from it ({error!r})") from error
    if not plain and header.get("program") != PROGRAM:
        raise StateError(f"{path}: saved by {header.get('program')!r}, expected {PROGRAM!r}")
    here: dict[str, Any] = (
        {name: _layout(state) for name, state in prompts_of(program).items()} if plain else fingerprints(program)
    )
    different = sorted(name for name in here.keys() | made_for.keys() if here.get(name) != made_for.get(name))
    if different:
        by = "saved by DSPy" if plain else f"made by version {header.get('version')}"
        raise StateError(
            f"{path}: {by} for other signatures than this program's; they differ in {', '.join(different)}. "
            "Use the configuration that it was tuned with, or tune again"
        )
    predictors = dict(program.named_predictors())
    try:
        loaded = {
            name: _bare(predictor).load_state({**state[name], "lm": None}) for name, predictor in predictors.items()
        }
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StateError(f"{path}: the state of a predictor is damaged ({error!r})") from error
    for name, predictor in predictors.items():
        predictor.signature, predictor.demos = loaded[name].signature, loaded[name].demos
    if plain:
        logger.warning("%s: saved by DSPy, without what it was made for; taken, as its predictors and fields fit", path)


def save_whole(program: dspy.Module, folder: str | os.PathLike[str], modules: Sequence[ModuleType] = ()) -> None:
    """Write the program itself, as ``dspy.Module.save(save_program=True)`` does, for ``dspy.load``.

    Backends of a configuration are written as their configuration and read their keys from the environment when they
    are loaded. Models that the caller set are left out, because DSPy would write their keys.
    """
    copied = program.deepcopy()
    copied.set_lm(None)
    dspy.Module.save(copied, folder, save_program=True, modules_to_serialize=list(modules))


def _layout(state: Mapping[str, Any]) -> list[str]:
    """The prefixes of a predictor's fields in DSPy's state; the last one's, which COPRO changes, is left out."""
    *inputs, _ = state["signature"]["fields"]
    return [*(field["prefix"] for field in inputs), "output"]


def _bare(predictor: dspy.Predict) -> dspy.Predict:
    """The tuned part of a predictor without its model, which DSPy would write down with headers and address."""
    bare = dspy.Predict(predictor.signature)
    bare.demos = predictor.demos
    return bare


def _fingerprint(signature: type[dspy.Signature]) -> str:
    fields = [
        (name, name in signature.output_fields, str(field.annotation)) for name, field in signature.fields.items()
    ]
    schemas = [
        field.annotation.model_json_schema()
        for field in signature.output_fields.values()
        if hasattr(field.annotation, "model_json_schema")
    ]
    return hashlib.sha256(json.dumps([fields, schemas], sort_keys=True).encode()).hexdigest()[:16]
