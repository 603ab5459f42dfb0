"""The Detector: a model finds the distortions of each region (paper, Sec. 3.2)."""

import json

from agenticiqa.programs.backends.choice import Backend
from agenticiqa.programs.images import LoadedImage, prompt_inputs
from agenticiqa.programs.stages.ask import CheckedPredict, match_requested, require_same
from agenticiqa.programs.stages.box_forms import boxes_for_prompt
from agenticiqa.programs.stages.protocols import Detected
from agenticiqa.programs.stages.side_by_side import StageModule
from agenticiqa.signatures.executor import DetectDistortions, Detection
from agenticiqa.signatures.types import Boxes


class Detector(StageModule):
    """Asks a model which distortions each region has."""

    def __init__(self, *, backend: Backend | None = None, attempts: int = 3) -> None:
        super().__init__()
        self.ask: CheckedPredict[Detection] = CheckedPredict(
            DetectDistortions, stage="distortion_detection", backend=backend, attempts=attempts
        )

    def forward(
        self, image: LoadedImage, query: str, regions: list[str], boxes: Boxes, reference: LoadedImage | None
    ) -> Detected:
        """See ``protocols.DetectorStage``."""

        def check(answer: Detection) -> None:
            for row in answer.distortion_set:
                row.region = match_requested(row.region, regions)
            require_same("regions", set(answer.by_region()), set(regions))

        inputs = {
            **prompt_inputs(image, reference),
            "query": query,
            "query_scope": json.dumps(regions, ensure_ascii=False),
            "boxes": boxes_for_prompt(boxes, image, self.ask.model),
        }
        reply = self.ask(inputs=inputs, check=check)
        categories = reply.answer.by_region()
        return Detected({region: categories[region] for region in regions}, rejected_answers=reply.rejected_answers)
