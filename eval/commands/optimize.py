"""``agenticiqa optimize``: tune the prompts of one stage on labels, compare on held-out ones, and keep what helps."""

import logging
import sys
from collections.abc import Collection, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict, replace
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

from agenticiqa.configs import Config, Price, StageConfig, checked
from agenticiqa.eval.commands.arguments import OptimizeOptions
from agenticiqa.eval.commands.label_options import labels_named
from agenticiqa.eval.commands.shared import configured_program, continuing
from agenticiqa.eval.datasets import LabeledImage, MosScale
from agenticiqa.eval.improvement import FEWEST_SCENES
from agenticiqa.eval.names import named
from agenticiqa.eval.optimize.before_after import Tuned
from agenticiqa.eval.optimize.items import TuningQuestion, questions_of, split_by_content
from agenticiqa.eval.optimize.price import ENOUGH, also_compared, budget_for, expected, fusion_images, proposals_of
from agenticiqa.eval.optimize.report import PAGE_FILE, PROFILE_FILE, about_profile, summary, write
from agenticiqa.eval.optimize.settings import TuningSettings
from agenticiqa.eval.optimize.tuning import optimize, tunable
from agenticiqa.eval.questions.catalog import QUESTION_TASKS
from agenticiqa.eval.questions.task import Item, items_sha256, read_items
from agenticiqa.eval.runs import made_with, pin
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.backends.choice import AMBIENT
from agenticiqa.programs.backends.connect import connect, located, require_address, stage_models
from agenticiqa.programs.backends.run_context import within
from agenticiqa.programs.cli import render
from agenticiqa.programs.cli.options import (
    config_from,
    described,
    limits_from,
    print_models,
    require_prices,
    workers_from,
)
from agenticiqa.programs.cli.output_paths import check_outputs
from agenticiqa.programs.cli.printable import print_note, print_text
from agenticiqa.programs.cli.status import OK, SOME_FAILED
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.saving import PROMPTS_FILE


class TuningData(NamedTuple):
    """The labels, their digest, and the scale of the MOS."""

    labels: Sequence[LabeledImage | Item | TuningQuestion]
    digest: str
    scale: MosScale | None


def run(args: OptimizeOptions) -> int:
    """Print the price, tune, compare, and write the folder. The status is 1 if the tuned prompts are not kept."""
    if not args.verbose:  # the report lists the requests of GEPA and their outcome
        logging.getLogger("dspy").setLevel(logging.WARNING if args.optimizer == "reflect" else logging.CRITICAL)
    if args.out.suffix == ".json" or args.out.is_file():
        raise UserError(f"--out {args.out}: name a folder, not a file; prompts.json and report.html are written there")
    if args.warm:
        args = replace(args, keys={**args.keys, "prompts": args.warm})
    configured = config_from(args)
    if missing := _missing_models(args, configured):
        raise UserError(f"optimize needs two models: add {', and '.join(missing)}")
    config = configured.without_fusion()
    limits = limits_from(args, config)
    if args.dry_run:
        program = AgenticIQA.from_config(_unconnected(config))
        print_models(config)
    else:
        program = configured_program(config)
    predictors = tunable(program, args.stage)
    writer = writing_model(args, config)
    reflection = None if args.dry_run else connect(writer)
    print_note(described(writer))
    data = _data(args)
    settings = _settings(args, config, data.scale)
    _print_plan(config, data, settings, predictors, writer)
    if args.dry_run:
        return OK
    check_outputs(args, (), configured, written=[args.out / name for name in (PROMPTS_FILE, PROFILE_FILE, PAGE_FILE)])
    about = {name: getattr(args, name) for name in ("split", "stage", "seed", "held_out", "optimizer", "starts")}
    about |= {"reflection_backend": args.reflection_backend, "mos_range": asdict(data.scale) if data.scale else None}
    folder = args.log_dir or args.out / "search"
    folder.mkdir(parents=True, exist_ok=True)
    pin(folder, made_with(program, config, data.digest, about))
    output = sys.stderr if args.verbose else StringIO()  # the output of GEPA
    with continuing(folder), within(limits), redirect_stdout(output):
        tuned = optimize(
            program,
            data.labels,
            settings,
            reflection=reflection and reflection.lms[0],
            folder=folder,
            progress=render.progress,
        )
    about |= {"data": str(args.labels), "labels_sha256": data.digest, "backend": program.backend}
    write(tuned, args.out, {**about, "search": _search_figures(tuned)})
    _print_outcome(tuned, args.out)
    return OK if tuned.kept else SOME_FAILED


def _missing_models(args: OptimizeOptions, config: Config) -> list[str]:
    """Return the options of the models that are not named, with what they are for."""
    named = {
        "--backend (or --config) for the one to tune": not config.is_offline,
        "--reflection-backend for the one that writes instructions": args.reflection_backend,
    }
    return [option for option, given in named.items() if not given]


def _settings(args: OptimizeOptions, config: Config, scale: MosScale | None) -> TuningSettings:
    """Return the settings that the options make."""
    return TuningSettings(
        stage=args.stage,
        budget=args.budget,
        starts=args.starts,
        optimizer=args.optimizer,
        held_out=args.held_out,
        scale=scale,
        seed=args.seed,
        workers=workers_from(args, config),
    )


def _print_plan(
    config: Config, data: TuningData, settings: TuningSettings, predictors: Collection[str], writer: StageConfig
) -> None:
    """Print the prompts to tune, the split, the expected cost, and a note on a small budget."""
    questions = questions_of(data.labels, settings.stage, settings.scale)
    pool, held_out = split_by_content(questions, held_out=settings.held_out, seed=settings.seed)
    print_text(f"Prompts to tune with {settings.optimizer} ({len(predictors)}): {', '.join(predictors)}")
    scale = settings.scale
    on_scale = f"; MOS {scale.low:g}..{scale.high:g} are mapped to 1..5" if scale else ""
    print_text(f"Split by scene: {len(pool)} to tune on, {len(held_out)} held out{on_scale}")
    cost = expected(config, settings, pool, held_out, writer)
    fitted = fusion_images(settings, len(pool))
    fusion = f", 2 x {fitted} for the fusion profile" if fitted else ""
    more = also_compared(settings, pool, len(held_out))
    compared = f"up to 2 x {len(held_out) + len(more)}" if more else f"2 x {len(held_out)}"
    print_text(f"Cost: {settings.budget} assessments{fusion} and {compared} for the comparison; {cost.line()}")
    proposals = proposals_of(settings.budget)
    if settings.optimizer == "reflect" and proposals < ENOUGH:
        print_text(
            f"This budget allows about {proposals} proposals, which is usually too few for an improvement. For "
            f"{ENOUGH} proposals, use --budget {budget_for(ENOUGH)}."
        )
    if (scenes := len({question.content for question in (*held_out, *more)})) < FEWEST_SCENES:
        print_text(
            f"The comparison has only {scenes} scenes, and no prompts are kept with fewer than {FEWEST_SCENES}. Raise "
            "--held-out, or use labels of more scenes."
        )
    sys.stdout.flush()


def _search_figures(tuned: Tuned) -> dict[str, Any]:
    """Return the figures of the search for the header of the prompts."""
    search = tuned.found
    return {
        "assessments": search.spent,
        "proposals": search.proposals,
        "ended": search.ended,
        "refused": search.refused,
        "spent": tuned.spent,
    }


def _print_outcome(tuned: Tuned, out: Path) -> None:
    """Print what was not tuned, the figures, and how to use the folder."""
    for name, why in tuned.skipped.items():
        print_text(f"Not tuned: {name}, {why}")
    print_text("\n".join(summary(tuned)))
    beside = f" ({about_profile(tuned)})" if tuned.profile else ""
    print_text(
        f"Saved in {out}{beside}. Use it with --prompts {out}, or with prompts: {out} in a configuration. "
        f"Report: {out / PAGE_FILE}"
    )


def _unconnected(config: Config) -> Config:
    """Return a configuration with the same prompts that asks DSPy's model, so that no key is needed.

    The prompt of the levels scorer depends on its model.
    """
    if config.mode == "levels" or config.levels:
        return config
    ambient = config.with_backend(AMBIENT).sections
    stages = {name: ambient[name] for name, section in config.sections.items() if not section.is_offline}
    return config.model_copy(update={**stages, "max_usd": None})


def writing_model(args: OptimizeOptions, config: Config) -> StageConfig:
    """Return the model that writes instructions, at temperature 1, as a section.

    Raises UserError for a limit without its price, and ConfigError or BackendError for wrong options.
    """
    given = args.reflection_price
    price = checked(Price, given, "--reflection-price") if given else None
    stage = StageConfig(
        backend=args.reflection_backend or "",
        api_base=args.reflection_api_base,
        api_key_env=args.reflection_key_env,
        temperature=1.0,
        max_tokens=16000,
        timeout=600,
        price=price,
    )
    stage = located(stage)
    require_address(stage, "--reflection-api-base")
    if not stage_models(stage):
        raise UserError(f"--reflection-backend {stage.backend}: a model is needed to write instructions; name one")
    if config.max_usd is not None:
        require_prices([stage], "--reflection-price")
    return stage


def _data(args: OptimizeOptions) -> TuningData:
    """Read the labels that the stage needs. Raises UserError for other ones."""
    task = named(str(args.labels), QUESTION_TASKS)
    if args.stage == "answering":
        if task is None:
            raise UserError(
                f"--stage answering needs a question benchmark: name one of {', '.join(sorted(QUESTION_TASKS))}"
            )
        items = read_items(task, args.root, args.split).usable
        return TuningData(items, items_sha256(items), None)
    if task:
        raise UserError(f"{task.name} is a question benchmark: use it with --stage answering")
    data = labels_named(args, args.labels)
    return TuningData(data.labels, data.digest, data.any_scale() if args.stage in ("scoring", "all") else None)
