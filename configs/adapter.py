"""The pydantic model of what a score adapter says about itself."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, PositiveInt

from agenticiqa.configs.schema import ErrorInLevels, Section

LARGEST = 100.0  # magnitude of any constant and weight; the scale has 4 levels
Constant = Annotated[float, Field(ge=-LARGEST, le=LARGEST)]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class AdapterAbout(Section):
    """The constants of an adapter, and the labels that it was fitted to; in levels where not said otherwise."""

    model_config = ConfigDict(strict=True)

    scorer: Digest
    digest: Digest
    labels: PositiveInt
    labels_sha256: str
    kind: Literal["labels", "comparisons"]
    level: Constant
    shipped: Constant
    """The share of the shipped score."""
    spread: ErrorInLevels | None
    error: ErrorInLevels | None
    images: list[Digest]
    kinds: list[str]
    version: str
    date: str
