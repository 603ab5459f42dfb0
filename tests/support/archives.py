"""Tiny archives of public data sets in their true layouts."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.io import savemat

LIVE_FOLDERS = {"jp2k": 227, "jpeg": 233, "wn": 174, "gblur": 174, "fastfading": 174}


def images(folder: Path, names: Iterable[str]) -> None:
    for number, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        noise = np.random.default_rng(number).integers(0, 256, (48, 48, 3), np.uint8)
        Image.fromarray(noise).save(folder / name)


def cells(names: Iterable[str], shape: tuple[int, int]) -> np.ndarray:
    """A MATLAB cell array of texts."""
    made = np.empty(shape, dtype=object)
    made.ravel()[:] = list(names)
    return made


def live_r2(root: Path, *, mirrored: bool = False) -> Path:
    """All 982 rows, of three scenes; every fourth is an undamaged copy with DMOS 0. No images."""
    folder = root / "databaserelease2"
    folder.mkdir(parents=True)
    count = sum(LIVE_FOLDERS.values())
    orgs = (np.arange(count) % 4 == 0).astype(float)
    dmos = np.where(orgs == 1, 0.0, 20 + np.arange(count) / 20)
    dmos = 100 - dmos if mirrored else dmos
    scenes = [("bikes.bmp", "house.bmp", "ocean.bmp")[n % 3] for n in range(count)]
    savemat(folder / "dmos.mat", {"dmos": dmos[None], "orgs": orgs[None]})
    realigned = {"dmos_new": dmos[None] - 1, "dmos_std": np.full((1, count), 5.0), "orgs": orgs[None]}
    savemat(folder / "dmos_realigned.mat", realigned)
    savemat(folder / "refnames_all.mat", {"refnames_all": cells(scenes, (1, count))})
    return folder


def kadid10k(root: Path, *, scores: tuple[float, ...] = (4.57, 4.33, 1.5, 1.2)) -> Path:
    folder = root / "kadid10k"
    names = ["I01_01_01.png", "I02_01_01.png", "I01_01_05.png", "I02_01_05.png"]
    images(folder / "images", ["I01.png", "I02.png", *names])
    rows = [f"{name},{name[:3]}.png,{score},0.25" for name, score in zip(names, scores, strict=True)]
    (folder / "dmos.csv").write_text("\n".join(["dist_img,ref_img,dmos,var", *rows]) + "\n")
    return folder
