"""``agenticiqa backends``: which models the stages ask, and what is known of each."""

import json
import os
import sys
from argparse import ArgumentParser, Namespace
from typing import Any

import dspy

from agenticiqa.configs import Config
from agenticiqa.programs.backends.capabilities import Capabilities, known
from agenticiqa.programs.backends.connect import key_variable
from agenticiqa.programs.backends.prepare import Used, backends_of, probed, shown
from agenticiqa.programs.backends.providers import OF_LLAMA_CPP, PROVIDERS, Provider
from agenticiqa.programs.backends.wire import place
from agenticiqa.programs.cli import render
from agenticiqa.programs.cli.options import OK, SOME_FAILED, STAGES, config_from, one_line
from agenticiqa.programs.errors import BackendError

NOT_PROBED = "not probed: agenticiqa backends --probe"


def add_arguments(parser: ArgumentParser) -> None:
    """The options of ``agenticiqa backends``."""
    parser.add_argument("--backend", metavar="B", help="this one for every stage, such as openai.gpt-4o")
    parser.add_argument("--api-base", metavar="URL", help="with --backend: the address of its server")
    parser.add_argument(
        "--config", metavar="C", help="a configuration file (default: $AGENTICIQA_CONFIG, else offline)"
    )
    parser.add_argument("--probe", action="store_true", help="ask each of them, with a few tiny requests, and keep it")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.set_defaults(profile=None, max_side=None, no_cache=False)


def run(args: Namespace) -> int:
    """Show the backends; the exit status tells whether every probe that was asked for succeeded."""
    config = config_from(args)
    used = backends_of(config)
    failed = 0
    for each in used if args.probe else ():
        try:
            probed(each.stage)
        except (dspy.LMError, BackendError) as error:
            failed += 1
            print(f"agenticiqa: {shown(each.stage)}: {one_line(error)}", file=sys.stderr)
    rows = [*offline_row(config), *map(row, used)]
    providers = provider_rows()
    if args.json:
        print(json.dumps({"backends": rows, "providers": providers}, ensure_ascii=False, indent=2))
    else:
        render.print_backends(rows, [] if args.backend or args.config else providers)
    return SOME_FAILED if failed else OK


def row(used: Used) -> dict[str, Any]:
    """One backend as plain JSON types; what is not known is ``None``. Raises BackendError for one of no known kind."""
    variable, seen = key_variable(used.stage), known(used.stage)
    return {
        "stages": list(used.stages),
        "backend": used.stage.backend,
        "server": place(used.stage.api_base) if used.stage.api_base else None,
        "key": {"variable": variable, "set": bool(os.environ.get(variable))} if variable else None,
        **_able(seen),
        "known": f"probed {seen.when}" if seen else NOT_PROBED,
    }


def offline_row(config: Config) -> list[dict[str, Any]]:
    """The stages without a model, as one row; none where every stage has one."""
    stages = [name for name in STAGES if getattr(config, name).is_offline]
    able = {**_able(None), "known": "nothing is sent"}
    return [{"stages": stages, "backend": "offline", "server": None, "key": None, **able}] if stages else []


def provider_rows() -> list[dict[str, Any]]:
    """What can be named in a configuration, and what its interface has at all; a model may still lack it."""
    in_process = Provider("gguf", formats=OF_LLAMA_CPP)
    return [
        {
            "provider": f"{name}.<model>" if name in PROVIDERS else f"{name}.<file>",
            "needs": provider.key_env or ("api_base" if name in PROVIDERS else "the extra local-lm"),
            "json_object": provider.json_object,
            "logprobs": provider.logprobs,
            "seed": provider.seed,
            "formats": sorted(mime.removeprefix("image/") for mime in provider.formats),
        }
        for name, provider in {**PROVIDERS, "gguf": in_process}.items()
    ]


def _able(seen: Capabilities | None) -> dict[str, Any]:
    return {
        "model": seen.model if seen else None,
        "structured_outputs": seen.structure if seen else None,
        "logprobs": seen.logprobs if seen else None,
        "seed": seen.seed if seen else None,
        "images": seen.images if seen else None,
        "several_images": seen.several_images if seen else None,
    }
