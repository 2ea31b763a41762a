"""deploy/kubernetes: valid, resolved alike by kustomize and by us, and all that it names exists."""

from __future__ import annotations

import re
import runpy
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import ROOT
from deployment import (
    DEPLOY,
    IMAGE,
    LEAST_GRACE_SECONDS,
    PAGES,
    VOLUME,
    bad_arguments,
    unknown_settings,
)
from kustomization import Document, resolved

from streamdedup import __version__
from streamdedup.config import FILE_VARIABLE, HttpConfig
from streamdedup.testing.kustomize import KustomizeUnavailable, kustomize

OVERLAYS = ["small", "large"]
FOLDER = DEPLOY / "kubernetes"
VALIDATE = Path(sysconfig.get_path("scripts")) / "kubernetes-validate"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A copy of all that is deployed, to be broken."""
    shutil.copytree(DEPLOY, tmp_path / "deploy")
    return tmp_path / "deploy" / "kubernetes"


def problems(documents: list[Document], folder: Path) -> list[str]:
    found = {(d["kind"], d["metadata"]["name"]): d for d in documents}
    [workload] = [d for d in documents if d["kind"] == "StatefulSet"]
    pod = workload["spec"]["template"]["spec"]
    [container] = pod["containers"]
    return [
        *_of_selectors(found, workload),
        *_of_volumes(found, workload, pod, container),
        *_of_probes(container, found),
        *_of_rights(pod, container),
        *_of_settings(found, container, folder),
    ]


Found = dict[tuple[str, str], Document]


def _of_selectors(found: Found, workload: Document) -> Iterator[str]:
    labels = workload["spec"]["template"]["metadata"]["labels"].items()
    wanted = {
        "the set": workload["spec"]["selector"]["matchLabels"],
        "its spread": workload["spec"]["template"]["spec"]["topologySpreadConstraints"][0][
            "labelSelector"
        ]["matchLabels"],
    }
    for (kind, name), document in found.items():
        if kind == "Service":
            wanted[f"service {name}"] = document["spec"]["selector"]
        if kind == "PodDisruptionBudget":
            wanted[kind] = document["spec"]["selector"]["matchLabels"]
        if kind == "NetworkPolicy":
            wanted[kind] = document["spec"]["podSelector"]["matchLabels"]
        if kind == "ServiceMonitor":
            services = [d for (kind, _), d in found.items() if kind == "Service"]
            selector = document["spec"]["selector"]["matchLabels"].items()
            if not any(selector <= d["metadata"]["labels"].items() for d in services):
                yield "the ServiceMonitor finds no service"
    for who, selector in wanted.items():
        if not selector or not selector.items() <= labels:
            yield f"{who} selects no pod"
    service = found.get(("Service", workload["spec"]["serviceName"]))
    if service is None or service["spec"]["clusterIP"] != "None":
        yield "the set has no headless service"


def _of_volumes(
    found: Found, workload: Document, pod: Document, container: Document
) -> Iterator[str]:
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    claims = {claim["metadata"]["name"] for claim in workload["spec"]["volumeClaimTemplates"]}
    mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    for path, name in mounts.items():
        if name not in {*volumes, *claims}:
            yield f"{path}: there is no volume {name}"
    for name in {*volumes, *claims} - set(mounts.values()):
        yield f"volume {name} is not mounted"
    if mounts.get(VOLUME) not in claims:
        yield f"{VOLUME} does not survive the pod"
    if "/tmp" not in mounts:
        yield "the image wants /tmp to be writable"
    for volume in volumes.values():
        config = volume.get("configMap", {}).get("name")
        if config and ("ConfigMap", config) not in found:
            yield f"there is no config map {config}"
    for source in container["envFrom"]:
        secret = source["secretRef"]
        if not secret.get("optional") and ("Secret", secret["name"]) not in found:
            yield f"there is no secret {secret['name']}"


def _of_probes(container: Document, found: Found) -> Iterator[str]:
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    if set(ports.values()) != {HttpConfig().port, int(IMAGE["EXPOSE"])}:
        yield f"nothing listens at {ports}"
    for kind in ("startupProbe", "livenessProbe", "readinessProbe"):
        asked = container[kind]["httpGet"]
        if asked["port"] not in ports:
            yield f"{kind}: there is no port {asked['port']}"
        if asked["path"] not in PAGES:
            yield f"{kind}: there is no page {asked['path']}"
    for (kind, _), document in found.items():
        if kind == "Service":
            for port in document["spec"]["ports"]:
                if port["targetPort"] not in ports:
                    yield f"service: there is no port {port['targetPort']}"
        if kind == "ServiceMonitor":
            for endpoint in document["spec"]["endpoints"]:
                if endpoint["port"] not in ports or endpoint["path"] not in PAGES:
                    yield f"ServiceMonitor: nothing at {endpoint}"
        if kind == "NetworkPolicy":
            for port in document["spec"]["ingress"][0]["ports"]:
                if port["port"] not in ports:
                    yield f"NetworkPolicy: there is no port {port['port']}"


def _of_rights(pod: Document, container: Document) -> Iterator[str]:
    who, rights = pod["securityContext"], container["securityContext"]
    if f"{who['runAsUser']}:{who['runAsGroup']}" != IMAGE["USER"] or not who["runAsNonRoot"]:
        yield "it is not run as the image's user"
    if who["fsGroup"] != who["runAsGroup"]:
        yield "its user cannot write its disk"
    if who["seccompProfile"] != {"type": "RuntimeDefault"}:
        yield "any system call is allowed"
    if rights != {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }:
        yield "it has more rights than it needs"
    if pod["terminationGracePeriodSeconds"] <= LEAST_GRACE_SECONDS:
        yield "it is killed before it has left"
    if not {"requests", "limits"} <= set(container["resources"]):
        yield "it says nothing of its size"


def _of_settings(found: Found, container: Document, folder: Path) -> Iterator[str]:
    env = {one["name"]: one.get("value", "from elsewhere") for one in container["env"]}
    if not env["STREAMDEDUP_STATE__PATH"].startswith(VOLUME + "/"):
        yield "the state is not below the volume"
    named = env.get(FILE_VARIABLE, "")
    mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
    config = found.get(("ConfigMap", "streamdedup"), {"data": {}})["data"]
    place, _, name = named.rpartition("/")
    if place not in mounts or name not in config:
        yield f"nothing is mounted at {named}"
    else:
        file = folder / "mounted.toml"
        file.write_text(config[name])
        yield from unknown_settings(env, file)
    yield from bad_arguments(container["args"])


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_all_that_it_names_exists(overlay: str, files: Path, tmp_path: Path) -> None:
    assert problems(resolved(files / "overlays" / overlay), tmp_path) == []


BROKEN = [
    ("base/service.yaml", "component: instance", "component: pod", "selects no pod"),
    ("base/disruption-budget.yaml", "component: instance", "component: pod", "selects no pod"),
    ("base/network-policy.yaml", "component: instance", "component: pod", "selects no pod"),
    ("base/network-policy.yaml", "port: http", "port: web", "no port web"),
    ("base/service.yaml", "clusterIP: None", "clusterIP: ''", "no headless service"),
    ("base/service.yaml", "targetPort: http", "targetPort: web", "no port web"),
    ("base/statefulset.yaml", "serviceName: streamdedup", "serviceName: other", "no headless"),
    ("base/statefulset.yaml", "name: tmp, mountPath: /tmp", "name: tmp, mountPath: /t", "/tmp"),
    ("base/statefulset.yaml", "{name: state, mount", "{name: data, mount", "no volume data"),
    ("base/statefulset.yaml", "configMap: {name: streamdedup}", "configMap: {name: x}", "map x"),
    ("base/statefulset.yaml", ", optional: true", "", "no secret"),
    ("base/statefulset.yaml", "path: /healthz", "path: /health", "no page /health"),
    ("base/statefulset.yaml", "containerPort: 9109", "containerPort: 9110", "nothing listens"),
    ("base/statefulset.yaml", "runAsUser: 65532", "runAsUser: 1000", "the image's user"),
    ("base/statefulset.yaml", "drop: [ALL]", "drop: [KILL]", "more rights"),
    ("base/statefulset.yaml", "GracePeriodSeconds: 10", "GracePeriodSeconds: 5", "before it has"),
    ("base/statefulset.yaml", "HTTP__HOST", "HTTP__HOSTS", "HTTP__HOSTS"),
    ("base/statefulset.yaml", "[run]", "[run, --file]", "--file"),
    ("base/statefulset.yaml", "/etc/streamdedup/streamdedup.toml", "/etc/s.toml", "mounted at"),
    ("base/streamdedup.toml", "bootstrap", "bootstraps", "bootstraps"),
    ("monitoring/service-monitor.yaml", "name: streamdedup}", "name: other}", "finds no service"),
    ("monitoring/service-monitor.yaml", "/metrics", "/metric", "nothing at"),
    ("overlays/large/streamdedup.toml", "cache_mib", "cache_mb", "cache_mb"),
]


@pytest.mark.parametrize(("file", "good", "bad", "said"), BROKEN)
def test_a_wrong_name_would_be_noticed(
    file: str, good: str, bad: str, said: str, files: Path, tmp_path: Path
) -> None:
    text = (files / file).read_text()
    assert good in text
    (files / file).write_text(text.replace(good, bad))
    overlay = "small" if file == "base/streamdedup.toml" else "large"
    found = problems(resolved(files / "overlays" / overlay), tmp_path)
    assert any(said in problem for problem in found), found


def validated(documents: list[Document], tmp_path: Path) -> subprocess.CompletedProcess[str]:
    file = tmp_path / "all.yaml"
    # The operator's kinds are not Kubernetes' own: there are no schemas of them here.
    own = [d for d in documents if "monitoring.coreos.com" not in d["apiVersion"]]
    file.write_text(yaml.safe_dump_all(own))
    return subprocess.run(
        [VALIDATE, "--strict", file], capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_image_is_the_one_of_this_version(overlay: str) -> None:
    [pods] = [d for d in resolved(FOLDER / "overlays" / overlay) if d["kind"] == "StatefulSet"]
    images = {container["image"] for container in pods["spec"]["template"]["spec"]["containers"]}
    assert images == {f"streamdedup:{__version__}"}


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_kubernetes_knows_every_field(overlay: str, tmp_path: Path) -> None:
    done = validated(resolved(FOLDER / "overlays" / overlay), tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (done.stdout + done.stderr).count("passed") >= 6


def test_a_field_that_kubernetes_does_not_know_would_be_noticed(
    files: Path, tmp_path: Path
) -> None:
    file = files / "base" / "statefulset.yaml"
    file.write_text(file.read_text().replace("minReadySeconds", "minReadySecond"))
    assert validated(resolved(files / "overlays" / "small"), tmp_path).returncode != 0


@pytest.fixture(scope="module")
def real_kustomize() -> Path:
    try:
        return kustomize()
    except KustomizeUnavailable as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_kustomize_makes_the_same_of_it_as_we_do(overlay: str, real_kustomize: Path) -> None:
    done = subprocess.run(
        [real_kustomize, "build", FOLDER / "overlays" / overlay],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    # The hash behind a config map's name, here and where it is mounted.
    plain = re.sub(r"(name: streamdedup)-[a-z0-9]{10}\b", r"\1", done.stdout)
    assert plain != done.stdout
    assert _by_name(list(yaml.safe_load_all(plain))) == _by_name(
        resolved(FOLDER / "overlays" / overlay)
    )


def _by_name(documents: list[Document]) -> dict[tuple[str, str], Any]:
    return {(d["kind"], d["metadata"]["name"]): d for d in documents}


def test_the_operators_rules_are_those_that_are_tested() -> None:
    made = runpy.run_path(str(FOLDER / "monitoring" / "rules.py"))["prometheus_rule"]()
    assert (FOLDER / "monitoring" / "prometheus-rule.yaml").read_text() == made, (
        "run deploy/kubernetes/monitoring/rules.py"
    )
    rules = yaml.safe_load((ROOT / "deploy" / "prometheus" / "rules.yml").read_text())
    assert yaml.safe_load(made)["spec"] == rules
