"""What judging sets in the interpreter is as before when it ends, whatever ended it."""

from __future__ import annotations

import gc
import sys

import pytest

from streamdedup.kafka.settled import settled


def test_it_is_as_before_afterwards() -> None:
    before = gc.get_threshold(), sys.getswitchinterval()

    def judge() -> None:
        with settled():
            assert gc.get_threshold()[0] > before[0][0]
            assert sys.getswitchinterval() < before[1]
            assert gc.get_freeze_count() > 0
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        judge()
    assert (gc.get_threshold(), sys.getswitchinterval()) == before
    assert gc.get_freeze_count() == 0
