"""Figures on their way to the browser.

JSON in which arrays are bytes, as Plotly's own, without its search for twenty kinds of table.
"""

import base64
import json
from typing import Any

import numpy as np
import plotly.graph_objects as go

KINDS = {"float64": "f8", "float32": "f4", "int32": "i4", "int16": "i2", "uint8": "u1"}


def encoded(answer: dict[str, Any]) -> str:
    """An answer of the server as text."""
    return json.dumps(answer, default=_plain, allow_nan=False, separators=(",", ":"))


def _plain(value: Any) -> Any:
    if isinstance(value, go.Figure):
        return {"data": value._data, "layout": value._layout}
    if isinstance(value, np.ndarray):
        return _packed(value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple):
        return list(value)
    raise TypeError(
        f"an answer must hold numbers, words and figures, but it holds {type(value).__name__}"
    )


def _packed(array: np.ndarray) -> dict[str, str] | list[Any]:
    if array.dtype.kind in "iub" and array.dtype.name not in KINDS:
        array = array.astype(np.int32)
    if array.dtype.name not in KINDS:
        return array.tolist()
    packed = {
        "dtype": KINDS[array.dtype.name],
        "bdata": base64.b64encode(np.ascontiguousarray(array).tobytes()).decode(),
    }
    return packed if array.ndim == 1 else packed | {"shape": ", ".join(map(str, array.shape))}
