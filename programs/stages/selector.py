"""The Selector: a model chooses, from their descriptions, the tools that measure distortions (paper, Sec. 3.2)."""

import json

from agenticiqa.programs.backends.choice import Backend
from agenticiqa.programs.stages.ask import CheckedPredict
from agenticiqa.programs.stages.protocols import Selected
from agenticiqa.programs.stages.side_by_side import StageModule
from agenticiqa.programs.tools.tool import Tool, find_tool, tools_for
from agenticiqa.signatures.answers.requested import Requested
from agenticiqa.signatures.executor import Selection, SelectTools
from agenticiqa.signatures.types import Distortions


class Selector(StageModule):
    """Asks a model, by text only, which tool suits which distortion. Without both, no request is sent.

    The model chooses from the tools that follow one of these distortions (``tools_for``).
    """

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
        pairs = [{"region": region, "distortion": name} for region, names in present.items() for name in names]
        categories = {pair["distortion"] for pair in pairs}
        suited = tools_for(categories, tools)
        if not suited:
            return Selected({})
        available = [tool.name for tool in suited]

        def check(answer: Selection) -> None:
            for row in answer.selected_tools:
                row.tool = find_tool(row.tool, available) or row.tool

        inputs = {
            "available_tools": "\n".join(tool.line_for(categories) for tool in suited),
            "distortion_set": json.dumps(present, ensure_ascii=False),
        }
        requested = Requested(rows={"selected_tools": pairs}, choices={"tool": available})
        reply = self.ask(inputs=inputs, check=check, requested=requested)
        return Selected(reply.answer.by_region(), reply.rejected_answers)
