"""Recognize data sets by their names and first bytes, without reading them.

================================  ==============================================================  =================
named                             what is read                                                    an image is named
================================  ==============================================================  =================
``.tar``, with or without an      images, as img2dataset and WebDataset write them; an image of   FILE/KEY.jpg
index ``.parquet`` beside it      the index that is not in it is a failed one
``.parquet``                      a column of images, as bytes or paths                           FILE#ROW, or path
folder of ``save_to_disk``        the same of each split                                          FOLDER#ROW
folder of ``.tar`` or             as its files
``.parquet`` files
``.csv`` or ``.jsonl``            fields as those of ``--jobs``, ``image`` first                  by its path
================================  ==============================================================  =================

Each may be at an address that fsspec supports (``s3://``, ``gs://``, ``hf://``), except http.
"""

import os
import re
import stat

from agenticiqa.configs.user_files import STDIN, open_regular
from agenticiqa.programs.errors import OfImage
from agenticiqa.programs.images.finding import READ

TAR, PARQUET = ".tar", ".parquet"
PACKED_TAR = re.compile(r"\.(tar\.(gz|xz|bz2|zst|lz4)|tgz)$", re.IGNORECASE)  # recognized, and refused with a word
LISTS = (".csv", ".jsonl")  # suffixes of files that name one image per row
SPLIT, SPLITS = "state.json", "dataset_dict.json"  # the files of a split, and of a folder of splits

_ADDRESS = re.compile(r"(?!https?:|file:|data:)[a-z][a-z0-9+.-]+://", re.IGNORECASE)
_PARQUET_BEGINS = b"PAR1"
_TAR_HAS, _TAR_AT = b"ustar", 257  # the mark of a tar file, and its place in bytes


class BrokenDataSet(OfImage):
    """Raised when the file of a data set, in place of an image, cannot be read to its end."""


def kind_of(name: str) -> str:
    """Return the kind of a data set's file, as the suffix of this kind; empty for any other file or a folder.

    Without such a suffix, the first bytes of a local file decide.
    """
    suffix = os.path.splitext(name)[1].lower()
    if PACKED_TAR.search(name):
        return TAR
    if suffix in (TAR, PARQUET, *LISTS):
        return "" if os.path.isdir(name) else suffix
    if "://" in name or READ.fullmatch(suffix):
        return ""
    try:
        with open_regular(name) as file:
            head = file.read(_TAR_AT + len(_TAR_HAS))
    except (OSError, ValueError):  # ValueError: a null character
        return ""
    if head.startswith(_PARQUET_BEGINS):
        return PARQUET
    return TAR if head[_TAR_AT:] == _TAR_HAS else ""


def is_address(name: str) -> bool:
    """Return whether this is an address that fsspec may open, not one of the web or a URI of a file or of data."""
    return bool(_ADDRESS.match(name))


def is_data_set(name: str) -> bool:
    """Return whether this is an address, a file of a data set, or a local folder that ``datasets`` saved."""
    is_saved = any(os.path.isfile(os.path.join(name, file)) for file in (SPLIT, SPLITS))
    return is_address(name) or is_saved or bool(kind_of(name))


def is_stream(name: str) -> bool:
    """Return whether a name is that of stdin or a pipe, which can be read only once."""
    try:
        return name == STDIN or stat.S_ISFIFO(os.stat(name).st_mode)
    except (OSError, ValueError):  # ValueError: a null character
        return False


def holds_several(name: str) -> bool:
    """Return whether a name is that of a folder or a data set, not of a single image."""
    return os.path.isdir(name) or is_data_set(name)
