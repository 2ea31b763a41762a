"""The settings: layers, checks, and the example file that documents them."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any, cast

import pytest
from conftest import ROOT, Run

from streamdedup import Deduplicator
from streamdedup.config import Config, MatchConfig, StateConfig, config_tree, load_config
from streamdedup.errors import ConfigError
from streamdedup.store.inspect import state_info

EXAMPLE = ROOT / "config" / "streamdedup.toml"


def test_the_example_file_names_every_key_with_its_default() -> None:
    assert tomllib.loads(EXAMPLE.read_text()) == config_tree(Config())


def test_the_example_file_loads_as_the_defaults() -> None:
    assert load_config(EXAMPLE, environ={}) == Config()


def test_the_example_file_says_what_may_be_changed_on_an_index(tmp_path: Path) -> None:
    Deduplicator.open(tmp_path).close()
    bound = state_info(tmp_path)["parameters"].keys()
    free = {key for key in config_tree(Config())["state"] if f"state.{key}" not in bound}
    assert (free, {key for key in bound if key.startswith("match.")}) == (
        {"path", "cache_mib"},
        {"match.verify"},
    )
    said = EXAMPLE.read_text()
    assert "Only `path` and `cache_mib` may be changed on an existing directory.\n[state]" in said
    assert "All but `verify` may be changed on an existing state directory.\n[match]" in said


def test_each_layer_overrides_the_one_below(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text("[match]\njaccard = 0.6\ncontainment = 0.6\n[window]\nseconds = 60\n")
    environ = {"STREAMDEDUP_MATCH__JACCARD": "0.7", "STREAMDEDUP_MATCH__CONTAINMENT": "0.7"}
    config = load_config(file, ["match.jaccard=0.8"], environ)
    assert config.match.jaccard == 0.8
    assert config.match.containment == 0.7
    assert config.window.seconds == 60
    assert config.scheme == Config().scheme


def test_the_environment_names_the_file_for_whoever_is_given_none(run: Run, tmp_path: Path) -> None:
    named, given = tmp_path / "named.toml", tmp_path / "given.toml"
    named.write_text("[match]\njaccard = 0.6\n[window]\nseconds = 60\n")
    given.write_text("[match]\njaccard = 0.7\n")
    environ = {"STREAMDEDUP_CONFIG": str(named), "STREAMDEDUP_WINDOW__SECONDS": "61"}
    config = load_config(environ=environ)
    assert (config.match.jaccard, config.window.seconds) == (0.6, 61)
    assert load_config(given, environ=environ).match.jaccard == 0.7
    assert load_config(environ={"STREAMDEDUP_CONFIG": ""}) == Config()
    assert "jaccard = 0.6\n" in run("config", "show", env=environ).out
    missing = run("config", "check", env={"STREAMDEDUP_CONFIG": "missing.toml"})
    assert (missing.code, missing.out) == (2, "")
    assert "missing.toml" in missing.err


def test_environment_variables_without_a_section_are_not_settings() -> None:
    assert load_config(environ={"STREAMDEDUP_DEBUG": "1"}) == Config()


@pytest.mark.parametrize(
    ("override", "named"),
    [
        ("nothing.k=1", "nothing"),
        ("match.jacard=0.5", "jacard"),
        ("match.jaccard=2", "match.jaccard"),
        ("match.jaccard=nan", "match.jaccard"),
        ("match.jaccard=much", "match.jaccard"),
        ("state.fan_in=3", "state.fan_in"),
        ("window.seconds=-1", "window.seconds"),
        ("input.id_field=", "input.id_field"),
        ("input.id_field=text", "must differ"),
        ("jaccard=0.5", "jaccard"),
        ("match.jaccard", "section.key=value"),
    ],
)
def test_a_bad_setting_is_refused_by_name(override: str, named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        load_config(overrides=[override], environ={})


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"[match\n", "not valid TOML"), (b"\xff", "not valid TOML"), (b"match = 1\n", "match")],
)
def test_a_broken_file_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    file = tmp_path / "c.toml"
    file.write_bytes(content)
    with pytest.raises(ConfigError, match=said):
        load_config(file, environ={})


def test_an_override_inside_a_section_that_is_a_value_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text("match = 1\n")
    with pytest.raises(ConfigError, match="section"):
        load_config(file, ["match.jaccard=0.5"], environ={})


@pytest.mark.parametrize(
    ("config", "named"),
    [
        (Config(match=MatchConfig(jaccard=5)), "match.jaccard"),
        (Config(match=MatchConfig(jaccard=float("nan"))), "match.jaccard"),
        (Config(state=StateConfig(head_articles=3)), "state.head_articles"),
        (Config(state=StateConfig(fan_in=cast("Any", 3))), "state.fan_in"),
        (Config(state=StateConfig(path=cast("Any", Path("state")))), "wrong type"),
        (cast("Any", {"a": 1}), "not a dict"),
    ],
)
def test_settings_made_in_python_are_checked_when_an_index_is_opened(
    tmp_path: Path, config: Config, named: str
) -> None:
    for path in (None, tmp_path / "state"):
        with pytest.raises(ConfigError, match=named):
            Deduplicator.open(path, config)
    assert not (tmp_path / "state").exists()


def test_a_bad_setting_is_told_in_the_same_words_wherever_it_was_made() -> None:
    with pytest.raises(ConfigError) as from_text:
        load_config(overrides=["match.jaccard=5"], environ={})
    with pytest.raises(ConfigError) as from_python:
        Deduplicator.open(None, Config(match=MatchConfig(jaccard=5)))
    assert str(from_python.value) == str(from_text.value)


def test_show_prints_a_file_that_loads_as_the_same_settings(run: Run, tmp_path: Path) -> None:
    shown = run("config", "show", "--set", 'input.id_field=a"\\ü\x7f', "--set", "match.jaccard=0.7")
    assert shown.code == 0
    file = tmp_path / "c.toml"
    file.write_text(shown.out)
    loaded = load_config(file, environ={})
    assert loaded.input.id_field == 'a"\\ü\x7f'
    assert loaded.match.jaccard == 0.7


def test_show_json_prints_the_same_tree(run: Run) -> None:
    assert json.loads(run("config", "show", "--json").out) == config_tree(Config())


def test_check_says_whether_the_settings_are_good(run: Run) -> None:
    assert run("config", "check", "--config", EXAMPLE).code == 0
    bad = run("config", "check", env={"STREAMDEDUP_MATCH__JACCARD": "7"})
    assert bad.code == 2
    assert bad.err.startswith("error: ")
    assert "match.jaccard" in bad.err
