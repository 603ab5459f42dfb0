"""The options that several commands share, and what is made of them."""

from argparse import Namespace

from agenticiqa.configs import SMALLEST_SENT, Config, load_config
from agenticiqa.programs.backends.choice import AMBIENT
from agenticiqa.programs.backends.cores import WORKERS, available_cores, workers_given
from agenticiqa.programs.backends.ledger import IN_FLIGHT, Limits
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.fusion.profile import read_fusion_profile
from agenticiqa.programs.tools.metrics.learned_iqa import adapter_in


def models_from(args: Namespace) -> Config:
    """The configuration with the models that the options name. Raises UserError or ConfigError."""
    if args.api_base and not args.backend:
        raise UserError("--api-base needs --backend: name the model that the server runs, such as vllm.Qwen2.5-VL")
    config = load_config(args.config)
    if args.backend:
        config = config.with_backend(args.backend, args.api_base)
    if AMBIENT in [section.backend for section in config.sections.values()]:
        raise UserError(
            "backend dspy asks the model of a Python program: here name one, such as --backend openai.gpt-4o"
        )
    return config


def config_from(args: Namespace) -> Config:
    """The configuration of a run as the options set it. Raises UserError or ConfigError."""
    config = models_from(args)
    if args.prompts:
        config = config.model_copy(update={"prompts": args.prompts})
    if args.adapter:
        config = config.model_copy(update={"adapter": args.adapter})
    if config.adapter is not None:
        adapter_in(config.adapter)  # which raises before anything is estimated or sent
    config = config.with_tuned_fusion()
    if config.fusion.profile is not None:
        read_fusion_profile(config.fusion.profile)  # which raises before anything is estimated or sent
    if args.max_side is not None and args.max_side < SMALLEST_SENT:
        raise UserError(f"--max-side must be at least {SMALLEST_SENT}, got {args.max_side}")
    uncached = args.no_cache or vars(args).get("batch")  # batches keep their answers in their own place
    given = {"profile": args.profile, "max_side": args.max_side, "cache": False if uncached else None}
    return config.model_copy(update={name: value for name, value in given.items() if value is not None})


def limits_from(args: Namespace, config: Config) -> Limits:
    """The limits that the options set. Raises UserError for a limit in USD where a stage has no price."""
    for name, limit in (("--max-calls", args.max_calls), ("--max-usd", args.max_usd)):
        if limit is not None and limit < 0:
            raise UserError(f"{name} must be at least 0, got {limit:g}")
    if args.max_usd is not None:
        stages = config.in_profile().sections
        unpriced = [name for name, stage in stages.items() if not stage.is_offline and stage.price is None]
        if unpriced:
            raise UserError(f"--max-usd needs the price of tokens: set price for {', '.join(unpriced)} in --config")
    return Limits(args.max_calls, args.max_usd, args.workers or IN_FLIGHT)


def workers_from(args: Namespace, config: Config) -> int:
    """The number of images in parallel, by default as fits the configuration. Raises UserError for less than 1."""
    return workers_given(args.workers, available_cores() if config.is_offline else WORKERS)
