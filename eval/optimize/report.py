"""Write the output of a tuning run: the prompts, the fusion fitted with them, and a page about the search."""

import difflib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from markupsafe import Markup, escape

from agenticiqa.eval.improvement import improvement_text
from agenticiqa.eval.intervals import Interval
from agenticiqa.eval.optimize.before_after import FUSED, MARK, MEASURES, MODEL, Tuned
from agenticiqa.eval.report.page.charts import as_svg, learning_curve
from agenticiqa.programs.fusion.profile import write_fusion_profile
from agenticiqa.programs.images.files import without_controls, write_atomically
from agenticiqa.programs.page.render import PACKAGES, render
from agenticiqa.programs.saving import PROMPTS_FILE, save

PROFILE_FILE, PAGE_FILE = "fusion.yaml", "report.html"
PACKAGE = "agenticiqa.eval.optimize"
TITLES = {FUSED: "fused score", MODEL: "model alone (expected level)", MARK: "scores of the answers (0 to 1)"}
FIGURES = {"srcc": "SRCC", "mean_absolute_error": "mean absolute error, on 1 to 5"}
OF_MARKS = {"mean_absolute_error": "1 - mean score"}


def write(tuned: Tuned, folder: Path, created_with: Mapping[str, Any]) -> None:
    """Write ``prompts.json`` (of the stage's predictors alone), ``fusion.yaml`` where one was fitted, and the page."""
    folder.mkdir(parents=True, exist_ok=True)
    about = {**created_with, "stage": tuned.stage, "kept": tuned.kept, "why": tuned.why, "held_out": tuned.figures}
    about["tuned_on"] = tuned.images  # images that evaluate marks, with the held-out ones, as they decided what is kept
    save(tuned.program, folder / PROMPTS_FILE, about, tuned.originals)
    if tuned.profile:
        write_fusion_profile(folder / PROFILE_FILE, tuned.profile)
    else:
        (folder / PROFILE_FILE).unlink(missing_ok=True)
    write_atomically(folder / PAGE_FILE, page(tuned))


def summary(tuned: Tuned) -> Iterator[str]:
    """Yield the outcome in lines: the search, the held-out figures before and after, what is kept, and what it took."""
    search, figures = tuned.found, tuned.figures
    measured = [step for step in search.steps if step.looked is not None]
    again = f", {sum(s.again is not None for s in measured)} measured again on other questions" if measured else ""
    yield (
        f"Search: {search.spent} assessments, {search.proposals} proposals{again}, "
        f"{sum(step.taken for step in search.steps)} accepted. End of the search: {search.ended}"
    )
    if search.used < tuned.counts.get("to tune on", 0):
        yield f"{search.used} of the {tuned.counts['to tune on']} tuning questions were used. A larger budget uses more"
    for reason in dict.fromkeys(search.refused):
        yield f"Refused ({search.refused.count(reason)}): {reason}"
    held_out = f"{figures['images']} held-out images of {figures['contents']} scenes"
    yield f"{held_out}, before and after tuning (95 % intervals):"
    for name, title in TITLES.items():
        if name in figures:
            yield f"  {title} (n={figures[name]['n']}):"
            for label, before, after, change in rows_of(figures[name], name):
                yield f"    {label}: {before} -> {after}{f', change {change}' if change else ''}"
    malformed = figures["malformed"]
    yield f"  rejected answers: {malformed['before']:.1%} -> {malformed['after']:.1%}"
    spent = tuned.spent
    yield f"Took {spent['seconds']} s, {spent['assessed']} assessments, {spent['calls']} calls, {spent['usd']:.4f} USD"
    yield (
        f"The tuned prompts are kept: {tuned.why}"
        if tuned.kept
        else f"No improvement was shown, so the original prompts are saved: {tuned.why}"
    )


def about_profile(tuned: Tuned) -> str:
    """Describe the saved fusion and its effect on the score; empty without a fusion."""
    if tuned.profile is None:
        return ""
    gain, which = tuned.figures["profile"], "tuned" if tuned.kept else "original"
    before, after = (f"{gain[name]:.3f}" if gain[name] is not None else "unknown" for name in ("before", "after"))
    return (
        f"{PROFILE_FILE} is a fusion profile fitted to your labels with the {which} prompts. It is applied with "
        f"them: SRCC {before} -> {after} on {gain['n']} held-out images; {improvement_text(gain['probability'])}"
    )


def attempts(tuned: Tuned) -> str:
    """Describe what the search tried, and why it found no better instruction."""
    search = tuned.found
    again = sum(step.again is not None for step in search.steps)
    if search.tried:
        tried = f"{search.tried} instructions were tried, and none was accepted"
    elif search.steps or search.refused:
        tried = (
            f"{len(search.refused)} proposals were refused and {len(search.steps)} measured. {again} of these were "
            "measured again on other questions, and none improved the result"
        )
    else:
        tried = "No instruction was proposed"
    return f"{tried}. The search ended: {search.ended}."


def rows_of(figures: Mapping[str, Any], name: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield title, before, after and change of each figure, as text."""
    for measure in MEASURES:
        title = (OF_MARKS if name == MARK else FIGURES).get(measure)
        if title is None:
            continue
        old, new, change = (Interval(**figures[measure][key]) for key in ("before", "after", "change"))
        yield title, f"{old:.3f}", f"{new:.3f}", f"{change:+.3f}"
    if name != MARK:
        squared = figures["squared_error"]
        yield "normalized squared error", f"{squared['before']:.4f}", f"{squared['after']:.4f}", ""


def page(tuned: Tuned) -> str:
    """Return the HTML page: verdict, held-out figures, changes of each instruction, learning curve and proposals."""
    search = tuned.found
    values = {
        "title": f"Tuned prompts: {tuned.stage}",
        "tuned": tuned,
        "lines": list(summary(tuned)),
        "figures": [
            (title, tuned.figures[name]["n"], list(rows_of(tuned.figures[name], name)))
            for name, title in TITLES.items()
            if name in tuned.figures
        ],
        "diffs": [
            (name, _difference(text, search.best[name]))
            for name, text in tuned.originals.items()
            if search.best.get(name, text) != text
        ],
        "unchanged": ", ".join(name for name, text in tuned.originals.items() if search.best.get(name, text) == text),
        "attempts": attempts(tuned),
        "about_profile": about_profile(tuned),
        "curve": _curve(tuned),
        "steps": search.steps,
        "refused": [(reason, search.refused.count(reason)) for reason in dict.fromkeys(search.refused)],
    }
    return render("optimize/report.html", values, {**PACKAGES, "optimize": PACKAGE})


def _difference(before: str, after: str) -> Markup:
    """Return the new text with additions and deletions marked word by word."""
    old, new = (re.split(r"(\s+)", without_controls(text)) for text in (before, after))
    parts = []
    for kind, a, b, c, d in difflib.SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes():
        if kind in ("replace", "delete"):
            parts.append(Markup("<del>{}</del>").format("".join(old[a:b])))
        if kind in ("replace", "insert"):
            parts.append(Markup("<ins>{}</ins>").format("".join(new[c:d])))
        if kind == "equal":
            parts.append(escape("".join(new[c:d])))
    return Markup("").join(parts)


def _curve(tuned: Tuned) -> Markup:
    """Return an SVG of the cumulative gain over assessments, with proposals as dots; empty without proposals."""
    steps = [step for step in tuned.found.steps if step.looked is not None]
    if not steps:
        return Markup("")
    total, line, reached = 0.0, [(0, 0.0)], {0: 0.0}
    dots: dict[bool, list[tuple[int, float]]] = {True: [], False: []}
    for step in steps:
        gain = step.looked or 0.0 if step.again is None else step.again
        dots[step.taken].append((step.spent, reached.get(step.parent, total) + gain))
        if step.taken:
            line += [(step.spent, total), (step.spent, total + gain)]
            total += gain
        reached[step.number] = total
    line.append((tuned.found.spent, total))
    return as_svg(learning_curve(line, dots[True], dots[False]))
