"""``agenticiqa backends``: show the model of each stage: address, key, price, and the features requested.

The features come from the table of providers. With ``--probe`` each model gets a small question, and features that its
server refuses are not listed; then it rates an image. Without ``--probe`` nothing is sent.
"""

import os
from typing import Any

import dspy

from agenticiqa.configs import Config, StageConfig
from agenticiqa.programs.backends.connect import (
    address_shown,
    features_of,
    key_variable,
    name_of,
    provider_of,
    stage_models,
)
from agenticiqa.programs.backends.prices import price_shown
from agenticiqa.programs.backends.providers import PROVIDERS, Provider
from agenticiqa.programs.cli.arguments import BackendsOptions
from agenticiqa.programs.cli.options import models_from
from agenticiqa.programs.cli.output_paths import check_outputs
from agenticiqa.programs.cli.printable import counted, print_error
from agenticiqa.programs.cli.probe import probe
from agenticiqa.programs.cli.status import OK, SOME_FAILED
from agenticiqa.programs.cli.views import View, show
from agenticiqa.programs.errors import BackendError
from agenticiqa.programs.page.table import Table

PROVIDERS_TITLE = "Providers and the features of their interfaces (a model or server may support fewer)"
FORMS = {"json_schema": "JSON schema", "json_object": "JSON objects", "off": "none"}


def run(args: BackendsOptions) -> int:
    """Print the backends; the exit status says whether every model gave ``--probe`` usable answers."""
    check_outputs(args)
    config = models_from(args)
    uses = backends_of(config)
    are_valid = True
    answered = []  # the table has no row of a model that did not answer, which would look confirmed
    for stage, roles in uses:
        try:
            found = probe(stage, most_tokens(config, name_of(stage))) if args.probe else None
            answered.append((stage, roles, found))
            are_valid &= found is None or (found["is_usable"] and found["rating"]["is_valid"])
        except (dspy.LMError, BackendError) as error:
            print_error(str(error))  # it names the model
    rows = [*offline_row(config), *(row(*use) for use in answered)]
    providers = provider_rows()
    is_written = not rows or show(
        args, backends_view(rows, providers, with_providers=not (args.backend or args.config))
    )
    return OK if is_written and are_valid and len(answered) == len(uses) else SOME_FAILED


def backends_of(config: Config) -> list[tuple[StageConfig, list[str]]]:
    """Return the distinct backends of a configuration, each with its first stage and the names of all its stages.

    A fallback counts as a backend, named as in ``executor (fallback)``. Raises BackendError.
    """
    uses: dict[str, tuple[StageConfig, list[str]]] = {}
    for name, section in config.sections.items():
        for model, role in zip(stage_models(section), (name, f"{name} (fallback)"), strict=False):
            uses.setdefault(name_of(model), (model, []))[1].append(role)
    return list(uses.values())


def most_tokens(config: Config, name: str) -> int:
    """Return the most tokens of an answer of the model with this name, in any stage."""
    models = [model for section in config.sections.values() for model in stage_models(section)]
    return max(model.max_tokens for model in models if name_of(model) == name)


def row(stage: StageConfig, stages: list[str], found: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return one backend as plain JSON types; ``found`` is what its probe found. Raises BackendError."""
    variable, features = key_variable(stage), features_of(stage)
    return {
        "stages": stages,
        "backend": stage.backend,
        "server": address_shown(stage),
        "key": {"variable": variable, "set": bool(os.environ.get(variable))} if variable else None,
        "price": price_shown(stage) or None,
        "structured_outputs": FORMS[features.form],
        "logprobs": 0 if found and found["logprobs"] is False else features.top_logprobs,
        **_interface(provider_of(stage)),
        "probe": found,
    }


def offline_row(config: Config) -> list[dict[str, Any]]:
    """Return one row for the stages without a model; empty if every stage has one."""
    stages = [name for name, section in config.sections.items() if section.is_offline]
    nothing = dict.fromkeys(("server", "key", "price", "structured_outputs", "logprobs", "seed", "formats", "probe"))
    return [{"stages": stages, "backend": "offline", **nothing}] if stages else []


def provider_rows() -> list[dict[str, Any]]:
    """Return the providers that a configuration can name, and their features; a model may have fewer."""
    return [
        {
            "provider": f"{name}.<model>",
            "needs": provider.key_env or ("nothing" if provider.address else "api_base"),
            "json_object": "json_object" in provider.forms,
            "logprobs": bool(provider.logprobs),
            **_interface(provider),
        }
        for name, provider in PROVIDERS.items()
    ]


def _interface(provider: Provider) -> dict[str, Any]:
    return {"seed": provider.seed, "formats": provider.format_names}


def backends_view(rows: list[dict[str, Any]], providers: list[dict[str, Any]], *, with_providers: bool) -> View:
    """Return the backends of a configuration as a table, ``with_providers`` as a second one; JSON has both."""
    columns = [_cells(row) for row in rows]
    lines = [[label, *(cells[label] for cells in columns)] for label in columns[0]]
    tables = [Table(("backend", *(row["backend"] for row in rows)), lines, "Backends")]
    if with_providers:
        lines = []
        for row in providers:
            features = [_yes_or_no(row[name]) for name in ("json_object", "logprobs", "seed")]
            lines.append([row["provider"], row["needs"], *features, ", ".join(row["formats"])])
        headings = ("provider", "needs", "JSON objects", "log-probs", "seed", "images")
        tables.append(Table(headings, lines, PROVIDERS_TITLE))
    return View(tables, document={"backends": rows, "providers": providers})


def _cells(row: dict[str, Any]) -> dict[str, str]:
    """Return the lines of a backend, by their labels; a feature is assumed until an answer showed it."""
    key, probe = row["key"], row["probe"]
    tried = "tried" if probe and probe["is_usable"] else "assumed"
    cells = {
        "stages": ", ".join(row["stages"]),
        "address": row["server"],
        "key": f"{key['variable']} ({'set' if key['set'] else 'not set'})" if key else "none is sent",
        "price": row["price"] or "unknown; --price sets it",
        "JSON": f"{row['structured_outputs']} ({tried})",
        "log-probs": f"{_yes_or_no(row['logprobs'])} ({tried})",
        "seed": f"{_yes_or_no(row['seed'])} (assumed)",
        "images": f"{', '.join(row['formats'] or ())} (assumed)",
        "probe": _cost(probe) if probe else "not sent",
        **({"rating": _rating(probe["rating"]), "context": _context(probe["context"])} if probe else {}),
    }
    return cells if row["server"] else {**dict.fromkeys(cells, "-"), "stages": cells["stages"]}


def _cost(probe: dict[str, Any]) -> str:
    """Return what the question of ``--probe`` cost."""
    usd = "price unknown" if probe["usd"] is None else f"{probe['usd']:.6f} USD"
    return f"{counted(probe['calls'], 'request')}, {probe['input_tokens']} + {probe['output_tokens']} tokens, {usd}"


def _rating(rating: dict[str, Any]) -> str:
    """Return what the rating of ``--probe`` showed."""
    if rating["input_tokens"] is None:
        return "failed"
    tokens = f"{rating['input_tokens']:,} + {rating['output_tokens']:,} tokens in {rating['seconds']:.1f} s"
    mass = "" if rating["mass"] is None else f" with a probability mass of {rating['mass']:.2f}"
    valid = f"valid, {rating['source']}{mass}" if rating["is_valid"] else "not valid (stderr has the reason)"
    return f"{tokens}, {valid}"


def _context(context: dict[str, Any]) -> str:
    """Return the size of the context, and whether the longest answer fits."""
    if context["size"] is None:
        return "the server reports no size"
    size = f"{context['size']:,} tokens"
    if context["needed"] is None:
        return size
    need = f"a prompt like this one and an answer need up to {context['needed']:,}"
    return f"{size}, enough: {need}" if context["fits"] else f"{size}, too small: {need}; {context['remedy']}"


def _yes_or_no(value: bool | int | None) -> str:
    return "-" if value is None else "yes" if value else "no"
