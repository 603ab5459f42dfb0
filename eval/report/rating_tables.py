"""Report runs of ratings: the predictors' figures, breakdowns, and sentences on how to read the tables."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agenticiqa.eval.intervals import FEW_CONTENTS, FEWEST_CONTENTS, contents_text
from agenticiqa.eval.report.columns import OURS
from agenticiqa.eval.report.model import UNDEFINED, Report, ReportTable, counted, figure, number, title_of
from agenticiqa.eval.report.predictors import BEST_TOOL
from agenticiqa.eval.report.ratings import FIGURES
from agenticiqa.programs.fusion.interval import SOURCES

if TYPE_CHECKING:
    from pandas import DataFrame

FITTED_ON = "fitted on"
HEADLINE = ("srcc", "plcc_fitted", "krcc", "plcc")
FURTHER = ("plcc_fitted5", "rmse", "rmse_fitted", "rmse_fitted5", "pairs")
BEST = {heading: min if key.startswith("rmse") else max for key, heading in FIGURES.items()}
ENDS = {"value": "", "low": "_low", "high": "_high"}
OVER_TASKS = (
    "Means over the tasks with a figure: each task counting the same, and each by its number of scored images. They "
    "have no interval: tasks are no sample of anything."
)

Figures = Mapping[str, Any]


def rating_report(figures: Figures) -> Report:
    """Return the report of a run's figures (``ratings.summarize``, with ``data`` and ``backend``).

    The first two tables list all predictors. Then follow tables of the differences to our score and of splits, if there
    are any, and one for each breakdown.
    """
    best = figures["best_tool"]
    headline, further = [], []
    for system in _of(figures):
        begin = {"predictor": _label(system, best), "n": counted(system["n"], system["unscored"])}
        fitted_on = ", ".join(f"{way} {n}" for way, n in system["fitted_on"].items() if n) or UNDEFINED
        headline.append({**begin, **{FIGURES[key]: figure(system[key]) for key in HEADLINE}, FITTED_ON: fitted_on})
        further.append(begin | {FIGURES[key]: figure(system[key], _digits(key, system[key])) for key in FURTHER})
    tables = [
        ReportTable(title_of(figures), headline, bold=0, best=BEST),
        ReportTable("Further figures", further, bold=0, best=BEST),
        *([splits_table(figures)] if figures.get("splits") else []),
        *([differences_table(figures)] if figures["srcc_differences"] else []),
        *(breakdown(figures, by) for by in figures["breakdowns"]),
    ]
    notes = {title: [f"{sentence}." for sentence in found(figures)] for title, found in NOTES.items()}
    return Report(figures, tables, {title: sentences for title, sentences in notes.items() if sentences})


def rating_headline(figures: Figures) -> str:
    """Return a run in one sentence."""
    ours = _of(figures)[0]
    agreement = (
        f"{ours['name']} agrees with people with SRCC {figure(ours['srcc'])}, and PLCC {figure(ours['plcc_fitted'])} "
        f"after a curve, on {counted(ours['n'], ours['unscored'])} images of {figures['contents']:,} contents"
    )
    best = figures["srcc_differences"].get(BEST_TOOL)
    return agreement + (f"; its SRCC minus that of the best single tool is {figure(best, '+.3f')}." if best else ".")


def splits_table(figures: Figures) -> ReportTable:
    """Return the median figures of every predictor over the test parts of splits."""
    rows = [
        {"predictor": name, "n": number(each["n"], ",.0f")}
        | {FIGURES[key]: number(each[key], ".3f") for key in HEADLINE}
        for name, each in figures["splits"]["systems"].items()
    ]
    return ReportTable(f"Median over the test parts of {figures['splits']['of']}", rows, bold=0, best=BEST)


def differences_table(figures: Figures) -> ReportTable:
    """Return our SRCC minus that of each baseline and of the best tool, on the images with both values."""
    ours, flattered = _of(figures)[0]["name"], _not_held_out(figures)
    rows = [
        {
            "SRCC minus that of": name,
            "n": number(each["n"], ",d"),
            "difference": figure(each, "+.3f"),
            "": "not held out" if {ours, name} & {*flattered} else "",
        }
        for name, each in figures["srcc_differences"].items()
    ]
    return ReportTable(f"SRCC of {ours} minus that of others, on the images with both", rows)


def breakdown(figures: Figures, by: str) -> ReportTable:
    """Return the agreement of our score by the groups of one column of the labels."""
    rows = [
        {by: each["group"], "n": counted(each["n"], each["unscored"]), "SRCC": figure(each["srcc"])}
        for each in figures["breakdowns"][by]
    ]
    return ReportTable(f"{_of(figures)[0]['name']} by {by}", rows)


def numbers(reports: Mapping[str, Figures]) -> "DataFrame":
    """Return the figures of runs, by name, as numbers with interval ends: a line per run and predictor."""
    from pandas import DataFrame

    ways = dict.fromkeys(way for each in reports.values() for system in _of(each) for way in system["fitted_on"])
    rows = [
        {"run": name, "data": each["data"], "part": each.get("part"), "backend": each["backend"]}
        | {"predictor": system["name"], "n": system["n"], "unscored": system["unscored"]}
        | {f"fitted_on_{way}": system["fitted_on"].get(way, 0) for way in ways}
        | {f"{key}{suffix}": system[key][end] for key in FIGURES for end, suffix in ENDS.items()}
        for name, each in reports.items()
        for system in _of(each)
    ]
    return DataFrame(rows, dtype=object)


def over_tasks(reports: Sequence[Figures]) -> Report:
    """Return one table of several tasks: the figures of each one's first predictor, their mean, and that by images."""
    tasks = [
        {
            "task": f"{each['task']} ({each['part']})" if each["part"] else each["task"],
            "n": each["scored"],
            "unscored": each["unscored"],
            **{key: _of(each)[0][key]["value"] for key in HEADLINE},
        }
        for each in reports
    ]
    means = [
        {key: _mean([task[key] for task in tasks], weights) for key in HEADLINE}
        for weights in ([1] * len(tasks), [task["n"] for task in tasks])
    ]
    whole = {"task": "", **{key: sum(task[key] for task in tasks) for key in ("n", "unscored")}}
    rows = [
        {"task": row["task"], "n": number(row["n"], ",d"), "unscored": number(row["unscored"], ",d")}
        | {FIGURES[key]: number(row[key], ".3f") for key in HEADLINE}
        for row in (*tasks, whole | {"task": "mean"} | means[0], whole | {"task": "mean, by images"} | means[1])
    ]
    figures = {"backend": reports[0]["backend"], "tasks": tasks, "mean": means[0], "weighted_mean": means[1]}
    table = ReportTable(f"all tasks, {figures['backend']}", rows, bold=len(tasks) + 1)
    return Report(figures, [table], {"How to read it": [OVER_TASKS]})


def _of(figures: Figures) -> list[dict[str, Any]]:
    systems: list[dict[str, Any]] = figures["systems"]
    return systems


def _mean(values: Sequence[float | None], weights: Sequence[float]) -> float | None:
    known = [(value, weight) for value, weight in zip(values, weights, strict=True) if value is not None]
    total = sum(weight for _, weight in known)
    return sum(value * weight for value, weight in known) / total if total else None


def _label(system: Figures, best: str | None) -> str:
    """Return a predictor's name, with the notes needed to read its figures."""
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
    """Return two digits for errors on a scale of many units."""
    return ".2f" if key.startswith("rmse") and (found["value"] or 0) >= 1 else ".3f"


def _not_held_out(figures: Figures) -> list[str]:
    """Return the predictors that were fitted on some of these images."""
    return [system["name"] for system in _of(figures) if any(system["fitted_on"].values())]


def _first(figures: Figures) -> Iterator[str]:
    """Yield the most important notes: what was scored, and what makes the figures doubtful."""
    ours, reasons = _of(figures)[0], _listed(figures["unscored_reasons"])
    counts = f"{figures['scored']} of {figures['images']} images scored, {figures['unscored']} unscored"
    yield counts + (f" ({reasons})" if reasons else "")
    if (ours["srcc"]["high"] or 0) < 0:
        yield (
            f"SRCC of {ours['name']} is below zero with its whole interval: the labels may be lower-is-better, as a "
            "DMOS is; then add --lower-is-better"
        )
    if flattered := _not_held_out(figures):
        yield (
            f"Not held out: {', '.join(flattered)}. '{FITTED_ON}' counts the images that a trained model, a "
            "calibration curve or the prompts of the predictor were fitted on; on new images a trained model agrees "
            "less with people"
        )
    few = f" (optimistic: fewer than {FEW_CONTENTS})" if figures["contents"] < FEW_CONTENTS else ""
    few = few if figures["contents"] >= FEWEST_CONTENTS else f" (too few: at least {FEWEST_CONTENTS})"
    yield f"Brackets: 95 % intervals, a jackknife over {contents_text(figures['contents'])}{few}"
    if figures.get("labels_note"):
        yield figures["labels_note"]


def _about_figures(figures: Figures) -> Iterator[str]:
    yield (
        "Fitted: after a monotone 4-parameter logistic, (5): after a logistic and a line, fitted to all images; "
        "pairs in order: of those whose MOS differ by more than their deviation, where the labels have one"
    )
    if figures["scale"]:
        ends = "{low:g} to {high:g}".format(**figures["scale"])
        yield f"RMSE is on the labels' scale, {ends}; raw: 1..5 is mapped to its ends, nothing fitted"
    else:
        yield "RMSE raw is missing, as the ends of the labels' scale are unknown"
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
    yield from _undefined(figures)


def _undefined(figures: Figures) -> Iterator[str]:
    """Yield why figures or intervals are missing: each reason once, with its predictors and figures."""
    predictors: dict[tuple[str, str], list[str]] = {}
    for system in _of(figures):
        headings: dict[str, list[str]] = {}
        for key, heading in FIGURES.items():
            note = system[key]["note"]
            counts_pairs = key == "pairs" and system[key]["low"] is not None  # the note is their number
            no_scale = key == "rmse" and figures["scale"] is None  # which has a sentence of its own
            if note and not counts_pairs and not no_scale:
                headings.setdefault(note, []).append(heading)
        for note, found in headings.items():
            predictors.setdefault((note, ", ".join(found)), []).append(system["name"])
    yield from (f"{', '.join(names)}: {note} ({headings})" for (note, headings), names in predictors.items())


def _about_run(figures: Figures) -> Iterator[str]:
    ours = _of(figures)[0]["name"]
    for share, found in figures["interval_coverage"].items():
        yield (
            f"The {share} % interval of {ours}'s score contains the MOS of {found['inside']} of {found['n']} images: "
            f"{figure(found, '.2f')}"
        )
    if ours == OURS:
        sources = {SOURCES.get(name, name): count for name, count in figures["probability_sources"].items()}
        yield f"Sources of the level probabilities: {_listed(sources) or 'none'}"
        stages = _listed(figures["rejected_answers"])
        rejected = f"Images with rejected answers: {figures['images_with_rejected_answers']}"
        yield (
            f"{rejected}{f' ({stages})' if stages else ''}; replanned: {figures['replanned']}; failed tool calls: "
            f"{figures['failed_tool_calls']}"
        )
    if figures["ms_per_image"]:
        median, mean = (figures["ms_per_image"][key] / 1000 for key in ("median", "mean"))
        yield f"Time per image: median {median:.2f} s, mean {mean:.2f} s"


NOTES = {"Read this first": _first, "About the figures": _about_figures, "About the run": _about_run}


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())
