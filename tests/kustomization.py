"""Resolves our kustomizations as far as they go, in Python: what kustomize would apply.

It knows the fields that our files use and stops at any other.  Names of generated config maps stay
without the hash that kustomize puts behind them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

Document = dict[str, Any]
_KNOWN = {"apiVersion", "kind", "namespace", "resources", "components", "labels", "images"}
_KNOWN |= {"configMapGenerator", "patches"}
_NOT_IN_A_NAMESPACE = {"Namespace"}


def resolved(folder: Path) -> list[Document]:
    """All documents of an overlay."""
    return _applied(folder, [])


def _applied(folder: Path, before: list[Document]) -> list[Document]:
    tree = yaml.safe_load((folder / "kustomization.yaml").read_text())
    assert set(tree) <= _KNOWN, f"{folder}: {set(tree) - _KNOWN}"
    documents = list(before)
    for name in tree.get("resources", []):
        path = folder / name
        documents += _applied(path, []) if path.is_dir() else yaml.safe_load_all(path.read_text())
    for generator in tree.get("configMapGenerator", []):
        _generate(folder, generator, documents)
    for name in tree.get("components", []):
        documents = _applied(folder / name, documents)
    for patch in tree.get("patches", []):
        for document in documents:
            if _is_target(document, patch["target"]):
                text = patch.get("patch") or (folder / patch["path"]).read_text()
                _patch(document, yaml.safe_load(text))
    for document in documents:
        for labels in tree.get("labels", []):
            _label(document, labels["pairs"])
        for image in tree.get("images", []):
            _rename_image(document, image)
        if "namespace" in tree and document["kind"] not in _NOT_IN_A_NAMESPACE:
            document["metadata"]["namespace"] = tree["namespace"]
    return documents


def _generate(folder: Path, generator: Document, documents: list[Document]) -> None:
    data = {Path(name).name: (folder / name).read_text() for name in generator["files"]}
    if generator.get("behavior") == "merge":
        [merged] = [
            d for d in documents if _is_target(d, {"kind": "ConfigMap", **_name(generator)})
        ]
        merged["data"] |= data
        return
    labels = generator.get("options", {}).get("labels")
    metadata = _name(generator) | ({"labels": labels} if labels else {})
    documents.append({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})


def _name(tree: Document) -> Document:
    return {"name": tree["name"]}


def _is_target(document: Document, target: Document) -> bool:
    return (document["kind"], document["metadata"]["name"]) == (target["kind"], target["name"])


def _patch(document: Document, patch: Any) -> None:
    if isinstance(patch, dict):
        _merge(document, patch)
        return
    for step in patch:
        *path, last = step["path"].strip("/").split("/")
        assert (step["op"], last) == ("add", "-"), step
        place: Any = document
        for key in path:
            place = place[int(key)] if isinstance(place, list) else place[key]
        place.append(step["value"])


def _merge(tree: Document, patch: Document) -> None:
    for key, value in patch.items():
        if key == "containers":
            for container in value:
                [one] = [c for c in tree[key] if c["name"] == container["name"]]
                _merge(one, container)
        elif isinstance(value, dict) and key in tree:
            _merge(tree[key], value)
        else:
            tree[key] = value


def _label(document: Document, pairs: Document) -> None:
    document["metadata"].setdefault("labels", {}).update(pairs)
    spec = document.get("spec", {})
    match document["kind"]:
        case "Service":
            spec["selector"].update(pairs)
        case "NetworkPolicy":
            spec["podSelector"]["matchLabels"].update(pairs)
        case "PodDisruptionBudget":
            spec["selector"]["matchLabels"].update(pairs)
        case "StatefulSet":
            spec["selector"]["matchLabels"].update(pairs)
            template = spec["template"]
            template["metadata"]["labels"].update(pairs)
            for claim in spec["volumeClaimTemplates"]:
                claim["metadata"].setdefault("labels", {}).update(pairs)
            for spread in template["spec"]["topologySpreadConstraints"]:
                spread["labelSelector"]["matchLabels"].update(pairs)


def _rename_image(document: Document, image: Document) -> None:
    if document["kind"] != "StatefulSet":
        return
    for container in document["spec"]["template"]["spec"]["containers"]:
        if container["image"] == image["name"]:
            container["image"] = f"{image['newName']}:{image['newTag']}"
