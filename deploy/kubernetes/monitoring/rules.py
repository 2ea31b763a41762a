"""Puts deploy/prometheus/rules.yml into the shape that the Prometheus operator wants.

python deploy/kubernetes/monitoring/rules.py > deploy/kubernetes/monitoring/prometheus-rule.yaml
"""

from pathlib import Path

RULES = Path(__file__).parents[2] / "prometheus" / "rules.yml"
HEAD = """\
# Made by rules.py from deploy/prometheus/rules.yml; do not edit.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: streamdedup
spec:
"""


def prometheus_rule() -> str:
    """The text of prometheus-rule.yaml."""
    lines = RULES.read_text().splitlines()
    return HEAD + "".join(f"  {line}".rstrip() + "\n" for line in lines if line[:1] != "#")


if __name__ == "__main__":
    print(prometheus_rule(), end="")
