"""What pyproject.toml cannot say: with SOURCE_DATE_EPOCH the source archive is reproducible, as the wheel is."""

import gzip
import os
import tarfile
from pathlib import Path
from typing import Any

from setuptools import setup
from setuptools.command.sdist import sdist


class ReproducibleSdist(sdist):
    """``sdist`` whose .tar.gz has its files in order, of one date, without owners and the builder's umask."""

    def make_archive(
        self, base_name: Any, format: str, root_dir: Any = None, base_dir: Any = None, **owner: Any
    ) -> str:
        """Pack ``base_dir``; as setuptools does without SOURCE_DATE_EPOCH, or in another format."""
        date = os.environ.get("SOURCE_DATE_EPOCH")
        if date is None or format != "gztar":
            made: str = super().make_archive(base_name, format, root_dir, base_dir, **owner)
            return made

        def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
            entry.mtime, entry.mode = int(date), 0o755 if entry.mode & 0o100 else 0o644
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            return entry

        name = f"{base_name}.tar.gz"
        with (
            open(name, "wb") as file,
            gzip.GzipFile("", "wb", mtime=int(date), fileobj=file) as packed,
            tarfile.open(fileobj=packed, mode="w") as archive,
        ):
            for path in sorted(Path(base_dir).rglob("*")):
                if path.is_file():
                    archive.add(path, path.as_posix(), filter=plain)
        return name


if __name__ == "__main__":  # as setuptools runs it
    setup(cmdclass={"sdist": ReproducibleSdist})
