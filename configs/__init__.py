"""The shipped configuration, and the one model that reads it."""

from agenticiqa.configs.schema import (
    SMALLEST_SENT,
    STAGES,
    Config,
    ConfigError,
    ExecutorConfig,
    FusionConfig,
    LevelsConfig,
    LevelsPrompt,
    PlannerConfig,
    Price,
    StageConfig,
    SummarizerConfig,
    load_config,
)

__all__ = [
    "SMALLEST_SENT",
    "STAGES",
    "Config",
    "ConfigError",
    "ExecutorConfig",
    "FusionConfig",
    "LevelsConfig",
    "LevelsPrompt",
    "PlannerConfig",
    "Price",
    "StageConfig",
    "SummarizerConfig",
    "load_config",
]
