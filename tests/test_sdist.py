"""The source archive is the same bytes, whenever, by whomever and wherever it is built."""

import importlib.util
import os
import tarfile
from pathlib import Path

import pytest

setuptools = pytest.importorskip("setuptools")
SETUP = Path(__file__).resolve().parent.parent / "setup.py"


def built(folder: Path, names: list[str], umask: int, date: int) -> bytes:
    """An archive of these files, made in this order with this umask, and last changed at this date."""
    spec = importlib.util.spec_from_file_location("setup_of_the_package", SETUP)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    before = os.umask(umask)
    try:
        for name in names:
            path = folder / "package-1" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(name)
            os.utime(path, (date, date))
    finally:
        os.umask(before)
    os.chdir(folder)
    command = module.ReproducibleSdist(setuptools.Distribution())
    made = command.make_archive(str(folder / "made"), "gztar", base_dir="package-1", owner=None, group=None)
    return Path(made).read_bytes()


def test_order_dates_and_modes_of_files_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    names = ["b.py", "a/c.py", "a/b.py"]
    first = built(tmp_path / "first", names, 0o022, 1_600_000_000)
    assert first == built(tmp_path / "second", names[::-1], 0o077, 1_650_000_000)
    with tarfile.open(tmp_path / "first" / "made.tar.gz") as archive:
        assert archive.getnames() == ["package-1/a/b.py", "package-1/a/c.py", "package-1/b.py"]
        assert {(each.mtime, each.mode, each.uname) for each in archive} == {(1_700_000_000, 0o644, "")}
