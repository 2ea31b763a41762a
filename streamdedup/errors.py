"""Every failure that a user can cause, as one family of exceptions.

The command line turns each into a message and a documented exit code; a library user catches
`StreamdedupError`.  Messages say what is wrong, where, and what to do about it.
"""

from __future__ import annotations


class StreamdedupError(Exception):
    """Root of the family: anything raised on purpose by this package."""


class ConfigError(StreamdedupError):
    """A setting is unknown, of the wrong type or out of range."""


class InputError(StreamdedupError):
    """One incoming article cannot be judged; `reason` is a short, stable word for counting."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


class SourceError(StreamdedupError):
    """An input file cannot be read to its end: broken compression, a failing disk."""


class StateError(StreamdedupError):
    """The state directory cannot be used as it is."""


class StateMismatch(StateError):
    """The state directory was made with other parameters."""


class StateLocked(StateError):
    """Another process has the state directory open."""


class StateCorrupt(StateError):
    """The bytes on disk are not what was written."""


class StateDiskError(StateError):
    """The disk refused a read or a write: full, read-only or failing."""


class ServiceError(StreamdedupError):
    """The service cannot work with Kafka as it finds it; an operator must decide."""


class KafkaFailed(ServiceError):
    """Kafka does not answer, or refused what was asked of it."""


class TopicsError(ServiceError):
    """A topic is missing or has settings under which articles would be lost."""


class ChangelogMismatch(ServiceError):
    """The changelog was written with other parameters."""


class InputLost(ServiceError):
    """Articles that were not judged yet are no longer in the input topic."""


class TooManyDeadLetters(ServiceError):
    """So many records cannot be judged that something must be wrong before them."""
