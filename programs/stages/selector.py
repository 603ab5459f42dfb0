"""The Selector: a model chooses, from their descriptions, the tools that measure distortions (paper, Sec. 3.2)."""

import json

from agenticiqa.programs.backends.choice import Backend
from agenticiqa.programs.stages.ask import CheckedPredict, Rejected, match_requested, require_same
from agenticiqa.programs.stages.protocols import Selected
from agenticiqa.programs.stages.side_by_side import StageModule
from agenticiqa.programs.tools.tool import Tool, find_tool
from agenticiqa.signatures.executor import Selection, SelectTools
from agenticiqa.signatures.types import Distortions


class Selector(StageModule):
    """Asks a model, by text only, which tool suits which distortion. Without distortions no request is sent."""

    def __init__(self, *, backend: Backend | None = None, attempts: int = 3) -> None:
        super().__init__()
        self.ask: CheckedPredict[Selection] = CheckedPredict(
            SelectTools, stage="tool_selection", backend=backend, attempts=attempts
        )

    def forward(self, distortion_set: Distortions, tools: list[Tool]) -> Selected:
        """See ``protocols.SelectorStage``."""
        present = {region: names for region, names in distortion_set.items() if names}
        if not present:
            return Selected({})
        pairs = {(region, name) for region, names in present.items() for name in names}
        available = [tool.name for tool in tools]

        def check(answer: Selection) -> None:
            for row in answer.selected_tools:
                row.region, row.tool = match_requested(row.region, present), find_tool(row.tool, available) or row.tool
            chosen = {(row.region, row.distortion) for row in answer.selected_tools}
            require_same("pairs of region and distortion", chosen, pairs)
            unknown = sorted({row.tool for row in answer.selected_tools} - set(available))
            if unknown:
                raise Rejected(f"there is no tool {', '.join(unknown)}; the available tools are {', '.join(available)}")

        inputs = {
            "available_tools": "\n".join(tool.line_for({name for _, name in pairs}) for tool in tools),
            "distortion_set": json.dumps(present, ensure_ascii=False),
        }
        reply = self.ask(inputs=inputs, check=check)
        return Selected(reply.answer.by_region(), reply.rejected_answers)
