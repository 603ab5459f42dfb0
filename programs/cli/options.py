"""Read the options that several commands have."""

from collections.abc import Collection, Iterable
from typing import Any

from agenticiqa.configs import Config, FusionConfig, StageConfig, load_config
from agenticiqa.configs.options import KEYS, SECTION_KEYS, Arguments, Option, options_of
from agenticiqa.programs.backends.choice import AMBIENT
from agenticiqa.programs.backends.connect import address_shown, key_variable, located, stage_models, workers_for
from agenticiqa.programs.backends.cores import available_cores
from agenticiqa.programs.backends.limits import Limits, RunLimits
from agenticiqa.programs.backends.prices import price_of, price_shown
from agenticiqa.programs.cli.arguments import BatchedOptions, ModelOptions, RunOptions
from agenticiqa.programs.cli.printable import print_note
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.fusion.profile import read_fusion_profile
from agenticiqa.programs.tools.metrics.learned_iqa import adapter_in


def models_from(args: ModelOptions) -> Config:
    """Return the configuration with the models that the options name, and with all addresses.

    Raises UserError, ConfigError or BackendError.
    """
    for key in ("api_base", "api_key_env", "price"):
        if getattr(args, key) and not args.backend:
            flag = f"--{key.replace('_', '-')}"
            raise UserError(f"{flag} needs --backend: name its model, or set {key} in the configuration")
    config = load_config(args.config)
    if args.backend:
        config = config.with_backend(args.backend, args.api_base, args.api_key_env, args.price)
    if AMBIENT in [section.backend for section in config.sections.values()]:
        raise UserError(
            "backend dspy works only in Python, after dspy.configure(lm=...): on the command line, name a model, such "
            "as --backend openai.gpt-4o"
        )
    config = config.with_request_keys(_given(args, SECTION_KEYS))
    return config.model_copy(update={name: located(section) for name, section in config.sections.items()})


def _given(args: ModelOptions, keys: Iterable[Option]) -> dict[str, Any]:
    """Return the values of those keys that options set."""
    return {key.name: args.keys[key.name] for key in keys if key.name in args.keys}


def config_from(args: ModelOptions) -> Config:
    """Return the configuration of a run, with the keys that its options set. Raises as ``models_from``."""
    config = models_from(args)
    changed = _given(args, KEYS)
    if isinstance(args, BatchedOptions) and args.batch:
        changed["cache"] = False  # batches store their answers themselves
    if "fusion" in changed:
        changed["fusion"] = config.fusion.with_errors(FusionConfig.model_validate(changed["fusion"]))
    config = config.model_copy(update=changed)
    if config.adapter is not None:
        adapter_in(config.adapter)  # an error before anything is estimated or sent
    config = config.with_tuned_fusion()
    if config.fusion.profile is not None:
        read_fusion_profile(config.fusion.profile)  # an error before anything is estimated or sent
    return config


def models_of(config: Config) -> list[StageConfig]:
    """Return the models that a configuration asks in its mode, fallbacks too, each as a section of its own."""
    return [model for section in config.in_mode().sections.values() for model in stage_models(section)]


def print_models(config: Config) -> None:
    """Print each model that a run asks, as its first line on stderr."""
    for line in dict.fromkeys(map(described, models_of(config))):
        print_note(line)


def described(model: StageConfig) -> str:
    """Return a model with the address and the variable of the key that are used, and its price if it is known."""
    key, price = key_variable(model), price_shown(model)
    parts = [f"{model.backend} at {address_shown(model)}", f"key {key}" if key else "", price]
    return ", ".join(filter(None, parts))


def settings_from(args: RunOptions) -> tuple[Config, int, RunLimits]:
    """Return the configuration of a run, the number of images in parallel, and the limits. Raises as these do."""
    config = config_from(args)
    return config, workers_from(args, config), limits_from(args, config)


def given(args: Arguments, options: Iterable[Option], *, but: Collection[str] = ()) -> list[str]:
    """Return the flags of the options that differ from their defaults, except those in ``but``."""
    changed = [
        option
        for option in options
        if (option.name in args.keys if option.key else getattr(args, option.name) != option.default)
    ]
    return [option.flags[0] for option in changed if option.flags[0] not in but]


def refuse_without_needed(args: Arguments) -> None:
    """Raise UserError if an option is given without the one that it needs."""
    options = [option for option in options_of(type(args)) if option.flags]
    present = given(args, options)
    for option in options:
        if option.needs and option.flags[0] in present and option.needs.split()[0] not in present:
            flag = f"{option.flags[0]} {getattr(args, option.name)}"
            raise UserError(f"{flag} needs {option.needs}: add it, or leave out {option.flags[0]}")


def limits_from(args: RunOptions, config: Config) -> RunLimits:
    """Return the limits of a run. Raises UserError for a limit in USD if the price of a model is unknown."""
    if config.max_usd is not None:
        require_prices(models_of(config), "--price", " beside --backend, or as price in the configuration")
    return RunLimits(Limits(max_calls=config.max_calls, max_usd=config.max_usd), args.workers)


def require_prices(models: Iterable[StageConfig], flag: str, otherwise: str = "") -> None:
    """Raise UserError if the price of a model is unknown; ``flag`` sets it, and ``otherwise`` says what else does."""
    for model in models:
        if price_of(model) is None:
            raise UserError(
                f"--max-usd needs a price, which is not known for {model.backend}: give it with {flag} IN,OUT (USD per "
                f"million tokens, such as 2.5,10){otherwise}"
            )


def workers_from(args: RunOptions, config: Config) -> int:
    """Return the number of images in parallel; the default depends on whether a model is asked, and on its server."""
    return args.workers or (available_cores() if config.is_offline else workers_for(models_of(config)))
