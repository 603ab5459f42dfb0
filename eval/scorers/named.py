"""Create a scorer from a name, a metric, a function or scores that one already has."""

import inspect
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

from agenticiqa.eval.names import SCORER_FORMS
from agenticiqa.eval.scorers.given import COLUMN, FILE, in_memory, of_column, of_file
from agenticiqa.eval.scorers.scorer import Scorer
from agenticiqa.programs.errors import ToolError, UserError
from agenticiqa.programs.images.files import source_digest
from agenticiqa.programs.tools import TOOLS, find_tool
from agenticiqa.programs.tools.pyiqa import created_metric, measure_by
from agenticiqa.programs.tools.tool import PYIQA, Tool, unknown_tool

COMPARES = {"NR": "never", "FR": "always"}
BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def scorer_of(
    source: Any, lower_is_better: bool | None = None, shorter_side: int | None = None, name: str | None = None
) -> Scorer:
    """Return the scorer for a name, a metric, a function or scores.

    ``source`` is a text with one of ``KINDS``, the name of an embedded metric, ``module:function``, a pyiqa metric
    (``pyiqa.create_metric``), or a function of pixels (uint8, H x W x 3, RGB) or of pixels and the reference's, which
    may also take ``path``. Or scores that one already has, as ``given.in_memory`` takes them; these get the ``name``.
    ``lower_is_better`` is for a function, unless it has an attribute ``lower_better``, and for scores; a metric
    declares its own direction. Larger images are downscaled to ``shorter_side`` pixels. Raises UserError for a
    direction other than the declared one and for a name that cannot be found or called, and ToolError if pyiqa is
    missing.
    """
    if isinstance(source, Scorer):
        return source
    if isinstance(source, str):
        scorer = _named(source, lower_is_better)
    elif hasattr(source, "lower_better") and hasattr(source, "metric_mode"):
        scorer = _of_pyiqa(source)
    else:
        scores = in_memory(source, name, lower_is_better)
        scorer = scores or _of_function(source, _qualified(source), lower_is_better)
    if lower_is_better is not None and lower_is_better != scorer.lower_is_better:
        direction = "lower" if scorer.lower_is_better else "higher"
        raise UserError(
            f"for {scorer.name}, {direction} is always better: remove --scorer-lower-is-better (Python: "
            "lower_is_better)"
        )
    if shorter_side is not None and not scorer.takes_pixels:
        raise UserError(f"{scorer.name} reads no pixels: remove --shorter-side (Python: shorter_side)")
    return replace(scorer, shorter_side=shorter_side)


def _named(name: str, lower_is_better: bool | None) -> Scorer:
    for prefix, scorer_named in KINDS.items():
        if name.startswith(prefix):
            return scorer_named(name.removeprefix(prefix), lower_is_better)
    if ":" in name:
        return _of_function(_imported(name), name, lower_is_better)
    key = find_tool(name, TOOLS)
    if key is None:
        if meant := _function_meant(name):
            raise ToolError(f"{name} is no metric: for your own function, write --scorer {meant}")
        raise ToolError(f"{unknown_tool(name, TOOLS)}; a scorer is {SCORER_FORMS}")
    return _of_tool(TOOLS[key])


def _function_meant(name: str) -> str | None:
    """Return the form for a function that ``module.function``, ``module`` or ``module.py`` in this folder may mean."""
    module, _, function = name.removesuffix(".py").partition(".")
    return f"{module}:{function or 'FUNCTION'}" if module and Path(f"{module}.py").is_file() else None


def _of_tool(tool: Tool) -> Scorer:
    compares: Any = COMPARES[tool.kind]
    made_of = {"agenticiqa": metadata.version("agenticiqa")}
    return Scorer(tool.name, tool.measure, compares, not tool.higher_is_better, made_of, computes=True)


def _of_pyiqa(metric: Any) -> Scorer:
    name = f"{PYIQA}{getattr(metric, 'metric_name', type(metric).__name__)}"
    compares: Any = COMPARES.get(metric.metric_mode)
    if compares is None:
        raise UserError(f"{name} has the mode {metric.metric_mode!r}; use a metric of mode NR (no-reference) or FR")
    try:
        made_of = {"pyiqa": metadata.version("pyiqa")}
    except metadata.PackageNotFoundError:
        made_of = {"pyiqa": "unknown"}
    return Scorer(name, measure_by(metric), compares, bool(metric.lower_better), made_of)


def _of_function(function: Callable[..., Any], name: str, lower_is_better: bool | None) -> Scorer:
    """Return the scorer of a function; it compares with references if it has a second parameter besides ``path``."""
    if not callable(function):
        raise UserError(f"{name} is a {type(function).__name__}, not a function; a scorer is {SCORER_FORMS}")
    try:
        known = [*inspect.signature(function).parameters.values()]
    except (TypeError, ValueError):
        known = []  # a function without a signature: every scorer takes at least an image
    takes_path = any(parameter.name == "path" and parameter.kind in BY_NAME for parameter in known)
    parameters = [parameter for parameter in known if parameter.kind in BY_POSITION and parameter.name != "path"]
    needed = sum(parameter.default is parameter.empty for parameter in parameters)
    if needed > 2 or (parameters and not needed and not takes_path):
        raise UserError(
            f"{name} needs {needed} arguments; a scorer takes an image, or an image and its reference, and may take "
            "a path"
        )
    if needed and takes_path and "path" in [parameter.name for parameter in known[:needed]]:
        raise UserError(f"{name} takes path before the image; write it after the image and the reference")
    takes_reference = len(parameters) > 1 and parameters[1].name in ("reference", "ref")
    compares: Any = "always" if needed == 2 else "if given" if takes_reference else "never"
    return Scorer(
        name,
        function,
        compares,
        lower_is_better=bool(getattr(function, "lower_better", lower_is_better)),
        made_of={"source_sha256": source_digest(function)},
        takes_pixels=bool(needed) or not takes_path,
        takes_path=takes_path,
    )


def _imported(name: str) -> Callable[..., Any]:
    """Import ``module:function``, also from the current folder, as ``python -m`` does."""
    module, _, attribute = name.partition(":")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        value: Any = import_module(module)
        for part in attribute.split("."):
            value = getattr(value, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise UserError(f"{name}: {error}; use module:function that can be imported from this folder") from error
    function: Callable[..., Any] = value
    return function


def _qualified(function: Any) -> str:
    owner = function if hasattr(function, "__qualname__") else type(function)
    return f"{owner.__module__}:{owner.__qualname__}"


def _of_pyiqa_name(name: str, lower_is_better: bool | None) -> Scorer:
    return _of_pyiqa(created_metric(name))


# What a name begins with, and the function that makes the scorer from the rest of it and from the declared direction.
KINDS: dict[str, Callable[[str, bool | None], Scorer]] = {PYIQA: _of_pyiqa_name, COLUMN: of_column, FILE: of_file}
