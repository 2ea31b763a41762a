"""librdkafka clients as this service needs them, made from the settings.

It owns the options that correctness depends on and refuses to have them overridden; everything
else can be set under `kafka.client`.  It knows neither topics nor what flows through them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from streamdedup.config import MASK, KafkaConfig, is_secret
from streamdedup.errors import ConfigError

Options = dict[str, Any]
OnError = Callable[[KafkaError], None]
Client = TypeVar("Client")

# The protocol stands on these; they belong to `clients`, not to a settings file.
_OURS = frozenset(
    {
        "auto.offset.reset",
        "bootstrap.servers",
        "enable.auto.commit",
        "enable.auto.offset.store",
        "enable.idempotence",
        "enable.partition.eof",
        "group.id",
        "group.instance.id",
        "isolation.level",
        "metadata.broker.list",
        "partition.assignment.strategy",
        "transactional.id",
    }
)
# librdkafka writes to standard error by itself unless somebody takes its lines; whoever asks for
# them (`log_level`, `debug`) gets them there.  Taken, they would wait in memory for a poll, and not
# every client is polled.
_SILENT = logging.getLogger("streamdedup.librdkafka")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False
_MAX_MESSAGE_BYTES = 64 << 20
# What a consumer holds ahead of the loop: some seconds of articles, however long the backlog.
_PREFETCH_KIB = 32 << 10


def shared_options(config: KafkaConfig, on_error: OnError | None = None) -> Options:
    """What all clients have in common, the user's own options included."""
    extra: Options = dict(_from_file(config.client_file)) | dict(config.client)
    for key in sorted(_OURS.intersection(extra)):
        raise ConfigError(f"kafka.client: {key} is set by streamdedup itself")
    options: Options = {
        "client.id": "streamdedup",
        "topic.metadata.refresh.interval.ms": 30_000,
        "reconnect.backoff.max.ms": 2_000,
    }
    if not {"log_level", "debug"}.intersection(extra):
        options["logger"] = _SILENT
    if on_error is not None:
        options["error_cb"] = on_error
    return options | extra | {"bootstrap.servers": config.bootstrap}


def consumer_options(config: KafkaConfig, on_error: OnError | None = None) -> Options:
    """A consumer that commits nothing by itself and sees only what was committed."""
    options: Options = {
        "session.timeout.ms": 6_000,
        "heartbeat.interval.ms": 1_500,
        "fetch.queue.backoff.ms": 5,  # at its default of a second a busy consumer idles
        "fetch.wait.max.ms": 100,
        "fetch.max.bytes": 16 << 20,
        "queued.max.messages.kbytes": _PREFETCH_KIB,
        "queued.min.messages": 20_000,
    }
    ours: Options = {
        "group.id": config.group,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "isolation.level": "read_committed",
        "auto.offset.reset": "error",
    }
    return options | shared_options(config, on_error) | ours


def member_options(config: KafkaConfig, on_error: OnError | None = None) -> Options:
    """The consumer that joins the group; an eager assignor, for there is only one thing to own."""
    ours = {"partition.assignment.strategy": "range", "auto.offset.reset": "latest"}
    return consumer_options(config, on_error) | ours


def producer_options(config: KafkaConfig, on_error: OnError | None = None) -> Options:
    """An idempotent producer."""
    options: Options = {
        "linger.ms": 5,
        "message.max.bytes": _MAX_MESSAGE_BYTES,  # the topics' own limits are checked at start
        "queue.buffering.max.messages": 1_000_000,
    }
    return options | shared_options(config, on_error) | {"enable.idempotence": True}


def transaction_options(config: KafkaConfig, on_error: OnError | None = None) -> Options:
    """The producer of verdicts.  Its id is the same in every instance: a new one fences the old."""
    # The broker finishes a commit after it has said so; begun sooner, the next transaction is told
    # to try again, and a hundred milliseconds (the default) are most of an article's way.
    options = {"transaction.timeout.ms": 60_000, "retry.backoff.ms": 10}
    ours = {"transactional.id": transactional_id(config)}
    return options | producer_options(config, on_error) | ours


def transactional_id(config: KafkaConfig) -> str:
    """The name under which all instances of a group write."""
    return config.transactional_id or config.group


def consumer(options: Mapping[str, Any]) -> Consumer:
    """A consumer; a bad option is an error in the settings."""
    return _made(Consumer, options)


def producer(options: Mapping[str, Any]) -> Producer:
    """A producer; a bad option is an error in the settings."""
    return _made(Producer, options)


def admin(config: KafkaConfig, on_error: OnError | None = None) -> AdminClient:
    """A client that looks at topics and makes them."""
    return _made(AdminClient, shared_options(config, on_error))


def _made(kind: Callable[[Options], Client], options: Mapping[str, Any]) -> Client:
    try:
        return kind(dict(options))
    except KafkaException as error:
        raise ConfigError(f"kafka.client: {_without_secrets(error, options)}") from None


def _without_secrets(error: KafkaException, options: Mapping[str, Any]) -> str:
    text = str(error.args[0].str())
    for key, value in options.items():
        if is_secret(key) and str(value):
            text = text.replace(str(value), MASK)
    return text


def _from_file(file: str) -> Mapping[str, str]:
    """`key=value` lines, as other Kafka tools have them."""
    if not file:
        return {}
    try:
        lines = Path(file).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise ConfigError(f"kafka.client_file: cannot read {file}: {reason}") from None
    options = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        key, equals, value = line.partition("=")
        if not equals or not key.strip():
            # Not the line itself: it may be half a secret.
            raise ConfigError(f"kafka.client_file: {file} line {number}: write key=value")
        options[key.strip()] = value.strip()
    return options
