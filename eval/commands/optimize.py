"""``agenticiqa optimize``: tune the prompts of one stage on labels, compare on held-out ones, and keep what helps."""

import logging
import sys
from argparse import Namespace
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import asdict
from io import StringIO
from pathlib import Path

import dspy

from agenticiqa.configs import Price, StageConfig
from agenticiqa.eval.commands.label_options import labels_named
from agenticiqa.eval.commands.shared import configured_program, continuing
from agenticiqa.eval.datasets import LabeledImage, MosScale
from agenticiqa.eval.names import named
from agenticiqa.eval.optimize.items import Stage, TuningQuestion, questions_of, split_by_content
from agenticiqa.eval.optimize.price import ENOUGH, budget_for, expected, fusion_images, proposals_of
from agenticiqa.eval.optimize.report import PAGE_FILE, about_profile, summary, write
from agenticiqa.eval.optimize.tuning import optimize, tunable
from agenticiqa.eval.questions.catalog import QUESTION_TASKS
from agenticiqa.eval.questions.task import Item, items_sha256, read_items
from agenticiqa.eval.runs import made_with, pin
from agenticiqa.programs.backends.connect import connect, require_address
from agenticiqa.programs.backends.run_context import within
from agenticiqa.programs.cli import render
from agenticiqa.programs.cli.options import config_from, limits_from
from agenticiqa.programs.cli.status import OK, SOME_FAILED
from agenticiqa.programs.errors import UserError


def run(args: Namespace) -> int:
    """Print the price, tune, compare, and write the folder. The status is 1 if the tuned prompts are not kept."""
    if not args.verbose:  # the report lists the requests of GEPA and their outcome
        logging.getLogger("dspy").setLevel(logging.WARNING if args.optimizer == "reflect" else logging.CRITICAL)
    out: Path = args.out
    if out.suffix == ".json" or out.is_file():
        raise UserError(f"--out {out}: name a folder, not a file; prompts.json and report.html are written there")
    if args.warm:
        args.prompts = args.warm
    config = config_from(args).without_fusion()
    limits = limits_from(args, config)
    stage: Stage = args.stage
    program = configured_program(config)
    predictors = tunable(program, stage)
    price = _price(args.reflection_price)
    if args.max_usd is not None and price is None:
        raise UserError("--max-usd also needs the price of the reflection model: add --reflection-price INPUT,OUTPUT")
    if not args.reflection_backend:
        raise UserError("a model is needed to write instructions: name it with --reflection-backend")
    reflection = reflection_model(args, price)
    labels, about, scale = _labels(args, stage)
    questions = questions_of(labels, stage, scale)
    pool, held_out = split_by_content(questions, held_out=args.held_out, seed=args.seed)
    print(f"Prompts to tune with {args.optimizer} ({len(predictors)}): {', '.join(predictors)}")
    on_scale = f"; MOS {scale.low:g}..{scale.high:g} are mapped to 1..5" if scale else ""
    print(f"Split by content (scene): {len(pool)} to tune on, {len(held_out)} held out{on_scale}")
    cost = expected(config, stage, pool, held_out, args.budget, args.reflection_backend, price, args.optimizer)
    fitted = fusion_images(args.optimizer, stage, len(pool), args.budget)
    fusion = f", 2 x {fitted} for the fusion profile" if fitted else ""
    print(f"Cost: {args.budget} assessments{fusion} and 2 x {len(held_out)} for the comparison; {cost.line()}")
    if args.optimizer == "reflect" and proposals_of(args.budget) < ENOUGH:
        few, enough = proposals_of(args.budget), budget_for(ENOUGH)
        print(
            f"This budget allows about {few} proposals, which is usually too few for an improvement. For {ENOUGH} "
            f"proposals, use --budget {enough}."
        )
    sys.stdout.flush()
    if args.dry_run:
        return OK
    settings = {key: getattr(args, key) for key in ("split", "stage", "seed", "held_out", "optimizer", "starts")}
    settings |= {"reflection_backend": args.reflection_backend, "mos_range": asdict(scale) if scale else None}
    description = made_with(program, config, about, settings)
    folder = args.log_dir or out / "search"
    folder.mkdir(parents=True, exist_ok=True)
    pin(folder, description)
    output = sys.stderr if args.verbose else StringIO()  # the output of GEPA
    with continuing(folder), within(limits), redirect_stdout(output):
        tuned = optimize(
            program,
            labels,
            stage,
            reflection=reflection,
            budget=args.budget,
            starts=args.starts,
            optimizer=args.optimizer,
            held_out=args.held_out,
            scale=scale,
            seed=args.seed,
            workers=args.workers,
            folder=folder,
            progress=render.progress,
        )
    for name, why in tuned.skipped.items():
        print(f"Not tuned: {name}, {why}")
    search = {
        "assessments": tuned.found.spent,
        "proposals": tuned.found.proposals,
        "ended": tuned.found.ended,
        "refused": tuned.found.refused,
        "spent": tuned.spent,
    }
    write(
        tuned,
        out,
        {**settings, "data": str(args.labels), "labels_sha256": about, "backend": program.backend, "search": search},
    )
    print("\n".join(summary(tuned)))
    beside = f" ({about_profile(tuned)})" if tuned.profile else ""
    print(
        f"Saved in {out}{beside}. Use it with --prompts {out}, or with prompts: {out} in a configuration. "
        f"Report: {out / PAGE_FILE}"
    )
    return OK if tuned.kept else SOME_FAILED


def reflection_model(args: Namespace, price: Price | None = None) -> dspy.LM:
    """Return the model that writes instructions, at temperature 1. Raises BackendError as ``backends.connect`` does."""
    stage = StageConfig(
        backend=args.reflection_backend,
        api_base=args.reflection_api_base,
        api_key_env=args.reflection_key_env,
        temperature=1.0,
        max_tokens=16000,
        timeout=600,
        price=price,
    )
    require_address(stage, "--reflection-api-base")
    connection = connect(stage)
    if connection is None:
        raise UserError("--reflection-backend offline: a model is needed to write instructions; name one")
    return connection.lms[0]


def _price(given: str | None) -> Price | None:
    if given is None:
        return None
    try:
        price_in, price_out = map(float, given.split(","))
        return Price(input=price_in, output=price_out)
    except ValueError as error:
        raise UserError(
            f"--reflection-price {given}: expected INPUT,OUTPUT in USD per million tokens, such as 2.5,10"
        ) from error


def _labels(
    args: Namespace, stage: Stage
) -> tuple[Sequence[LabeledImage | Item | TuningQuestion], str, MosScale | None]:
    """Return the labels, their digest, and the scale of the MOS."""
    task = named(str(args.labels), QUESTION_TASKS)
    if stage == "answering":
        if task is None:
            raise UserError(
                f"--stage answering needs a question benchmark: name one of {', '.join(sorted(QUESTION_TASKS))}"
            )
        items = read_items(task, args.root, args.split).usable
        return items, items_sha256(items), None
    if task:
        raise UserError(f"{task.name} is a question benchmark: use it with --stage answering")
    data = labels_named(args, args.labels)
    return data.labels, data.digest, data.any_scale() if stage in ("scoring", "all") else None
