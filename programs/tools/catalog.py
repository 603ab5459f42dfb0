"""The toolbox: every embedded metric, in the order of preference, and the tools available to a program."""

import inspect
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from importlib import import_module
from typing import Any

from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.tools import ranking
from agenticiqa.programs.tools.metrics.learned_iqa import adapted_tool, adapter_in
from agenticiqa.programs.tools.srcc_table import measured
from agenticiqa.programs.tools.tool import OWN, Tool, find_tool
from agenticiqa.programs.tools.tool_curves import ToolCurve, usable

# The names of the metrics' functions and of their files in metrics/.
METRICS = tuple(name for name in vars(ranking) if not name.startswith("_"))


def by_name(tools: Iterable[Tool]) -> dict[str, Tool]:
    """Return tools by name, in their order. Raises ValueError for a name that two have."""
    named: dict[str, Tool] = {}
    for tool in tools:
        if tool.name in named:
            raise ValueError(f"programs/tools/metrics: two files have a TOOL named {tool.name}; rename one")
        named[tool.name] = tool
    return named


TOOLS = by_name(import_module(f"agenticiqa.programs.tools.metrics.{metric}").TOOL for metric in METRICS)


def toolbox(curves: str = "default", pyiqa: Sequence[str] = (), adapter: str | None = None) -> dict[str, Tool]:
    """Return the tools that a program may use: those with a monotone tool curve.

    Args:
        curves: The tool curves: a shipped name, or a YAML file.
        pyiqa: Names of metrics of that package to add; embedded ones are refused.
        adapter: A file that adapts the learned scorer, written by ``agenticiqa calibrate adapter``.

    Returns:
        The tools by name, in the order of preference.

    Raises:
        ToolError: There is no such file or metric, or no tool has a usable curve.
        UserError: The adapter cannot be used.
    """
    tools: dict[str, Tool] = {}
    if pyiqa:  # first: a metric that is listed is preferred
        from agenticiqa.programs.tools.pyiqa import pyiqa_tool

        for name in pyiqa:
            if embedded := find_tool(name, TOOLS):  # a question that names one could mean either
                raise ToolError(f"{name!r} is already built in as {embedded}; remove it from the pyiqa metrics")
            tools[name] = pyiqa_tool(name, curves)
    for name, tool in TOOLS.items():
        curve, why_none = curve_or_reason(name, curves)
        if curve is not None:
            tools[name] = replace(tool, curve=curve, measured=measured().get(name, {}))
    if adapter is not None:
        adapted = adapted_tool(adapter_in(adapter))
        tools[adapted.name] = replace(adapted, measured=measured().get(adapted.name, {}))
    if not tools:
        raise ToolError(f"no tool has a usable curve: {why_none}")
    return tools


def own_tool(
    name: str, function: Callable[..., float], curve: Callable[[float], float] | None, known: Collection[str]
) -> Tool:
    """Return a user's metric as a tool for quality overall; the number of its arguments says whether it compares.

    Raises ToolError for a name that is taken or has other signs than letters, digits, ``-`` and ``_``, and for a
    function that takes neither an image nor an image and its reference.
    """
    if not re.fullmatch(r"[A-Za-z][\w-]*", name):
        raise ToolError(f"{name!r} cannot name a tool: use letters, digits, '-' and '_', such as MY-METRIC")
    if taken := find_tool(name, known):
        raise ToolError(f"{name!r} is already the name of a tool ({taken}); choose another name")
    try:
        takes = [*inspect.signature(function).parameters.values()]
    except (TypeError, ValueError):  # some functions of compiled code, such as max
        takes = []
    needed = [
        param.kind
        for param in takes
        if param.default is param.empty and param.kind not in (param.VAR_POSITIONAL, param.VAR_KEYWORD)
    ]
    if len(needed) not in (1, 2) or inspect.Parameter.KEYWORD_ONLY in needed:
        raise ToolError(f"{name}: expected a function of an image, or of an image and its reference")
    return Tool(
        name=name,
        kind="FR" if len(needed) == 2 else "NR",
        higher_is_better=True,
        raw_range=(-math.inf, math.inf),
        description=(inspect.getdoc(function) or "A metric of the user.").partition("\n")[0],
        source=OWN,
        cost_ms=None,
        measure=_hashable(function),
        curve=None if curve is None else _hashable(curve),
    )


def _hashable(function: Callable[..., float]) -> Callable[..., float]:
    """Return a function that can be a key of measurements, unlike a polynomial of numpy."""
    try:
        hash(function)
    except TypeError:
        return partial(function)
    return function


def curve_or_reason(name: str, curves: str) -> tuple[ToolCurve | None, str]:
    """Return a tool's curve in a set of curves, or ``None`` and the reason why there is no usable one."""
    try:
        return usable(name, curves), ""
    except ToolError as error:
        return None, str(error)


def listing(tools: Mapping[str, Tool], curves: str) -> list[dict[str, Any]]:
    """Return a row for every embedded and added tool, as ``agenticiqa tools`` shows them."""
    return [
        {
            "name": name,
            "kind": tool.kind,
            "direction": "higher" if tool.higher_is_better else "lower",
            "raw_range": list(tool.raw_range),
            "unit": tool.unit,
            "cost_ms": tool.cost_ms,
            "measures": tool.measures,
            "measured": {name: asdict(row) for name, row in tool.strengths().items()},
            "description": tool.description,
            "source": tool.source,
            "status": "ready" if name in tools else f"not usable: {curve_or_reason(name, curves)[1]}",
            "fitted_on": getattr(tool.curve, "fitted_on", None),
        }
        for name, tool in {**TOOLS, **tools}.items()
    ]
