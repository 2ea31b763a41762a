"""Health: through all of its states, with a clock and a disk that the test holds in its hands."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from streamdedup.kafka.report import ReplicaReport, RestoreProgress, Role
from streamdedup.observe.disk import disk_trouble
from streamdedup.observe.health import HealthWatch, State
from streamdedup.observe.log import EventLog
from streamdedup.observe.watchdog import Watchdog, stacks
from streamdedup.store.figures import StoreFigures

STUCK_SECONDS = 30.0


@dataclass
class World:
    """Time and disk."""

    now: float = 1_000.0
    disk: str = ""
    health: HealthWatch = field(init=False)

    def __post_init__(self) -> None:
        self.health = HealthWatch(lambda: self.now, lambda: self.disk, stuck_seconds=STUCK_SECONDS)

    @property
    def state(self) -> State:
        return self.health.now().state


def replica(*, caught_up: bool, silent_seconds: float = 0.0) -> ReplicaReport:
    return ReplicaReport(StoreFigures(10), 0, 0, 0, 10, 20, caught_up, silent_seconds)


def test_an_owner_starts_restores_and_works() -> None:
    world = World()
    assert world.state is State.STARTING
    world.health.on_role(Role.RESTORING)
    assert world.state is State.RESTORING
    world.health.on_restore(RestoreProgress(5, 5, 20, 1.0))
    assert "5 of 20" in world.health.now().why
    assert not world.health.now().ready
    world.health.on_role(Role.WORKING)
    assert world.state is State.OWNER
    assert world.health.now().ready
    world.health.on_role(Role.STOPPED)
    assert world.state is State.STOPPED
    assert not world.health.now().ready


def test_a_standby_is_ready_when_it_has_caught_up() -> None:
    world = World()
    world.health.on_role(Role.STANDBY)
    assert world.state is State.RESTORING
    world.health.on_replica(replica(caught_up=False))
    assert world.state is State.RESTORING
    world.health.on_replica(replica(caught_up=True))
    assert world.state is State.STANDBY
    assert world.health.now().ready


@pytest.mark.parametrize(("role", "state"), [("STANDBY", State.STANDBY), ("WORKING", State.OWNER)])
def test_nobody_is_ready_while_kafka_is_silent(role: str, state: State) -> None:
    world = World()
    world.health.on_role(Role[role])
    world.now += 60
    world.health.on_tick()
    world.health.on_replica(replica(caught_up=True, silent_seconds=10.0))
    assert world.state is state
    world.now += 15
    world.health.on_tick()
    assert world.state is State.STARTING, "it cannot report any more, so nothing is heard either"
    assert "nothing was heard of Kafka for 25 seconds" in world.health.now().why
    assert world.health.now().alive, "a restart would not bring it back"
    world.health.on_replica(replica(caught_up=True, silent_seconds=21.0))
    assert world.state is State.STARTING
    world.health.on_replica(replica(caught_up=True, silent_seconds=2.0))
    assert world.state is state


def test_a_standby_that_takes_over_is_not_ready_before_it_works() -> None:
    world = World()
    world.health.on_role(Role.STANDBY)
    world.health.on_replica(replica(caught_up=True))
    world.health.on_role(Role.RESTORING)
    assert world.state is State.RESTORING
    world.health.on_role(Role.WORKING)
    assert world.state is State.OWNER


def test_while_it_starts_it_tells_what_it_waits_for() -> None:
    world = World()
    assert "compiled" in world.health.now().why
    world.health.on_role(Role.CONNECTING)
    assert world.health.now().why == "no broker has answered yet"
    world.health.on_trouble("cannot reach Kafka at kafka:9092")
    assert "cannot reach Kafka" in world.health.now().why
    assert world.health.now().alive


def test_a_full_disk_blocks_and_is_over_when_the_service_works_again() -> None:
    world = World()
    world.health.on_role(Role.WORKING)
    world.health.on_role(Role.BLOCKED)
    world.health.on_trouble("state directory x: No space left on device")
    health = world.health.now()
    assert (health.state, health.ready, health.alive) == (State.BLOCKED, False, True)
    assert "No space left" in health.why
    world.health.on_role(Role.WORKING)
    assert world.state is State.OWNER


def test_a_disk_without_room_is_noticed_before_anything_is_written() -> None:
    world = World()
    world.health.on_role(Role.WORKING)
    world.disk = "the state directory's disk is full"
    assert world.state is State.BLOCKED
    assert world.health.now().why == world.disk
    world.disk = ""
    assert world.state is State.OWNER


@pytest.mark.parametrize("role", [role for role in Role if role is not Role.STOPPED])
def test_a_loop_that_stands_still_is_stuck_until_it_goes_on(role: Role) -> None:
    world = World()
    world.health.on_role(role)
    world.now += STUCK_SECONDS
    assert world.health.now().alive
    world.now += 1
    health = world.health.now()
    assert (health.state, health.alive, health.ready) == (State.STUCK, False, False)
    assert health.tick_age_seconds == STUCK_SECONDS + 1
    world.health.on_tick()
    assert world.state is not State.STUCK


def test_a_service_that_has_ended_is_not_stuck() -> None:
    world = World()
    world.health.on_role(Role.STOPPED)
    world.now += 10 * STUCK_SECONDS
    assert world.state is State.STOPPED


def test_the_watchdog_writes_all_stacks_once_for_each_standstill() -> None:
    world, out = World(), io.StringIO()
    watchdog = Watchdog(world.health.now, EventLog(out, "json"), stuck_seconds=STUCK_SECONDS)
    watchdog.look()
    assert out.getvalue() == ""
    for _ in range(2):
        world.now += STUCK_SECONDS + 1
        watchdog.look()
        watchdog.look()
        world.health.on_tick()
        watchdog.look()
    events = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [event["event"] for event in events] == ["stuck", "stacks", "unstuck"] * 2
    assert "test_observe_health.py" in events[1]["message"]


def test_a_call_that_keeps_the_interpreter_to_itself_leaves_its_stack_on_standard_error() -> None:
    # Functions of a PyDLL are called as RocksDB's write is: no other thread runs meanwhile.
    program = """
import ctypes, io, time
from streamdedup.observe.health import HealthWatch
from streamdedup.observe.log import EventLog
from streamdedup.observe.watchdog import Watchdog
health = HealthWatch(time.monotonic, lambda: "", stuck_seconds=0.1)
def a_write_that_does_not_come_back():
    ctypes.PyDLL(None).sleep(6)
with Watchdog(health.now, EventLog(io.StringIO(), "json"), stuck_seconds=0.1):
    time.sleep(2)
    a_write_that_does_not_come_back()
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert "a_write_that_does_not_come_back" in done.stderr
    assert done.stderr.count("Timeout") == 1, "a thread that is waited for is no standstill"


def test_stacks_are_those_of_every_thread() -> None:
    hold, there = threading.Event(), threading.Event()

    def a_function_to_be_found() -> None:
        there.set()
        hold.wait()

    thread = threading.Thread(target=a_function_to_be_found)
    thread.start()
    there.wait()
    found = stacks()
    hold.set()
    thread.join()
    assert "a_function_to_be_found" in found
    assert "test_stacks_are_those_of_every_thread" in found


def test_a_directory_that_can_be_written_is_no_trouble(tmp_path: Path) -> None:
    assert disk_trouble(tmp_path) == ""
    assert disk_trouble(tmp_path / "not" / "made" / "yet") == ""
