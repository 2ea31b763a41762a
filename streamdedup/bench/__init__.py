"""Measuring the engine: synthetic articles, a clock for its stages, the growth of its index.

Nothing that judges articles may import this package.
"""
