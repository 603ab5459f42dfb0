"""Tuned prompts on disk: DSPy's state, under a header that says what it was made for.

DSPy restores fields by position and ignores predictors that vanished, so a state for other signatures would load
silently and wrongly. The header's fingerprint covers every predictor's name and fields, and a mismatch is refused.
Models are left out.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import dspy

from agenticiqa.programs.errors import StateError
from agenticiqa.programs.images.files import write_atomically

PROGRAM = "AgenticIQA"


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
    """Read a state into ``program``. Raises StateError when the file is none, or was made for other signatures."""
    try:
        saved = json.loads(Path(path).read_text(encoding="utf-8"))
        header, state = saved["header"], saved["state"]
        made_for: dict[str, str] = dict(header["fingerprints"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StateError(f"{path}: no saved program can be read from it ({error!r})") from error
    if header.get("program") != PROGRAM:
        raise StateError(f"{path}: saved by {header.get('program')!r}, expected {PROGRAM!r}")
    here = fingerprints(program)
    different = sorted(name for name in here.keys() | made_for.keys() if here.get(name) != made_for.get(name))
    if different:
        raise StateError(
            f"{path}: made by version {header.get('version')} for other signatures than this program's; they differ in "
            f"{', '.join(different)}. Use the configuration that it was tuned with, or tune again"
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
