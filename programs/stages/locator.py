"""Asks a model where the regions are that a question names."""

import json
from collections import Counter

import dspy

from agenticiqa.programs.backends.connect import Backend
from agenticiqa.programs.images import LoadedImage
from agenticiqa.programs.images.regions import WHOLE, in_pixels
from agenticiqa.programs.stages.ask import CheckedPredict, Rejected
from agenticiqa.programs.stages.executor import same
from agenticiqa.programs.stages.flow import Call, Flow, Stage
from agenticiqa.signatures.executor import LocateRegions, Location


class Locator(Stage):
    """Asks a model for a box around each region, or to say that it is not in the image."""

    def __init__(self, *, backend: Backend | None = None, attempts: int = 3) -> None:
        super().__init__()
        self.ask = CheckedPredict(LocateRegions, stage="localisation", backend=backend, attempts=attempts)

    def steps(self, image: LoadedImage, regions: list[str]) -> Flow[dspy.Prediction]:
        """A prediction of ``boxes`` ({region: box in pixels, or None where the model found none}) and ``retries``."""

        def check(answer: Location) -> None:
            names = Counter(row.region for row in answer.regions)
            same("regions", set(names), set(regions))
            twice = [name for name, count in names.items() if count > 1]
            if twice:
                raise Rejected(f"these regions have more than one box: {', '.join(twice)}; give one around all of it")

        inputs = {"image": image, "regions": json.dumps(regions, ensure_ascii=False)}
        reply = yield Call(self.ask, {"inputs": inputs, "check": check})
        found = {row.region: row.box and in_pixels(row.box, image.size, WHOLE) for row in reply.answer.regions}
        return dspy.Prediction(boxes={region: found[region] for region in regions}, retries=reply.retries)
