"""deploy/compose.yaml: by the specification, and everything that it names exists."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import compose_spec
import pytest
import yaml
from deployment import (
    DEPLOY,
    IMAGE,
    LEAST_GRACE_SECONDS,
    PAGES,
    VOLUME,
    bad_arguments,
    unknown_settings,
)

from streamdedup import __version__
from streamdedup.config import FILE_VARIABLE, HttpConfig

FILE = DEPLOY / "compose.yaml"
TEXT = FILE.read_text()
OURS = f"streamdedup:{__version__}"
SERVED = HttpConfig().port


def problems(text: str) -> list[str]:
    tree = yaml.safe_load(text)
    return [*_of_references(tree), *_of_ports(tree), *_of_ours(tree), *_of_watching(tree)]


def _of_references(tree: dict[str, Any]) -> Iterator[str]:
    services = tree["services"]
    used_volumes = set()
    for name, service in services.items():
        for other, how in service.get("depends_on", {}).items():
            if other not in services:
                yield f"{name} depends on {other}, which is no service"
            elif how["condition"] == "service_healthy" and "test" not in services[other].get(
                "healthcheck", {}
            ):
                yield f"{name} waits for {other}, which has no health check"
        for volume in service.get("volumes", []):
            source, target = volume.split(":")[:2]
            if not source.startswith("."):
                used_volumes.add(source)
                if source not in tree["volumes"]:
                    yield f"{name}: volume {source} is not declared"
            elif not (DEPLOY / source).exists():
                yield f"{name}: {source} does not exist"
            elif not volume.endswith(":ro"):
                yield f"{name}: {target} could be changed"
        for config in service.get("configs", []):
            if config["source"] not in tree["configs"]:
                yield f"{name}: config {config['source']} is not declared"
    for unused in set(tree["volumes"]) - used_volumes:
        yield f"volume {unused} is not used"
    for config in tree["configs"].values():
        if not (DEPLOY / config["file"]).exists():
            yield f"{config['file']} does not exist"


def _of_ports(tree: dict[str, Any]) -> Iterator[str]:
    taken: set[str] = set()
    for name, service in tree["services"].items():
        if ":" not in service["image"]:
            yield f"{name}: its image has no version"
        for port in service.get("ports", []):
            host, _, inside = port.rpartition(":")
            if not host.startswith("127.0.0.1:"):
                yield f"{name}: {port} can be reached from other machines"
            if host in taken:
                yield f"{name}: {host} is taken"
            taken.add(host)
            if service["image"] == OURS and int(inside) != SERVED:
                yield f"{name}: nothing listens at {inside}"


def _of_ours(tree: dict[str, Any]) -> Iterator[str]:
    for name, service in tree["services"].items():
        if service["image"] != OURS:
            continue
        env, arguments = service["environment"], service["command"]
        configs = {config["target"]: config["source"] for config in service.get("configs", [])}
        named = env.get(FILE_VARIABLE)
        if named is not None and named not in configs:
            yield f"{name}: nothing is mounted at {named}"
        if configs and named not in configs:
            yield f"{name}: the settings that are mounted are not read"
        config = tree["configs"].get(configs.get(named))
        yield from unknown_settings(env, DEPLOY / config["file"] if config else None)
        yield from bad_arguments(arguments)
        broker, _, port = env["STREAMDEDUP_KAFKA__BOOTSTRAP"].partition(":")
        listeners = tree["services"].get(broker, {}).get("environment", {})
        if f"{broker}:{port}" not in listeners.get("KAFKA_ADVERTISED_LISTENERS", ""):
            yield f"{name}: no broker says that it is at {broker}:{port}"
        if not service.get("read_only") or service.get("cap_drop") != ["ALL"]:
            yield f"{name}: has more rights than it needs"
        mounted = [volume.split(":")[1] for volume in service.get("volumes", [])]
        if VOLUME not in [*mounted, *service["tmpfs"]] or "/tmp" not in service["tmpfs"]:
            yield f"{name}: the image wants {VOLUME} and /tmp to be writable"
        if float(service["stop_grace_period"].rstrip("s")) <= LEAST_GRACE_SECONDS:
            yield f"{name}: is killed before it has left"
        probe = service["healthcheck"].get("test")
        if probe and (
            probe[2:4] != ["-m", "streamdedup.observe.probe"] or "/" + probe[4] not in PAGES
        ):
            yield f"{name}: {probe} asks for a page that is not there"


def _of_watching(tree: dict[str, Any]) -> Iterator[str]:
    """What Prometheus and Grafana are told to reach."""
    names = set(tree["services"])
    for service in tree["services"].values():
        for network in service.get("networks", {}).values():
            names |= set(network["aliases"])
    prometheus = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text())
    for scraped in prometheus["scrape_configs"]:
        for found in scraped.get("dns_sd_configs", []):
            yield from (f"Prometheus: no {name}" for name in found["names"] if name not in names)
            if found["port"] != SERVED:
                yield f"Prometheus asks at port {found['port']}"
    addresses = re.findall(
        r"(?:targets: \[|url: http://)([\w-]+):(\d+)",
        "".join(
            path.read_text()
            for path in [
                DEPLOY / "prometheus" / "prometheus.yml",
                *Path(DEPLOY / "grafana" / "provisioning").rglob("*.yml"),
            ]
        ),
    )
    for name, port in addresses:
        ports = [
            each.rpartition(":")[2] for each in tree["services"].get(name, {}).get("ports", [])
        ]
        if port not in ports:
            yield f"nothing is at {name}:{port}"


def specified(text: str) -> None:
    """Raises what the specification has against it; anchors are resolved as Compose does."""
    compose_spec.PyCompose.from_json(json.dumps(yaml.safe_load(text)))


def test_it_follows_the_specification() -> None:
    specified(TEXT)


def test_the_specification_would_refuse_a_word_that_it_does_not_know() -> None:
    with pytest.raises(Exception, match="retrys"):
        specified(TEXT.replace("retries: 12", "retrys: 12"))


def test_all_that_it_names_exists() -> None:
    assert problems(TEXT) == []


@pytest.mark.parametrize(
    ("good", "bad", "said"),
    [
        ("owner: {condition: service_healthy}", "boss: {condition: service_healthy}", "no service"),
        (
            '      test: [CMD, wget, -q, --spider, "http://127.0.0.1:9093',
            '      x-test: ["',
            "no health",
        ),
        ('["kafka:/var', '["kafkas:/var', "kafkas is not declared"),
        ("./prometheus/rules.yml", "./prometheus/rule.yml", "rule.yml does not exist"),
        ("alertmanager.yml:ro", "alertmanager.yml", "could be changed"),
        ("source: streamdedup", "source: other", "other is not declared"),
        ("../config/small.toml", "../config/tiny.toml", "tiny.toml does not exist"),
        ("127.0.0.1:9092:9092", "9092:9092", "other machines"),
        ("127.0.0.1:9110", "127.0.0.1:9109", "is taken"),
        ("9110:9109", "9110:9110", "nothing listens"),
        ("WINDOW__SECONDS", "WINDOW__SECOND", "WINDOW__SECOND"),
        ("STREAMDEDUP_CONFIG: /etc", "STREAMDEDUP_CONFIG: /opt", "nothing is mounted"),
        ("STREAMDEDUP_CONFIG", "STREAMDEDUP_CONF", "are not read"),
        ("HTTP__HOST", "HTTP_HOST", "no setting"),
        ("--create-topics", "--make-topics", "--make-topics"),
        ("produce, --demo", "produce, --domo", "--domo"),
        ("BOOTSTRAP: kafka:19092", "BOOTSTRAP: kafka:19093", "no broker"),
        ("  read_only: true\n  tmpfs", "  tmpfs", "more rights"),
        ("owner:/var/lib/streamdedup", "owner:/var/lib/state", "to be writable"),
        ("stop_grace_period: 10s", "stop_grace_period: 5s", "before it has left"),
        ("probe, readyz", "probe, ready", "not there"),
        ("aliases: [streamdedup]", "aliases: [instances]", "no streamdedup"),
        ("127.0.0.1:9093:9093", "127.0.0.1:9093:9094", "nothing is at alertmanager:9093"),
    ],
)
def test_a_wrong_name_would_be_noticed(good: str, bad: str, said: str) -> None:
    assert good in TEXT
    found = problems(TEXT.replace(good, bad))
    assert any(said in problem for problem in found), found


def test_the_broker_is_the_one_that_the_tests_run_on() -> None:
    from kafka_container import IMAGE as TESTED

    assert yaml.safe_load(TEXT)["services"]["kafka"]["image"] == TESTED


def test_the_image_is_told_no_more_than_its_dockerfile_says() -> None:
    assert VOLUME in IMAGE["VOLUME"]
    assert IMAGE["EXPOSE"] == str(SERVED)
