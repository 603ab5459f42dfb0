"""``agenticiqa backends``: list the models that the stages ask, and what each supports."""

import json
import os
import sys
from argparse import Namespace
from typing import Any

import dspy

from agenticiqa.configs import Config
from agenticiqa.programs.backends.addresses import public_address
from agenticiqa.programs.backends.capabilities import Capabilities
from agenticiqa.programs.backends.configured import BackendUse, backends_of
from agenticiqa.programs.backends.providers import OF_LLAMA_CPP, PROVIDERS, Provider
from agenticiqa.programs.backends.resolve import key_variable
from agenticiqa.programs.cli import tables
from agenticiqa.programs.cli.options import models_from
from agenticiqa.programs.cli.status import OK, SOME_FAILED
from agenticiqa.programs.errors import BackendError
from agenticiqa.programs.images.files import one_line

NOT_PROBED = "not probed: agenticiqa backends --probe"


def run(args: Namespace) -> int:
    """Print the backends; the exit status says whether every requested probe succeeded."""
    config = models_from(args)
    uses = backends_of(config)
    failed = 0
    for use in uses if args.probe else ():
        try:
            use.discovery().find_again()
        except (dspy.LMError, BackendError) as error:
            failed += 1
            print(f"agenticiqa: {use.name}: {one_line(str(error))}", file=sys.stderr)
    rows = [*offline_row(config), *map(row, uses)]
    providers = provider_rows()
    if args.json:
        print(json.dumps({"backends": rows, "providers": providers}, ensure_ascii=False, indent=2))
    else:
        tables.print_backends(rows, [] if args.backend or args.config else providers)
    return SOME_FAILED if failed else OK


def row(use: BackendUse) -> dict[str, Any]:
    """One backend as plain JSON types, unknown capabilities as ``None``. Raises BackendError."""
    variable, found = key_variable(use.stage), use.known
    return {
        "stages": list(use.stages),
        "backend": use.stage.backend,
        "server": public_address(use.stage.api_base) if use.stage.api_base else None,
        "key": {"variable": variable, "set": bool(os.environ.get(variable))} if variable else None,
        **_supported(found),
        "known": f"probed {found.when}" if found else NOT_PROBED,
    }


def offline_row(config: Config) -> list[dict[str, Any]]:
    """The stages without a model as one row; no row where every stage has one."""
    stages = [name for name, section in config.sections.items() if section.is_offline]
    supported = {**_supported(None), "known": "nothing is sent"}
    return [{"stages": stages, "backend": "offline", "server": None, "key": None, **supported}] if stages else []


def provider_rows() -> list[dict[str, Any]]:
    """The providers that a configuration can name, and what each interface supports; a model may support less."""
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


def _supported(found: Capabilities | None) -> dict[str, Any]:
    return {
        "model": found.model if found else None,
        "structured_outputs": found.structure if found else None,
        "logprobs": found.logprobs if found else None,
        "seed": found.seed if found else None,
        "images": found.images if found else None,
        "several_images": found.several_images if found else None,
    }
