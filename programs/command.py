"""What a subcommand of the command line is, and the options that several of them share."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass

from agenticiqa.configs import Config, load_config
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


def config_from(args: Namespace) -> Config:
    """The configuration that the options ask for. Raises UserError or ConfigError."""
    if args.api_base and not args.backend:
        raise UserError("--api-base needs --backend: name the model that the server runs, such as vllm.Qwen2.5-VL")
    config = load_config(args.config)
    return config.with_backend(args.backend, args.api_base) if args.backend else config


def one_line(error: BaseException) -> str:
    """An error's message with its line breaks folded."""
    return " ".join(str(error).split())
