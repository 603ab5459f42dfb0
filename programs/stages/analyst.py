"""The Analyst: a model rates the severity of every distortion of every region (paper, Sec. 3.2)."""

import json

from agenticiqa.programs.backends.choice import Backend
from agenticiqa.programs.images import LoadedImage, prompt_inputs
from agenticiqa.programs.stages.ask import CheckedPredict
from agenticiqa.programs.stages.box_forms import boxes_for_prompt
from agenticiqa.programs.stages.protocols import Analyzed
from agenticiqa.programs.stages.side_by_side import StageModule
from agenticiqa.signatures.answers.requested import Requested
from agenticiqa.signatures.executor import Analysis, AnalyzeDistortions
from agenticiqa.signatures.types import Boxes, Distortions


class Analyst(StageModule):
    """Asks a model how severe each distortion is, and why. Without distortions no request is sent."""

    def __init__(self, *, backend: Backend | None = None, attempts: int = 3) -> None:
        super().__init__()
        self.ask: CheckedPredict[Analysis] = CheckedPredict(
            AnalyzeDistortions, stage="distortion_analysis", backend=backend, attempts=attempts
        )

    def forward(
        self, image: LoadedImage, query: str, distortion_set: Distortions, boxes: Boxes, reference: LoadedImage | None
    ) -> Analyzed:
        """See ``protocols.AnalystStage``."""
        present = {region: names for region, names in distortion_set.items() if names}
        if not present:
            return Analyzed({region: [] for region in distortion_set})
        pairs = [{"region": region, "type": name} for region, names in present.items() for name in names]
        inputs = {
            **prompt_inputs(image, reference),
            "query": query,
            "distortion_set": json.dumps(present, ensure_ascii=False),
            "boxes": boxes_for_prompt(boxes, image, self.ask.model),
        }
        reply = self.ask(inputs=inputs, requested=Requested(rows={"distortion_analysis": pairs}))
        rows = reply.answer.by_region()
        analysis = {region: rows.get(region, []) for region in distortion_set}
        return Analyzed(analysis, rejected_answers=reply.rejected_answers)
