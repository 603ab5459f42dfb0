"""Numpy arrays as images.

An array has shape (height, width), (height, width, 3) or (height, width, 4): gray, RGB or RGBA, in this order. Its
type says what its values mean, never the values themselves:

* uint8: 0 to 255;
* uint16: 0 to 65535. Gray stays at 16 bits; color is read at 8 bits (v // 256), as Pillow reads a PNG of such values;
* float of any size: 0 to 1, rounded to 8 bits.

Everything else (other integers, floats outside 0 to 1, NaN, other shapes) is refused, because its range or its layout
would be a guess.
"""

from typing import Any

import numpy as np
from PIL import Image

from agenticiqa.programs.images.decoding import DEEP_COLOR, refuse

FLOATS = "Floats in 0..1 were rounded to 8 bits."
_CHANNELS = (3, 4)  # RGB, RGBA


def from_array(name: str, array: np.ndarray[Any, Any]) -> tuple[Image.Image, tuple[str, ...]]:
    """A PIL image of mode L, I;16, RGB or RGBA with the array's values (copied), and what was lost, if anything.

    ``name`` is for messages. Raises ImageError for an array that the conventions above do not cover.
    """
    _check_shape(name, array.shape)
    if array.dtype == np.uint8:
        return _image(array, np.uint8), ()
    if array.dtype.kind == "u" and array.dtype.itemsize == 2:
        return (_image(array, np.uint16), ()) if array.ndim == 2 else (_image(array >> 8, np.uint8), (DEEP_COLOR,))
    if array.dtype.kind == "f":
        return _image(np.rint(_checked_floats(name, array) * 255), np.uint8), (FLOATS,)
    refuse(name, f"expected an array of uint8, uint16 or floats in 0..1, got {array.dtype}; {_hint(array)}")


def _image(values: np.ndarray[Any, Any], dtype: type[np.uint8 | np.uint16]) -> Image.Image:
    return Image.fromarray(np.array(values, dtype=dtype, order="C"))


def _check_shape(name: str, shape: tuple[int, ...]) -> None:
    if len(shape) == 2 or (len(shape) == 3 and shape[-1] in _CHANNELS):
        return
    if len(shape) == 3 and shape[-1] == 1:
        advice = "give array[..., 0]"
    elif len(shape) == 3 and shape[0] in _CHANNELS:
        advice = "this one has its channels first: give array.transpose(1, 2, 0)"
    elif len(shape) == 4:
        advice = "give the images of a stack one at a time"
    else:
        advice = "bring it into one of these shapes"
    refuse(name, f"expected an array of shape (h, w), (h, w, 3) or (h, w, 4), got {shape}; {advice}")


def _checked_floats(name: str, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array, as at least float32 so that rounding to 8 bits is exact."""
    values = array.astype(np.float32) if array.dtype.itemsize < 4 else array
    if not values.size:
        return values
    low, high = float(values.min()), float(values.max())
    if not np.isfinite([low, high]).all():
        refuse(name, "expected floats in 0..1, found NaN or infinity; replace these values")
    if low < 0 or high > 1:
        advice = "divide by 255 if that is its range" if low >= 0 and high <= 255 else "scale them to 0..1"
        refuse(name, f"expected floats in 0..1, found {low:.6g} to {high:.6g}; {advice}")
    return values


def _hint(array: np.ndarray[Any, Any]) -> str:
    if array.dtype.kind == "b":
        return "convert it with array.astype('uint8') * 255"
    if array.dtype.kind in "iu" and array.size and int(array.min()) >= 0 and int(array.max()) <= 255:
        return "convert it with array.astype('uint8') if 255 is white"
    return "convert it first"
