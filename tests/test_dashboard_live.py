"""The dashboard and the rules on a real service: an owner and a standby, seen by Prometheus.

Every expression is asked as Grafana would ask it.  The feed makes everything happen that a healthy
group has to show, so no panel may be empty.
"""

from __future__ import annotations

import copy
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dashboard import BOARD, PROMETHEUS_OWN, Target, known_samples, named, targets
from monitors import SCRAPE_SECONDS, Prometheus, prometheus, shipped
from probes import ready
from service import Instance, Setup, running, wait_until
from varied import POISON, SETTINGS, Feeding, old_articles

from streamdedup.observe.catalogue import ARTICLES, DEAD_LETTERS
from streamdedup.testing import Kafka
from streamdedup.testing.ports import free_port

SECONDS = 90.0


@dataclass
class Group:
    """An owner, a standby, and Prometheus, which knows both."""

    setup: Setup
    owner: Instance
    standby: Instance
    prometheus: Prometheus
    began: float

    def numbers(self, target: Target) -> list[dict[str, Any]]:
        """What a panel draws: all that happened, or the value of now."""
        expr, now = target.filled_in(SCRAPE_SECONDS), time.time()
        if target.instant:
            return self.prometheus.query(expr, now)
        return self.prometheus.query_range(expr, self.began, now)

    def figure(self, panel: str) -> float | None:
        """The value of a panel that shows one."""
        [target] = [one for one in targets() if one.panel == panel]
        found = self.numbers(target)
        return found[0]["numbers"][0] if found else None


@contextmanager
def group(broker: Kafka, directory: Path) -> Iterator[Group]:
    setup = Setup(broker, partitions=2, extra=SETTINGS)
    # What lies in RocksDB's memtables is not read through its cache; closing writes tables.
    setup.produce(old_articles())
    with running(setup, directory / "a") as before:
        setup.wait_for(len(old_articles()))
        assert before.stop() == 0
    began, ports = time.time(), (free_port(), free_port())
    with (
        running(setup, directory / "a", STREAMDEDUP_HTTP__PORT=str(ports[0])) as owner,
        prometheus(directory, ports) as server,
    ):
        wait_until(lambda: ready(owner)["state"] == "owner", "an owner")
        with running(setup, directory / "b", STREAMDEDUP_HTTP__PORT=str(ports[1])) as standby:
            wait_until(lambda: ready(standby)["state"] == "standby" and ready(standby)["ok"], "one")
            with Feeding(setup):
                yield Group(setup, owner, standby, server, began)


def complaints(group: Group, board: dict[str, Any] = BOARD) -> list[str]:
    """What is wrong with a dashboard: metrics that nobody exports, and panels without data."""
    exported = group.prometheus.metric_names | PROMETHEUS_OWN
    return [
        f"{target.panel}: nobody exports {name}"
        for target in targets(board)
        for name in sorted(named(target.expr) - exported)
    ] + [
        f"{target.panel}: no data: {target.expr}"
        for target in targets(board)
        if not group.numbers(target)
    ]


def test_every_panel_has_data_and_every_rule_can_be_evaluated(
    broker: Kafka, tmp_path: Path
) -> None:
    with group(broker, tmp_path) as world:
        try:
            wait_until(lambda: not complaints(world), "every panel to have data", SECONDS, 1)
        except AssertionError as late:
            raise AssertionError("\n".join(complaints(world))) from late
        every_kind_is_counted(world)
        figures_are_true(world)
        variables_have_values(world)
        a_bad_panel_is_noticed(world)
        rules_are_evaluated(world)


def every_kind_is_counted(world: Group) -> None:
    def counts(metric: str, *labels: str) -> dict[tuple[str, ...], float]:
        expr = f"sum by ({', '.join(labels)}) ({metric})"
        return {
            tuple(series["labels"][label] for label in labels): series["numbers"][0]
            for series in world.prometheus.query(expr, time.time())
        }

    def all_happened() -> bool:
        letters = counts(DEAD_LETTERS.name, "stage", "reason")
        assert set(letters) == set(POISON) == set(DEAD_LETTERS.known), "begin all of them at zero"
        verdicts = counts(ARTICLES.name, "verdict", "reason")
        assert set(verdicts) == set(ARTICLES.known)
        languages = {
            language
            for (language,) in counts("streamdedup_articles_language_total", "language")
            if re.search(r"\b(en|de|fr)\b", language)
        }
        return min(letters.values()) > 0 and min(verdicts.values()) > 0 and len(languages) == 3

    wait_until(all_happened, "every verdict, every dead letter and three languages", SECONDS, 1)


def figures_are_true(world: Group) -> None:
    """Of two instances that both export, one owns, one stands by, and nothing counts twice."""
    assert world.figure("Owners") == 1
    assert world.figure("Standbys") == 1
    assert world.figure("Not reached") == 0
    assert world.figure("Alerts firing") == 0
    share = world.figure("Duplicates")
    assert share is not None
    assert 0.3 < share < 0.9
    [health] = [one for one in targets() if one.panel == "Health by instance"]
    states = {series["labels"]["instance"]: series["numbers"] for series in world.numbers(health)}
    assert sorted(numbers[-1] for numbers in states.values()) == [0, 1]
    [lag] = [one for one in targets() if one.panel == "Lag by partition"]
    topic = world.setup.names["input"]
    assert [(one["labels"]["topic"], one["labels"]["partition"]) for one in world.numbers(lag)] == [
        (topic, "0"),
        (topic, "1"),
    ]
    [transactions] = [one for one in targets() if one.panel == "Transactions"]
    zero = [one for one in world.numbers(transactions) if one["labels"]["result"] == "failed"]
    assert max(zero[0]["numbers"]) == 0, "zero shows as zero"


def variables_have_values(world: Group) -> None:
    """What the choosers at the top of the dashboard offer."""
    ports = sorted(
        series["labels"]["instance"] for series in world.prometheus.query("up", time.time())
    )
    offered = {"job": ["streamdedup"], "instance": ports}
    for variable in BOARD["templating"]["list"]:
        if variable["type"] == "query":
            asked = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"])
            assert asked
            selector = asked[1].replace("$job", "streamdedup")
            answer = world.prometheus.get(
                f"/api/v1/label/{asked[2]}/values", **{"match[]": selector}
            )
            assert sorted(answer["data"]) == offered[variable["name"]]


def a_bad_panel_is_noticed(world: Group) -> None:
    wrong = {
        "streamdedup_recods_total": "nobody exports streamdedup_recods_total",
        'streamdedup_role{role="king"}': "no data",
    }
    for expr, complaint in wrong.items():
        board = copy.deepcopy(BOARD)
        panel = next(panel for panel in board["panels"] if panel["title"] == "Latency")
        panel["targets"][0]["expr"] = expr
        assert any(
            line.startswith("Latency: ") and complaint in line for line in complaints(world, board)
        ), expr


def rules_are_evaluated(world: Group) -> None:
    rules = world.prometheus.rules
    of_file = [rule for part in shipped("rules.yml")["groups"] for rule in part["rules"]]
    assert {rule["name"] for rule in rules} == {
        rule.get("alert") or rule["record"] for rule in of_file
    }
    wait_until(lambda: {rule["health"] for rule in world.prometheus.rules} == {"ok"}, "evaluations")
    assert not [rule["lastError"] for rule in world.prometheus.rules if "lastError" in rule]
    firing = [rule["name"] for rule in world.prometheus.rules if rule.get("state") == "firing"]
    assert not firing
    known = known_samples() | {rule["record"] for rule in of_file if "record" in rule}
    now = time.time()
    for rule in of_file:
        world.prometheus.query(rule["expr"], now)
        assert named(rule["expr"]) <= known, rule
        # Nothing fires, so it is asked of every part whether there is such a thing at all.
        parts = re.findall(r"[\w:]*streamdedup_[\w:]+(?:\{[^}]*\})?", rule["expr"])
        assert parts
        for part in parts:
            assert world.prometheus.query(part, now), f"{part} of {rule}"


def test_when_the_owner_dies_the_figures_are_those_of_the_one_that_is_left(
    broker: Kafka, tmp_path: Path
) -> None:
    with group(broker, tmp_path) as world:
        wait_until(lambda: (world.figure("Records a second") or 0) > 0, "throughput")
        world.owner.kill()

        def taken_over() -> bool:
            return (
                world.figure("Not reached") == 1
                and world.figure("Owners") == 1
                and world.figure("Standbys") == 0
                and (world.figure("Records a second") or 0) > 0
            )

        wait_until(taken_over, "the dashboard to show the take-over", SECONDS, 0.5)
        [lag] = [one for one in targets() if one.panel == "Lag by partition"]
        wait_until(
            lambda: (
                len(world.prometheus.query(lag.filled_in(SCRAPE_SECONDS), time.time()))
                == world.setup.partitions
            ),
            "one line a partition, whoever owned it before",
        )
