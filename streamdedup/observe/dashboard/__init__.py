"""The Grafana dashboard, made of the metric catalogue; `deploy/grafana` has what comes out.

    python -m streamdedup.observe.dashboard

writes it.  Metrics are named as Python objects here, so that one that does not exist is an error.
"""
