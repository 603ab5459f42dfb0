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
from agenticiqa.eval.optimize.tuning import Budget, optimize, tunable
from agenticiqa.eval.questions.catalog import QUESTION_TASKS
from agenticiqa.eval.questions.task import Item, items_sha256, read_items
from agenticiqa.eval.runs import made_with, pin
from agenticiqa.programs.backends.connect import connect, require_address
from agenticiqa.programs.backends.ledger import within
from agenticiqa.programs.cli import render
from agenticiqa.programs.cli.options import config_from, limits_from
from agenticiqa.programs.cli.status import OK, SOME_FAILED
from agenticiqa.programs.errors import UserError


def run(args: Namespace) -> int:
    """Print the price, tune, compare, and write the folder. The status is 1 if the tuned prompts are not kept."""
    if not args.verbose:  # of DSPy's optimizers the report says what came of their requests
        logging.getLogger("dspy").setLevel(logging.WARNING if args.optimizer == "reflect" else logging.CRITICAL)
    out: Path = args.out
    if out.suffix == ".json" or out.is_file():
        raise UserError(f"--out is a folder, for prompts.json, fusion.yaml and report.html: name one, not {out}")
    if args.warm:
        args.prompts = args.warm
    config = config_from(args).without_fusion()
    limits = limits_from(args, config)
    stage: Stage = args.stage
    program = configured_program(config)
    predictors = tunable(program, stage)
    price = _price(args.reflection_price)
    if args.max_usd is not None and price is None:
        raise UserError("--max-usd needs the price of the reflection model, too: --reflection-price INPUT,OUTPUT")
    needed = args.optimizer != "bootstrap"
    if needed and not args.reflection_backend:
        raise UserError("the search asks a model for instructions: name it with --reflection-backend")
    reflection = reflection_model(args, price) if needed else None
    labels, about, scale = _labels(args, stage)
    questions = questions_of(labels, stage, scale)
    pool, held_out = split_by_content(questions, held_out=args.held_out, seed=args.seed)
    print(f"To be tuned by {args.optimizer} ({len(predictors)}): {', '.join(predictors)}")
    on_scale = f"; opinion scores {scale.low:g} to {scale.high:g} stand for 1 to 5" if scale else ""
    print(f"Split by content: {len(pool)} to tune on, {len(held_out)} held out{on_scale}")
    cost = expected(
        config, stage, pool, held_out, args.budget, args.reflection_backend or "", price, args.exemplars, args.optimizer
    )
    fitted = fusion_images(args.optimizer, stage, len(pool), args.budget)
    fusion = f", 2 x {fitted} to fit the fusion" if fitted else ""
    print(f"Cost: {args.budget} judgments{fusion} and 2 x {len(held_out)} to compare; {cost.line()}")
    if args.optimizer == "reflect" and proposals_of(args.budget) < ENOUGH:
        few, enough = proposals_of(args.budget), budget_for(ENOUGH)
        print(
            f"This budget affords about {few} proposals; {ENOUGH}, which often find something, take --budget {enough}"
        )
    sys.stdout.flush()
    if args.dry_run:
        return OK
    asked = {
        key: getattr(args, key) for key in ("split", "stage", "seed", "held_out", "optimizer", "starts", "exemplars")
    }
    asked |= {"reflection_backend": args.reflection_backend, "mos_range": asdict(scale) if scale else None}
    made = made_with(program, config, about, asked)
    work = args.log_dir or out / "search"
    work.mkdir(parents=True, exist_ok=True)
    pin(work, made)
    prints = sys.stderr if args.verbose else StringIO()  # of DSPy's optimizers
    with continuing(work), within(limits), redirect_stdout(prints):
        tuned = optimize(
            program,
            labels,
            stage,
            reflection=reflection,
            budget=Budget(args.budget),
            starts=args.starts,
            optimizer=args.optimizer,
            exemplars=args.exemplars,
            held_out=args.held_out,
            scale=scale,
            seed=args.seed,
            workers=args.workers,
            folder=work,
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
        {**asked, "data": str(args.labels), "labels_sha256": about, "backend": program.backend, "search": search},
    )
    print("\n".join(summary(tuned)))
    beside = f" ({about_profile(tuned)})" if tuned.profile else ""
    print(
        f"Saved in {out}{beside}: use it with --prompts {out}, or prompts: {out} in a configuration; "
        f"see {out / PAGE_FILE}"
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
        raise UserError("--reflection-backend offline: writing instructions takes a model; name one")
    return connection.lms[0]


def _price(given: str | None) -> Price | None:
    if given is None:
        return None
    try:
        asked, written = map(float, given.split(","))
        return Price(input=asked, output=written)
    except ValueError as error:
        raise UserError(
            f"--reflection-price is INPUT,OUTPUT in USD for a million tokens, such as 2.5,10, not {given}"
        ) from error


def _labels(
    args: Namespace, stage: Stage
) -> tuple[Sequence[LabeledImage | Item | TuningQuestion], str, MosScale | None]:
    """Return the labels, their digest, and the scale of opinion scores."""
    task = named(str(args.labels), QUESTION_TASKS)
    if stage in ("answering", "planning"):
        if task is None:
            raise UserError(
                f"--stage {stage} is tuned on questions: name a benchmark of them ({', '.join(sorted(QUESTION_TASKS))})"
            )
        items = read_items(task, args.root, args.split).usable
        return items, items_sha256(items), None
    if task:
        raise UserError(f"{task.name} is a benchmark of questions, for --stage answering or planning")
    data = labels_named(args, args.labels)
    return data.labels, data.digest, data.any_scale() if stage in ("scoring", "all") else None
