"""The Locator: a model finds the regions that a question names."""

import json
from collections import Counter

from agenticiqa.programs.backends.choice import Backend
from agenticiqa.programs.images import LoadedImage
from agenticiqa.programs.images.regions import WHOLE, in_pixels
from agenticiqa.programs.stages.ask import CheckedPredict, Rejected, match_requested, require_same
from agenticiqa.programs.stages.protocols import Located
from agenticiqa.programs.stages.side_by_side import StageModule
from agenticiqa.signatures.executor import LocateRegions, Location


class Locator(StageModule):
    """Asks a model for a box around each region, or to say that it is not in the image."""

    def __init__(self, *, backend: Backend | None = None, attempts: int = 3) -> None:
        super().__init__()
        self.ask: CheckedPredict[Location] = CheckedPredict(
            LocateRegions, stage="localization", backend=backend, attempts=attempts
        )

    def forward(self, image: LoadedImage, regions: list[str]) -> Located:
        """See ``protocols.LocatorStage``."""

        def check(answer: Location) -> None:
            for row in answer.regions:
                row.region = match_requested(row.region, regions)
            names = Counter(row.region for row in answer.regions)
            require_same("regions", set(names), set(regions))
            twice = [name for name, count in names.items() if count > 1]
            if twice:
                raise Rejected(f"these regions have more than one box: {', '.join(twice)}; give one around all of it")

        inputs = {"image": image, "regions": json.dumps(regions, ensure_ascii=False)}
        reply = self.ask(inputs=inputs, check=check)
        found = {row.region: in_pixels(row.box, image.size, WHOLE) if row.box else None for row in reply.answer.regions}
        boxes = {region: found[region] for region in regions}
        return Located(boxes, rejected_answers=reply.rejected_answers)
