"""The Detector: a model finds the distortions of each region (paper, Sec. 3.2)."""

import json

from agenticiqa.programs.backends.choice import Backend
from agenticiqa.programs.backends.run_context import current
from agenticiqa.programs.images import LoadedImage, prompt_inputs
from agenticiqa.programs.stages.ask import CheckedPredict, Rejected
from agenticiqa.programs.stages.box_forms import boxes_for_prompt
from agenticiqa.programs.stages.protocols import Detected
from agenticiqa.programs.stages.side_by_side import StageModule
from agenticiqa.signatures.answers.requested import Requested
from agenticiqa.signatures.executor import MOST_REQUESTED, DetectDistortions, DetectedRegion, Detection
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
        listed_all: list[str] = []  # regions for which the last answer lists every category

        def check(answer: Detection) -> None:
            found = answer.by_region()
            if len(found) < len(answer.distortion_set):  # several rows for one region are one row
                answer.distortion_set = [DetectedRegion(region=name, distortions=found[name]) for name in found]
            everything = [row.region for row in answer.distortion_set if set(row.distortions) == set(DETECTABLE)]
            is_repeated = bool(listed_all)
            listed_all[:] = everything
            if everything and not is_repeated:
                raise Rejected(
                    f"distortion_set lists every category for {', '.join(everything)}, which says nothing; list only "
                    f"the most visible ones, at most {MOST_REQUESTED}"
                )

        inputs = {
            **prompt_inputs(image, reference),
            "query": query,
            "query_scope": json.dumps(regions, ensure_ascii=False),
            "boxes": boxes_for_prompt(boxes, image, self.ask.model),
        }
        reply = self.ask(inputs=inputs, check=check, requested=requested)
        if listed_all:
            note = (
                f"listed every distortion category for {', '.join(listed_all)}, so only the analysis tells them apart"
            )
            current().usage.note_parsing(self.ask.stage, [note])
        categories = reply.answer.by_region()
        return Detected({region: categories[region] for region in regions}, rejected_answers=reply.rejected_answers)
