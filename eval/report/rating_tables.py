"""Report runs of ratings: the scorers' figures, breakdowns, and sentences on how to read the tables."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agenticiqa.eval.intervals import FEWEST_CONTENTS, contents_text
from agenticiqa.eval.report.columns import ABOUT, OURS
from agenticiqa.eval.report.model import ROWS, Report, counted, figure, title_of
from agenticiqa.eval.report.ratings import FIGURES
from agenticiqa.eval.report.scorer_columns import BEST_TOOL, FOLDS
from agenticiqa.programs.fusion.interval import SOURCES
from agenticiqa.programs.page.table import UNDEFINED, Table, data_of, number, table_of

FITTED_ON = "fitted on"
HEADLINE = ("srcc", "plcc_fitted", "krcc", "plcc")
FURTHER = ("plcc_fitted5", "rmse", "rmse_fitted", "rmse_fitted5", "pairs")
BEST = {heading: min if key.startswith("rmse") else max for key, heading in FIGURES.items()}
ENDS = {"value": "", "low": "_low", "high": "_high"}
OVER_TASKS = (
    "mean: all tasks have equal weight. mean by images: weighted by the number of scored images. The means have no "
    "interval, as the tasks are not a random sample."
)

Figures = Mapping[str, Any]


def rating_report(figures: Figures) -> Report:
    """Build the report of a run's figures.

    The first two tables list all scorers. Then follow tables of the differences to our score and of splits, if there
    are any, and one for each breakdown.

    Args:
        figures: The figures of ``ratings.summarize``, with ``data`` and ``backend``.

    Returns:
        The report.
    """
    tables = [
        *scorer_tables(figures, bold=0),
        *([splits_table(figures)] if figures.get("splits") else []),
        *([differences_table(figures)] if figures["srcc_differences"] else []),
        *(breakdown(figures, by) for by in figures["breakdowns"]),
    ]
    notes = {title: [f"{sentence}." for sentence in writer(figures)] for title, writer in NOTES.items()}
    return Report(figures, tables, {title: sentences for title, sentences in notes.items() if sentences})


def scorer_tables(figures: Figures, bold: int | None = None) -> list[Table]:
    """Return the table of the headline figures of all scorers, and the table of their further figures."""
    best = figures["best_tool"]
    headline, further = [], []
    for system in _of(figures):
        begin = {"scorer": _label(system, best), "n": counted(system["n"], system["unscored"])}
        fitted_on = ", ".join(f"{way} {n}" for way, n in system["fitted_on"].items() if n) or UNDEFINED
        headline.append({**begin, **{FIGURES[key]: figure(system[key]) for key in HEADLINE}, FITTED_ON: fitted_on})
        further.append(begin | {FIGURES[key]: figure(system[key], _digits(key, system[key])) for key in FURTHER})
    return [
        table_of(title_of(figures), headline, bold=bold, best=BEST),
        table_of("Further figures", further, bold=bold, best=BEST),
    ]


def rating_headline(figures: Figures) -> str:
    """Return a run in one sentence."""
    ours = _of(figures)[0]
    agreement = (
        f"{ours['name']} has an SRCC of {figure(ours['srcc'])} with the MOS and a PLCC of "
        f"{figure(ours['plcc_fitted'])} after a logistic fit, on {counted(ours['n'], ours['unscored'])} images of "
        f"{figures['contents']:,} scenes"
    )
    best = figures["srcc_differences"].get(BEST_TOOL)
    return agreement + (f". The SRCC difference from the best single tool is {figure(best, '+.3f')}." if best else ".")


def splits_table(figures: Figures) -> Table:
    """Return the median figures of every scorer over the test sets of splits."""
    rows = [
        {"scorer": name, "n": number(row["n"], ",.0f")} | {FIGURES[key]: number(row[key], ".3f") for key in HEADLINE}
        for name, row in figures["splits"]["systems"].items()
    ]
    return table_of(f"Median over the test sets of {figures['splits']['of']}", rows, bold=0, best=BEST)


def differences_table(figures: Figures) -> Table:
    """Return our SRCC minus that of each baseline and of the best tool, on the images with both values."""
    ours, fitted = _of(figures)[0]["name"], _not_held_out(figures)
    rows = [
        {
            "other scorer": name,
            "n": number(row["n"], ",d"),
            "difference": figure(row, "+.3f"),
            "": "not held out" if {ours, name} & {*fitted} else "",
        }
        for name, row in figures["srcc_differences"].items()
    ]
    return table_of(f"SRCC of {ours} minus SRCC of other scorers, on common images", rows)


def breakdown(figures: Figures, by: str) -> Table:
    """Return the agreement of our score by the groups of one column of the labels."""
    rows = [
        {by: row["group"], "n": counted(row["n"], row["unscored"]), "SRCC": figure(row["srcc"])}
        for row in figures["breakdowns"][by]
    ]
    return table_of(f"{_of(figures)[0]['name']} by {by}", rows)


def numbers(reports: Mapping[str, Figures]) -> Table:
    """Return the figures of runs, by name, as numbers with interval ends: a line per run and scorer."""
    ways = dict.fromkeys(way for report in reports.values() for system in _of(report) for way in system["fitted_on"])
    rows = [
        {"run": name, "data": report["data"], "part": report.get("part"), "backend": report["backend"]}
        | {"scorer": system["name"], "n": system["n"], "unscored": system["unscored"]}
        | {f"fitted_on_{way}": system["fitted_on"].get(way, 0) for way in ways}
        | {f"{key}{suffix}": system[key][end] for key in FIGURES for end, suffix in ENDS.items()}
        for name, report in reports.items()
        for system in _of(report)
    ]
    return data_of(rows)


def over_tasks(reports: Sequence[Figures]) -> Report:
    """Return one table of several tasks: the figures of each one's first scorer, their mean, and that by images."""
    tasks = [
        {
            "task": f"{report['task']} ({report['part']})" if report["part"] else report["task"],
            "n": report["scored"],
            "unscored": report["unscored"],
            **{key: _of(report)[0][key]["value"] for key in HEADLINE},
        }
        for report in reports
    ]
    means = [
        {key: _mean([task[key] for task in tasks], weights) for key in HEADLINE}
        for weights in ([1] * len(tasks), [task["n"] for task in tasks])
    ]
    whole = {"task": "", **{key: sum(task[key] for task in tasks) for key in ("n", "unscored")}}
    rows = [
        {"task": row["task"], "n": number(row["n"], ",d"), "unscored": number(row["unscored"], ",d")}
        | {FIGURES[key]: number(row[key], ".3f") for key in HEADLINE}
        for row in (*tasks, whole | {"task": "mean"} | means[0], whole | {"task": "mean by images"} | means[1])
    ]
    figures = {"backend": reports[0]["backend"], "tasks": tasks, "mean": means[0], "weighted_mean": means[1]}
    table = table_of(f"All tasks, {figures['backend']}", rows, bold=len(tasks) + 1)
    return Report(figures, [table], {"How to read it": [OVER_TASKS]})


def _of(figures: Figures) -> list[dict[str, Any]]:
    systems: list[dict[str, Any]] = figures["systems"]
    return systems


def _mean(values: Sequence[float | None], weights: Sequence[float]) -> float | None:
    known = [(value, weight) for value, weight in zip(values, weights, strict=True) if value is not None]
    total = sum(weight for _, weight in known)
    return sum(value * weight for value, weight in known) / total if total else None


def _label(system: Figures, best: str | None) -> str:
    """Return a scorer's name, with the notes needed to read its figures."""
    sources = ", ".join(f"{source} {count}" for source, count in system["sources"].items())
    notes = [
        sources if len(system["sources"]) > 1 else ", ".join(system["sources"]),
        "cross-validated" if system["about"] else "",
        "selected images only" if system["partial"] else "",
        "best on these images" if system["name"] == best and system["kind"] == "tool" else "",
    ]
    text = "; ".join(filter(None, notes))
    return f"{system['name']} ({text})" if text else str(system["name"])


def _digits(key: str, interval: Figures) -> str:
    """Return two digits for errors on a scale of many units."""
    return ".2f" if key.startswith("rmse") and (interval["value"] or 0) >= 1 else ".3f"


def _not_held_out(figures: Figures) -> list[str]:
    """Return the scorers that were fitted on some of these images."""
    return [system["name"] for system in _of(figures) if any(system["fitted_on"].values())]


def about_held_out(figures: Figures) -> Iterator[str]:
    """Yield a sentence, without its full stop, if scorers were fitted on some of these images."""
    if fitted := _not_held_out(figures):
        yield (
            f"Not held out: {', '.join(fitted)}. '{FITTED_ON}' is the number of images that a model, a tool "
            "curve or the prompts of the scorer were fitted on. Expect lower agreement on new images"
        )


def _first(figures: Figures) -> Iterator[str]:
    """Yield the most important notes: how many images were scored, and the limits of the figures."""
    ours, reasons = _of(figures)[0], _listed(figures["unscored_reasons"])
    counts = f"{figures['scored']} of {figures['images']} images scored, {figures['unscored']} unscored"
    yield counts + (f" ({reasons})" if reasons else "")
    if figures["incomplete"]:
        yield f"Scores from incomplete answers of the model: {figures['incomplete']} (--strict counts them as unscored)"
    if (ours["srcc"]["high"] or 0) < 0:
        yield (
            f"The SRCC of {ours['name']} and its whole interval are below zero. If its lower scores mean better "
            "quality, add --scorer-lower-is-better; if lower labels do, as for DMOS, add --lower-is-better"
        )
    yield from about_held_out(figures)
    remark = f"too few: at least {FEWEST_CONTENTS} are needed"
    if figures["contents"] >= FEWEST_CONTENTS:
        remark = "in simulations, such intervals held the true value in 87 to 99 % of the cases"
    yield f"Brackets: 95 % intervals from a jackknife over {contents_text(figures['contents'])} ({remark})"
    if figures.get("labels_note"):
        yield figures["labels_note"]


def _rows(figures: Figures) -> Iterator[str]:
    """Yield what the rows between our score and the single tools are, and why they are shown."""
    about = dict(ABOUT)
    if chosen := next((system["about"] for system in _of(figures) if system["name"] == BEST_TOOL), None):
        about[BEST_TOOL] = (
            f"for each scene, the tool with the highest SRCC on other scenes ({FOLDS}-fold cross-validation; images: "
            f"{chosen}), to show whether one tool would do"
        )
    if shown := [name for name in about if any(system["name"] == name for system in _of(figures))]:
        yield (
            f"The rows below {_of(figures)[0]['name']} are for comparison. With few images any row can lead by chance, "
            "so look at the intervals of the SRCC differences"
        )
    yield from (f"{name}: {about[name]}" for name in shown)


def _about_figures(figures: Figures) -> Iterator[str]:
    yield (
        "fitted: after a monotone logistic with 4 parameters; fitted (5): after a logistic plus a linear term. Both "
        "are fitted to all images"
    )
    yield (
        "pairwise accuracy: share of the image pairs in the order of their MOS. If the labels have standard "
        "deviations, a pair counts only if its MOS difference exceeds the standard deviation of that difference"
    )
    if not figures.get("fusion_is_known", True):
        yield "The score without a fusion profile is omitted, because the fusion of the program is not known"
    if figures["scale"]:
        ends = "{low:g} to {high:g}".format(**figures["scale"])
        yield f"RMSE is on the scale of the labels, {ends}. RMSE raw maps 1..5 linearly to this scale, without a fit"
    else:
        yield "RMSE raw needs the range of the MOS scale: give it with --mos-range LOW HIGH"
    if figures["best_tool"]:
        yield f"{figures['best_tool']} is the best single tool on these same images, so its results are biased upward"
    if figures.get("baselines"):
        yield (
            f"Baselines, measured on all images: {', '.join(figures['baselines'])}. This table has their calibrated "
            "values, clipped to 1..5. The raw values are in the runs baseline-NAME"
        )
    if any(system["partial"] for system in _of(figures)):
        yield (
            "'selected images only': the tool ran only on the images that it was selected for, so do not compare its "
            "results with other rows"
        )
    yield from _undefined(figures)


def _undefined(figures: Figures) -> Iterator[str]:
    """Yield why figures or intervals are missing: each reason once, with its scorers and figures."""
    scorers: dict[tuple[str, str], list[str]] = {}
    for system in _of(figures):
        headings: dict[str, list[str]] = {}
        for key, heading in FIGURES.items():
            note = system[key]["note"]
            counts_pairs = key == "pairs" and system[key]["low"] is not None  # the note is the number of pairs
            no_scale = key == "rmse" and figures["scale"] is None  # another sentence reports it
            if note and not counts_pairs and not no_scale:
                headings.setdefault(note, []).append(heading)
        for note, columns in headings.items():
            scorers.setdefault((note, ", ".join(columns)), []).append(system["name"])
    yield from (f"{headings} of {', '.join(names)}: {note}" for (note, headings), names in scorers.items())


def _about_run(figures: Figures) -> Iterator[str]:
    ours = _of(figures)[0]["name"]
    for share, row in figures["interval_coverage"].items():
        yield (
            f"The {share} % interval of {ours}'s score contains the MOS of {row['inside']} of {row['n']} images: "
            f"{figure(row, '.2f')}"
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


NOTES = {"Read this first": _first, ROWS: _rows, "About the results": _about_figures, "About the run": _about_run}


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())
