"""The layers of an ONNX model that lead to one of its outputs: onnxruntime computes all of them, whatever is asked for.

An ONNX file is a protobuf message. The few fields that matter here are read as onnx.proto numbers them, so that nobody
needs the onnx package for it: ``ModelProto.graph`` is 7; in a graph ``node`` is 1, ``initializer`` 5, ``output`` 12 and
``value_info`` 13; in a node ``input`` is 1 and ``output`` 2; a tensor's name is 8, an output's 1.
"""

from collections.abc import Iterator
from typing import NamedTuple

GRAPH = 7
NODE, INITIALIZER, OUTPUT, VALUE_INFO = 1, 5, 12, 13
NODE_INPUT, NODE_OUTPUT, TENSOR_NAME, OUTPUT_NAME = 1, 2, 8, 1
SIZED = 2  # the type of a text or message: its size, then its bytes


class Field(NamedTuple):
    """One field of a message: its number, its bytes with what precedes them, and the bytes of a text or message."""

    number: int
    whole: memoryview
    content: memoryview


def layers_to(model: bytes, output: str) -> bytes:
    """The model with that output alone, and only the nodes and weights that lead to it; these compute the same bits.

    Nodes must not have graphs of their own (``If``, ``Loop``): what those read from outside is not seen. A model that
    has no such output is left with none.
    """
    fields = list(_fields(memoryview(model)))
    return b"".join(
        _message(GRAPH, _graph_to(field.content, output)) if field.number == GRAPH else field.whole for field in fields
    )


def _graph_to(graph: memoryview, output: str) -> bytes:
    fields, needed, kept = list(_fields(graph)), {output}, list[memoryview]()
    for field in reversed(fields):  # in a graph what computes a value is written before what reads it
        if field.number == NODE and not needed.isdisjoint(_names(field.content, NODE_OUTPUT)):
            needed.update(_names(field.content, NODE_INPUT))
            kept.append(field.whole)
    kept.reverse()
    named = {INITIALIZER: (TENSOR_NAME, needed), OUTPUT: (OUTPUT_NAME, {output})}
    for field in fields:
        if field.number in named:
            number, wanted = named[field.number]
            if not wanted.isdisjoint(_names(field.content, number)):
                kept.append(field.whole)
        elif field.number not in (NODE, VALUE_INFO):
            kept.append(field.whole)
    return b"".join(kept)


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
    """The number that begins at a place, in seven bits a byte, and the place after it."""
    value = shift = 0
    while True:
        byte = message[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place
