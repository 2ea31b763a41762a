"""What can be wrong with servers for tests: they cannot be had here, or were had and failed.

The first is a property of the machine, on which tests may be skipped; the second never is.
"""

from __future__ import annotations

from streamdedup.errors import StreamdedupError


class BrokerUnavailable(StreamdedupError):
    """This machine lacks something that a broker needs: Java, Maven, a way to the jars."""


class BrokerFailed(StreamdedupError):
    """The broker did not start, or does not do what it was told."""


class MonitoringUnavailable(StreamdedupError):
    """This machine lacks Prometheus or Alertmanager and a way to fetch them."""
