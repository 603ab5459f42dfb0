"""``agenticiqa optimize``: tune the instructions on labeled images, and compare on held-out ones."""

import logging
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import dspy

from agenticiqa.configs import StageConfig
from agenticiqa.eval.commands.label_options import labels_named
from agenticiqa.eval.commands.shared import continuing
from agenticiqa.eval.datasets import MosScale
from agenticiqa.eval.intervals import Interval
from agenticiqa.eval.optimize.comparison import FUSED, MODEL, compare
from agenticiqa.eval.optimize.judging import judge, model_rates, rating, unreached
from agenticiqa.eval.optimize.splits import Splits, split_by_content
from agenticiqa.eval.optimize.tuning import GIVE_UP, MINIBATCH, Search, tunable, tune
from agenticiqa.eval.runs import made_with, pin
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.backends.answer_cache import install
from agenticiqa.programs.backends.connect import connect
from agenticiqa.programs.backends.ledger import within
from agenticiqa.programs.cli import render
from agenticiqa.programs.cli.options import config_from, limits_from
from agenticiqa.programs.cli.status import OK, SOME_FAILED
from agenticiqa.programs.errors import UserError

MIN_VAL, VAL_SHARE = 5, 8  # one full validation costs at most an eighth of the budget, or 5 images
OTHER_MODE = ("summarizer.answer", "executor.locate")  # predictors that rating a whole image never uses
SCORED = {
    MODEL: "the model's own expectation over the levels, by how it ranks the images of a batch",
    FUSED: "the fused score (no model rates), by how it ranks the images of a batch",
}
TITLES = {MODEL: "the model's own expectation", FUSED: "the fused score"}
FIGURES = {"srcc": "SRCC", "mean_absolute_error": "mean absolute error, of 1 to 5"}


def run(args: Namespace) -> int:
    """Tune, compare before and after on held-out images, save. The status is 1 when no new instruction was tried."""
    if not args.verbose:
        logging.getLogger("dspy").setLevel(logging.WARNING)
    config = config_from(args)
    limits = limits_from(args, config)
    program = AgenticIQA.from_config(config)
    predictors = [name for name in tunable(program) if not name.startswith(OTHER_MODE)]
    if not predictors and program.questions:
        raise UserError("there is nothing to tune: the levels scorer asks in the words that its models were trained on")
    if not predictors:
        raise UserError("there is nothing to tune: no stage asks a model; name one with --backend or --config")
    reflection = reflection_model(args.reflection_backend, args.reflection_api_base, args.reflection_key_env)
    data = labels_named(args, args.labels)
    max_val = max(MIN_VAL, args.budget // VAL_SHARE)
    splits = split_by_content(data.labels, held_out=args.held_out, max_val=max_val, seed=args.seed)
    scale = data.any_scale()
    train, val, held_out = ([rating(label, scale) for label in rows] for rows in vars(splits).values())
    least = len(val) + 2 * MINIBATCH
    if args.budget < least or args.workers < 1:
        raise UserError(f"--budget is at least {least} here (one validation and one step), and --workers at least 1")
    install(config)
    by_model = model_rates(program)
    scored = SCORED[MODEL if by_model else FUSED]
    steps = (args.budget - len(val)) // (2 * MINIBATCH)
    print("\n".join(cost_lines(predictors, scored, splits, scale, args.budget, steps)), flush=True)
    asked = {key: getattr(args, key) for key in ("split", "mode", "seed", "budget", "reflection_backend")}
    options = {**asked, "held_out": args.held_out, "mos_range": asdict(scale), "scored": scored}
    made = made_with(program, config, data.digest, options)
    log_dir = args.log_dir or args.out.with_name(f"{args.out.name}.gepa")
    pin(log_dir, made)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    with continuing(log_dir), within(limits):
        before = judge(program, held_out, args.workers, render.progress)
        skipped = unreached(program, predictors, before)
        print("\n".join(skipped_lines(skipped)), end="\n" if skipped else "", flush=True)
        tuned, search = tune(
            program,
            train,
            val,
            reflection,
            budget=args.budget,
            predictors=[name for name in predictors if name not in skipped],
            seed=args.seed,
            log_dir=log_dir,
            workers=args.workers,
        )
        after = judge(tuned, held_out, args.workers, render.progress) if search.tuned else before
    figures = compare(held_out, before, after, by_model=by_model)
    kept = search.tuned and figures["kept"]
    provenance = {"data": data.pinned or data.name, "labels_sha256": made["labels"]}
    provenance |= {"backend": program.backend, "images": splits.counts(), "mos_range": asdict(scale), "scored": scored}
    search_json = {**search.to_json(), "skipped": skipped, "kept": kept}
    (tuned if kept else program).save(
        args.out, created_with=asked | provenance | {"search": search_json, "held_out": figures}
    )
    print("\n".join([*outcome_lines(figures, search, log_dir), f"Saved in {args.out}"]))
    if search.warning:
        print(f"agenticiqa: the prompts were not tuned: {search.warning}", file=sys.stderr)
    return SOME_FAILED if search.warning else OK


def reflection_model(backend: str, api_base: str | None = None, api_key_env: str | None = None) -> dspy.LM:
    """The model that writes instructions, at temperature 1. Raises BackendError as ``backends.connect`` does."""
    stage = StageConfig(
        backend=backend, api_base=api_base, api_key_env=api_key_env, temperature=1.0, max_tokens=16000, timeout=600
    )
    connection = connect(stage)
    if connection is None:
        raise UserError("--reflection-backend offline: writing instructions takes a model; name one")
    return connection.lms[0]


def cost_lines(
    predictors: Sequence[str], scored: str, splits: Splits, scale: MosScale, budget: int, steps: int
) -> Iterator[str]:
    """What is tuned by what, on which images, and at most how many calls it takes."""
    sizes = ", ".join(f"{name} {n['images']} images of {n['contents']} contents" for name, n in splits.counts().items())
    n_compared = 2 * len(splits.held_out)
    yield f"To be tuned ({len(predictors)}): {', '.join(predictors)}"
    yield f"Scored by {scored}"
    yield f"Split by content: {sizes}; opinion scores {scale.low:g} to {scale.high:g} stand for 1 to 5"
    yield (
        f"Cost: {budget} judgments to tune and {n_compared} to compare, in up to about "
        f"{(budget + n_compared) * len(predictors)} model calls ({len(predictors)} for each judgment, more when one is "
        f"rejected), and about {steps} calls of the reflection model (more when one is refused)"
    )


def skipped_lines(skipped: Mapping[str, str]) -> Iterator[str]:
    """The predictors that are not tuned, with the reason."""
    for name, why in skipped.items():
        yield f"Not tuned: {name}, {why}"


def outcome_lines(figures: Mapping[str, Any], search: Search, log_dir: Path) -> Iterator[str]:
    """What the search did, the held-out figures (of ``compare``) before and after, and what is saved."""
    yield (
        f"Search: {search.metric_calls} judgments in {search.iterations} iterations, {search.instructions} new "
        f"instructions, {search.accepted} better on their batch"
    )
    for reason, count in search.refused.items():
        yield f"Refused ({count}): {reason}"
    if search.gave_up:
        yield f"The search ended early, after {GIVE_UP} reflections in a row without an instruction that can be used"
    held_out = f"{figures['images']} held-out images of {figures['contents']} contents"
    yield f"On {held_out}, before and after (95 % intervals):"
    for name in (MODEL, FUSED):
        if name in figures:
            one = figures[name]
            missing = "{before} and {after} without".format(**one["missing"])
            yield f"  {TITLES[name]} (n={one['n']}; {missing}):"
            for measure, title in FIGURES.items():
                old, new, change = (Interval(**one[measure][key]) for key in ("before", "after", "change"))
                note = f" ({change.note})" if change.note else ""
                yield f"    {title}: {old:.3f} -> {new:.3f}, change {change:+.3f}{note}"
    if search.warning:
        yield f"NOT TUNED: {search.warning}"
    elif not search.tuned:
        yield "No better instructions were found; the original ones are saved"
    elif figures["kept"]:
        yield f"The tuned instructions are kept: by {TITLES[figures['decided_by']]} {figures['why']}"
    else:
        yield (
            f"The tuned instructions are not kept: by {TITLES[figures['decided_by']]} {figures['why']}. The original "
            f"ones are saved; all that were found are in {log_dir / 'candidates.json'}"
        )
