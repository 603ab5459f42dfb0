"""Adapters: corrections of the learned scorer's score, fitted to a user's own labels and stored in a small file."""

import hashlib
import io
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agenticiqa.configs.user_files import read_regular
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.tools.numerics.predicted_mos import PredictedMOS
from agenticiqa.programs.tools.numerics.weights import arrays_in


@dataclass(frozen=True, eq=False)
class Adapter:
    """A score computed from a constant level, a share of the shipped score, and ``weights`` (F,) of the features.

    ``about`` has ``level`` and ``shipped``, the share; ``images``, the SHA-256 of the labeled ones; ``kinds``, those of
    ``outside_training`` among them; and in levels ``error`` and the ``spread`` that intervals are made of, ``None``
    where it was fitted to pairs.
    """

    name: str
    weights: NDArray[np.float32]
    about: Mapping[str, Any]

    def adapted(self, predicted: PredictedMOS, features: NDArray[np.float32]) -> PredictedMOS:
        """Return the MOS predicted by the user's labels, from the shipped prediction and the image's features (F,)."""
        # A sum, not a matrix product: the last bits of that may depend on the linear algebra library.
        change = float(np.sum(features * self.weights, dtype=np.float64))
        score = self.about["level"] + self.about["shipped"] * predicted.score + change
        return replace(predicted, score=min(max(score, 1.0), 5.0), spread=self.about["spread"] or predicted.spread)


def write_adapter(file: Path, weights: NDArray[np.float32], about: Mapping[str, Any]) -> None:
    """Write an adapter that :func:`read_adapter` reads."""
    from agenticiqa.programs.images.files import write_atomically  # late imports, because a metric needs neither this

    content = io.BytesIO()
    np.savez(content, weights=weights, about=np.array(json.dumps({**about, "digest": _digest(weights, about)})))
    write_atomically(file, content.getvalue())


def read_adapter(file: str | os.PathLike[str], scorer: str, features: int) -> Adapter:
    """Read an adapter of the scorer with this digest and number of features.

    Raises UserError, in one line, for any other file, and for a damaged one.
    """
    from agenticiqa.configs.adapter import LARGEST, AdapterAbout  # nor these, which load pydantic
    from agenticiqa.configs.schema import ConfigError, checked
    from agenticiqa.configs.yaml_json import json_value

    label = f"adapter {os.fspath(file)}"
    try:
        arrays = arrays_in(read_regular(file))
        weights, about = arrays["weights"], json_value(str(arrays["about"]))
        checked(AdapterAbout, about, "about")
        if about["digest"] != _digest(weights, about):
            raise ValueError("its content does not match its digest")
        is_usable = about["scorer"] != scorer or (weights.dtype == np.float32 and weights.shape == (features,))
        if not is_usable or not np.isfinite(weights).all():
            raise ValueError(f"expected {features} finite weights of float32, found {weights.dtype} {weights.shape}")
        if (largest := float(np.abs(weights).max())) > LARGEST:
            raise ValueError(f"a weight has the magnitude {largest:g}, at most {LARGEST:g} levels are possible")
    except OSError as error:
        raise UserError(f"{label}: cannot be read ({error.strerror or error}); name another file") from error
    except (ValueError, LookupError, TypeError, ConfigError) as error:
        why = " ".join(str(error).split())
        raise UserError(f"{label}: damaged, or not an adapter ({why}); fit one with calibrate adapter") from error
    if about["scorer"] != scorer:
        raise UserError(f"{label}: fitted to the scorer of another version; fit it again with calibrate adapter")
    return Adapter(Path(file).stem, weights, about)


def _digest(weights: NDArray[np.float32], about: Mapping[str, Any]) -> str:
    text = json.dumps({key: about[key] for key in sorted(about) if key != "digest"})
    return hashlib.sha256(f"{weights.dtype} {weights.shape}".encode() + weights.tobytes() + text.encode()).hexdigest()
