"""Read DSPy's cache on disk safely: no record can run code or name a file outside the cache."""

import io
import pickle
from pathlib import PurePath
from typing import Any

from diskcache import Disk
from diskcache.core import MODE_BINARY, MODE_PICKLE
from pydantic import BaseModel

ANSWERS = ("litellm.types.", "openai.types.")  # modules of LiteLLM's answer types; DSPy's own answers are plain values


class RecordDisk(Disk):
    """A disk that reads only plain values and answers of LiteLLM; anything else raises UnpicklingError."""

    def fetch(self, mode: int, filename: str | None, value: Any, read: bool) -> Any:
        """Return the value of a record, which is in the database or in a file of the cache."""
        if filename is not None and not _is_inside(filename):
            raise pickle.UnpicklingError("the record refers to a file outside the cache")
        if mode != MODE_PICKLE:
            return super().fetch(mode, filename, value, read)
        data = super().fetch(MODE_BINARY, filename, None, False) if value is None else value
        return _Unpickler(io.BytesIO(data)).load()

    def remove(self, file_path: str) -> None:
        """Remove the file of a record."""
        if _is_inside(file_path):
            super().remove(file_path)


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        # DSPy's restricted mode allows every name in these modules, even "os.system" in a module that imports os.
        if module.startswith(ANSWERS) and "." not in name:
            kind = super().find_class(module, name)
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                return kind
        raise pickle.UnpicklingError(f"{module}.{name} is not an allowed type for a cached answer")


def _is_inside(filename: str) -> bool:
    path = PurePath(filename)
    return not path.is_absolute() and ".." not in path.parts
