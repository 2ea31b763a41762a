"""The S-curve: how likely two sets of a given similarity share a band.

With b bands of r rows a pair of similarity s becomes a candidate with probability
1 - (1 - s^r)^b; the curve is steepest near (1/b)^(1/r).
"""

from __future__ import annotations


def candidate_probability(similarity: float, *, bands: int, rows: int) -> float:
    """Chance that two sets share at least one band.

    >>> round(candidate_probability(0.8, bands=20, rows=5), 5)
    0.99964
    """
    return 1.0 - (1.0 - similarity**rows) ** bands


def threshold(*, bands: int, rows: int) -> float:
    """The similarity at which the curve rises.

    >>> round(threshold(bands=20, rows=5), 2)
    0.55
    """
    return float((1.0 / bands) ** (1.0 / rows))
