"""Image quality metrics: each a plain function, described by a card in one dict."""

from agenticiqa.programs.tools.card import ToolCard, find_card, run_tool
from agenticiqa.programs.tools.cards import CARDS, toolbox

__all__ = ["CARDS", "ToolCard", "find_card", "run_tool", "toolbox"]
