"""What a subcommand of the command line is, and the options that several of them share."""

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
    """A subcommand: one line of help, its arguments, and what it does (which gives the exit status)."""

    help: str
    add_arguments: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], int]


def add_backend_arguments(parser: ArgumentParser) -> None:
    """The options that say which models to ask."""
    parser.add_argument(
        "--backend",
        metavar="B",
        help="offline (nothing is sent anywhere), or openai.gpt-4o and the like, for every stage",
    )
    parser.add_argument("--api-base", metavar="URL", help="with --backend: the address of an OpenAI-compatible server")
    parser.add_argument(
        "--config", metavar="C", help="a configuration file (default: $AGENTICIQA_CONFIG, else offline)"
    )
    parser.add_argument(
        "--profile",
        choices=("full", "fast"),
        help="fast: at most two questions to a model, measurements in place of the others (default: full)",
    )
    parser.add_argument(
        "--max-side",
        metavar="PIXELS",
        type=int,
        help="send smaller copies of larger images to a model; this changes their quality (default: as they are)",
    )
    parser.add_argument("--no-cache", action="store_true", help="ask a model again what it answered before")
    parser.add_argument("--max-calls", metavar="N", type=int, help="stop before a model is asked more often than this")
    parser.add_argument(
        "--max-usd", metavar="M", type=float, help="stop before this is spent (needs price in the configuration)"
    )
    add_tracing_argument(parser)


def add_dry_run_argument(parser: ArgumentParser) -> None:
    """The option that tells what a run will cost, and sends nothing."""
    parser.add_argument(
        "--dry-run", action="store_true", help="only tell how many calls, tokens and, with a price, USD it will take"
    )


def config_from(args: Namespace) -> Config:
    """The configuration that the options ask for. Raises UserError or ConfigError."""
    if args.api_base and not args.backend:
        raise UserError("--api-base needs --backend: name the model that the server runs, such as vllm.Qwen2.5-VL")
    config = load_config(args.config)
    if args.backend:
        config = config.with_backend(args.backend, args.api_base)
    if args.max_side is not None and args.max_side < SMALLEST_SENT:
        raise UserError(f"--max-side is at least {SMALLEST_SENT}, got {args.max_side}")
    given = {"profile": args.profile, "max_side": args.max_side, "cache": False if args.no_cache else None}
    return config.model_copy(update={name: value for name, value in given.items() if value is not None})


def limits_from(args: Namespace, config: Config) -> Limits:
    """The limits that the options set. Raises UserError for a limit in USD where a stage has no price."""
    for name, limit in (("--max-calls", args.max_calls), ("--max-usd", args.max_usd)):
        if limit is not None and limit < 0:
            raise UserError(f"{name} is at least 0, got {limit:g}")
    if args.max_usd is not None:
        profile = config.in_profile()
        stages = {name: getattr(profile, name) for name in STAGES}
        lacking = [name for name, stage in stages.items() if not stage.is_offline and stage.price is None]
        if lacking:
            raise UserError(
                f"--max-usd needs to know what a token costs: set price for {', '.join(lacking)} in --config"
            )
    return Limits(args.max_calls, args.max_usd)


def one_line(error: BaseException) -> str:
    """An error's message with its line breaks folded."""
    return " ".join(str(error).split())
