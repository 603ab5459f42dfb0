"""``agenticiqa backends``: list the models of the stages and the features requested of each.

The features come from the table of providers. With ``--probe`` each model gets one small question, and features that
its server refuses are not listed. Without ``--probe`` nothing is sent.
"""

import json
import os
from argparse import Namespace
from contextlib import suppress
from typing import Any

import dspy
from PIL import Image

from agenticiqa.configs import Config, StageConfig
from agenticiqa.programs.backends.addresses import public_address
from agenticiqa.programs.backends.connect import connect, features_of, key_variable, name_of, provider_of, stage_models
from agenticiqa.programs.backends.providers import PROVIDERS, Provider
from agenticiqa.programs.cli.options import models_from
from agenticiqa.programs.cli.printable import print_error
from agenticiqa.programs.cli.render import print_lines
from agenticiqa.programs.cli.status import OK, SOME_FAILED
from agenticiqa.programs.errors import BackendError, Unanswered
from agenticiqa.programs.images import load
from agenticiqa.programs.stages.ask import CheckedPredict

FORMS = {"json_schema": "JSON schema", "json_object": "JSON objects", "off": "none"}


class ConnectionTest(dspy.Signature):
    """This is a test of the connection. Say what color the image has."""

    image: dspy.Image = dspy.InputField()
    color: str = dspy.OutputField()


def run(args: Namespace) -> int:
    """Print the backends; the exit status says whether every model answered the question of ``--probe``."""
    config = models_from(args)
    uses = backends_of(config)
    answered = []  # the table has no row of a model that did not answer, which would look confirmed
    for stage, roles in uses:
        try:
            if args.probe:
                ask_small_question(stage)
            answered.append((stage, roles))
        except (dspy.LMError, BackendError) as error:
            print_error(f"{name_of(stage).replace('//', '/')}: {error}")
    rows = [*offline_row(config), *(row(*use) for use in answered)]
    providers = provider_rows()
    if args.json:
        print(json.dumps({"backends": rows, "providers": providers}, ensure_ascii=False, indent=2))
    elif rows:
        print_backends(rows, [] if args.backend or args.config else providers)
    return OK if len(answered) == len(uses) else SOME_FAILED


def backends_of(config: Config) -> list[tuple[StageConfig, list[str]]]:
    """Return the distinct backends of a configuration, each with its first stage and the names of all its stages.

    A fallback counts as a backend, named as in ``executor (fallback)``. Raises BackendError.
    """
    uses: dict[str, tuple[StageConfig, list[str]]] = {}
    for name, section in config.sections.items():
        for model, role in zip(stage_models(section), (name, f"{name} (fallback)"), strict=False):
            uses.setdefault(name_of(model), (model, []))[1].append(role)
    return list(uses.values())


def ask_small_question(stage: StageConfig) -> None:
    """Find out which features the server of a stage refuses.

    Raises BackendError, and ``dspy.LMError`` when there is no answer.
    """
    ask: CheckedPredict[str] = CheckedPredict(
        ConnectionTest, stage="connection", backend=connect(stage, cache=False), attempts=1, reads_tokens=True
    )
    with suppress(Unanswered):  # the server accepted the question, which is enough
        ask({"image": load(Image.new("RGB", (32, 32), "grey"))})


def row(stage: StageConfig, stages: list[str]) -> dict[str, Any]:
    """Return one backend as plain JSON types. Raises BackendError."""
    variable, features = key_variable(stage), features_of(stage)
    return {
        "stages": stages,
        "backend": stage.backend,
        "server": public_address(stage.api_base) if stage.api_base else None,
        "key": {"variable": variable, "set": bool(os.environ.get(variable))} if variable else None,
        "structured_outputs": FORMS[features.form],
        "logprobs": features.top_logprobs,
        **_interface(provider_of(stage)),
    }


def offline_row(config: Config) -> list[dict[str, Any]]:
    """Return one row for the stages without a model; empty if every stage has one."""
    stages = [name for name, section in config.sections.items() if section.is_offline]
    nothing = dict.fromkeys(("server", "key", "structured_outputs", "logprobs", "seed", "formats"))
    return [{"stages": stages, "backend": "offline", **nothing}] if stages else []


def provider_rows() -> list[dict[str, Any]]:
    """Return the providers that a configuration can name, and their features; a model may have fewer."""
    return [
        {
            "provider": f"{name}.<model>",
            "needs": provider.key_env or "api_base",
            "json_object": "json_object" in provider.forms,
            "logprobs": bool(provider.logprobs),
            **_interface(provider),
        }
        for name, provider in PROVIDERS.items()
    ]


def _interface(provider: Provider) -> dict[str, Any]:
    return {"seed": provider.seed, "formats": sorted(mime.removeprefix("image/") for mime in provider.formats)}


def print_backends(rows: list[dict[str, Any]], providers: list[dict[str, Any]]) -> None:
    """Print the backends of a configuration as a table on stdout, and the providers, if given, as a second one."""
    lines = []
    for row in rows:
        where = [row["backend"], *([row["server"]] if row["server"] else [])]
        if row["key"]:
            where.append(f"key {row['key']['variable']} ({'set' if row['key']['set'] else 'not set'})")
        has = (row["structured_outputs"] or "-", _yes_or_no(row["logprobs"]), _yes_or_no(row["seed"]))
        formats = ", ".join(row["formats"] or ()) or "-"
        lines.append(["\n".join(row["stages"]), "\n".join(where), *has, formats])
    print_lines(("stages", "backend", "JSON", "log-probs", "seed", "images"), lines)
    if providers:
        lines = [
            [
                row["provider"],
                row["needs"],
                *(_yes_or_no(row[name]) for name in ("json_object", "logprobs", "seed")),
                ", ".join(row["formats"]),
            ]
            for row in providers
        ]
        print("\nProviders and the features of their interfaces (a model or server may support fewer):")
        print_lines(("provider", "needs", "JSON objects", "log-probs", "seed", "images"), lines)


def _yes_or_no(value: bool | int | None) -> str:
    return "-" if value is None else "yes" if value else "no"
