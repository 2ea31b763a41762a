"""A settings tree as TOML, so that what `config show` prints can be used as a config file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def toml_text(tree: Mapping[str, Any], prefix: str = "") -> str:
    r"""The tree as TOML tables; None is left out, since TOML has no word for it.

    >>> print(toml_text({"match": {"jaccard": 0.5, "verify": "exact"}}), end="")
    [match]
    jaccard = 0.5
    verify = "exact"
    """
    blocks = []
    for name, table in tree.items():
        path = f"{prefix}{_key(name)}"
        plain = {k: v for k, v in table.items() if not isinstance(v, Mapping) and v is not None}
        nested = {k: v for k, v in table.items() if isinstance(v, Mapping)}
        rows = "".join(f"{_key(key)} = {_value(value)}\n" for key, value in plain.items())
        if rows or not nested:
            blocks.append(f"[{path}]\n{rows}")
        if nested:
            blocks.append(toml_text(nested, f"{path}."))
    return "\n".join(blocks)


def _key(name: str) -> str:
    bare = name.isascii() and name.replace("_", "a").replace("-", "a").isalnum()
    return name if bare else _value(name)


def _value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    # A JSON string is a TOML string, but for DEL; numbers and booleans are spelled alike.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
