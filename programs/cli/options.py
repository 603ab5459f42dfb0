"""What a subcommand of the command line is, and the options that several subcommands share."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass

from agenticiqa.configs import SMALLEST_SENT, STAGES, Config, load_config
from agenticiqa.programs.backends.limits import Limits
from agenticiqa.programs.cli.tracing import add_tracing_argument
from agenticiqa.programs.errors import UserError

OK, SOME_FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130


@dataclass(frozen=True)
class Command:
    """A subcommand: one line of help, a function that adds its arguments, one that runs it and returns the status."""

    help: str
    add_arguments: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], int]


def add_model_arguments(parser: ArgumentParser) -> None:
    """The options that name the models: ``models_from`` reads them."""
    parser.add_argument(
        "--backend",
        metavar="B",
        help="the model for every stage: offline (nothing is sent), openai.gpt-4o, vllm.MODEL, gguf.FILE, ...; "
        "agenticiqa backends lists the providers",
    )
    parser.add_argument("--api-base", metavar="URL", help="with --backend: the address of an OpenAI-compatible server")
    parser.add_argument("--config", metavar="C", help="configuration file (default: $AGENTICIQA_CONFIG, else offline)")


def add_backend_arguments(parser: ArgumentParser) -> None:
    """The options of commands that ask models: ``config_from`` and ``limits_from`` read them."""
    add_model_arguments(parser)
    parser.add_argument(
        "--profile",
        choices=("full", "fast"),
        help="fast: at most two calls to a model per image, measurements instead of the others (default: full)",
    )
    parser.add_argument(
        "--max-side",
        metavar="PIXELS",
        type=int,
        help="send scaled-down copies of larger images to a model, which changes their quality (default: no scaling)",
    )
    parser.add_argument("--no-cache", action="store_true", help="do not reuse a model's earlier answers")
    parser.add_argument("--max-calls", metavar="N", type=int, help="stop before more calls to a model than this")
    parser.add_argument(
        "--max-usd", metavar="M", type=float, help="stop before more is spent than this (needs price in --config)"
    )
    add_tracing_argument(parser)


def add_dry_run_argument(parser: ArgumentParser) -> None:
    """The option that estimates the cost of a run."""
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="estimate calls, tokens and (with price in --config) USD, and send nothing",
    )


def models_from(args: Namespace) -> Config:
    """The configuration with the models that the options name. Raises UserError or ConfigError."""
    if args.api_base and not args.backend:
        raise UserError("--api-base needs --backend: name the model that the server runs, such as vllm.Qwen2.5-VL")
    config = load_config(args.config)
    return config.with_backend(args.backend, args.api_base) if args.backend else config


def config_from(args: Namespace) -> Config:
    """The configuration of a run as the options set it. Raises UserError or ConfigError."""
    config = models_from(args)
    if args.max_side is not None and args.max_side < SMALLEST_SENT:
        raise UserError(f"--max-side must be at least {SMALLEST_SENT}, got {args.max_side}")
    given = {"profile": args.profile, "max_side": args.max_side, "cache": False if args.no_cache else None}
    return config.model_copy(update={name: value for name, value in given.items() if value is not None})


def limits_from(args: Namespace, config: Config) -> Limits:
    """The limits that the options set. Raises UserError for a limit in USD where a stage has no price."""
    for name, limit in (("--max-calls", args.max_calls), ("--max-usd", args.max_usd)):
        if limit is not None and limit < 0:
            raise UserError(f"{name} must be at least 0, got {limit:g}")
    if args.max_usd is not None:
        profile = config.in_profile()
        stages = {name: getattr(profile, name) for name in STAGES}
        unpriced = [name for name, stage in stages.items() if not stage.is_offline and stage.price is None]
        if unpriced:
            raise UserError(f"--max-usd needs the price of tokens: set price for {', '.join(unpriced)} in --config")
    return Limits(args.max_calls, args.max_usd)


def one_line(error: BaseException) -> str:
    """An error's message with its line breaks folded."""
    return " ".join(str(error).split())
