"""Hash files and plain JSON, write files atomically, make names printable, and find the cache folder."""

import atexit
import hashlib
import inspect
import json
import logging
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

from agenticiqa.configs.user_files import open_regular
from agenticiqa.programs.errors import REORDERING

logger = logging.getLogger(__name__)

CACHE_VARIABLE = "AGENTICIQA_CACHE"
HEX_DIGITS = 16  # hex digits of a digest

UNSEEN = rf"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f{REORDERING}]"  # a pattern of Python and JavaScript
_SURROGATE = re.compile("[\ud800-\udfff]")  # os.fsdecode makes one of each byte that is not UTF-8


def sha256_of(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file as 64 hex digits. Reads in blocks, so size does not matter. Raises OSError."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def source_digest(function: Any) -> str | None:
    """Return SHA-256 of the file that defines a function, without its imports; ``None`` without a file."""
    try:
        return sha256_of(Path(inspect.getsourcefile(function) or ""))
    except (TypeError, OSError):
        return None


def cache_folder() -> Path:
    """Return the cache folder, which may not exist yet: the system's own, or the one in AGENTICIQA_CACHE.

    Without a home folder, or where nothing can be written, it is a temporary folder of this process.
    """
    own = os.environ.get(CACHE_VARIABLE)
    with suppress(RuntimeError):  # the user has no home folder: HOME is not set, and no account has the number
        folder = Path(own).expanduser() if own else user_cache_path("agenticiqa", appauthor=False)
        there = next(parent for parent in (folder, *folder.absolute().parents) if os.path.exists(parent))
        if os.path.isdir(there) and os.access(there, os.W_OK):
            return folder
    return _temporary_folder()


@cache
def _temporary_folder() -> Path:
    """Return a private folder that is deleted when this process ends. Raises OSError."""
    folder = tempfile.mkdtemp(prefix="agenticiqa-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    logger.warning("no cache folder can be written, so caches end with this run; name one in %s", CACHE_VARIABLE)
    return Path(folder)


def digest(content: Any) -> str:
    """Return the first 16 hex digits of the SHA-256 of plain JSON types; the order of keys does not count."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:HEX_DIGITS]


def write_atomically(
    path: str | os.PathLike[str],
    content: str | bytes | Iterable[bytes],
    *,
    private: bool = False,
    durable: bool = False,
) -> None:
    """Write a file atomically: a reader, or a crash half-way, gets the old content or the new.

    ``durable`` waits until the disk has it, so that a power failure does not lose both.

    Text is written as UTF-8 with unchanged line ends. Missing folders are created. A symbolic link still points to the
    same file afterwards. An existing file keeps its permissions. With ``private``, only the owner may read a new file
    and the folders created for it.
    A file that is not regular (``/dev/null``) is written to, not replaced. Raises OSError, and then leaves no temporary
    file behind.
    """
    content = content.encode() if isinstance(content, str) else content
    parts = [content] if isinstance(content, bytes) else content
    if os.path.exists(path) and not os.path.isfile(path):
        Path(path).write_bytes(b"".join(parts))  # not to the resolved path: that of a pipe is no file
        return
    target = Path(os.path.realpath(path))
    if private:
        make_private(target.parent)
    else:
        make_folder(target.parent)
    # In the same folder, because a rename does not cross file systems. The name is short, because the target's may be
    # as long as allowed, and random, because several threads or processes may write the same file.
    draft = target.with_name(f".{secrets.token_hex(8)}.part")
    try:
        mode = 0o600 if private else 0o666
        with open(draft, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            file.writelines(parts)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        with suppress(FileNotFoundError):
            draft.chmod(target.stat().st_mode & 0o7777)
        draft.replace(target)
    except BaseException as error:
        draft.unlink(missing_ok=True)
        if isinstance(error, OSError):  # that of a full disk names no file, others name the draft
            error.filename, error.filename2 = os.fspath(path), None
        raise


def make_private(folder: Path) -> None:
    """Make a folder and its missing parents, private to their owner; existing ones are unchanged."""
    make_folder(folder, 0o700)


def make_folder(folder: Path, mode: int = 0o777) -> None:
    """Make a folder and its missing parents without the recursion of ``Path.mkdir``. Raises OSError."""
    for missing in [parent for parent in (folder, *folder.parents) if not parent.exists()][::-1]:
        missing.mkdir(mode, exist_ok=True)


def printable_path(path: str | bytes | os.PathLike[str]) -> str:
    r"""Return a path as text that UTF-8 and JSON can hold: bytes that are not UTF-8 become ``\xff``, the rest stays.

    >>> printable_path(b"caf\xe9.png")
    'caf\\xe9.png'
    """
    return _SURROGATE.sub(_escaped, os.fsdecode(path))


def without_controls(text: str) -> str:
    """Return the text with a blank for each control character except tabs and line breaks.

    BEL and ESC are control characters, and so are those that change the order or the lines of a text (U+202E, U+2028).
    """
    return re.sub(UNSEEN, " ", text)


def one_line(text: str) -> str:
    """Return a text as one printable line, for messages.

    White space becomes single blanks, file names are escaped as by :func:`printable_path`, other characters that cannot
    be printed become question marks.
    """
    text = " ".join(_SURROGATE.sub(_escaped, text).split())
    return "".join(character if character.isprintable() else "?" for character in text)


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else f"\\u{code:04x}"
