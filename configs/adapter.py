"""The pydantic model of what a score adapter says about itself."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, NonNegativeFloat, PositiveFloat, PositiveInt

from agenticiqa.configs.schema import Section

Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class AdapterAbout(Section):
    """The constants of an adapter, and the labels that it was fitted to; in levels where not said otherwise."""

    model_config = ConfigDict(strict=True)

    scorer: Digest
    digest: Digest
    labels: PositiveInt
    labels_sha256: str
    kind: Literal["labels", "comparisons"]
    level: float
    shipped: float
    """The share of the shipped score."""
    spread: PositiveFloat | None
    error: NonNegativeFloat | None
    images: list[Digest]
    kinds: list[str]
    version: str
    date: str
