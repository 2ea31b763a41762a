"""Schemes: ways to turn items into bucket keys and a payload that can be compared exactly."""
