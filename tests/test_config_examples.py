"""The examples in config/: good, explained, without secrets, and librdkafka knows their options."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import msgspec
import pytest
from conftest import ROOT, Run

from streamdedup.config import is_secret, load_config
from streamdedup.errors import ConfigError
from streamdedup.kafka.clients import consumer, member_options, producer, transaction_options

EXAMPLES = ["small.toml", "large.toml", "tls.toml"]
DEPLOYED = [*sorted((ROOT / "deploy").rglob("*.toml"))]


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_command_finds_it_good_and_a_wrong_key_in_it_bad(
    name: str, run: Run, tmp_path: Path
) -> None:
    text = (ROOT / "config" / name).read_text()
    assert run("config", "check", "--config", ROOT / "config" / name).code == 0
    (tmp_path / name).write_text(text.replace("bootstrap =", "boot_strap ="))
    done = run("config", "check", "--config", tmp_path / name)
    assert done.code == 2
    assert "boot_strap" in done.err


@pytest.mark.parametrize(
    "file", [*(ROOT / "config" / name for name in EXAMPLES), *DEPLOYED], ids=lambda f: f.name
)
def test_every_key_says_why(file: Path) -> None:
    keys = [line for line in file.read_text().splitlines() if re.match(r'["\w.]+ = ', line)]
    assert keys
    assert [line for line in keys if not re.search(r" # \w.{9,}|  # \S.{9,}", line)] == []


@pytest.mark.parametrize("name", EXAMPLES)
def test_no_secret_stands_in_it(name: str) -> None:
    kafka = tomllib.loads((ROOT / "config" / name).read_text())["kafka"]
    assert not [key for key in kafka.get("client", {}) if is_secret(key)]


@pytest.mark.parametrize("name", EXAMPLES)
def test_librdkafka_knows_every_option(name: str) -> None:
    password = {"STREAMDEDUP_KAFKA__CLIENT__SASL_PASSWORD": "x"} if name == "tls.toml" else {}
    kafka = load_config(ROOT / "config" / name, environ=password).kafka
    # A broker that is not there, and whatever authorities this machine believes.
    client = {key: value for key, value in kafka.client.items() if key != "ssl.ca.location"}
    here = msgspec.structs.replace(kafka, bootstrap="localhost:1", client=client)
    consumer(member_options(here)).close()
    producer(transaction_options(here))
    wrong = msgspec.structs.replace(here, client={**client, "sasl.mechanisme": "PLAIN"})
    with pytest.raises(ConfigError, match="mechanisme"):
        producer(transaction_options(wrong))
