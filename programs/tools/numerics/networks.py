"""Run an ONNX network that ships with the package: one core, the same bits each time.

onnxruntime always computes all layers, so a model is reduced to those that lead to the requested outputs. An ONNX file
is a protobuf message. This module reads the few fields that it needs by their numbers in onnx.proto, without the onnx
package: ``ModelProto.graph`` is 7; in a graph ``node`` is 1, ``initializer`` 5, ``output`` 12 and ``value_info`` 13; in
a node ``input`` is 1 and ``output`` 2; a tensor's name is 8, an output's 1.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.images.memo import Memo
from agenticiqa.programs.tools.numerics.weights import read_checked

KEPT_PIXELS = 512 * 512  # of an input: the working memory for more of them is returned after each run


def run_network(
    file: Path, sha256: str, output: str, given: NDArray[np.float32] | NDArray[np.int64]
) -> NDArray[np.float32]:
    """Return one named output of a network with one input, pixels (1, C, H, W) or tokens (1, N).

    Only the layers that lead to the output are computed.

    Raises ToolError when the file is missing or its sha256 is not the given one.
    """
    return run_for(file, sha256, (output,), given)[0]


def run_for(
    file: Path, sha256: str, outputs: tuple[str, ...], given: NDArray[np.float32] | NDArray[np.int64]
) -> list[NDArray[np.float32]]:
    """Return several outputs, as ``run_network`` does; the output of an inner layer may be one."""
    onnxruntime = silent_onnxruntime()
    options = onnxruntime.RunOptions()
    if given.shape[-2] * given.shape[-1] > KEPT_PIXELS:  # for smaller ones, getting it anew takes a fifth of the time
        options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    session = _session(file, sha256, outputs)
    found: list[NDArray[np.float32]] = session.run(outputs, {session.get_inputs()[0].name: given}, options)
    return found


def silent_onnxruntime() -> Any:
    """Return the module ``onnxruntime``, which then sends no telemetry, unless the user has asked for it."""
    # From 1.32 on it keeps a device id and events in the user's cache folder, and looks up the host to send them to.
    # It reads the variable once, while it is imported.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime  # slow to import

    return onnxruntime


def _session(file: Path, sha256: str, outputs: tuple[str, ...]) -> Any:
    return _sessions.once((file, sha256, outputs), lambda: _loaded(file, sha256, outputs))


_sessions = Memo()  # not functools.cache, with which threads that begin together would each load the network


def _loaded(file: Path, sha256: str, outputs: tuple[str, ...]) -> Any:
    onnxruntime = silent_onnxruntime()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.enable_mem_pattern = False  # the plans for the shapes of all images are kept
    options.log_severity_level = 3  # errors only: it warns of initializers that it drops
    model = layers_to(read_checked(file, sha256), *outputs)
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


GRAPH = 7
NODE, INITIALIZER, OUTPUT, VALUE_INFO = 1, 5, 12, 13
NODE_INPUT, NODE_OUTPUT, TENSOR_NAME, OUTPUT_NAME = 1, 2, 8, 1
SIZED = 2  # the type of a text or message: its size, then its bytes


class Field(NamedTuple):
    """One field of a message: its number, its bytes with what precedes them, and the bytes of a text or message."""

    number: int
    whole: memoryview
    content: memoryview


def layers_to(model: bytes, *outputs: str) -> bytes:
    """Return the model reduced to these outputs, and the nodes and weights that they need; the results keep all bits.

    The output of an inner node becomes an output of the model if it is named.

    Nodes must not have graphs of their own (``If``, ``Loop``), because the inputs of those are not followed. A model
    without these outputs gets no output.
    """
    fields = list(_fields(memoryview(model)))
    return b"".join(
        _message(GRAPH, _graph_to(field.content, outputs)) if field.number == GRAPH else field.whole for field in fields
    )


def _graph_to(graph: memoryview, outputs: tuple[str, ...]) -> bytes:
    fields, needed, kept = list(_fields(graph)), {*outputs}, list[memoryview]()
    given, shown = set[str](), set[str]()
    for field in reversed(fields):  # in a graph what computes a value is written before what reads it
        if field.number == NODE and not needed.isdisjoint(_names(field.content, NODE_OUTPUT)):
            needed.update(_names(field.content, NODE_INPUT))
            given |= _names(field.content, NODE_OUTPUT)
            kept.append(field.whole)
    kept.reverse()
    named = {INITIALIZER: (TENSOR_NAME, needed), OUTPUT: (OUTPUT_NAME, {*outputs})}
    for field in fields:
        if field.number in named:
            number, wanted = named[field.number]
            if not wanted.isdisjoint(names := _names(field.content, number)):
                kept.append(field.whole)
                shown |= names
        elif field.number not in (NODE, VALUE_INFO):
            kept.append(field.whole)
    inside = sorted(given.intersection(outputs) - shown)
    return b"".join([*kept, *(_message(OUTPUT, _message(OUTPUT_NAME, name.encode())) for name in inside)])


def _names(message: memoryview, number: int) -> set[str]:
    return {str(field.content, "utf-8") for field in _fields(message) if field.number == number}


def _message(number: int, content: bytes) -> bytes:
    length, size = bytearray(), len(content)
    while size > 0x7F:
        length.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes([number << 3 | SIZED, *length, size]) + content


def _fields(message: memoryview) -> Iterator[Field]:
    place = 0
    while place < len(message):
        start = place
        tag, place = _varint(message, place)
        begin = place
        if (kind := tag & 7) == SIZED:
            size, begin = _varint(message, place)
            place = begin + size
        elif kind == 0:
            _, place = _varint(message, place)
        else:
            place += {1: 8, 5: 4}[kind]  # a number of eight bytes, or of four
        yield Field(tag >> 3, message[start:place], message[begin:place])


def _varint(message: memoryview, place: int) -> tuple[int, int]:
    """Return the number that begins at a place, in seven bits a byte, and the place after it."""
    value = shift = 0
    while True:
        byte = message[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place
