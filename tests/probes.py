"""Asks a running instance over HTTP, as probes and operators do."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from typing import Any

from service import Instance


def address(instance: Instance) -> str:
    """Where it said that it listens."""
    instance.wait_for_log("metrics and health")
    found = re.search(r"http://localhost:\d+/", instance.log)
    assert found is not None
    return found.group()


def ask(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=10) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def ready(instance: Instance) -> dict[str, Any]:
    status, body = ask(address(instance) + "readyz")
    answer: dict[str, Any] = json.loads(body)
    assert answer["ok"] is (status == 200)
    return answer
