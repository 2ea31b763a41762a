"""`streamdedup config`: what it prints can be loaded again, and what is wrong is said by name.
The layers and single values are proved in test_config.py; here it is the command that counts.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from conftest import ROOT, Run

from streamdedup.config import Config, load_config

EXAMPLE = ROOT / "config" / "streamdedup.toml"


def test_show_prints_the_values_of_the_example_file_in_its_order(run: Run) -> None:
    shown = tomllib.loads(run("config", "show").out)
    example = tomllib.loads(EXAMPLE.read_text())
    assert [(name, list(table.items())) for name, table in shown.items()] == [
        (name, list(table.items())) for name, table in example.items()
    ]


def test_what_show_prints_loads_as_the_defaults(run: Run, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(run("config", "show").out)
    assert load_config(tmp_path / "c.toml", environ={}) == Config()


def test_showing_what_was_shown_prints_the_same_bytes(run: Run, tmp_path: Path) -> None:
    sets = ("--set", "match.jaccard=0.7", "--set", "state.path=a b/ü", "--set", "scheme.bag=true")
    shown = run("config", "show", *sets)
    (tmp_path / "c.toml").write_text(shown.out)
    again = run("config", "show", "--config", "c.toml")
    assert (again.code, again.out) == (0, shown.out)
    assert "jaccard = 0.7\n" in shown.out


def test_show_lets_the_environment_win_over_the_file_and_set_over_both(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "c.toml").write_text("[scheme]\nbands = 1\nrows = 1\nk = 1\n")
    env = {"STREAMDEDUP_SCHEME__BANDS": "2", "STREAMDEDUP_SCHEME__ROWS": "2"}
    shown = run("config", "show", "--config", "c.toml", "--set", "scheme.bands=3", env=env)
    scheme = tomllib.loads(shown.out)["scheme"]
    assert (scheme["bands"], scheme["rows"], scheme["k"]) == (3, 2, 1)


def test_check_says_so_when_the_settings_are_good(run: Run) -> None:
    done = run("config", "check", env={"STREAMDEDUP_MATCH__JACCARD": "0.6"})
    assert (done.code, done.out, done.err) == (0, "the settings are good\n", "")


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("[match]\njacard = 0.5\n", "jacard"),
        ("[matches]\njaccard = 0.5\n", "matches"),
        ("[match]\njaccard = [0.5]\n", "match.jaccard"),
        ('[scheme]\nbands = "many"\n', "scheme.bands"),
        ("[scheme]\nbands = 2.5\n", "scheme.bands"),
        ("[match\n", "line 1"),
    ],
)
def test_check_names_what_is_wrong_in_a_file_and_the_file(
    run: Run, tmp_path: Path, content: str, named: str
) -> None:
    (tmp_path / "c.toml").write_text(content)
    done = run("config", "check", "--config", "c.toml")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: ")
    assert named in done.err
    assert "c.toml" in done.err


@pytest.mark.parametrize(
    ("name", "named"),
    [("STREAMDEDUP_MATCH__JACARD", "jacard"), ("STREAMDEDUP_A__B__C", "STREAMDEDUP_A__B__C")],
)
def test_check_refuses_an_unknown_variable_of_the_environment(
    run: Run, name: str, named: str
) -> None:
    done = run("config", "check", env={name: "0.5"})
    assert (done.code, done.out) == (2, "")
    assert named in done.err


@pytest.mark.parametrize(
    ("override", "named"),
    [("match.jacard=1", "jacard"), ("match.jaccard=x", "match.jaccard"), ("match", "section.key")],
)
def test_check_refuses_a_bad_override(run: Run, override: str, named: str) -> None:
    done = run("config", "check", "--set", override)
    assert (done.code, done.out) == (2, "")
    assert named in done.err


def test_a_config_file_that_does_not_exist_is_wrong_usage(run: Run) -> None:
    done = run("config", "check", "--config", "missing.toml")
    assert done.code == 2
    assert "missing.toml" in done.err
