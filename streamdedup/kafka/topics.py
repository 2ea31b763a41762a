"""Checks and makes the topics: wrong settings are an error before the first article, not after.

It knows what each topic is for, hence which of its settings would lose articles.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic

from streamdedup.config import Config
from streamdedup.errors import TopicsError

_REQUEST_SECONDS = 10.0
# Kept longer than the window: event times may run behind the clock that retention goes by.
RETENTION_SLACK_MS = 86_400_000
# librdkafka's batches are just below a megabyte.
_BATCH_BYTES = 1_000_012
_ROOM_BYTES = 65_536
_OLDEST, _NEWEST = "message.timestamp.before.max.ms", "message.timestamp.after.max.ms"
_TIMESTAMPS, _OF_WRITING = "message.timestamp.type", "LogAppendTime"
_UNLIMITED = (1 << 63) - 1


@dataclass(frozen=True)
class OutputTopics:
    """What writing into the topics depends on."""

    changelog_id: str
    verdicts: int  # partitions
    unique: int
    dead_letters: int
    unique_bytes: int  # the largest message accepted
    dead_letter_bytes: int
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Topic:
    id: str
    partitions: int
    settings: Mapping[str, str]

    def number(self, name: str) -> int:
        return int(self.settings[name])


def input_partitions(admin: AdminClient, config: Config) -> list[tuple[str, int]]:
    """Every partition of every topic that the settings name, or match."""
    topics = admin.list_topics(timeout=_REQUEST_SECONDS).topics
    # A pattern must match neither what the service writes nor Kafka's own topics.
    own = _outputs(config)
    found = []
    for name in sorted(topics):
        if name in own or name.startswith("__"):
            continue
        if any(_matches(pattern, name) for pattern in config.kafka.input):
            found += [(name, partition) for partition in sorted(topics[name].partitions)]
    return found


def create_topics(admin: AdminClient, config: Config) -> list[str]:
    """Make what is missing, with the settings that `check_topics` asks for; returns the names."""
    kafka = config.kafka
    existing = admin.list_topics(timeout=_REQUEST_SECONDS).topics
    missing = [name for name in (*_named_inputs(config), *_outputs(config)) if name not in existing]
    inputs = [name for name in missing if name in kafka.input]
    _create(admin, [NewTopic(name, -1, -1) for name in inputs])
    partitions = max((p + 1 for _, p in input_partitions(admin, config)), default=1)
    _create(
        admin,
        [
            NewTopic(
                name,
                1 if name == kafka.changelog else partitions,
                -1,
                config=_settings(config, name),
            )
            for name in missing
            if name not in inputs
        ],
    )
    _wait_for(admin, missing)
    return missing


def check_topics(admin: AdminClient, config: Config) -> OutputTopics:
    """Everything that is wrong, in one error; else what writing depends on."""
    kafka = config.kafka
    found = _describe(admin, [*_named_inputs(config), *_outputs(config)])
    missing = [name for name, topic in found.items() if topic is None]
    if missing:
        raise TopicsError(
            f"missing topics: {', '.join(missing)}; create them, or run with --create-topics"
        )
    topics = {name: topic for name, topic in found.items() if topic is not None}
    if not input_partitions(admin, config):
        raise TopicsError(f"no topic matches kafka.input ({', '.join(kafka.input)})")
    wrong = _wrong_changelog(config, topics[kafka.changelog])
    if kafka.unique:
        wrong += _wrong_unique(config, topics)
    for name in _outputs(config):
        limit = topics[name].number("max.message.bytes")
        if limit < _BATCH_BYTES:
            wrong.append(f"{name}: max.message.bytes is {limit}, needed are {_BATCH_BYTES}")
    if wrong:
        raise TopicsError("topics have wrong settings:\n  " + "\n  ".join(wrong))
    unique = topics.get(kafka.unique)
    return OutputTopics(
        changelog_id=topics[kafka.changelog].id,
        verdicts=topics[kafka.verdicts].partitions,
        unique=unique.partitions if unique is not None else 0,
        dead_letters=topics[kafka.dead_letters].partitions,
        unique_bytes=unique.number("max.message.bytes") if unique is not None else 0,
        dead_letter_bytes=topics[kafka.dead_letters].number("max.message.bytes"),
        warnings=() if unique is None else _short_lived(kafka.unique, unique),
    )


def _wrong_changelog(config: Config, topic: _Topic) -> list[str]:
    name = config.kafka.changelog
    wrong = []
    if topic.partitions != 1:
        wrong.append(f"{name}: has {topic.partitions} partitions, a changelog has one")
    if "compact" in topic.settings["cleanup.policy"]:
        wrong.append(
            f"{name}: cleanup.policy is {topic.settings['cleanup.policy']}; compaction would "
            "remove articles, needed is delete"
        )
    for setting, wanted in _changelog_settings(config).items():
        if setting == "cleanup.policy":
            continue
        found, needed = topic.number(setting), int(wanted)
        unlimited = found == -1 and setting != "max.message.bytes"
        if not unlimited and (needed == -1 or found < needed):
            wrong.append(f"{name}: {setting} is {found}, needed are {needed} or more")
    return wrong


def _wrong_unique(config: Config, topics: Mapping[str, _Topic]) -> list[str]:
    """Articles keep their timestamps; one that the topic refuses would stop everything."""
    name = config.kafka.unique
    if topics[name].settings[_TIMESTAMPS] == _OF_WRITING:
        return []
    needed = {_OLDEST: _UNLIMITED, _NEWEST: 0}
    for topic in _named_inputs(config):
        needed[_NEWEST] = max(needed[_NEWEST], topics[topic].number(_NEWEST))
    return [
        f"{name}: {setting} is {topics[name].number(setting)}, needed are {least} or more"
        for setting, least in needed.items()
        if topics[name].number(setting) < least
    ]


def _short_lived(name: str, topic: _Topic) -> tuple[str, ...]:
    """Retention goes by timestamps, and those of articles may be of any age."""
    retention_ms = topic.number("retention.ms")
    kept = retention_ms == -1 or "delete" not in topic.settings["cleanup.policy"]
    if kept or topic.settings[_TIMESTAMPS] == _OF_WRITING:
        return ()
    warning = (
        f"{name}: articles keep their timestamps there, and retention.ms is {retention_ms}: Kafka "
        f"may delete an older one as soon as it is written; set {_TIMESTAMPS}={_OF_WRITING}, or "
        "retention.ms=-1"
    )
    return (warning,)


def _settings(config: Config, name: str) -> dict[str, str]:
    if name == config.kafka.changelog:
        return _changelog_settings(config)
    if name == config.kafka.unique:
        # Else retention would take an old article away as soon as it is written.
        return {_OLDEST: str(_UNLIMITED), _NEWEST: str(_UNLIMITED), _TIMESTAMPS: _OF_WRITING}
    return {}


def _changelog_settings(config: Config) -> dict[str, str]:
    window_ms = config.window.seconds * 1_000
    return {
        "cleanup.policy": "delete",
        "retention.ms": str(window_ms + RETENTION_SLACK_MS if window_ms else -1),
        "retention.bytes": "-1",
        # A shingle of four bytes for every word, and the shortest word is a letter and a space.
        "max.message.bytes": str(max(_BATCH_BYTES, 2 * config.input.max_text_bytes + _ROOM_BYTES)),
    }


def _named_inputs(config: Config) -> list[str]:
    return [name for name in config.kafka.input if not name.startswith("^")]


def _outputs(config: Config) -> list[str]:
    kafka = config.kafka
    names = [kafka.verdicts, kafka.unique, kafka.changelog, kafka.dead_letters]
    return [name for name in names if name]


def _matches(pattern: str, name: str) -> bool:
    if pattern.startswith("^"):
        return re.match(pattern, name) is not None
    return pattern == name


def _create(admin: AdminClient, topics: list[NewTopic]) -> None:
    if not topics:
        return
    for name, made in admin.create_topics(topics).items():
        try:
            made.result(_REQUEST_SECONDS)
        except KafkaException as error:
            # Another instance may have been a moment faster.
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise TopicsError(f"cannot create topic {name}: {error.args[0].str()}") from None


def _wait_for(admin: AdminClient, names: list[str]) -> None:
    """A broker may say that it has made a topic, and a moment later that there is none."""
    until = time.monotonic() + _REQUEST_SECONDS
    while names and None in _describe(admin, names).values() and time.monotonic() < until:
        time.sleep(0.1)


def _describe(admin: AdminClient, names: list[str]) -> dict[str, _Topic | None]:
    found: dict[str, _Topic | None] = {}
    described = admin.describe_topics(TopicCollection(names), request_timeout=_REQUEST_SECONDS)
    for name, answer in described.items():
        try:
            topic = answer.result(_REQUEST_SECONDS)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise
            found[name] = None
        else:
            found[name] = _Topic(str(topic.topic_id), len(topic.partitions), {})
    existing = [name for name, topic in found.items() if topic is not None]
    if not existing:
        return found
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in existing]
    for resource, settings in admin.describe_configs(
        resources, request_timeout=_REQUEST_SECONDS
    ).items():
        topic = found[resource.name]
        assert topic is not None
        entries = settings.result(_REQUEST_SECONDS)
        found[resource.name] = _Topic(
            topic.id, topic.partitions, {name: entry.value for name, entry in entries.items()}
        )
    return found
