"""The service in calm weather: every article answered, in order, and what an operator sees."""

from __future__ import annotations

import json
from pathlib import Path

from conftest import ROOT
from jsonschema import Draft202012Validator
from service import Setup, feed, running

from streamdedup.testing import Kafka

SCHEMA = json.loads((ROOT / "streamdedup" / "verdict.schema.json").read_text())


def test_every_article_gets_one_verdict_in_order(broker: Kafka, tmp_path: Path) -> None:
    setup = Setup(broker)
    setup.produce(feed(500))
    with running(setup, tmp_path) as instance:
        setup.wait_for(500)
        assert instance.stop() == 0
    setup.check_truth()
    verdicts = [json.loads(verdict) for verdict in setup.verdicts()]
    assert [verdict["source"]["offset"] for verdict in verdicts] == list(range(500))
    assert {verdict["reason"] for verdict in verdicts} >= {"new", "near"}
    validator = Draft202012Validator(SCHEMA)
    for verdict in verdicts:
        validator.validate(verdict)
