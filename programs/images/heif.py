"""HEIC and HEIF photos, which Pillow opens when the optional package pillow-heif is there: the extra ``heic``.

The package is registered with Pillow when the first such file is opened, and not before: most runs never need it. Its
own license is BSD-3-Clause; its wheels hold libheif and libde265 (LGPLv3) and x265 (GPLv2), so it stays an extra.
"""

import re
from importlib.util import find_spec

SUFFIXES = frozenset({".heic", ".heif", ".hif"})
INSTALL = "pip install 'agenticiqa[heic]'"

_PACKAGE = "pillow_heif"
_SIGNATURE = re.compile(rb".{4}ftyp(hei|hev|mif|msf)", re.DOTALL)


def is_heif(data: bytes) -> bool:
    """Whether the bytes begin like a HEIC or HEIF file. (An AVIF file, which Pillow opens itself, may do so, too.)"""
    return bool(_SIGNATURE.match(data))


def installed() -> bool:
    """Whether pillow-heif can be imported."""
    return find_spec(_PACKAGE) is not None


def register() -> bool:
    """Let Pillow open HEIF files in this process; returns whether it can. Safe to call again."""
    try:
        from pillow_heif import register_heif_opener
    except ImportError:
        return False
    register_heif_opener()
    return True
