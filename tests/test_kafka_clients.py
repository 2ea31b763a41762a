"""Options for librdkafka: everything passes through but what the protocol stands on, and no secret
is ever shown.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Run

from streamdedup.config import KafkaConfig, load_config
from streamdedup.errors import ConfigError
from streamdedup.kafka.clients import (
    consumer,
    consumer_options,
    member_options,
    shared_options,
    transaction_options,
)

SECRET = "correct horse"


def test_any_option_reaches_every_client() -> None:
    config = KafkaConfig(client={"security.protocol": "SASL_SSL", "session.timeout.ms": 9_000})
    for options in (consumer_options, member_options, transaction_options, shared_options):
        assert options(config)["security.protocol"] == "SASL_SSL"
        assert options(config)["session.timeout.ms"] == 9_000


@pytest.mark.parametrize("key", ["isolation.level", "transactional.id", "group.id"])
def test_what_exactly_once_stands_on_cannot_be_overridden(key: str) -> None:
    with pytest.raises(ConfigError, match=key):
        shared_options(KafkaConfig(client={key: "x"}))


@pytest.mark.parametrize("name", ["sasl.password", "SASL_PASSWORD"])
def test_a_secret_comes_from_the_environment(name: str) -> None:
    config = load_config(environ={f"STREAMDEDUP_KAFKA__CLIENT__{name}": SECRET})
    assert consumer_options(config.kafka)["sasl.password"] == SECRET


def test_a_secret_comes_from_a_file_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(f"# comment\n\nsasl.password = {SECRET}\nsasl.username=a=b\n")
    options = shared_options(KafkaConfig(client_file=str(file)))
    assert options["sasl.password"] == SECRET
    assert options["sasl.username"] == "a=b"


def test_a_bad_line_of_the_file_is_told_by_number_only(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(f"a=b\n{SECRET}\n")
    with pytest.raises(ConfigError, match="line 2") as caught:
        shared_options(KafkaConfig(client_file=str(file)))
    assert SECRET not in str(caught.value)


def test_a_missing_file_is_named() -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.properties"):
        shared_options(KafkaConfig(client_file="nowhere.properties"))


def test_config_show_masks_secrets(run: Run) -> None:
    env = {"STREAMDEDUP_KAFKA__CLIENT__SASL_PASSWORD": SECRET}
    for arguments in ((), ("--json",)):
        shown = run("config", "show", *arguments, env=env)
        assert shown.code == 0
        assert "sasl.password" in shown.out
        assert SECRET not in shown.out + shown.err


def test_a_secret_on_the_command_line_is_refused_unsaid(run: Run) -> None:
    done = run("config", "check", "--set", f"kafka.client.sasl.password={SECRET}")
    assert done.code == 2
    assert SECRET not in done.out + done.err


def test_an_unknown_option_is_an_error_in_the_settings() -> None:
    options = consumer_options(KafkaConfig(client={"no.such.option": "x", "sasl.password": SECRET}))
    with pytest.raises(ConfigError, match=r"no\.such\.option") as caught:
        consumer(options)
    assert SECRET not in str(caught.value)


def test_input_is_a_list_with_commas_in_the_environment() -> None:
    config = load_config(environ={"STREAMDEDUP_KAFKA__INPUT": "wire, ^web-.*"})
    assert config.kafka.input == ("wire", "^web-.*")


def test_an_option_may_be_set_for_one_run(run: Run) -> None:
    shown = run("config", "show", "--json", "--set", "kafka.client.linger.ms=7")
    assert json.loads(shown.out)["kafka"]["client"] == {"linger.ms": "7"}


def test_one_topic_cannot_have_two_roles() -> None:
    with pytest.raises(ConfigError, match="differ"):
        load_config(overrides=["kafka.verdicts=articles"], environ={})
