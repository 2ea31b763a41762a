"""Stores: bucket key → recent article numbers, article number → record.

`contract` says what a store is, `memory` is the plain one, `rocks` the one that lasts.
"""
