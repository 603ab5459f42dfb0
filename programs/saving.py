"""Save and load tuned prompts: DSPy's JSON state, with a header of this package in its metadata.

DSPy restores fields by position and ignores missing predictors, so a state for other signatures would load without an
error and be wrong. The header has a fingerprint of each predictor's fields; only matching predictors are loaded.
Models are not saved: DSPy would write their addresses, headers and, with the whole program, their keys.
"""

import hashlib
import json
import logging
import os
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, Protocol
from weakref import WeakKeyDictionary

import dspy

from agenticiqa.configs.user_files import read_text
from agenticiqa.configs.yaml_json import json_value
from agenticiqa.programs.backends.dspy_adapter import SAVED_END, SAVED_START, SteadyAdapter
from agenticiqa.programs.backends.limits import Limits
from agenticiqa.programs.errors import StateError, UserError, excerpt
from agenticiqa.programs.images.files import digest, write_atomically
from agenticiqa.programs.stages.ask import CheckedPredict, complete_examples, image_fields, shown_examples
from agenticiqa.programs.stages.inputs import ImageProgram
from agenticiqa.signatures.harmless import MARKER

logger = logging.getLogger(__name__)

HEADER = "agenticiqa"  # key of the header in DSPy's metadata
PROMPTS_FILE = "prompts.json"  # the file in a folder that optimize writes
FIELD_TEXTS = ("prefix", "description")
EMBEDDED = "data:image/"  # prefix of a data URI
_ADDRESS = re.compile(r"[A-Za-z][\w+.-]+:|[/\\]{2}")  # a Windows drive has one letter and does not match

# Maps each loaded signature to the original one. DSPy builds a new signature on top of the previous one, so repeated
# loading would otherwise nest them.
_made_from: WeakKeyDictionary[type[dspy.Signature], type[dspy.Signature]] = WeakKeyDictionary()


class Outcomes(Protocol):
    """The outcomes of a program that an optimizer tunes (``eval.optimize.trial``)."""

    def note(self, outcome: object) -> None:
        """Record a result or an error."""

    def refuse_to_save(self) -> None:
        """Raise UserError if there is nothing to save."""


class SavedProgram(ImageProgram):
    """A program that saves and loads its tuned prompts, and hides some from optimizers.

    Attributes:
        frozen: The names of the predictors that optimizers do not see and ``save`` does not write.
        trial: Gets the outcome of each call while the program is tuned; ``None`` otherwise.
        limits: The limits of the program, and its calls and USD so far.
    """

    frozen: frozenset[str] = frozenset()
    trial: Outcomes | None = None
    limits: Limits

    def named_parameters(self) -> list[tuple[str, Any]]:
        """List what optimizers may change.

        Returns:
            The predictors by name, without the frozen ones.
        """
        return [(name, parameter) for name, parameter in super().named_parameters() if name not in self.frozen]

    def set_lm(self, lm: dspy.BaseLM | None) -> None:
        """Apply a model to every predictor, also to the frozen ones.

        Args:
            lm: The model, or ``None`` for that of DSPy's settings or of the configuration.
        """
        for predictor in all_predictors(self).values():
            predictor.lm = lm

    def save(
        self,
        path: str | os.PathLike[str],
        created_with: Mapping[str, object] | None = None,
        *,
        save_program: bool = False,
        modules_to_serialize: Sequence[ModuleType] = (),
    ) -> None:
        """Write the tuned prompts with a header that identifies their signatures; no model, key or limit is written.

        Args:
            path: The file to write; with ``save_program`` a folder.
            created_with: JSON values for the header, such as data set, seed and scores.
            save_program: Whether to write the whole program, for ``dspy.load``. A configured backend is saved as its
                configuration, and reads its key from the environment when it is loaded.
            modules_to_serialize: With ``save_program``, the Python modules of custom stages, which DSPy then saves too.

        Raises:
            UserError: The file is named ``.pkl``, or the prompts were tuned on examples that all failed.
        """
        if self.trial is not None:
            self.trial.refuse_to_save()
        if save_program:
            copied = self.deepcopy()
            copied.set_lm(None)  # DSPy would write the key of a model that the caller set
            copied.limits = Limits()
            dspy.Module.save(copied, path, save_program=True, modules_to_serialize=list(modules_to_serialize))
        else:
            save(self, path, created_with or {})

    def load(self, path: str | os.PathLike[str]) -> None:
        """Load tuned prompts; those that do not fit this program are skipped and logged.

        Only ``from_config`` (``prompts: FOLDER``) also reads the fusion profile in the same folder.

        Args:
            path: A file, a folder that ``optimize`` wrote, or a JSON state saved by DSPy.

        Raises:
            StateError: The file is not such a state, or no prompt in it fits.
        """
        load(self, path)


def all_predictors(program: dspy.Module) -> dict[str, dspy.Predict]:
    """Return every predictor by name, also the frozen ones, which ``named_predictors`` hides from optimizers."""
    parameters = dspy.Module.named_parameters(program)
    return {name: parameter for name, parameter in parameters if isinstance(parameter, dspy.Predict)}


def fingerprints(program: dspy.Module) -> dict[str, str]:
    """Return for each predictor a digest of its signature: its name and its fields, but not the tuned wording."""
    asked = [part for _, part in program.named_sub_modules(type_=CheckedPredict)]
    shipped = {id(part.predictor): part.shipped.__name__ for part in asked}
    predictors = all_predictors(program)
    return {name: _fingerprint(shipped.get(id(each), ""), each.signature) for name, each in predictors.items()}


def surroundings() -> dict[str, str]:
    """Return what determines the rest of the prompts: DSPy's version and the current adapter."""
    return {"dspy": dspy.__version__, "adapter": type(dspy.settings.adapter or SteadyAdapter()).__name__}


def prompts_of(program: dspy.Module) -> dict[str, Any]:
    """Return the tunable parts of each predictor as JSON types: instructions, field descriptions and examples."""
    return {name: _bare(predictor).dump_state() for name, predictor in all_predictors(program).items()}


class ScoringPrompt(NamedTuple):
    """The prompt of the stage that gives the score: its digest, and whether it was tuned."""

    digest: str
    is_tuned: bool


def scoring_prompt(program: dspy.Module) -> ScoringPrompt:
    """Return the scorer's prompt, of the levels scorer with its order of image and text; no digest without a scorer.

    A choice of a letter is another prompt than the name of a level.
    """
    asked = [part for _, part in program.named_sub_modules(type_=CheckedPredict) if part.stage == "scoring"]
    if not asked:
        return ScoringPrompt("", False)
    bare, form = _bare(asked[0].predictor), asked[0].token_form
    state, order = bare.dump_state(), getattr(asked[0].adapter, "is_image_first", None)
    shorter = dspy.Predict(form.signature(bare.signature)).dump_state() if form else None
    is_tuned = state != dspy.Predict(asked[0].shipped).dump_state()
    return ScoringPrompt(digest([state, order, shorter]), is_tuned)


def tuned_on(path: str | os.PathLike[str]) -> frozenset[str]:
    """Return the SHA-256 of the images used to tune or select the prompts, as recorded in their file, if at all."""
    path = Path(path) / PROMPTS_FILE if os.path.isdir(path) else Path(path)
    try:
        return frozenset(json_value(read_text(path))["metadata"][HEADER]["created_with"].get("tuned_on", ()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return frozenset()


def save(
    program: dspy.Module,
    path: str | os.PathLike[str],
    created_with: Mapping[str, Any],
    predictors: Collection[str] | None = None,
) -> None:
    """Write the state of ``program``; ``created_with`` (data set, seed, scores) is kept in the header.

    With ``predictors`` only their state is written, so loading it changes no other prompt. Images are embedded. Raises
    UserError for a file that DSPy would read as a pickle.
    """
    if Path(path).suffix.lower() == ".pkl":
        raise UserError(f"{os.fspath(path)}: prompts are saved as JSON, not as a pickle; name the file .json")
    tuned = dict(program.named_predictors())
    written = tuned.keys() if predictors is None else set(predictors)
    header = {
        "version": version("agenticiqa"),
        "adapter": surroundings()["adapter"],
        "fingerprints": {name: fingerprint for name, fingerprint in fingerprints(program).items() if name in written},
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "created_with": dict(created_with),
    }
    state = {name: _embedded(predictor) for name, predictor in tuned.items() if name in written}
    metadata = {"dependency_versions": {"dspy": dspy.__version__}, HEADER: header}
    write_atomically(path, json.dumps({**state, "metadata": metadata}, indent=2, ensure_ascii=False))


def load(program: dspy.Module, path: str | os.PathLike[str]) -> list[str]:
    """Load tuned prompts into ``program`` and return the names of the loaded predictors. No code is executed.

    ``path`` is a file, or a folder with a ``prompts.json``. A predictor is loaded if its fingerprint matches; the
    others are skipped and logged. A JSON state of ``dspy.Module.save`` has no fingerprints: its predictors match if
    they have the same number of fields with the same prefixes, and a warning is logged. Models are unchanged.
    Raises StateError if the file is not a state, or if nothing in it matches.
    """
    path = Path(path) / PROMPTS_FILE if os.path.isdir(path) else Path(path)
    saved, made_for, header = _read(path)
    here: Mapping[str, object] = fingerprints(program)
    if "fingerprints" not in header:
        here = {name: _layout(state) for name, state in prompts_of(program).items()}
    fits = [name for name in here if name in saved and here[name] == made_for.get(name)]
    other = sorted(name for name in saved.keys() & here.keys() if name not in fits)
    absent = sorted(saved.keys() - here.keys())
    reasons = []
    if other:
        reasons.append(f"{', '.join(other)}: saved for another prompt, or with other fields")
    if absent:
        reasons.append(f"{', '.join(absent)}: this program has no such predictor")
    why = "; ".join(reasons)
    if not fits:
        raise StateError(
            f"{path}: no prompt fits this program ({why or 'the file contains no prompts'}). Use a configuration in "
            "which the tuned stage asks a model, or tune again"
        )
    predictors = all_predictors(program)
    try:
        loaded = {name: _loaded(predictors[name], vetted(predictors[name], saved[name], path.parent)) for name in fits}
    except StateError as error:
        raise StateError(f"{path}: {error}") from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StateError(f"{path}: the state of a predictor is damaged ({error!r})") from error
    for name in fits:
        predictors[name].signature, predictors[name].demos = loaded[name].signature, loaded[name].demos
    if why:
        logger.warning("%s: prompts loaded for %s; ignored: %s", path, ", ".join(fits), why)
    changed = [
        f"{what} {excerpt(str(header[what]), 40)} (now {now})"
        for what, now in surroundings().items()
        if header.get(what, now) != now
    ]
    if changed:
        logger.warning("%s: tuned with %s; the prompts may now be worded differently", path, " and with ".join(changed))
    if "fingerprints" not in header:
        logger.warning("%s: saved by DSPy, without fingerprints; loaded, because the predictors and fields match", path)
    return fits


def _read(path: Path) -> tuple[dict[str, Any], dict[str, object], dict[str, Any]]:
    """Return a file's states by predictor, their fingerprints, and its header.

    A file that DSPy itself wrote has the layouts of its states in place of fingerprints, and no header.
    """
    try:
        saved = dict(json_value(read_text(path)))
        metadata = saved.pop("metadata")
        json.dumps(saved, ensure_ascii=False, allow_nan=False).encode()  # raises for NaN and lone surrogates
        own = metadata.get(HEADER)
        header = {"dspy": metadata["dependency_versions"]["dspy"], **(own or {})}
        if own is None:
            return saved, {name: _layout(state) for name, state in saved.items()}, header
        return saved, dict(header["fingerprints"]), header
    except OSError as error:
        raise StateError(f"{path}: cannot be read as a saved program ({error.strerror})") from error
    except UnicodeEncodeError as error:
        raise StateError(f"{path}: cannot be read as a saved program (a text is not valid Unicode)") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StateError(f"{path}: cannot be read as a saved program ({error!r})") from error


def vetted(predictor: dspy.Predict, state: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return an untrusted state after checking that its only images are embedded or files in ``folder``.

    Images of examples must be embedded, or be paths in ``folder`` (relative paths start there). Raises StateError
    for any other path, for a URL, and for DSPy's image marker anywhere but around one embedded image.
    """
    images, signature = image_fields(predictor.signature), state["signature"]
    texts = [signature["instructions"], *(field[key] for field in signature["fields"] for key in FIELD_TEXTS)]
    if wrong := [text for text in texts if not isinstance(text, str)]:
        raise StateError(f"a part of a prompt is {excerpt(repr(wrong[0]), 100)}, expected a text; tune again")
    demos = [{name: _vetted(value, folder, name in images) for name, value in demo.items()} for demo in state["demos"]]
    return {**state, "signature": _vetted(signature, folder, False), "demos": demos}


def _vetted(value: Any, folder: Path, is_image: bool) -> Any:
    if isinstance(value, dict) and not is_image:
        return {_vetted(name, folder, False): _vetted(part, folder, False) for name, part in value.items()}
    if isinstance(value, list) and not is_image:
        return [_vetted(part, folder, False) for part in value]
    if isinstance(value, str) and MARKER in value:
        return _one_embedded(value)
    if not is_image or value is None or (isinstance(value, str) and value.startswith(EMBEDDED)):
        return value
    quoted = excerpt(repr(value), 100)
    if not isinstance(value, str) or _ADDRESS.match(value):
        raise StateError(f"the image of an example is {quoted}: expected an embedded image, or a file beside it")
    file, within = (folder / value).resolve(), folder.resolve()
    if not file.is_relative_to(within):
        raise StateError(f"the image of an example is {quoted}, outside the folder of the prompts; move it there")
    return str(file)


def _one_embedded(text: str) -> str:
    """Return a saved image in normalized form. Raises StateError if the marker encloses anything else."""
    inner = text.removeprefix(SAVED_START).removesuffix(SAVED_END)
    with suppress(ValueError, KeyError, TypeError):
        (part,) = json_value(inner)
        url = part["image_url"]["url"]
        if text == f"{SAVED_START}{inner}{SAVED_END}" and MARKER not in url and url.startswith(EMBEDDED):
            parts = json.dumps([{"type": "image_url", "image_url": {"url": url}}])
            return f"{SAVED_START}{parts}{SAVED_END}"
    raise StateError(f"DSPy's image marker is misused in {excerpt(repr(text), 100)}; remove this text, or tune again")


def _layout(state: Mapping[str, Any]) -> list[str]:
    """Return the prefixes of a predictor's fields in DSPy's state, except the last, which COPRO changes."""
    *inputs, _ = state["signature"]["fields"]
    return [*(field["prefix"] for field in inputs), "output"]


def _bare(predictor: dspy.Predict) -> dspy.Predict:
    """Return a copy of a predictor without its model, because DSPy would save its headers and address.

    It has only the examples that a prompt can show.
    """
    bare = dspy.Predict(predictor.signature)
    bare.demos = complete_examples(predictor)
    return bare


def _embedded(predictor: dspy.Predict) -> dict[str, Any]:
    """Return the state of a predictor with embedded images."""
    bare = _bare(predictor)
    bare.demos = shown_examples(bare)
    state: dict[str, Any] = bare.dump_state()
    return state


def _loaded(predictor: dspy.Predict, state: Mapping[str, Any]) -> dspy.Predict:
    """Return a predictor with that state, without a model."""
    bare = _bare(predictor)
    bare.signature = origin = _made_from.get(predictor.signature, predictor.signature)
    bare.load_state({**state, "lm": None})
    _made_from[bare.signature] = origin
    return bare


def _fingerprint(name_of_shipped: str, signature: type[dspy.Signature]) -> str:
    fields = [
        (name, name in signature.output_fields, str(field.annotation)) for name, field in signature.fields.items()
    ]
    schemas = [
        field.annotation.model_json_schema()
        for field in signature.output_fields.values()
        if hasattr(field.annotation, "model_json_schema")
    ]
    return hashlib.sha256(json.dumps([name_of_shipped, fields, schemas], sort_keys=True).encode()).hexdigest()[:16]
