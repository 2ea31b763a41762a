"""A running service as its operator sees it, over HTTP, with a real broker."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from probes import address, ask, ready
from prometheus_client.parser import text_string_to_metric_families
from service import Instance, Setup, feed, running, wait_until

from streamdedup.observe.catalogue import (
    ARTICLES,
    CATALOGUE,
    DEAD_LETTERS,
    INPUT_BYTES,
    LAG,
    POSITION,
    RECORDS,
    STAGE,
)
from streamdedup.testing import Kafka, LocalBroker, unique_name
from streamdedup.testing.ports import free_port

SERVED = {"STREAMDEDUP_HTTP__PORT": "0"}
OWNERS = {LAG.name, POSITION.name}
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def scraped(instance: Instance) -> Samples:
    """As Prometheus reads it."""
    _, body = ask(address(instance) + "metrics")
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(body)
        for sample in family.samples
    }


def names(samples: Samples) -> set[str]:
    """Of the metrics, whatever their samples are called."""
    found = {name for name, _ in samples}
    return found | {re.sub(r"_(bucket|count|sum)$", "", name) for name in found}


def test_after_some_traffic_every_metric_of_the_catalogue_is_there_and_true(
    broker: Kafka, tmp_path: Path
) -> None:
    messages = [*feed(300), b"no json", b'{"id": "x", "text": "..."}']
    setup = Setup(broker, extra=SERVED)
    setup.produce(messages)
    with running(setup, tmp_path) as instance:
        setup.wait_for(len(messages))
        place = (("partition", "0"), ("topic", setup.names["input"]))
        wait_until(lambda: scraped(instance).get((LAG.name, place)) == 0, "no lag")
        wait_until(lambda: scraped(instance)["streamdedup_index_articles", ()] > 0, "an index")
        seen = scraped(instance)
        assert {metric.name for metric in CATALOGUE} <= names(seen)
        assert seen[RECORDS.name, ()] == len(messages)
        assert seen[INPUT_BYTES.name, ()] == sum(map(len, messages))
        verdicts = [json.loads(verdict) for verdict in setup.verdicts()]
        for verdict, reason in {(v["verdict"], v["reason"]) for v in verdicts}:
            told = seen[ARTICLES.name, (("reason", reason), ("verdict", verdict))]
            assert told == sum(v["verdict"] == verdict and v["reason"] == reason for v in verdicts)
        assert sum(value for (name, _), value in seen.items() if name == DEAD_LETTERS.name) == 2
        matched = [v for v in verdicts if v["duplicate_of"] and v["reason"] != "redelivery"]
        similar = [v["similarity"] for v in matched]
        assert seen["streamdedup_similarity_ratio_count", ()] == len(similar)
        assert abs(seen["streamdedup_similarity_ratio_sum", ()] - sum(similar)) < 1e-6
        assert seen["streamdedup_latency_seconds_count", ()] == len(messages)
        assert ask(address(instance))[0] == 200
        assert "no json" not in instance.log
        assert "dead letter: " in instance.log
        assert instance.stop() == 0


def test_waiting_for_records_is_no_time_of_a_stage(broker: Kafka, tmp_path: Path) -> None:
    setup = Setup(broker, extra=SERVED)
    gather = (("stage", "gather"),)
    with running(setup, tmp_path) as instance:
        wait_until(lambda: ready(instance)["state"] == "owner", "an owner")
        for article in feed(20):
            setup.produce([article])
            time.sleep(0.05)
        wait_until(lambda: scraped(instance)[RECORDS.name, ()] == 20, "all records")
        seen = scraped(instance)
        batches = seen[f"{STAGE.name}_count", gather]
        assert batches > 5
        assert seen[f"{STAGE.name}_sum", gather] < 0.01 * batches
        assert instance.stop() == 0


def test_an_input_that_is_written_in_transactions_leaves_no_lag(
    broker: Kafka, tmp_path: Path
) -> None:
    setup = Setup(broker, extra=SERVED)
    writer = Producer(
        {"bootstrap.servers": broker.bootstrap, "transactional.id": unique_name("feed")}
    )
    writer.init_transactions()

    def transaction(messages: list[bytes], *, commits: bool) -> None:
        writer.begin_transaction()
        for value in messages:
            writer.produce(setup.names["input"], value)
        writer.flush()
        (writer.commit_transaction if commits else writer.abort_transaction)()

    transaction(feed(20), commits=True)
    with running(setup, tmp_path) as instance:
        place = (("partition", "0"), ("topic", setup.names["input"]))

        def caught_up(end: int) -> bool:
            seen = scraped(instance)
            return (seen.get((POSITION.name, place)), seen.get((LAG.name, place))) == (end, 0)

        # A marker follows the records of each transaction; of an aborted one nothing is read.
        wait_until(lambda: caught_up(21), "no lag behind a commit")
        transaction(feed(30, 2), commits=False)
        wait_until(lambda: caught_up(52), "no lag behind an abort")
        assert scraped(instance)[RECORDS.name, ()] == 20
        assert instance.stop() == 0


def test_an_owner_whose_every_commit_fails_has_a_lag(broker: Kafka, tmp_path: Path) -> None:
    setup = Setup(broker, extra=SERVED)
    place = (("partition", "0"), ("topic", setup.names["input"]))
    failed = ("streamdedup_transactions_total", (("result", "failed"),))
    setup.produce(feed(50))
    with running(setup, tmp_path) as instance:
        setup.wait_for(50)
        too_small = ConfigResource(
            ConfigResource.Type.TOPIC,
            setup.names["verdicts"],
            incremental_configs=[
                ConfigEntry("max.message.bytes", "100", incremental_operation=AlterConfigOpType.SET)
            ],
        )
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        for done in admin.incremental_alter_configs([too_small]).values():
            done.result()
        setup.produce(feed(50, 2))
        wait_until(lambda: scraped(instance)[failed] >= 3, "failures")
        wait_until(lambda: scraped(instance).get((LAG.name, place)) == 50, "a lag")
        instance.kill()


def test_an_instance_goes_from_starting_to_owner_and_the_next_to_standby_and_owner(
    broker: Kafka, tmp_path: Path
) -> None:
    setup = Setup(broker, extra=SERVED)
    setup.produce(feed(200))
    later = {"STREAMDEDUP_KAFKA__BOOTSTRAP": f"localhost:{free_port()}"}
    with running(setup, tmp_path / "lost", **later) as lost:
        wait_until(lambda: "cannot reach Kafka" in ready(lost)["why"], "a reason")
        assert (ready(lost)["state"], ready(lost)["ok"]) == ("starting", False)
        assert ask(address(lost) + "healthz")[0] == 200
    with running(setup, tmp_path / "a") as first:
        # While the group makes up its mind, an instance is a standby.
        wait_until(lambda: ready(first)["state"] == "owner", "an owner")
        assert ready(first)["ok"]
        setup.wait_for(200)
        with running(setup, tmp_path / "b") as second:
            wait_until(lambda: bool(ready(second)["ok"]), "a standby")
            assert ready(second)["state"] == "standby"
            assert not OWNERS & names(scraped(second))
            caught_up = scraped(second)
            wait_until(
                lambda: scraped(second)["streamdedup_index_articles", ()] > 150, "a full index"
            )
            assert caught_up["streamdedup_role", (("role", "standby"),)] == 1
            assert first.stop() == 0
            wait_until(lambda: ready(second)["state"] == "owner", "a take-over")
            setup.produce(feed(50, 2))
            setup.wait_for(250)
            wait_until(lambda: scraped(second)[RECORDS.name, ()] == 50, "its own articles")
            wait_until(lambda: names(scraped(second)) >= OWNERS, "its lag")
            assert scraped(second)["streamdedup_restored_articles_total", ()] >= 150
            assert second.stop() == 0
    setup.check_truth()


def test_while_kafka_hangs_neither_owner_nor_standby_calls_itself_ready(
    own_broker: LocalBroker, tmp_path: Path
) -> None:
    setup = Setup(own_broker, extra=SERVED)
    setup.produce(feed(50))
    with running(setup, tmp_path / "a") as first, running(setup, tmp_path / "b") as second:
        both = (first, second)
        wait_until(lambda: all(ready(one)["ok"] for one in both), "two that are ready")
        setup.wait_for(50)
        own_broker.freeze()
        wait_until(lambda: not any(ready(one)["ok"] for one in both), "them to notice", 40)
        assert {ready(one)["state"] for one in both} == {"starting"}
        assert all(ask(address(one) + "healthz")[0] == 200 for one in both)
        time.sleep(10)
        assert not any(ready(one)["ok"] for one in both), "nothing has changed"
        own_broker.thaw()
        wait_until(lambda: all(ready(one)["ok"] for one in both), "them to notice", 20)
        assert {ready(one)["state"] for one in both} == {"owner", "standby"}
        setup.produce(feed(50, 2))
        setup.wait_for(100)
    setup.check_truth()


def test_an_owner_that_makes_its_index_again_is_alive_and_not_ready_until_it_has_it(
    broker: Kafka, tmp_path: Path
) -> None:
    setup = Setup(broker, extra={**SERVED, "STREAMDEDUP_HTTP__STUCK_SECONDS": "6"})
    setup.produce(feed(200))
    with running(setup, tmp_path / "lost") as first:
        setup.wait_for(200)
        assert first.stop() == 0
    with running(setup, tmp_path / "new", STREAMDEDUP_FAILPOINT="restored:1:hang") as instance:
        wait_until(lambda: "changelog offsets" in ready(instance)["why"], "a restore")
        answer = ready(instance)
        assert (answer["state"], answer["role"], answer["ok"]) == ("restoring", "restoring", False)
        assert ask(address(instance) + "healthz")[0] == 200
        seen = scraped(instance)
        assert seen["streamdedup_restored_articles_total", ()] == 200
        assert seen["streamdedup_health_state", (("state", "restoring"),)] == 1
        assert seen["streamdedup_ready", ()] == 0
        # Held there for too long, it is no longer alive either.
        wait_until(lambda: ask(address(instance) + "healthz")[0] == 503, "a stuck restore")
        assert ready(instance)["state"] == "stuck"
        instance.kill()
    with running(setup, tmp_path / "new") as instance:
        wait_until(lambda: bool(ready(instance)["ok"]), "a ready instance")
        wait_until(lambda: ready(instance)["state"] == "owner", "an owner")
        assert scraped(instance)["streamdedup_restore_progress_ratio", ()] == 1
        assert instance.stop() == 0
    setup.check_truth()


def test_every_line_for_machines_is_an_object_and_the_last_one_says_why_it_ended(
    broker: Kafka, tmp_path: Path
) -> None:
    limits = {"STREAMDEDUP_KAFKA__DEAD_LETTERS_IN_ROW": "5", "STREAMDEDUP_LOG__FORMAT": "json"}
    setup = Setup(broker, extra={**SERVED, **limits})
    setup.produce([b"no json"] * 10)
    with running(setup, tmp_path) as instance:
        assert instance.wait() == 8
        events = [json.loads(line) for line in instance.log.splitlines()]
    end = events[-1]
    assert (end["event"], end["level"], end["exit_code"]) == ("end", "error", 8)
    assert end["error"] == "TooManyDeadLetters"
    assert "kafka.dead_letters_in_row" in end["message"]


def test_a_port_in_use_ends_the_service_with_the_remedy(broker: Kafka, tmp_path: Path) -> None:
    setup = Setup(broker, extra=SERVED)
    with running(setup, tmp_path / "a") as first:
        port = address(first).rstrip("/").rpartition(":")[2]
        with running(setup, tmp_path / "b", STREAMDEDUP_HTTP__PORT=port) as second:
            assert second.wait() == 2
            assert f"http.port {port}" in second.log
            assert "Traceback" not in second.log


def test_a_loop_that_stands_still_is_not_healthy_and_its_stacks_are_logged(
    broker: Kafka, tmp_path: Path
) -> None:
    stuck = {"STREAMDEDUP_HTTP__STUCK_SECONDS": "2", "STREAMDEDUP_LOG__FORMAT": "json"}
    setup = Setup(broker, extra={**SERVED, **stuck})
    with running(setup, tmp_path, STREAMDEDUP_FAILPOINT="decided:1:hang") as instance:
        wait_until(lambda: ready(instance)["state"] == "owner", "an owner")
        setup.produce(feed(20))
        wait_until(lambda: ask(address(instance) + "healthz")[0] == 503, "a stuck loop")
        assert ready(instance)["state"] == "stuck"
        instance.wait_for_log('"event":"stacks"')
        events = [json.loads(line) for line in instance.log.splitlines()]
        [stacks] = [event["message"] for event in events if event["event"] == "stacks"]
        assert "owner.py" in stacks
        instance.kill()
