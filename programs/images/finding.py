"""Find the images in the files and folders that a user names, and count files that cannot be assessed."""

import logging
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from agenticiqa.programs.errors import ImageError
from agenticiqa.programs.images.decoding import refuse
from agenticiqa.programs.images.extra_formats import EXTRA_FORMATS, ExtraFormat, format_by_content, format_by_suffix
from agenticiqa.programs.images.files import printable_path
from agenticiqa.programs.images.names import expanded
from agenticiqa.programs.images.own import is_own, is_shard_folder
from agenticiqa.programs.images.sources import is_in_memory, local_path, without_scheme
from agenticiqa.programs.images.tables import table_rows

logger = logging.getLogger(__name__)

# Suffixes, in lower case.
READ = re.compile(
    r"\.(jpe?g|jpe|jfif|mpo|a?png|webp|bmp|dib|gif|tiff?|p[bgnp]m|jp2|j2[ckp]|jp[cfx]|avifs?|tga|qoi|sgi|rgba?|bw|dds|pcx)"
)
RAW = re.compile(
    r"\.(3fr|arw|cr[23w]|dcr|dng|erf|fff|iiq|k25|kdc|mef|mos|mrw|nef|nrw|orf|pef|ptx|raf|raw|rw[2l]|sr[2fw]|x3f)"
)
# Files of editors and renderers; icons, documents and drawings; files of instruments.
OTHER = re.compile(
    r"\.(jxl|psd|psb|xcf|kra|exr|hdr|ico|icns|cur|ani|pdf|svgz?|e?ps|ai|wmf|emf|fits?|fts|dcm|pfm|jxr|wdp)"
)
DATA_SETS = re.compile(r"\.(tar|parquet)")
LONGEST_SIGNATURE = 12  # bytes
# The first bytes of supported formats, for files without a meaningful suffix.
SIGNATURE = re.compile(
    rb"\xff\xd8\xff|\x89PNG|RIFF.{4}WEBP|GIF8|II\*\0|MM\0\*|\0\0\0\x0cjP  |\xff\x4f\xff\x51|.{4}ftypavi[fs]", re.DOTALL
)
BROKEN_LINK, LINKED_FOLDER, UNREADABLE, SPECIAL = "broken link", "linked folder", "unreadable folder", "device or pipe"
OWN, IN_SYSTEM_FOLDER = "image written by this program", "image in system folders"
EQUAL_ROW = "row that equals another one"
EXPECTED = frozenset({OWN, IN_SYSTEM_FOLDER, EQUAL_ROW})  # skipped by intention: the exit status stays 0
# Trash, previews and thumbnails of servers, systems and programs, in lower case.
SYSTEM_FOLDER = re.compile(
    r"@eadir|\.?@__thumb|[#@]recycle|[#@~](recently-)?snapshots?|\$recycle\.bin|recycler|recycle bin|trashbox|\.trash.*"
    r"|network trash folder|temporary items|@tmp|@sharebin|\.thumbnails|thmbnl|__macosx|system volume information"
    r"|.+\.(lrdata|lrcat-data)|lost\+found|found\.\d{3}"
)
# Libraries of Apple's programs, Capture One and Nextcloud, and their folders without originals.
LIBRARY = re.compile(r".+\.(photos?library|aplibrary|cocatalog)|iphoto library|captureone|appdata_\w+")
IN_LIBRARY = re.compile(r"resources|thumbnails|thumbs|previews?|scopes|private|database|cache")
_PLURALS = {
    BROKEN_LINK: "broken links",
    LINKED_FOLDER: "linked folders",
    UNREADABLE: "unreadable folders",
    SPECIAL: "devices or pipes",
    OWN: "images written by this program",
    IN_SYSTEM_FOLDER: "images in system folders",
    EQUAL_ROW: "rows that equal another one",
}


@dataclass
class Found:
    """The images found, in order, each once.

    ``problems`` has one error for each name without an image: a missing file, a folder without images, a web
    address. ``skipped`` counts files in the folders that look like images and cannot be assessed, by suffix or reason
    (``".cr2"``, ``"broken link"``).
    """

    images: list[Path] = field(default_factory=list)
    problems: list[ImageError] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)


def images_given(given: Any) -> Iterable[Any]:
    """Return the images of one name (a folder, a pattern or a file), or the rows of a table; others unchanged.

    One image or row in memory becomes a list. An array of four dimensions is several images. Raises as ``find_images``
    does.
    """
    if is_in_memory(given) and getattr(given, "ndim", 0) < 4:
        return [given]
    if isinstance(given, str | os.PathLike):
        return find_images([given])
    if (rows := table_rows(given)) is not None:
        return rows
    images: Iterable[Any] = [given] if isinstance(given, Mapping) else given
    return images


def find_images(names: Iterable[str | os.PathLike[str]], *, system_folders: bool = False) -> list[Path]:
    """Find images as :func:`search_images` does, but raise the first problem and log what was skipped.

    Args:
        names: Files and folders.
        system_folders: Whether to find images in system folders, too.

    Returns:
        The paths, each once.

    Raises:
        ImageNotFound: There is no such file or folder.
        ImageError: A folder has no images, or a name is a web address.
    """
    search = search_images(names, system_folders=system_folders)
    if search.problems:
        raise search.problems[0]
    if search.skipped:
        logger.warning("skipped %s", skipped_text(search.skipped))
    return search.images


def search_images(names: Iterable[str | os.PathLike[str]], *, system_folders: bool = False) -> Found:
    """Find files as they are named, whatever their suffix, and in folders all images at any depth.

    Patterns such as ``album/*.jpg`` are expanded. In a folder, images are recognized by their suffix in any case, or,
    if that has no letters, by their first bytes; formats of an extra (HEIC) count if it is installed. Thumbnails and
    maps that this program wrote are skipped. Files and folders with a leading dot in the name are skipped, links to
    folders are not followed. Images in system folders, such as the trash and thumbnails of a server, are skipped,
    unless the folder is named itself.

    Args:
        names: Files, folders and patterns.
        system_folders: Whether to find images in system folders, too.

    Returns:
        The paths in the order of the names, those of a folder sorted. A bad name raises nothing: see
        ``Found.problems``.
    """
    search = Found()
    for name in names_given(map(os.fsdecode, names), search.skipped, system_folders=system_folders):
        try:
            path = local_path(name)
            if path.is_dir():
                search.images += _images_below(path, search.skipped, system_folders=system_folders)
            else:
                search.images.append(path)
        except ImageError as error:
            search.problems.append(error)
    search.images = list(dict.fromkeys(search.images))
    return search


def names_given(names: Iterable[str], skipped: Counter[str], *, system_folders: bool) -> Iterator[str]:
    """Yield the names, with patterns expanded; what a pattern finds in system folders is counted as skipped."""
    for given in names:
        for name in expanded(without_scheme(given)):
            if name == given or system_folders or not in_system_folder(name, given):
                yield name
            else:
                skipped[IN_SYSTEM_FOLDER] += 1


def in_system_folder(path: str, named: str) -> bool:
    """Return whether a part of a path is a system folder, except those that the user named."""
    parts = Path(path.lower()).parts
    found = {part for part in parts if SYSTEM_FOLDER.fullmatch(part)}
    found |= {part for above, part in pairwise(parts) if LIBRARY.fullmatch(above) and IN_LIBRARY.fullmatch(part)}
    return bool(found.difference(Path(named.lower()).parts))


def skipped_text(skipped: Counter[str]) -> str:
    """Return what was skipped, most frequent first: ``500 .heic (pip install 'agenticiqa[heic]'), 3 broken links``."""
    return ", ".join(_counted(kind, count) for kind, count in skipped.most_common())


def skipped_problems(skipped: Counter[str]) -> list[str]:
    """Return a sentence about the skipped files that were meant to be assessed, and log one about the others."""
    if expected := Counter({kind: count for kind, count in skipped.items() if count and kind in EXPECTED}):
        logger.warning("skipped %s", skipped_text(expected))
    others = skipped - expected
    return [f"skipped {skipped_text(others)}"] if others else []


def _images_below(folder: Path, skipped: Counter[str], *, system_folders: bool) -> list[Path]:
    images: list[Path] = []
    here: Counter[str] = Counter()
    installed = installed_formats()
    for path, suffix, is_system in _files_below(folder, here):
        left_out = is_system and not system_folders
        if DATA_SETS.fullmatch(suffix) and not left_out and not is_shard_folder(path.parent):
            here[suffix] += 1
            continue
        unread = unread_suffix(suffix, installed, partial(_head_of, path))
        if unread is None:
            continue
        if left_out:
            here[IN_SYSTEM_FOLDER] += 1
        elif problem := _not_a_file(path) or unread or (OWN if is_own(path) else ""):
            here[problem] += 1
        else:
            images.append(path)
    skipped.update(here)
    if not images:
        held = f" that can be assessed: {skipped_text(here)}" if here else "; name files with other suffixes one by one"
        refuse(printable_path(folder), f"expected images in this folder, found none{held}")
    return sorted(images)


def installed_formats() -> list[ExtraFormat]:
    """Return the formats of installed extras."""
    return [extra for extra in EXTRA_FORMATS if extra.is_installed()]


def unread_suffix(suffix: str, installed: Collection[ExtraFormat], head: Callable[[], bytes]) -> str | None:
    """Return the suffix of an image that cannot be assessed, "" for one that can, and ``None`` for another file.

    ``suffix`` is in lower case; ``head`` reads the first bytes of the file, which decide about other suffixes.
    """
    extra = format_by_suffix(suffix)
    if READ.fullmatch(suffix) or extra in installed:
        return ""
    if extra or RAW.fullmatch(suffix) or OTHER.fullmatch(suffix):
        return suffix
    begin = head()
    if not SIGNATURE.match(begin) and format_by_content(begin) not in installed:
        return None
    return suffix if re.search("[a-z]", suffix) else ""  # a .bak or .tmp of a photo is hardly intended


def is_name_of_image(text: str) -> bool:
    """Return whether a text is the name of an image file: one word with an image's suffix, or an existing file."""
    suffix = Path(text).suffix.lower()
    known = bool(READ.fullmatch(suffix) or RAW.fullmatch(suffix) or format_by_suffix(suffix))
    return known and (len(text.split()) == 1 or os.path.isfile(text))


def files_below(folder: Path) -> list[Path]:
    """Return every file that is neither hidden nor in a system folder."""
    return [path for path, _, is_system in _files_below(folder, Counter()) if not is_system]


def _files_below(folder: Path, skipped: Counter[str]) -> Iterator[tuple[Path, str, bool]]:
    """Yield every file that is not hidden, its suffix in lower case, and whether it is in a system folder."""
    above, named = os.path.split(os.path.abspath(folder))
    for parent, folders, files in _walk(folder, lambda error: skipped.update([UNREADABLE])):
        folders[:] = [name for name in folders if not name.startswith(".") or SYSTEM_FOLDER.fullmatch(name.lower())]
        skipped.update(LINKED_FOLDER for name in folders if os.path.islink(os.path.join(parent, name)))
        is_system = in_system_folder(os.path.abspath(parent)[len(above) :], named)
        for name in files:
            if not name.startswith("."):
                yield Path(parent, name), os.path.splitext(name)[1].lower(), is_system


def _walk(top: Path, onerror: Callable[[OSError], None]) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield what ``os.walk`` does, which is recursive before Python 3.12 and fails in deep folders."""
    waiting = [os.fspath(top)]
    while waiting:
        parent = waiting.pop()
        folders: list[str] = []
        files: list[str] = []
        try:
            with os.scandir(parent) as entries:  # knows the kind of most entries without asking for each
                for entry in entries:
                    (folders if _is_folder(entry) else files).append(entry.name)
        except OSError as error:
            onerror(error)
            continue
        yield parent, folders, files
        paths = [os.path.join(parent, name) for name in reversed(folders)]
        waiting += [path for path in paths if not os.path.islink(path)]


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a folder or a link to one; a loop of links is not."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def _head_of(path: Path) -> bytes:
    """Return the first bytes of a regular file; none if it cannot be read."""
    try:
        if not path.is_file():
            return b""
        with path.open("rb") as file:
            return file.read(LONGEST_SIGNATURE)
    except OSError:
        return b""


def _not_a_file(path: Path) -> str:
    """Return why there is nothing to read at a path; empty for a regular file."""
    if path.is_file():
        return ""
    return SPECIAL if path.exists() else BROKEN_LINK


def _counted(kind: str, count: int) -> str:
    if DATA_SETS.fullmatch(kind):
        return f"{count} {kind} (name a {kind} file to assess the images in it)"
    if kind.startswith("."):
        extra = format_by_suffix(kind)
        return f"{count} {kind} ({extra.install})" if extra else f"{count} {kind}"
    advice = " (--system-folders assesses them)" if kind == IN_SYSTEM_FOLDER else ""
    return f"{count} {kind if count == 1 else _PLURALS[kind]}{advice}"
