"""Image quality metrics: each a plain function, described by a card in one dict."""

from agenticiqa.programs.tools.catalog import TOOLS, toolbox
from agenticiqa.programs.tools.tool import Tool, find_tool, get_tool, run_tool

__all__ = ["TOOLS", "Tool", "find_tool", "get_tool", "run_tool", "toolbox"]
