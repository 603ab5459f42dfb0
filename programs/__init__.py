"""How the stages work together: ``AgenticIQA`` composes them."""

from agenticiqa.programs.assess import AgenticIQA

__all__ = ["AgenticIQA"]
