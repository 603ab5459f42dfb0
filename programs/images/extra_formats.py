"""Formats that Pillow opens when an optional package is installed, one row each: its suffixes, signature and extra.

The package is registered with Pillow when the first such file is opened, and not before: most runs never need it.
pillow-heif is under BSD-3-Clause; its wheels hold libheif and libde265 (LGPLv3) and x265 (GPLv2), so it stays an extra.
"""

import re
from importlib import import_module
from importlib.util import find_spec
from typing import NamedTuple


class ExtraFormat(NamedTuple):
    """A format: its name in messages, how its files end and begin, and the package and extra that open it.

    ``function`` is the package's function that registers it with Pillow.
    """

    name: str
    suffixes: tuple[str, ...]
    signature: bytes
    package: str
    extra: str
    function: str

    @property
    def install(self) -> str:
        """The command that installs the package."""
        return f"pip install 'agenticiqa[{self.extra}]'"

    def is_installed(self) -> bool:
        """Return whether the package can be imported."""
        return find_spec(self.package) is not None

    def register(self) -> bool:
        """Let Pillow open the format in this process; return whether it can. Safe to call again."""
        try:
            package = import_module(self.package)
        except ImportError:
            return False
        getattr(package, self.function)()
        return True


EXTRA_FORMATS = (
    ExtraFormat(
        name="HEIC or HEIF photo",
        suffixes=(".heic", ".heif", ".hif"),
        signature=rb".{4}ftyp(hei|hev|mif|msf)",  # an AVIF file, which Pillow opens itself, may begin so, too
        package="pillow_heif",
        extra="heic",
        function="register_heif_opener",
    ),
)


def format_by_suffix(suffix: str) -> ExtraFormat | None:
    """Return the format with this suffix (in lower case)."""
    return next((extra for extra in EXTRA_FORMATS if suffix in extra.suffixes), None)


def format_by_content(data: bytes) -> ExtraFormat | None:
    """Return the format of a file that begins with these bytes."""
    return next((extra for extra in EXTRA_FORMATS if re.match(extra.signature, data, re.DOTALL)), None)
