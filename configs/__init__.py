"""The shipped configurations and the pydantic model that reads them."""

from importlib import import_module
from typing import TYPE_CHECKING

from agenticiqa.configs.options import SMALLEST_SENT as SMALLEST_SENT

if TYPE_CHECKING:
    from agenticiqa.configs.schema import STAGES as STAGES
    from agenticiqa.configs.schema import Config as Config
    from agenticiqa.configs.schema import ConfigError as ConfigError
    from agenticiqa.configs.schema import ExecutorConfig as ExecutorConfig
    from agenticiqa.configs.schema import FusionConfig as FusionConfig
    from agenticiqa.configs.schema import LevelsConfig as LevelsConfig
    from agenticiqa.configs.schema import LevelsPrompt as LevelsPrompt
    from agenticiqa.configs.schema import PlannerConfig as PlannerConfig
    from agenticiqa.configs.schema import PlanRules as PlanRules
    from agenticiqa.configs.schema import Price as Price
    from agenticiqa.configs.schema import Rating as Rating
    from agenticiqa.configs.schema import ReplanConfig as ReplanConfig
    from agenticiqa.configs.schema import StageConfig as StageConfig
    from agenticiqa.configs.schema import SummarizerConfig as SummarizerConfig
    from agenticiqa.configs.schema import checked as checked
    from agenticiqa.configs.schema import load_config as load_config


if not TYPE_CHECKING:  # a type checker uses the imports above, and reports names that do not exist

    def __getattr__(name):
        """Load a name on first use (PEP 562), so that --help reads the options without pydantic."""
        return getattr(import_module("agenticiqa.configs.schema"), name)
