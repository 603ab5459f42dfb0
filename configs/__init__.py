"""The shipped configuration, and the one model that reads it."""

from agenticiqa.configs.schema import Config, ConfigError, FusionConfig, PlannerConfig, Price, StageConfig, load_config

__all__ = ["Config", "ConfigError", "FusionConfig", "PlannerConfig", "Price", "StageConfig", "load_config"]
