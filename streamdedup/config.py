"""The settings: one typed tree with defaults that are right for a news feed.

Layers, weakest first: defaults, one TOML file, `STREAMDEDUP_SECTION__KEY` environment variables,
`section.key=value` overrides.  Unknown keys are errors, so a typo never goes unnoticed.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from streamdedup.errors import ConfigError

ENV_PREFIX = "STREAMDEDUP_"

Count = Annotated[int, Meta(ge=1)]
FieldName = Annotated[str, Meta(min_length=1)]
Share = Annotated[float, Meta(gt=0.0, le=1.0)]


class _Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class InputConfig(_Section, frozen=True):
    """Names of the fields in an incoming JSON object, and the sizes that are accepted."""

    id_field: FieldName = "id"
    text_field: FieldName = "text"
    published_field: FieldName = "published"
    max_text_bytes: Count = 4_194_304
    max_id_bytes: Annotated[int, Meta(ge=1, le=4_096)] = 512

    def __post_init__(self) -> None:
        if len({self.id_field, self.text_field, self.published_field}) < 3:
            raise ValueError("id_field, text_field and published_field must differ")


class SchemeConfig(_Section, frozen=True):
    """How an article becomes bucket keys.  Any change makes another index necessary."""

    name: Literal["news", "shingles"] = "news"
    unit: Literal["word", "char"] = "word"
    k: Annotated[int, Meta(ge=1, le=64)] = 3
    bag: bool = False
    bands: Annotated[int, Meta(ge=0, le=256)] = 8
    rows: Annotated[int, Meta(ge=1, le=32)] = 3
    crop_keys: Annotated[int, Meta(ge=0, le=256)] = 24
    signature_hashes: Annotated[int, Meta(ge=16, le=1_024)] = 128
    min_shingles: Count = 16
    stop_share: Annotated[float, Meta(ge=0.0, le=1.0)] = 0.12


class MatchConfig(_Section, frozen=True):
    """When two articles are the same story text.  May be changed on an existing index."""

    jaccard: Share = 0.5
    containment: Share = 0.8
    containment_shingles: Count = 30
    verify: Literal["exact", "signature"] = "exact"
    index_revisions: bool = True


class WindowConfig(_Section, frozen=True):
    """How long an article is remembered, in event time; 0 remembers for ever."""

    seconds: Annotated[int, Meta(ge=0, le=3_155_760_000)] = 30 * 86_400


class StateConfig(_Section, frozen=True):
    """The index on disk.  Every number but `path` and the cache is part of the index."""

    path: str = "state"
    head_articles: Annotated[int, Meta(ge=16, le=1_048_576)] = 65_536
    fan_in: Literal[2, 4, 8, 16] = 8
    filter_bits: Annotated[int, Meta(ge=4, le=32)] = 16
    bucket_entries: Annotated[int, Meta(ge=1, le=4_096)] = 32
    cache_mib: Count = 64


class Config(_Section, frozen=True):
    """Everything that can be set.

    >>> Config().match.jaccard
    0.5
    """

    input: InputConfig = InputConfig()
    scheme: SchemeConfig = SchemeConfig()
    match: MatchConfig = MatchConfig()
    window: WindowConfig = WindowConfig()
    state: StateConfig = StateConfig()


def load_config(
    file: Path | None = None,
    overrides: Iterable[str] = (),
    environ: Mapping[str, str] | None = None,
) -> Config:
    """The settings from all layers; raises `ConfigError` that names the key and its origin."""
    tree = _from_file(file) if file is not None else {}
    for name, text in sorted((os.environ if environ is None else environ).items()):
        if name.startswith(ENV_PREFIX) and "__" in name:
            _set(tree, name.removeprefix(ENV_PREFIX).lower().split("__"), text, name)
    for override in overrides:
        dotted, equals, text = override.partition("=")
        if not equals:
            raise ConfigError(f"--set {override!r}: write section.key=value")
        _set(tree, dotted.strip().split("."), text, f"--set {dotted.strip()}")
    try:
        return msgspec.convert(tree, Config, strict=False)
    except msgspec.ValidationError as error:
        origin = f" (file {file})" if file is not None else ""
        raise ConfigError(f"{error}{origin}; see `streamdedup config show` for all keys") from None


def config_tree(config: Config) -> dict[str, dict[str, Any]]:
    """The settings as plain nested dictionaries, for printing."""
    tree: dict[str, dict[str, Any]] = msgspec.to_builtins(config)
    return tree


def _from_file(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read config file {file}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"config file {file} is not valid TOML: {error}") from None


def _set(tree: dict[str, Any], path: list[str], text: str, origin: str) -> None:
    if len(path) != 2 or not all(path):
        raise ConfigError(f"{origin}: a setting is named by its section and its key")
    section = tree.setdefault(path[0], {})
    if not isinstance(section, dict):
        raise ConfigError(f"{origin}: {path[0]} is a section, not a value")
    section[path[1]] = text
