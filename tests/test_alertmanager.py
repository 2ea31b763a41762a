"""An alert on its whole way: a loop that hangs, Prometheus, Alertmanager, who is to be told."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any

import yaml
from monitors import Monitor, alertmanager, prometheus, shipped
from probes import ask, ready
from service import Setup, feed, running, wait_until

from streamdedup.testing import Kafka
from streamdedup.testing.ports import free_port

PATIENT = {"STREAMDEDUP_HTTP__STUCK_SECONDS": "2", "STREAMDEDUP_FAILPOINT": "decided:1:hang"}


def impatient_rules(directory: Path) -> Path:
    """The shipped rules, but that an alert comes and goes within seconds instead of minutes.

    How long each has to hold is tried by promtool, which has a clock of its own.
    """
    rules = shipped("rules.yml")
    for group in rules["groups"]:
        for rule in group["rules"]:
            if "alert" in rule:
                rule["for"] = "1s"
                rule.pop("keep_firing_for", None)
    file = directory / "rules.yml"
    file.write_text(yaml.safe_dump(rules))
    return file


def alerts(server: Monitor, name: str) -> list[dict[str, Any]]:
    """What Alertmanager has of this name and does not take for resolved."""
    return [alert for alert in server.get("/api/v2/alerts") if alert["labels"]["alertname"] == name]


def test_a_loop_that_hangs_reaches_alertmanager_and_its_end_is_told_too(
    broker: Kafka, tmp_path: Path
) -> None:
    setup, port = Setup(broker), free_port()
    with (
        alertmanager(tmp_path) as receiver,
        prometheus(
            tmp_path, [port], rules=impatient_rules(tmp_path), alertmanager_port=receiver.port
        ),
        running(setup, tmp_path, STREAMDEDUP_HTTP__PORT=str(port), **PATIENT) as instance,
    ):
        wait_until(lambda: ready(instance)["state"] == "owner", "an owner")
        assert not alerts(receiver, "StreamdedupStuck")
        setup.produce(feed(20))
        wait_until(lambda: bool(alerts(receiver, "StreamdedupStuck")), "the alert")
        # The loop hangs, HTTP answers.
        assert ask(f"http://localhost:{port}/healthz")[0] == 503
        [alert] = alerts(receiver, "StreamdedupStuck")
        assert alert["labels"] == {
            "alertname": "StreamdedupStuck",
            "instance": f"localhost:{port}",
            "job": "streamdedup",
            "severity": "critical",
            "state": "stuck",
        }
        assert alert["status"]["state"] == "active"
        assert alert["annotations"]["runbook"] == "docs/operations.md#streamdedupstuck"
        assert f"localhost:{port}" in alert["annotations"]["summary"]
        assert [one["name"] for one in alert["receivers"]] == ["wake-somebody"]
        instance.kill()
        wait_until(lambda: not alerts(receiver, "StreamdedupStuck"), "the end of the alert")


def test_what_follows_from_another_alert_is_not_told_but_in_its_own_group(tmp_path: Path) -> None:
    with alertmanager(tmp_path) as receiver:
        tell(receiver, "StreamdedupNoOwner", "a")
        tell(receiver, "StreamdedupNoProgress", "a")
        tell(receiver, "StreamdedupNoProgress", "b")
        tell(receiver, "StreamdedupDiskFilling", "a")

        def states() -> dict[tuple[str, str], str]:
            return {
                (alert["labels"]["alertname"], alert["labels"]["job"]): alert["status"]["state"]
                for alert in receiver.get("/api/v2/alerts")
            }

        told = {
            ("StreamdedupNoOwner", "a"): "active",
            ("StreamdedupNoProgress", "a"): "suppressed",
            ("StreamdedupNoProgress", "b"): "active",
            ("StreamdedupDiskFilling", "a"): "active",
        }
        wait_until(lambda: states() == told, "one to be held back")


def tell(receiver: Monitor, alert: str, job: str) -> None:
    """As Prometheus does."""
    body = [{"labels": {"alertname": alert, "job": job, "severity": "critical"}}]
    request = urllib.request.Request(
        f"http://127.0.0.1:{receiver.port}/api/v2/alerts",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        assert answer.status == 200
