"""The Locator: a model finds the regions that a question names."""

import json
import re
from contextlib import suppress
from dataclasses import replace

from agenticiqa.programs.backends.choice import Backend
from agenticiqa.programs.images import LoadedImage
from agenticiqa.programs.stages.ask import CheckedPredict, Rejected
from agenticiqa.programs.stages.box_forms import BoxForm, box_form
from agenticiqa.programs.stages.protocols import Located
from agenticiqa.programs.stages.side_by_side import StageModule
from agenticiqa.signatures.answers.requested import Requested
from agenticiqa.signatures.executor import LocateRegions, Location
from agenticiqa.signatures.types import Boxes

COORDINATES = re.compile(r"\d\W+\d")  # two numbers in a row, as in a list or an object
Y_FIRST_KEY = "box_2d"  # the key of Gemini's boxes, which have y first
REPEATED = "because the model repeated them after a request for another format"


class Locator(StageModule):
    """Asks a model for a box around each region, or whether the region is missing in the image.

    A wrong box is requested again with the reason, but an answer without coordinates is not: the model gives no boxes.
    """

    def __init__(self, *, backend: Backend | None = None, attempts: int = 3) -> None:
        super().__init__()
        self.ask: CheckedPredict[Location] = CheckedPredict(
            LocateRegions, stage="localization", backend=backend, attempts=attempts, worth_correcting=COORDINATES.search
        )

    def forward(self, image: LoadedImage, regions: list[str]) -> Located:
        """See ``protocols.LocatorStage``."""
        model = self.ask.model
        form = box_form(model, image.sent_size)
        contradictory: list[Location] = []
        used = form

        def check(answer: Location) -> None:
            nonlocal used
            if not form.y_first and any(Y_FIRST_KEY in row.other_keys for row in answer.regions):
                raise Rejected(f"a box_2d may have y first; give {form.asked}, under the key box")
            used = form
            try:
                in_pixels(answer, form, image)
            except ValueError as contradiction:
                used = form.repeated(image.sent_size)
                contradictory.append(answer)
                if answer not in contradictory[:-1] or not _is_readable(answer, used, image):
                    raise Rejected(str(contradiction)) from contradiction

        inputs = {"image": image, "regions": json.dumps(regions, ensure_ascii=False), "form": form.asked}
        requested = Requested(rows={"regions": [{"region": region} for region in regions]})
        reply = self.ask(inputs=inputs, check=check, requested=requested)
        boxes = in_pixels(reply.answer, used, image)
        why = "" if used == form else REPEATED
        if reply.model != model:  # a fallback model got the prompt with the first model's box form
            used = replace(used, family=None)
        notes = [used.note(why)] if any(boxes.values()) else []
        return Located({region: boxes[region] for region in regions}, notes, reply.rejected_answers)


def _is_readable(answer: Location, form: BoxForm, image: LoadedImage) -> bool:
    with suppress(ValueError):
        in_pixels(answer, form, image)
        return True
    return False


def in_pixels(answer: Location, form: BoxForm, image: LoadedImage) -> Boxes:
    """Return the boxes of an answer in pixels of the image. Raises ValueError if one contradicts the form."""
    return {row.region: form.in_pixels(row.box, image.size) if row.is_seen else None for row in answer.regions}
