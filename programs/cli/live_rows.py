"""The words for each event of an assessment: rows of a label and what stands beside it."""

import logging
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from rich.text import Text

from agenticiqa.programs.cli.render import COLOURS, bar
from agenticiqa.programs.stages.fusion import level_name
from agenticiqa.signatures.types import GLOBAL
from agenticiqa.signatures.vocabulary import LEVELS

LONGEST = 1200  # characters of a prompt or an answer
LONGEST_EXPLANATION = 180

SEVERITIES = {"none": "green", "slight": "green", "moderate": "yellow", "severe": "red", "extreme": "bold red"}
TO_DO = {
    "distortion_detection": "find distortions",
    "distortion_analysis": "tell how bad they are",
    "tool_selection": "choose tools",
    "tool_execution": "measure",
}
SOURCES = {
    "logprobs": "the log-probabilities of the level's token",
    "quality_probs": "the log-probabilities that the model wrote",
    "reasoning": "the level that the reasoning names",
    "uniform": "nothing: the model gave none",
    "measurements": "the measured severities",
    "learned": "the learned model",
}
HIDDEN = {"asked", "summarizing", "unreachable"}  # told by the step before or after

Event = Mapping[str, Any]
Row = tuple[str, Text]  # the label and what stands beside it


def rows_of(record: logging.LogRecord) -> list[Row]:
    """The rows of a record: of an event those below, of trouble and of any other record its sentence."""
    told = vars(record)
    name = told.get("event", "")
    if record.levelno >= logging.WARNING:
        label = name if name in ("rejected", "retry", "fallback", "replan") else "warning"
        return [(label, line((shortened(record.getMessage(), LONGEST), "yellow")))]
    if name in HIDDEN:
        return []
    if name in DRAWN:
        return DRAWN[name](told)
    return [(name if name in ("prompt", "reply") else "", line((shortened(record.getMessage(), LONGEST), "dim")))]


def shortened(text: str, longest: int) -> str:
    """The text, of a longer one the beginning and the end: a prompt's instructions and what is asked."""
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half]} ... ({len(text) - 2 * half} characters left out) ... {text[-half:]}"


def _begun(told: Event) -> list[Row]:
    width, height = told["size"]
    against = f", against {Path(told['reference']).name}" if told["reference"] else ""
    title = (Path(told["image"]).name, "bold cyan")
    by = "offline" if told["backend"] == "offline" else f"by {told['backend']}"
    return [
        ("image", line(title, f", {width} x {height} pixels{against}, judged {by}")),
        ("question", line(told["query"])),
    ]


def _planned(told: Event) -> list[Row]:
    kind = "a question of quality" if told["query_type"] == "IQA" else "a question of another kind"
    where = "the whole image" if told["scope"] == [GLOBAL] else ", ".join(told["scope"])
    how = "with the reference" if told["reference_mode"] == "Full-Reference" else "without a reference"
    named = [*_listed(told["distortions"] or {}), *told["tools"]]
    to_do = [words for flag, words in TO_DO.items() if told["flags"][flag]]
    rows = [("plan", line(f"{kind}, about {where}, {how}"))]
    rows += [("", line(f"named: {'; '.join(named)}"))] if named else []
    return [*rows, ("", line(f"to do: {', '.join(to_do) or 'answer by looking'}"))]


def _located(told: Event) -> list[Row]:
    return _labelled("located", [line(f"{region}: {_place(box)}") for region, box in told["boxes"].items()])


def _place(box: tuple[int, int, int, int] | None) -> str:
    if box is None:
        return "nowhere"
    left, top, right, bottom = box
    return f"{right - left} x {bottom - top} pixels at ({left}, {top})"


def _detected(told: Event) -> list[Row]:
    return [("detected", line("; ".join(_listed(told["distortions"]))))]


def _analyzed(told: Event) -> list[Row]:
    return _labelled(
        "severity",
        [
            line(
                f"{_subject(item['type'], region)}: ",
                (item["severity"], SEVERITIES[item["severity"]]),
                (f"  {shortened(item['explanation'], LONGEST_EXPLANATION)}", "dim"),
            )
            for region, items in told["analysis"].items()
            for item in items
        ],
    )


def _selected(told: Event) -> list[Row]:
    chosen: dict[str, list[str]] = {}
    for region, tools in told["tools"].items():
        for subject, tool in tools.items():
            chosen.setdefault(tool, []).append(_subject(subject, region))
    listed = [f"{tool} for {', '.join(subjects)}" for tool, subjects in chosen.items()]
    return [("chosen", line("; ".join(listed) or "no tool"))]


def _measured(told: Event) -> list[Row]:
    about = f"  {_subject(told['distortion'], told['region'])}"
    if told["error"]:
        return [("tool", line(f"{told['tool']:<15}", ("no score", "yellow"), (about, "dim")))]
    score = told["calibrated"]
    gauge = (bar((score - 1) / 4, 10), COLOURS[level_name(score)])
    raw = (f"raw {told['raw']:<10.4g}", "dim")
    return [
        ("tool", line(f"{told['tool']:<15}", raw, gauge, f" {score:.2f}", (f"{about}, {told['ms']:.0f} ms", "dim")))
    ]


def _scored(told: Event) -> list[Row]:
    shares = {level: told["probabilities"][str(number)] for level, number in LEVELS.items()}
    rows = _labelled(
        "levels",
        [
            line(f"{level:<10}", (bar(share, 20), COLOURS[level]), f" {share:>4.0%}")
            for level, share in sorted(shares.items(), key=lambda item: -LEVELS[item[0]])
        ],
    )
    rows.append(("", line((f"from {SOURCES[told['probability_source']]}", "dim"))))
    parts = [] if told["tool_mean"] is None else [f"tool mean {told['tool_mean']:.2f} (n={told['tools']})"]
    parts.append(f"level expectation {told['level_expectation']:.2f}")
    score = (f"{told['score']:.2f} {told['quality_level']}", f"bold {COLOURS[told['quality_level']]}")
    return [*rows, ("fusion", line(", ".join(parts), " -> ", score))]


def _concluded(told: Event) -> list[Row]:
    return [("answer", line((str(told["answer"]), "bold"))), ("", line(told["reasoning"]))]


def _replan(told: Event) -> list[Row]:
    if told["need_replan"]:
        return [("replan", line(("again: ", "bold magenta"), (told["reason"], "magenta")))]
    doubts = f", though: {'; '.join(told['doubts'])}" if told["doubts"] else ""
    return [("replan", line((f"no, the evidence carries the answer{doubts}", "dim")))]


def _answered(told: Event) -> list[Row]:
    took = "from the cache" if told["cached"] else f"{told['seconds']:.2f} s, {_taken(told)}"
    return [("asked", line((f"{told['stage']}, {took}", "dim")))]


def _done(told: Event) -> list[Row]:
    answer = str(told["answer"]) if told["score"] is None else f"{told['score']:.2f} of 5"
    asked = f", {_count(told['calls'], 'call')}, {_taken(told)}" if told["calls"] or told["cached"] else ""
    return [("done", line((answer, "bold"), f" in {told['seconds']:.2f} s{asked}"))]


def _failed(told: Event) -> list[Row]:
    return [("failed", line((f"{told['error']} after {told['seconds']:.2f} s", "yellow")))]


DRAWN: dict[str, Callable[[Event], list[Row]]] = {
    "begun": _begun,
    "planned": _planned,
    "located": _located,
    "detected": _detected,
    "analyzed": _analyzed,
    "selected": _selected,
    "measured": _measured,
    "scored": _scored,
    "concluded": _concluded,
    "replan": _replan,
    "answered": _answered,
    "done": _done,
    "failed": _failed,
}


def _taken(told: Event) -> str:
    """Tokens, retries, answers from the cache, and money, as far as there are any."""
    parts = [f"{told['input_tokens']} + {told['output_tokens']} tokens"]
    parts += [_count(told["retries"], "retry", "retries")] if told["retries"] else []
    parts += [f"{told['cached']} from the cache"] if told["cached"] else []
    parts += [f"{told['usd']:.4f} USD"] if told["usd"] is not None else []
    return ", ".join(parts)


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or f'{one}s'}"


def _subject(what: str, region: str) -> str:
    return what if region == GLOBAL else f"{what} in {region}"


def _listed(distortions: Mapping[str, list[str]]) -> list[str]:
    return [_subject(", ".join(names) or "nothing", region) for region, names in distortions.items()]


def _labelled(label: str, bodies: list[Text]) -> list[Row]:
    """The label beside the first line only."""
    return [(label if number == 0 else "", body) for number, body in enumerate(bodies)]


# What a model or a question says could otherwise move the cursor or set the title of the window.
_printable = partial(re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]").sub, " ")


def line(*parts: str | tuple[str, str]) -> Text:
    """Texts, some with a style, in a row."""
    return Text.assemble(
        *(_printable(part) if isinstance(part, str) else (_printable(part[0]), part[1]) for part in parts)
    )
