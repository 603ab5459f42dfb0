"""Tiny archives of public data sets in their true layouts."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from openpyxl import Workbook
from PIL import Image
from scipy.io import savemat

LIVE_FOLDERS = {"jp2k": 227, "jpeg": 233, "wn": 174, "gblur": 174, "fastfading": 174}


def images(folder: Path, names: Iterable[str]) -> None:
    for number, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        noise = np.random.default_rng(number).integers(0, 256, (48, 48, 3), np.uint8)
        Image.fromarray(noise).save(folder / name)


def cells(names: Iterable[str], shape: tuple[int, int]) -> np.ndarray:
    """Return a MATLAB cell array of texts."""
    made = np.empty(shape, dtype=object)
    made.ravel()[:] = list(names)
    return made


def live_r2(root: Path, *, mirrored: bool = False) -> Path:
    """Write all 982 rows, with three scenes; every fourth is an undamaged copy with DMOS 0. No images."""
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


def sheet(file: Path, lines: Iterable[Iterable[object]], name: str = "Sheet1") -> None:
    book = Workbook()
    book.active.title = name
    for line in lines:
        book.active.append(list(line))
    file.parent.mkdir(parents=True, exist_ok=True)
    book.save(file)


def live_md(root: Path, *, mirrored: bool = False) -> Path:
    folder = root / "LIVEmultidistortiondatabase"
    references = ["cows.bmp", "seals.bmp"]
    for part, name, other in (("Part 1", "blurjpeg", "jpeg"), ("Part 2", "blurnoise", "noise")):
        distorted = [f"seals_blur1_{other}2.bmp", f"seals_{other}1.bmp", "cows_blur3.bmp"]
        images(folder / part / name, [*references, *distorted])
        lists = {"refimgs": cells(references, (2, 1)), "distimgs": cells(distorted, (3, 1))}
        savemat(folder / part / "Imagelists.mat", lists | {"ref4dist": np.array([[2], [2], [1]])})
        scores = np.array([[44.4, 5.8, 72.4]])
        savemat(folder / part / "Scores.mat", {"DMOSscores": 100 - scores if mirrored else scores})
    return folder


def csiq(root: Path, *, mirrored: bool = False) -> Path:
    folder = root / "CSIQ"
    images(folder / "src_imgs", ["1600.png", "turtle.png"])
    images(folder / "dst_imgs", ["awgn/1600.AWGN.1.png", "jpeg2000/turtle.jpeg2000.5.png"])
    rows = [(1600, 1, "noise", 1, 0.05, 0.06), ("turtle", 6, "jpeg 2000", 5, 0.1, 0.9), (None,) * 6]
    rows = [(*row[:5], 1 - row[5]) if mirrored and row[0] else row for row in rows]
    header = ("image", "dst_idx", "dst_type", "dst_lev", "dmos_std", "dmos")
    lines = [(), ("DMOS",), (), *((None, None, None, *row) for row in (header, *rows))]
    sheet(folder / "csiq.DMOS.xlsx", lines, "all_by_image")
    return folder


def tid(root: Path, name: str, *, mirrored: bool = False) -> Path:
    """Write TID2008 or TID2013, with file names in another case than in the list."""
    folder = root / name
    images(folder, ["reference_images/I01.BMP", "reference_images/i25.bmp"])
    images(folder / "distorted_images", ["i01_01_1.bmp", "I25_09_4.bmp"])
    scores = (2.5, 5.5) if mirrored else (5.5, 2.5)
    (folder / "mos_with_names.txt").write_text(f"{scores[0]} I01_01_1.bmp\n{scores[1]} i25_09_4.bmp\n")
    (folder / "mos_std.txt").write_text("0.13\n0.15\n")
    return folder


def pipal(root: Path) -> Path:
    folder = root / "PIPAL"
    images(folder, ["Train_Ref/A0001.bmp", "Train_Ref/A0185.bmp"])
    images(folder, ["Distortion_1/A0001_00_00.bmp", "Distortion_4/A0185_06_03.bmp"])
    (folder / "Train_Label").mkdir()
    (folder / "Train_Label/A0001.txt").write_text("A0001_00_00.bmp,1520.0648\n")
    (folder / "Train_Label/A0185.txt").write_text("A0185_06_03.bmp,1037.5\n")
    return folder


def clive(root: Path, *, training: str = "t") -> Path:
    folder = root / "ChallengeDB_release"
    names = [*(f"{training}{number}.bmp" for number in range(1, 8)), "3.bmp", "1159.JPG"]
    images(folder / "Images", [*(f"trainingImages/{name}" for name in names[:7]), *names[7:]])
    (folder / "Data").mkdir()
    columns = {
        "AllImages_release": cells(names, (9, 1)),
        "AllMOS_release": np.array([[50.0] * 7 + [21.7, 87.1]]),
        "AllStdDev_release": np.array([[9.0] * 7 + [15.1, 14.6]]),
    }
    for name, values in columns.items():
        savemat(folder / f"Data/{name}.mat", {name: values})
    return folder


def koniq10k(root: Path, *, mirrored: bool = False) -> Path:
    folder = root / "koniq10k"
    images(folder / "1024x768", ["10004473376.jpg", "10319713194.jpg", "10043785683.jpg"])
    scores = (22.6, 92.0, 28.8) if mirrored else (77.4, 8.0, 71.2)
    (folder / "koniq10k_distributions_sets.csv").write_text(
        "image_name,c1,c2,c3,c4,c5,c_total,MOS,SD,set\n"
        f"10004473376.jpg,0.0,0.0,0.24,0.69,0.07,105,{scores[0]},0.53,training\n"
        f"10319713194.jpg,0.73,0.27,0.0,0.0,0.0,112,{scores[1]},0.44,test\n"
        f"10043785683.jpg,0.0,0.0,0.43,0.57,0.0,106,{scores[2]},0.50,validation\n"
    )
    return folder


def spaq(root: Path) -> Path:
    folder = root / "SPAQ"
    images(folder / "TestImage", ["00001.jpg", "00002.jpg"])
    lines = [("Image name", "MOS", "Brightness"), ("00001.jpg", 33.5, 60), ("00002.jpg", 81, 47.3)]
    sheet(folder / "Annotations/MOS and Image attribute scores.xlsx", lines)
    return folder


def bid(root: Path) -> Path:
    folder = root / "BID"
    images(folder / "ImageDatabase", ["DatabaseImage0001.JPG", "DatabaseImage0586.JPG"])
    lines = [("Image Number", "Average Subjective Grade", "std"), (1, 1.25, 0.8), (586, 4.5, 0.4)]
    sheet(folder / "DatabaseGrades.xlsx", lines, "Plan1")
    return folder


def biq2021(root: Path) -> Path:
    folder = root / "BIQ2021"
    images(folder / "Images", ["ss03 (2898).jpg", "ss01 (512).jpg"])
    (folder / "Train (Images and MOS).csv").write_text("Image Name,MOS,,\nss03 (2898).jpg,0.8089,,\n")
    (folder / "Test (Images and MOS).csv").write_text("Image Name,MOS,,\nss01 (512).jpg,0.1995,,\n")
    return folder


def agiqa3k(root: Path) -> Path:
    folder = root / "AGIQA-3K"
    images(folder, ["AttnGAN_normal_000.jpg", "sd1.5_lowstep_000.jpg", "sd1.5_lowstep_060.jpg"])
    (folder / "data.csv").write_text(
        "name,prompt,adj1,adj2,style,mos_quality,std_quality,mos_align,std_align\n"
        "AttnGAN_normal_000.jpg,statue of a man,,,,0.965602553,0.22,0.41,0.62\n"
        "sd1.5_lowstep_000.jpg,statue of a man,,,,3.2,0.4,3.9,0.2\n"
        'sd1.5_lowstep_060.jpg,"artwork with only triangles, anime style",,,anime style,2.1,0.7,0.9,0.8\n'
    )
    return folder


def avt_ai(root: Path, *, place: str = "quality_evaluation") -> Path:
    folder = root / "avt_ai_images"
    images(folder / "images", ["craiyon/p19.png", "own/p19.png"])
    (folder / "images/prompts.csv").write_text("ID,prompts,category\np19,Apollo 9 command module ,own\n")
    (folder / place).mkdir()
    (folder / place / "quality.csv").write_text(
        "image_key,rating,std,prompt\ncraiyon/p19,2.76,0.97,p19\nown/p19,3.84,1.14,p19\n"
    )
    return folder
