"""Adapters: a correction of the learned scorer's score, fitted to a user's own labels.

An adapter is one ``.npz`` file: ``weights`` of the scorer's features, ``images``, the SHA-256 of the images that it was
fitted to, and ``about``, a JSON text that says what it was fitted to and what it gained. The digest in ``about`` is of
all of it. ``eval/calibrate/adapter_fit.py`` fits it.
"""

import hashlib
import io
import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agenticiqa.configs.reading import json_value
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.files import write_atomically
from agenticiqa.programs.tools.numerics.opinion import Opinion

LARGEST = 32 * 1024 * 1024  # bytes of the arrays; an adapter to a thousand labels has 0.2 MB
NEEDED = {"scorer": str, "features": int, "labels": int, "labels_sha256": str, "shipped": float, "level": float}


@dataclass(frozen=True, eq=False)
class Adapter:
    """A score of a ``level``, a share of the ``shipped`` score, and ``weights`` (F,) of the scorer's features.

    ``images`` are the SHA-256 of the images of its labels. ``about`` has what ``NEEDED`` lists (the level and the
    share among it), and ``error``, the
    error on held-out labels, and ``spread``, the deviation that the intervals are made of; both in levels, and
    ``None`` for an adapter that was fitted to pairs.
    """

    name: str
    digest: str
    weights: NDArray[np.float32]
    images: frozenset[str]
    about: Mapping[str, Any]

    @property
    def kinds(self) -> frozenset[str]:
        """The reasons of ``outside_training`` that many of the labeled images have: its errors hold for such images."""
        return frozenset(self.about.get("kinds") or ())

    def adapted(self, shipped: Opinion, features: NDArray[np.float32]) -> Opinion:
        """The opinion by the user's labels, from the shipped one and the image's features (F,)."""
        # A sum, not a matrix product: the last bits of that may depend on the linear algebra library.
        change = float(np.sum(features * self.weights, dtype=np.float64)) + self.about["level"]
        score = change + self.about["shipped"] * shipped.score
        return replace(shipped, score=min(max(score, 1.0), 5.0), spread=self.about.get("spread") or shipped.spread)


def digest_of(weights: NDArray[np.float32], images: list[str], about: Mapping[str, Any]) -> str:
    """The digest of an adapter's content."""
    text = json.dumps([images, {key: about[key] for key in sorted(about) if key != "digest"}])
    return hashlib.sha256(weights.tobytes() + text.encode()).hexdigest()


def write_adapter(file: Path, weights: NDArray[np.float32], images: list[str], about: Mapping[str, Any]) -> None:
    """Write an adapter that :func:`read_adapter` reads."""
    content, images = io.BytesIO(), sorted(images)
    whole = {**about, "digest": digest_of(weights, images, about)}
    np.savez(content, weights=weights, images=np.array(images), about=np.array(json.dumps(whole)))
    write_atomically(file, content.getvalue())


def read_adapter(file: str | os.PathLike[str], scorer: str, features: int) -> Adapter:
    """Read an adapter of the scorer with this digest and number of features.

    Raises UserError, in one line, for a file that is missing, damaged, no adapter, or one of another scorer.
    """
    shown = f"adapter {os.fspath(file)}"
    again = "fit it with 'agenticiqa calibrate LABELS --adapt'"
    try:
        with zipfile.ZipFile(file) as archive:
            if sum(member.file_size for member in archive.infolist()) > LARGEST:
                raise ValueError("it is too large")
        with np.load(file, allow_pickle=False) as arrays:
            weights, images = arrays["weights"], [str(each) for each in arrays["images"].ravel()]
            about: dict[str, Any] = json_value(str(arrays["about"]))
        wrong = [key for key, kind in NEEDED.items() if not isinstance(about[key], kind)]
        if wrong or about["digest"] != digest_of(weights, images, about):
            raise ValueError(f"{wrong[0]} is missing" if wrong else "its content does not have its digest")
    except OSError as error:
        raise UserError(f"{shown}: cannot be read ({error.strerror or error}); {again}") from error
    except (ValueError, KeyError, TypeError, EOFError, NotImplementedError, zipfile.BadZipFile, zlib.error) as error:
        raise UserError(f"{shown}: damaged, or no adapter ({' '.join(str(error).split())}); {again}") from error
    if about["scorer"] != scorer or weights.shape != (features,) or weights.dtype != np.float32:
        raise UserError(
            f"{shown}: it was fitted to another scorer ({about['scorer'][:12]}, now {scorer[:12]}); {again}"
        )
    return Adapter(Path(file).stem, about["digest"], weights, frozenset(images), about)
