"""The settings: one typed tree with defaults that are right for a news feed.

Layers, weakest first: defaults, one TOML file, `STREAMDEDUP_SECTION__KEY` environment variables,
`section.key=value` overrides.  Unknown keys are errors, so a typo never goes unnoticed.  The file
is the one that a command is given, or else the one that `STREAMDEDUP_CONFIG` names.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from streamdedup.errors import ConfigError

ENV_PREFIX = "STREAMDEDUP_"
FILE_VARIABLE = "STREAMDEDUP_CONFIG"

Count = Annotated[int, Meta(ge=1)]
FieldName = Annotated[str, Meta(min_length=1)]
Share = Annotated[float, Meta(gt=0.0, le=1.0)]
Name = Annotated[str, Meta(min_length=1)]
TopicName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9._-]+$", max_length=249)]
InputName = Annotated[str, Meta(pattern=r"^(\^.*|[A-Za-z0-9._-]{1,249})$")]

_LISTS = (["kafka", "input"],)  # written with commas where a setting is plain text
_OPEN = ["kafka", "client"]  # a table inside a section, whose keys have dots
_SECRET = re.compile(r"password|passphrase|secret|token|key\.pem|oauthbearer\.config")
MASK = "********"


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
    """When two articles are the same story text.  All but `verify` may be changed on an index."""

    jaccard: Share = 0.5
    containment: Share = 0.8
    containment_shingles: Count = 20
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


class KafkaConfig(_Section, frozen=True):
    """The service's brokers and topics; an empty `unique` or `client_file` means none.

    An `input` that starts with ^ is a pattern.  `client` goes to every librdkafka client as it is.
    """

    bootstrap: Name = "localhost:9092"
    group: Name = "streamdedup"
    input: tuple[InputName, ...] = ("articles",)
    verdicts: TopicName = "verdicts"
    unique: Annotated[str, Meta(pattern=r"^[A-Za-z0-9._-]*$", max_length=249)] = ""
    changelog: TopicName = "streamdedup-changelog"
    dead_letters: TopicName = "dead-letters"
    transactional_id: str = ""
    batch_articles: Annotated[int, Meta(ge=1, le=65_536)] = 4_000
    dead_letters_in_row: Annotated[int, Meta(ge=0)] = 100
    dead_letters_share: Annotated[float, Meta(ge=0.0, le=1.0)] = 0.5
    client_file: str = ""
    client: dict[str, str | int | float | bool] = {}

    def __post_init__(self) -> None:
        if not self.input:
            raise ValueError("kafka.input names no topic")
        for pattern in self.input:
            _compiled(pattern)
        topics = [*self.input, self.verdicts, self.changelog, self.dead_letters]
        topics += [self.unique] if self.unique else []
        if len(set(topics)) < len(topics):
            raise ValueError("the topics under kafka must differ from one another")


def _compiled(pattern: str) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"kafka.input: {pattern!r} is no pattern: {error}") from None


class HttpConfig(_Section, frozen=True):
    """Where metrics, health and the status page are served; no host or port -1 is nowhere."""

    host: str = "localhost"
    port: Annotated[int, Meta(ge=-1, le=65_535)] = 9_109
    stuck_seconds: Annotated[float, Meta(gt=0.0)] = 120.0


class LogConfig(_Section, frozen=True):
    """`auto` is for people on a terminal and JSON elsewhere."""

    format: Literal["auto", "human", "json"] = "auto"


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
    kafka: KafkaConfig = KafkaConfig()
    http: HttpConfig = HttpConfig()
    log: LogConfig = LogConfig()


def load_config(
    file: Path | None = None,
    overrides: Iterable[str] = (),
    environ: Mapping[str, str] | None = None,
) -> Config:
    """The settings from all layers; raises `ConfigError` that names the key and its origin."""
    environ = os.environ if environ is None else environ
    if file is None and environ.get(FILE_VARIABLE):
        file = Path(environ[FILE_VARIABLE])
    tree = _from_file(file) if file is not None else {}
    for name, text in sorted(environ.items()):
        if name.startswith(ENV_PREFIX) and "__" in name:
            path = name.removeprefix(ENV_PREFIX).lower().split("__")
            # A shell cannot set a variable with a dot in its name; no option has an underscore.
            _set(tree, [*path[:2], *(key.replace("_", ".") for key in path[2:])], text, name)
    for override in overrides:
        dotted, equals, text = override.partition("=")
        if not equals:
            raise ConfigError(f"--set {override!r}: write section.key=value")
        origin = f"--set {dotted.strip()}"
        if is_secret(dotted):
            raise ConfigError(f"{origin}: a secret comes from the environment or a file")
        _set(tree, dotted.strip().split("."), text, origin)
    return _converted(tree, f" (file {file})" if file is not None else "", strict=False)


def checked(config: Config) -> Config:
    """The same settings, if they are good: a struct made in Python checks nothing by itself."""
    if not isinstance(config, Config):
        raise ConfigError(
            f"settings are a streamdedup.Config, not a {type(config).__name__}: "
            "make one, or have load_config read one"
        )
    try:
        tree = msgspec.to_builtins(config)
    except TypeError as error:
        raise ConfigError(f"a setting is of the wrong type: {error}") from None
    return _converted(tree, "", strict=True)


def config_tree(config: Config) -> dict[str, dict[str, Any]]:
    """The settings as plain nested dictionaries, for printing: secrets are masked."""
    tree: dict[str, dict[str, Any]] = msgspec.to_builtins(config)
    kafka = tree["kafka"]
    kafka["input"] = list(kafka["input"])
    kafka["client"] = {k: MASK if is_secret(k) else v for k, v in kafka["client"].items()}
    return tree


def is_secret(key: str) -> bool:
    """Whether the value of a librdkafka option must never be shown.

    >>> is_secret("sasl.password"), is_secret("sasl.username")
    (True, False)
    """
    return _SECRET.search(key.lower()) is not None


def _converted(tree: dict[str, Any], origin: str, *, strict: bool) -> Config:
    try:
        return msgspec.convert(tree, Config, strict=strict)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{error}{origin}; see `streamdedup config show` for all keys") from None


def _from_file(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read config file {file}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"config file {file} is not valid TOML: {error}") from None


def _set(tree: dict[str, Any], path: list[str], text: str, origin: str) -> None:
    if path[:2] == _OPEN and len(path) > 2:
        tables, key = path[:2], ".".join(path[2:])
    else:
        tables, key = path[:1], ".".join(path[1:])
    if not all(path) or (len(path) != 2 and tables != _OPEN):
        raise ConfigError(f"{origin}: a setting is named by its section and its key")
    table = tree
    for name in tables:
        table = table.setdefault(name, {})
        if not isinstance(table, dict):
            raise ConfigError(f"{origin}: {name} is a section, not a value")
    table[key] = [part.strip() for part in text.split(",")] if path in _LISTS else text
