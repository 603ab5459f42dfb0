"""Large freed blocks are returned to the system."""

import ctypes
import subprocess
import sys

import pytest

from agenticiqa.programs.cli.main import return_large_blocks

KEPT = """
import ctypes, sys
from agenticiqa.programs.cli.main import return_large_blocks

class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()
    )]

libc = ctypes.CDLL(None)
libc.mallinfo2.restype, libc.malloc.restype, libc.free.argtypes = Info, ctypes.c_void_p, [ctypes.c_void_p]
libc.malloc.argtypes = [ctypes.c_size_t]
if sys.argv[1] == "set":
    return_large_blocks()
libc.free(libc.malloc(30 << 20))
held = libc.malloc(20 << 20)
print(libc.mallinfo2().hblkhd >> 20)
"""


@pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="needs glibc 2.33 or newer"
)
@pytest.mark.parametrize(("first", "of_the_system"), [("set", True), ("not", False)])
def test_large_blocks_are_mapped_separately_after_one_was_freed(first: str, of_the_system: bool) -> None:
    ran = subprocess.run([sys.executable, "-c", KEPT, first], capture_output=True, text=True, check=True)
    assert (int(ran.stdout) >= 20) == of_the_system


def test_other_systems_are_not_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    return_large_blocks()
