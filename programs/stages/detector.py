"""The Detector: a model finds the distortions of each region (paper, Sec. 3.2)."""

import json

from agenticiqa.programs.backends.choice import Backend
from agenticiqa.programs.images import LoadedImage, prompt_inputs
from agenticiqa.programs.stages.ask import CheckedPredict, Rejected
from agenticiqa.programs.stages.box_forms import boxes_for_prompt
from agenticiqa.programs.stages.protocols import Detected
from agenticiqa.programs.stages.side_by_side import StageModule
from agenticiqa.signatures.answers.requested import Requested
from agenticiqa.signatures.executor import DetectDistortions, DetectedRegion, Detection
from agenticiqa.signatures.types import Boxes
from agenticiqa.signatures.vocabulary import DETECTABLE


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
        requested = Requested(rows={"distortion_set": [{"region": region} for region in regions]})

        def check(answer: Detection) -> None:
            answer.distortion_set = [
                DetectedRegion(region=region, distortions=names) for region, names in answer.by_region().items()
            ]
            for row in answer.distortion_set:
                if set(row.distortions) == set(DETECTABLE):
                    raise Rejected(
                        f"distortion_set lists every category for {row.region}, which says nothing; list only those "
                        "that are clearly visible"
                    )

        inputs = {
            **prompt_inputs(image, reference),
            "query": query,
            "query_scope": json.dumps(regions, ensure_ascii=False),
            "boxes": boxes_for_prompt(boxes, image, self.ask.model),
        }
        reply = self.ask(inputs=inputs, check=check, requested=requested)
        categories = reply.answer.by_region()
        return Detected({region: categories[region] for region in regions}, rejected_answers=reply.rejected_answers)
