"""Image quality metrics: each a plain function, described by a card in one dict."""

from agenticiqa.programs.tools.catalog import CARDS, toolbox
from agenticiqa.programs.tools.tool import Tool, find_card, run_tool

__all__ = ["CARDS", "Tool", "find_card", "run_tool", "toolbox"]
