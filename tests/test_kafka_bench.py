"""The Kafka benchmark runs from end to end on a small input and says what it promises to say."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from conftest import ROOT, command_environment


@pytest.mark.usefixtures("local_kafka")
def test_kafka_figures_are_complete() -> None:
    sizes = ["--articles", "1500", "--batch", "400", "--partitions", "2", "--rounds", "1"]
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "kafka.py", *sizes, "--json"],
        capture_output=True,
        text=True,
        env=command_environment(),
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert (figures["articles"], figures["partitions"], figures["batch"]) == (1500, 2, 400)
    assert 2_400 < figures["bytes_per_article"] < 2_600
    loop = figures["loop"]
    # One for the article that started the clock, then 400, 400, 400 and 299.
    assert loop["transactions"] == 5
    assert loop["articles_per_second"] > 0
    assert loop["cpu_us_per_article"] > 0
    assert 0 < loop["commit_share"] < 1
