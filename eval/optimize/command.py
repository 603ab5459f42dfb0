"""``agenticiqa optimize``: better instructions, shown on images that they were not made from."""

import logging
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import dspy

from agenticiqa.configs import StageConfig
from agenticiqa.eval.datasets import Labelled, read_labels
from agenticiqa.eval.optimize.splits import Parts, Scale, divide, scale_of
from agenticiqa.eval.runs import made_with, pin
from agenticiqa.programs.assess import DEFAULT_QUERY, AgenticIQA
from agenticiqa.programs.backends.connect import connect
from agenticiqa.programs.backends.limits import within
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.batch.judge_many import judge_many
from agenticiqa.programs.cli import render
from agenticiqa.programs.cli.assess import WORKERS
from agenticiqa.programs.cli.options import OK, add_backend_arguments, config_from, limits_from
from agenticiqa.programs.cli.probing import prepare
from agenticiqa.programs.errors import NoScore, Unanswered, UserError

LEAST_VAL, VAL_SHARE = 5, 8  # one full validation costs at most an eighth of the budget, or 5 images
OTHER_MODE = ("summarizer.answer", "executor.locate")  # what rating a whole image never reaches


def add_arguments(parser: ArgumentParser) -> None:
    """The options of ``optimize``."""
    parser.add_argument("labels", metavar="LABELS.csv", type=Path, help="columns image and mos (higher is better), ...")
    parser.add_argument("--split", metavar="S", help="only the rows of this split")
    parser.add_argument("--mos-range", nargs=2, type=float, metavar=("LOW", "HIGH"), help="ends of the labels' scale")
    parser.add_argument("--mode", choices=["scoring"], default="scoring", help="what is tuned (%(default)s)")
    add_backend_arguments(parser)
    parser.add_argument("--reflection-backend", metavar="R", required=True, help="the model that writes instructions")
    parser.add_argument(
        "--reflection-api-base", metavar="URL", help="the address of its server, if it is not a provider's"
    )
    parser.add_argument("--reflection-key-env", metavar="NAME", help="the environment variable with that server's key")
    parser.add_argument("--budget", metavar="CALLS", type=int, required=True, help="how often an image may be judged")
    parser.add_argument("--out", metavar="FILE", type=Path, required=True, help="where the tuned prompts go")
    parser.add_argument("--held-out", metavar="SHARE", type=float, default=0.3, help="of the contents (%(default)s)")
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="of the division and of GEPA (%(default)s)")
    parser.add_argument(
        "--log-dir", metavar="DIR", type=Path, help="where GEPA keeps its state, to be resumed (default: FILE.gepa)"
    )
    parser.add_argument("--workers", metavar="N", type=int, default=WORKERS, help="images judged at once (%(default)s)")


def run(args: Namespace) -> int:
    """Tune, compare before and after on held-out images, save."""
    from agenticiqa.eval.optimize.reflection import MINIBATCH, tune

    if not args.verbose:
        logging.getLogger("dspy").setLevel(logging.WARNING)
    config = config_from(args)
    limits = limits_from(args, config)
    program = AgenticIQA.from_config(config)
    predictors = [name for name, _ in program.named_predictors() if not name.startswith(OTHER_MODE)]
    if not predictors:
        raise UserError("there is nothing to tune: no stage asks a model; name one with --backend or --config")
    reflection = reflection_model(args.reflection_backend, args.reflection_api_base, args.reflection_key_env)
    labels = read_labels(args.labels, args.split)
    most_val = max(LEAST_VAL, args.budget // VAL_SHARE)
    parts = divide(labels, held_out=args.held_out, most_val=most_val, seed=args.seed)
    scale = scale_of([*parts.train, *parts.val], args.mos_range)
    least = len(parts.val) + 2 * MINIBATCH
    if args.budget < least or args.workers < 1:
        raise UserError(f"--budget is at least {least} here (one validation and one step), and --workers at least 1")
    prepare(config, limits)
    program = AgenticIQA.from_config(config)  # anew, with what is known of its models by now
    _tell_what_it_costs(predictors, parts, scale, args.budget, steps=(args.budget - len(parts.val)) // (2 * MINIBATCH))
    asked = {key: getattr(args, key) for key in ("split", "mode", "seed", "budget", "reflection_backend")}
    made = made_with(program, config, args.labels, **asked, held_out=args.held_out, mos_range=asdict(scale))
    log_dir = args.log_dir or args.out.with_name(f"{args.out.name}.gepa")
    pin(log_dir, made)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    try:
        with within(limits):
            before = scores(program, parts.held_out, args.workers)
            tuned, search = tune(
                program,
                DEFAULT_QUERY,
                parts,
                scale,
                reflection,
                budget=args.budget,
                seed=args.seed,
                log_dir=log_dir,
                workers=args.workers,
            )
            after = scores(tuned, parts.held_out, args.workers)
    except (KeyboardInterrupt, dspy.LMError):
        print(f"agenticiqa: the same command goes on from what is kept in {log_dir}", file=sys.stderr)
        raise
    figures = compare(parts.held_out, scale, before, after)
    told = {"data": args.labels.resolve().parent.name, "labels_sha256": made["labels"], "backend": program.backend}
    told |= {"images": _count(parts), "mos_range": asdict(scale), "search": search, "held_out": figures}
    tuned.save(args.out, created_with=asked | told)
    _tell_the_outcome(figures, search, args.out)
    return OK


def reflection_model(backend: str, api_base: str | None = None, api_key_env: str | None = None) -> dspy.LM:
    """The model that writes instructions, at temperature 1. Raises BackendError as ``backends.connect`` does."""
    stage = StageConfig(
        backend=backend, api_base=api_base, api_key_env=api_key_env, temperature=1.0, max_tokens=16000, timeout=600
    )
    connection = connect(stage)
    if connection is None:
        raise UserError("--reflection-backend offline: writing instructions takes a model; name one")
    return connection.lms[0]


def scores(program: AgenticIQA, labels: Sequence[Labelled], workers: int) -> list[float | None]:
    """The score of each image, ``None`` where no usable answer came. Raises every other error, outages among them."""
    jobs = {Job(label.image, DEFAULT_QUERY, label.reference): index for index, label in enumerate(labels)}
    found: list[float | None] = [None] * len(labels)
    for job, outcome in render.progress(judge_many(program, jobs, workers), len(jobs)):
        if not isinstance(outcome, Exception):
            found[jobs[job]] = outcome.quality_score
        elif not isinstance(outcome, (Unanswered, NoScore)):
            raise outcome
    return found


def compare(
    labels: Sequence[Labelled], scale: Scale, before: Sequence[float | None], after: Sequence[float | None]
) -> dict[str, Any]:
    """SRCC and mean absolute error (on 1 to 5) before and after, on the images that have a score both times.

    Each change is after minus before, with its 95 % interval from a paired bootstrap by content.
    """
    from agenticiqa.eval.bootstrap import paired_difference
    from agenticiqa.eval.metrics import mean_absolute_error, srcc

    both = [(x, y, label) for x, y, label in zip(before, after, labels, strict=True) if x is not None and y is not None]
    old, new = [x for x, _, _ in both], [y for _, y, _ in both]
    target, contents = [scale.to_levels(label.mos) for *_, label in both], [label.content for *_, label in both]
    return {
        "images": len(labels),
        "scored_both_times": len(both),
        "unscored": {"before": sum(x is None for x in before), "after": sum(y is None for y in after)},
        **{
            name: {
                "before": measure(old, target),
                "after": measure(new, target),
                "change": asdict(paired_difference(measure, new, old, target, contents)),
            }
            for name, measure in (("srcc", srcc), ("mean_absolute_error", mean_absolute_error))
        },
    }


def _count(parts: Parts) -> dict[str, dict[str, int]]:
    return {
        name: {"images": len(rows), "contents": len({label.content for label in rows})}
        for name, rows in vars(parts).items()
    }


def _tell_what_it_costs(predictors: Sequence[str], parts: Parts, scale: Scale, budget: int, steps: int) -> None:
    sizes = ", ".join(f"{name} {n['images']} images of {n['contents']} contents" for name, n in _count(parts).items())
    runs = budget + 2 * len(parts.held_out)
    print(f"To be tuned ({len(predictors)}): {', '.join(predictors)}")
    print(f"Divided by content: {sizes}; opinion scores {scale.low:g} to {scale.high:g} stand for 1 to 5")
    print(
        f"Cost: {budget} judgements to tune and {2 * len(parts.held_out)} to compare, in up to about "
        f"{runs * len(predictors)} model calls ({len(predictors)} for each judgement, more when one is rejected), "
        f"and up to about {steps} calls of the reflection model",
        flush=True,
    )


def _tell_the_outcome(figures: Mapping[str, Any], search: Mapping[str, Any], out: Path) -> None:
    if search["candidates"] == 1:
        print("No better instructions were found; what is saved is the original ones")
    print(f"On {figures['scored_both_times']} of {figures['images']} held-out images, before and after:")
    for name, title in (("srcc", "SRCC"), ("mean_absolute_error", "mean absolute error, of 1 to 5")):
        old, new, change = (figures[name][key] for key in ("before", "after", "change"))
        shown = " -> ".join("undefined" if value is None else f"{value:.3f}" for value in (old, new))
        interval = "" if change["low"] is None else f", change [{change['low']:+.3f}, {change['high']:+.3f}]"
        print(f"  {title}: {shown}{interval}" + (f" ({change['note']})" if change["note"] else ""))
    print(f"Unscored: {figures['unscored']['before']} before, {figures['unscored']['after']} after")
    print(f"Kept in {out}")
