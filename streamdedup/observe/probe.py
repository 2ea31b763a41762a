"""Asks the instance in the same container how it is: what a HEALTHCHECK runs, without curl.

    python -m streamdedup.observe.probe [healthz|readyz]

It reads the settings that the service reads, from the environment and from the file that
STREAMDEDUP_CONFIG names, and exits with 0 for yes.
"""

from __future__ import annotations

import http.client
import sys

from streamdedup.config import HttpConfig, load_config
from streamdedup.errors import ConfigError

_SECONDS = 3.0
_ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}


def probe(http_config: HttpConfig, path: str) -> tuple[bool, str]:
    """The answer, and why."""
    host = _ANY_ADDRESS.get(http_config.host, http_config.host)
    if not host or http_config.port <= 0:
        return False, "http.host and http.port name no address to ask"
    connection = http.client.HTTPConnection(host, http_config.port, timeout=_SECONDS)
    try:
        connection.request("GET", f"/{path}")
        response = connection.getresponse()
        return response.status == 200, response.read().decode(errors="replace").strip()
    except (OSError, http.client.HTTPException) as error:
        return False, f"{host}:{http_config.port} does not answer: {error}"
    finally:
        connection.close()


def main() -> None:
    """Print the answer; exit with 0 or 1."""
    path = sys.argv[1] if len(sys.argv) > 1 else "healthz"
    try:
        good, why = probe(load_config().http, path)
    except ConfigError as error:
        sys.exit(f"error: {error}")
    print(why)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
