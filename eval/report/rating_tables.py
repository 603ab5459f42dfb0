"""The report of runs of ratings: the predictors' figures, breakdowns, and what the tables leave out, in sentences."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agenticiqa.eval.intervals import FEW_CONTENTS, FEWEST_CONTENTS, contents_text
from agenticiqa.eval.report.columns import OURS
from agenticiqa.eval.report.model import Report, ReportTable, counted, figure, number, title_of
from agenticiqa.eval.report.predictors import BEST_TOOL
from agenticiqa.eval.report.ratings import FIGURES

FITTED_ON = "fitted on"
HEADLINE = ("srcc", "plcc_fitted", "krcc", "plcc")
FURTHER = ("plcc_fitted5", "rmse", "rmse_fitted", "rmse_fitted5", "pairs")
ENDS = {"value": "", "low": "_low", "high": "_high"}
OVER_TASKS = (
    "Means over the tasks with a figure: each task counting the same, and each by its number of scored images. They "
    "have no interval: tasks are no sample of anything."
)

Figures = Mapping[str, Any]


def rating_report(figures: Figures) -> Report:
    """The report of a run's figures (``ratings.summarize``, with ``data`` and ``backend``).

    The first two tables are all predictors', then one follows of splits, if there are, and one for each breakdown.
    """
    systems, best = _of(figures), figures["best_tool"]
    labels = [[_label(system, best), counted(system["n"], system["unscored"])] for system in systems]
    fitted_on = [", ".join(f"{way} {n}" for way, n in each["fitted_on"].items() if n) or "-" for each in systems]
    correlations = [[figure(system[key]) for key in HEADLINE] for system in systems]
    errors = [[figure(system[key], _digits(key, system[key])) for key in FURTHER] for system in systems]
    headline = ReportTable(
        title_of(figures),
        ["predictor", "n", *(FIGURES[key] for key in HEADLINE), FITTED_ON],
        [[*one, *cells, way] for one, way, cells in zip(labels, fitted_on, correlations, strict=True)],
        bold=0,
    )
    further = ReportTable(
        "Further figures",
        ["predictor", "n", *(FIGURES[key] for key in FURTHER)],
        [[*one, *cells] for one, cells in zip(labels, errors, strict=True)],
        bold=0,
    )
    groups = [breakdown(figures, by) for by in figures["breakdowns"]]
    splits = [splits_table(figures)] if figures.get("splits") else []
    return Report(figures, [headline, further, *splits, *groups], [f"{sentence}." for sentence in _sentences(figures)])


def rating_headline(figures: Figures) -> str:
    """A run in one sentence."""
    ours = _of(figures)[0]
    told = (
        f"{ours['name']} agrees with people with SRCC {figure(ours['srcc'])}, and PLCC {figure(ours['plcc_fitted'])} "
        f"after a curve, on {counted(ours['n'], ours['unscored'])} images of {figures['contents']:,} contents"
    )
    best = figures["srcc_differences"].get(BEST_TOOL)
    return told + (f"; its SRCC minus that of the best single tool is {figure(best, '+.3f')}." if best else ".")


def splits_table(figures: Figures) -> ReportTable:
    """The median figures of every predictor over the test parts of splits."""
    keys = ("srcc", "plcc_fitted", "krcc", "plcc")
    lines = [
        [name, number(each["n"], ",.0f"), *(number(each[key], ".3f") for key in keys)]
        for name, each in figures["splits"]["systems"].items()
    ]
    title = f"Median over the test parts of {figures['splits']['of']}"
    return ReportTable(title, ["predictor", "n", *(FIGURES[key] for key in keys)], lines, bold=0)


def breakdown(figures: Figures, by: str) -> ReportTable:
    """The agreement of our score by the groups of one column of the labels."""
    rows = figures["breakdowns"][by]
    lines = [[each["group"], counted(each["n"], each["unscored"]), figure(each["srcc"])] for each in rows]
    return ReportTable(f"{_of(figures)[0]['name']} by {by}", [by, "n", "SRCC"], lines)


def numbers_table(reports: Mapping[str, Figures]) -> ReportTable:
    """The figures of runs, by name, as numbers for other programs: a line for each run and predictor, with ends."""
    ways = [*dict.fromkeys(way for each in reports.values() for system in _of(each) for way in system["fitted_on"])]
    columns = [f"{key}{suffix}" for key in FIGURES for suffix in ENDS.values()]
    headings = [
        "run",
        "data",
        "part",
        "backend",
        "predictor",
        "n",
        "unscored",
        *(f"fitted_on_{way}" for way in ways),
        *columns,
    ]
    lines = [
        [
            *(name, each["data"], each.get("part"), each["backend"]),
            *(system["name"], system["n"], system["unscored"]),
            *(system["fitted_on"].get(way, 0) for way in ways),
            *(system[key][end] for key in FIGURES for end in ENDS),
        ]
        for name, each in reports.items()
        for system in _of(each)
    ]
    return ReportTable("", headings, lines)


def over_tasks(reports: Sequence[Figures]) -> Report:
    """Several tasks in one table: the figures of what was measured first in each, their mean, and that by images."""
    tasks = [
        {
            "task": f"{each['task']} ({each['part']})" if each["part"] else each["task"],
            "n": each["scored"],
            "unscored": each["unscored"],
            **{key: _of(each)[0][key]["value"] for key in HEADLINE},
        }
        for each in reports
    ]
    equal, weighted = ([float(w) for w in weights] for weights in ([1] * len(tasks), [each["n"] for each in tasks]))
    means = [{key: _mean([t[key] for t in tasks], weights) for key in HEADLINE} for weights in (equal, weighted)]
    whole = {"task": "", **{key: sum(task[key] for task in tasks) for key in ("n", "unscored")}}
    rows = [*tasks, whole | {"task": "mean"} | means[0], whole | {"task": "mean, by images"} | means[1]]
    lines = [
        [
            row["task"],
            number(row["n"], ",d"),
            number(row["unscored"], ",d"),
            *(number(row[key], ".3f") for key in HEADLINE),
        ]
        for row in rows
    ]
    backend = reports[0]["backend"]
    headings = ["task", "n", "unscored", *(FIGURES[key] for key in HEADLINE)]
    figures = {"backend": backend, "tasks": tasks, "mean": means[0], "weighted_mean": means[1]}
    return Report(figures, [ReportTable(f"all tasks, {backend}", headings, lines, bold=len(tasks) + 1)], [OVER_TASKS])


def _of(figures: Figures) -> list[dict[str, Any]]:
    systems: list[dict[str, Any]] = figures["systems"]
    return systems


def _mean(values: Sequence[float | None], weights: Sequence[float]) -> float | None:
    known = [(value, weight) for value, weight in zip(values, weights, strict=True) if value is not None]
    total = sum(weight for _, weight in known)
    return sum(value * weight for value, weight in known) / total if total else None


def _label(system: Figures, best: str | None) -> str:
    """A predictor's name, with what has to be known of it to read its figures."""
    sources = ", ".join(f"{source} {count}" for source, count in system["sources"].items())
    notes = [
        sources if len(system["sources"]) > 1 else ", ".join(system["sources"]),
        "on other images" if system["about"] else "",
        "only where chosen" if system["partial"] else "",
        "best here" if system["name"] == best and system["kind"] == "tool" else "",
    ]
    shown = "; ".join(filter(None, notes))
    return f"{system['name']} ({shown})" if shown else str(system["name"])


def _digits(key: str, found: Figures) -> str:
    """Two digits for errors on a scale of many units."""
    return ".2f" if key.startswith("rmse") and (found["value"] or 0) >= 1 else ".3f"


def _sentences(figures: Figures) -> Iterator[str]:
    systems, ours = _of(figures), _of(figures)[0]["name"]
    reasons = _listed(figures["unscored_reasons"])
    counts = f"{figures['scored']} of {figures['images']} images scored, {figures['unscored']} unscored"
    yield counts + (f" ({reasons})" if reasons else "")
    if figures.get("labels_note"):
        yield figures["labels_note"]
    few = f" (optimistic: fewer than {FEW_CONTENTS})" if figures["contents"] < FEW_CONTENTS else ""
    few = few if figures["contents"] >= FEWEST_CONTENTS else f" (too few: at least {FEWEST_CONTENTS})"
    yield f"Brackets: 95 % intervals, a jackknife over {contents_text(figures['contents'])}{few}"
    yield (
        "Fitted: after a monotone 4-parameter logistic, (5): after a logistic and a line, fitted to all images; "
        "pairs in order: of those whose opinions differ by more than their deviation, where the labels have one"
    )
    if (systems[0]["srcc"]["high"] or 0) < 0:
        yield (
            f"SRCC of {ours} is below zero with its whole interval: the labels may be lower-is-better, as a DMOS is; "
            "then add --lower-is-better"
        )
    if figures["scale"]:
        ends = "{low:g} to {high:g}".format(**figures["scale"])
        yield f"RMSE is on the labels' scale, {ends}; raw: 1..5 is mapped to its ends, nothing fitted"
    else:
        yield "RMSE raw is missing, as the ends of the labels' scale are unknown"
    yield from _about_tools(figures)
    for share, found in figures["interval_coverage"].items():
        yield (
            f"The {share} % interval of {ours}'s score holds the opinion of {found['inside']} of {found['n']} images: "
            f"{figure(found, '.2f')}"
        )
    flattered = [system["name"] for system in systems if any(system["fitted_on"].values())]
    for name, difference in figures["srcc_differences"].items():
        mark = " (not held out)" if {ours, name} & {*flattered} else ""
        value = figure(difference, "+.3f")
        yield f"SRCC of {ours} minus {name} on the {difference['n']} images with both: {value}{mark}"
    if flattered:
        yield (
            f"Not held out: {', '.join(flattered)}. '{FITTED_ON}' counts the images that a trained model, a "
            "calibration curve or the prompts of the predictor were fitted on; on new images a trained model agrees "
            "less with people"
        )
    if ours == OURS:
        yield f"Sources of the level probabilities: {_listed(figures['probability_sources']) or 'none'}"
        stages = _listed(figures["rejected_answers"])
        rejected = f"Images with rejected answers: {figures['images_with_rejected_answers']}"
        yield rejected + (f" ({stages})" if stages else "")
        yield f"Replanned: {figures['replanned']}; failed tool calls: {figures['failed_tool_calls']}"
    if figures["ms_per_image"]:
        median, mean = (figures["ms_per_image"][key] / 1000 for key in ("median", "mean"))
        yield f"Time per image: median {median:.2f} s, mean {mean:.2f} s"
    yield from _notes(figures)


def _about_tools(figures: Figures) -> Iterator[str]:
    chosen = next((system["about"] for system in _of(figures) if system["name"] == BEST_TOOL), None)
    if chosen:
        yield f"Best single tool: of every fifth of the contents the tool that is best on the others ({chosen} images)"
    if figures["best_tool"]:
        yield f"{figures['best_tool']} is the best single tool on these very images, so its figures are biased upward"
    if figures.get("baselines"):
        yield (
            f"Measured beside, on the whole of every image: {', '.join(figures['baselines'])}. Their values here are "
            "those of their curves, which are flat beyond 1 and 5; the runs baseline-NAME have the raw ones"
        )
    if any(system["partial"] for system in _of(figures)):
        yield (
            "A tool marked 'only where chosen' measured a part of the images, chosen by their damage, so its figures "
            "do not compare with those of others"
        )


def _notes(figures: Figures) -> Iterator[str]:
    """The notes of the figures, each once, with the figures that have it."""
    notes: dict[str, list[str]] = {}
    for system in _of(figures):
        for key, heading in FIGURES.items():
            said = system[key]["note"]
            counts_pairs = key == "pairs" and system[key]["low"] is not None  # the note is their number
            no_scale = key == "rmse" and figures["scale"] is None  # which has a sentence of its own
            if said and not counts_pairs and not no_scale:
                notes.setdefault(f"{system['name']}: {said}", []).append(heading)
    yield from (f"{note} ({', '.join(headings)})" for note, headings in notes.items())


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())
