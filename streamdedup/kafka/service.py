"""The service: connect, stand by, own, and begin again from the changelog whenever in doubt.

It owns the order of things over a process's life and what follows from every error.  It knows no
signals, no log and no metrics: `stop` and the listener are given to it.
"""

from __future__ import annotations

from threading import Event

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from streamdedup.config import Config
from streamdedup.errors import InputLost, StateCorrupt, StateDiskError, TopicsError
from streamdedup.kafka.bounded import close_within
from streamdedup.kafka.changelog import Changelog
from streamdedup.kafka.clients import admin
from streamdedup.kafka.commit import CommitFailed
from streamdedup.kafka.dead_letters import DeadLetterLimits
from streamdedup.kafka.delivery import EXACTLY_ONCE, Delivery
from streamdedup.kafka.ends import Ends
from streamdedup.kafka.failpoints import Failpoints
from streamdedup.kafka.membership import Member, Ownership
from streamdedup.kafka.owner import Owner, Surroundings
from streamdedup.kafka.replica import Replica
from streamdedup.kafka.report import CommitFailure, Listener, Role
from streamdedup.kafka.tail import Tail
from streamdedup.kafka.topics import OutputTopics, create_topics
from streamdedup.schemes.shingled import ShingledScheme

_CONNECT_SECONDS = 3.0
_RETRY_SECONDS = 2.0
_BACKOFF_SECONDS = (0.1, 0.5, 1.0, 2.0, 5.0)
_FOLLOW_SECONDS = 0.2
_CLOSE_SECONDS = 1.0
# Answers of a broker that will not be others the next time.
_REFUSALS = frozenset(
    {
        KafkaError.TOPIC_EXCEPTION,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.POLICY_VIOLATION,
    }
)


class Service:
    """One instance of the service."""

    def __init__(
        self,
        config: Config,
        listener: Listener,
        stop: Event,
        failpoints: Failpoints,
        *,
        create_topics: bool = False,
        skip_lost: bool = False,
        delivery: Delivery = EXACTLY_ONCE,
    ) -> None:
        self._config = config
        self._listener = listener
        self._stop = stop
        self._failpoints = failpoints
        self._create_topics = create_topics
        self._skip_lost = skip_lost
        self._delivery = delivery
        self._last_error = ""
        self._disk_trouble = ""
        self._failures = 0

    def run(self) -> None:
        """Until `stop` is set, or an error that only a person can mend."""
        scheme = ShingledScheme(self._config.scheme, self._config.match)
        changelog = Changelog(scheme.fingerprint)
        kafka = self._config.kafka
        topics_admin = admin(kafka, self._on_error)
        self._listener.on_role(Role.CONNECTING)
        topics = self._topics(topics_admin)
        if topics is None:
            self._listener.on_role(Role.STOPPED)
            return
        for warning in topics.warnings:
            self._listener.on_trouble(warning)
        tail = Tail(kafka, self._on_error)
        replica = Replica(
            self._config, changelog, topics.changelog_id, tail, Ends(topics_admin), self._listener
        )
        surroundings = Surroundings(
            config=self._config,
            admin=topics_admin,
            topics=topics,
            changelog=changelog,
            replica=replica,
            limits=DeadLetterLimits(kafka.dead_letters_in_row, kafka.dead_letters_share),
            listener=self._listener,
            failpoints=self._failpoints,
            stop=self._stop,
            on_error=self._on_error,
            skip_lost=self._skip_lost,
            delivery=self._delivery,
        )
        try:
            while not self._stop.is_set():
                self._one_membership(surroundings)
        finally:
            replica.close()
            close_within(_CLOSE_SECONDS, tail.close)
            self._listener.on_role(Role.STOPPED)

    def _one_membership(self, surroundings: Surroundings) -> None:
        """From joining the group to leaving it; errors end it and the next begins behind others."""
        replica = surroundings.replica
        self._listener.on_tick()
        try:
            if not replica.is_open:
                replica.open()
                if self._disk_trouble:
                    self._listener.on_event(
                        "the state directory works again", "disk", path=self._config.state.path
                    )
                self._disk_trouble = ""
            with self._delivery.join(
                self._config.kafka, self._on_error, self._listener.on_rebalance
            ) as membership:
                self._serve(surroundings, membership)
        except StateCorrupt as error:
            replica.rebuild(str(error).splitlines()[0])
        except StateDiskError as error:
            self._listener.on_role(Role.BLOCKED)
            # Every attempt fails at another file, with the same at the end.
            reason = str(error).rpartition(": ")[2]
            if reason != self._disk_trouble:
                self._listener.on_trouble(
                    f"{error}; nothing is judged until it works again",
                    "disk",
                    path=self._config.state.path,
                )
            self._disk_trouble = reason
            self._back_off()
        except KafkaException as error:
            self._listener.on_trouble(f"Kafka: {_said(error.args[0])}; trying again")
            replica.reconnect()
            self._back_off()
        except InputLost as error:
            if not self._skip_lost:
                raise
            self._listener.on_trouble(str(error).splitlines()[0])

    def _serve(self, surroundings: Surroundings, membership: Member) -> None:
        role: Role | None = None
        while not self._stop.is_set():
            self._listener.on_tick()
            ownership = membership.poll()
            if ownership is Ownership.LOST:
                self._listener.on_trouble("the group went on without this instance; joining anew")
                return
            if ownership is Ownership.OWNER:
                role = None
                if not self._own(surroundings, membership):
                    return
                continue
            # A member to whom nothing is assigned may never be told so: undecided is standing by.
            if role is not Role.STANDBY:
                role = Role.STANDBY
                self._listener.on_role(role)
            surroundings.replica.follow(_FOLLOW_SECONDS)
            surroundings.replica.report()
            self._failures = 0

    def _own(self, surroundings: Surroundings, membership: Member) -> bool:
        """A period of ownership; False if the membership is to be given up with it."""
        try:
            Owner(surroundings, membership).run()
        except CommitFailed as error:
            failure = CommitFailure.FENCED if error.fenced else CommitFailure.FAILED
            self._listener.on_commit_failure(failure)
            if error.fenced:
                self._listener.on_trouble(f"the index is no longer owned here: {error}")
                return False
            self._listener.on_trouble(f"a commit failed: {error}; reading what is true")
            self._back_off()
        else:
            self._failures = 0
        finally:
            self._listener.on_released()
        return True

    def _topics(self, topics_admin: AdminClient) -> OutputTopics | None:
        """Wait for a broker, however long, then see that the topics are right."""
        while not self._stop.is_set():
            self._listener.on_tick()
            try:
                topics_admin.list_topics(timeout=_CONNECT_SECONDS)
                if self._create_topics:
                    for name in create_topics(topics_admin, self._config):
                        self._listener.on_event(
                            f"created topic {name}", "topic_created", topic=name
                        )
                return self._delivery.topics(topics_admin, self._config)
            except KafkaException as error:
                if error.args[0].code() in _REFUSALS:
                    raise TopicsError(f"Kafka refuses the topics: {_said(error.args[0])}") from None
                topics_admin.poll(0)
                reason = self._last_error or _said(error.args[0])
                self._listener.on_trouble(
                    f"cannot reach Kafka at {self._config.kafka.bootstrap}: {reason}; "
                    "trying again until it answers"
                )
                self._stop.wait(_RETRY_SECONDS)
        return None

    def _back_off(self) -> None:
        pause = _BACKOFF_SECONDS[min(self._failures, len(_BACKOFF_SECONDS) - 1)]
        self._failures += 1
        self._stop.wait(pause)

    def _on_error(self, error: KafkaError) -> None:
        """Called by clients: connections that break and come back by themselves."""
        self._last_error = _said(error)
        self._listener.on_connection(self._last_error)


def _said(error: KafkaError) -> str:
    return error.str() or error.name()
