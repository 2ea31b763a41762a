"""The window of event time: what has left it never matches, and its disk space comes back.

Also what a bucket cuts off, and what a directory made with other parameters says.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from random import Random

import msgspec
import pytest
from plain import Number, NumberScheme, open_rocks, records_of

from streamdedup import Deduplicator
from streamdedup.clock import VOTES, Clock
from streamdedup.config import Config, SchemeConfig, StateConfig, WindowConfig
from streamdedup.errors import StateMismatch
from streamdedup.store.database import FILTERS, META, PAGES, RECORDS, Database
from streamdedup.store.manifest import FORMAT, read_identity, read_manifest
from streamdedup.verdict import Verdict

WINDOW = 100  # seconds
ROOMY = StateConfig(head_articles=16, fan_in=2, bucket_entries=512, cache_mib=8)
NARROW = StateConfig(head_articles=16, fan_in=2, bucket_entries=4, cache_mib=8)
OpenEngine = Callable[..., Deduplicator]


@pytest.fixture(params=["memory", "rocks"])
def open_engine(request: pytest.FixtureRequest, tmp_path: Path) -> OpenEngine:
    def opened(state: StateConfig = ROOMY, window: int = WINDOW) -> Deduplicator:
        path = None if request.param == "memory" else tmp_path / "state"
        config = Config(state=state, window=WindowConfig(seconds=window))
        return Deduplicator.open(path, config, scheme=NumberScheme())

    return opened


def judge(engine: Deduplicator, items: list[Number], batch: int = 7) -> list[str]:
    """For each item what it is a duplicate of, or `new`."""
    outcomes = [
        outcome
        for first in range(0, len(items), batch)
        for outcome in engine.process(items[first : first + batch])  # type: ignore[arg-type]
    ]
    assert all(isinstance(outcome, Verdict) for outcome in outcomes)
    return [outcome.duplicate_of or "new" for outcome in outcomes if isinstance(outcome, Verdict)]


def fillers(count: int, event_ms: int) -> list[Number]:
    """Articles that are like nothing else."""
    return [Number(f"f{n}", 1_000_000 + 10 * n, event_ms) for n in range(count)]


@pytest.mark.parametrize("behind", [0, 10, 16, 30, 200], ids="behind-{}-articles".format)
@pytest.mark.parametrize(("late_ms", "found"), [(0, "old"), (1, "new")], ids=["edge", "past"])
def test_an_article_matches_until_exactly_one_window_later(
    open_engine: OpenEngine, behind: int, late_ms: int, found: str
) -> None:
    with open_engine() as engine:
        judge(engine, [Number("old", 70, 5_000), *fillers(behind, 6_000)])
        assert judge(engine, [Number("copy", 71, 5_000 + 1_000 * WINDOW + late_ms)]) == [found]


def test_an_expired_id_is_new_again_and_not_a_redelivery(open_engine: OpenEngine) -> None:
    with open_engine() as engine:
        again = [Number("same", 70, 0), *fillers(40, 50_000), Number("same", 70, 100_001)]
        assert judge(engine, again)[-1] == "new"


@pytest.mark.parametrize("edge", ["event", "arrival"])
@pytest.mark.parametrize(("late_ms", "reason"), [(0, "redelivery"), (1, "new")])
def test_an_id_is_known_until_exactly_one_window_later(
    open_engine: OpenEngine, edge: str, late_ms: int, reason: str
) -> None:
    later_ms = 5_000 + 1_000 * WINDOW + late_ms
    between, again_ms = ([], later_ms) if edge == "event" else (fillers(40, later_ms), 5_000)
    with open_engine() as engine:
        judge(engine, [Number("same", 70, 5_000), *between])
        (verdict,) = engine.process([Number("same", 70, again_ms)])  # type: ignore[list-item]
        assert verdict.reason == reason


def test_an_article_matches_what_was_published_within_a_window_before_it(
    open_engine: OpenEngine,
) -> None:
    with open_engine() as engine:
        feed = [
            Number("a", 10, 300_000),
            Number("late", 20, 250_000),
            Number("copy-of-late", 21, 350_000),
            Number("one-more-a-moment-too-late", 25, 450_001),
            Number("copy-of-a", 11, 150_000),
        ]
        assert judge(engine, feed) == ["new", "new", "late", "new", "a"]


def test_old_news_that_comes_late_is_compared_with_what_came_lately(
    open_engine: OpenEngine,
) -> None:
    with open_engine() as engine:
        judge(engine, fillers(40, 900_000))
        assert judge(engine, [Number("archive", 10, 5_000), Number("copy", 11, 5_000)]) == [
            "new",
            "archive",
        ]
        judge(engine, [Number(f"g{n}", 5_000_000 + 10 * n, 1_000_001) for n in range(40)])
        assert judge(engine, [Number("too-late", 12, 5_000)]) == ["new"]


@pytest.mark.parametrize("far_ms", [253_402_300_000_000, -62_000_000_000_000])
@pytest.mark.parametrize("first", [True, False], ids=["first-of-all", "in-the-middle"])
def test_a_wrong_date_makes_the_index_forget_nothing(
    open_engine: OpenEngine, far_ms: int, first: bool
) -> None:
    wrong = [Number(f"w{n}", 10 * n, far_ms) for n in range(5)]
    with open_engine() as engine:
        judge(engine, wrong[:1] if first else [])
        judge(engine, [Number("old", 700, 1_000_000), *fillers(40, 1_000_000), *wrong[1:]])
        judge(engine, [Number(f"g{n}", 5_000_000 + 10 * n, 1_050_000) for n in range(60)])
        assert judge(engine, [Number("copy", 701, 1_050_000)]) == ["old"]


def test_an_article_without_a_date_happens_when_it_arrives(open_engine: OpenEngine) -> None:
    with open_engine() as engine:
        judge(engine, [*fillers(40, 500_000), Number("undated", 70)])
        judge(engine, [Number("another", 90)])
        copies = [Number("copy", 71, 600_000), Number("past", 91, 600_001)]
        assert judge(engine, copies) == ["undated", "new"]


def test_the_clock_goes_on_after_a_reopen_where_it_was(tmp_path: Path) -> None:
    config = Config(state=NARROW, window=WindowConfig(seconds=WINDOW))
    feed = [Number(f"n{n}", 10 * n, 1_000 * (n * 7919 % 500)) for n in range(300)]
    clocks = []
    for lives, path in ((1, tmp_path / "one"), (50, tmp_path / "many")):
        each = len(feed) // lives
        for life in range(lives):
            with Deduplicator.open(path, config, scheme=NumberScheme()) as engine:
                judge(engine, feed[life * each : (life + 1) * each])
                clock = engine.store.clock
        clocks.append(clock)
    assert clocks[0] == clocks[1]
    assert Clock.decoded(clocks[0]).now_ms > 0


class PlainClock:
    """The median of the last votes; it never goes back once there are enough."""

    def __init__(self) -> None:
        self.votes: list[int] = []
        self.now = 0

    def tick(self, event_ms: int) -> int:
        self.votes.append(event_ms)
        last = sorted(self.votes[-VOTES:])
        median = last[len(last) // 2]
        self.now = median if len(self.votes) < VOTES else max(self.now, median)
        return self.now


@pytest.mark.parametrize("jitter_s", [0, 30, 150, 400])
@pytest.mark.parametrize("batch", [1, 13])
def test_matches_are_those_of_a_look_at_every_earlier_article(
    open_engine: OpenEngine, jitter_s: int, batch: int
) -> None:
    random = Random(jitter_s)
    feed = [
        Number(f"n{n}", 10 * random.randrange(60) + n % 10, 1_000 * (1_000 + n - jitter))
        for n in range(500)
        for jitter in [random.randint(0, jitter_s)]
    ]
    expected = []
    clock = PlainClock()
    seen: list[int] = []
    for at, item in enumerate(feed):
        event = item.published or 0
        seen.append(clock.tick(event))
        alike = [
            earlier
            for earlier, seen_ms in zip(feed[:at], seen, strict=False)
            if earlier.value // 10 == item.value // 10
            and (earlier.published or 0) >= event - 1_000 * WINDOW
            and seen_ms >= clock.now - 1_000 * WINDOW
        ]
        expected.append(bool(alike))
    with open_engine() as engine:
        found = judge(engine, feed, batch)
    assert [of != "new" for of in found] == expected
    assert 50 < sum(expected) < 500


def test_both_stores_cut_as_many_entries_of_a_hot_bucket(tmp_path: Path) -> None:
    random = Random(3)
    feed = [
        Number(f"n{n}", 10 * min(random.randrange(9), random.randrange(9)) + n % 10, 1_000 * n)
        for n in range(400)
    ]
    seen = []
    for path in (None, tmp_path / "state"):
        config = Config(state=NARROW, window=WindowConfig(seconds=0))
        with Deduplicator.open(path, config, scheme=NumberScheme()) as engine:
            seen.append((judge(engine, feed), engine.stats()))
    assert seen[0] == seen[1]
    assert seen[0][1].cut_entries > 0


# -- disk ------------------------------------------------------------------------------------

ARTICLES_A_WINDOW = 600
MANY_A_WINDOW = 16_000
BIGGER = StateConfig(head_articles=1_024, fan_in=4, bucket_entries=8, cache_mib=16)


def streamed(path: Path, windows: int) -> None:
    """A feed of small articles, an article a second."""
    with closing(open_rocks(path, NARROW, window_ms=1_000 * ARTICLES_A_WINDOW)) as store:
        for first in range(0, windows * ARTICLES_A_WINDOW, 10):
            numbers = range(first, first + 10)
            rows = [[n % 50, n, n + 1] for n in numbers]
            store.append(records_of(rows, [1_000 * n for n in numbers], bytes(100)))


def streamed_sizes(path: Path, windows: int) -> tuple[list[int], int]:
    """64 MB a window: bytes of the directory as the feed runs, and after it was closed."""
    sizes = []
    with closing(open_rocks(path, BIGGER, window_ms=1_000 * MANY_A_WINDOW)) as store:
        for first in range(0, windows * MANY_A_WINDOW, 400):
            numbers = range(first, first + 400)
            rows = [[n % 50, n, n + 1, n + 2, n + 3, n + 4] for n in numbers]
            store.append(records_of(rows, [1_000 * n for n in numbers], bytes(4_000)))
            sizes.append(disk_bytes(path))
    return sizes, disk_bytes(path)


def disk_bytes(path: Path) -> int:
    """Of all files, also the up to 3 MiB of messages that RocksDB keeps whatever the data."""
    total = 0
    for file in path.iterdir():
        with suppress(FileNotFoundError):  # a compaction has just ended
            total += file.stat().st_size
    return total


def test_ten_windows_take_little_more_disk_than_one(tmp_path: Path) -> None:
    one, one_closed = streamed_sizes(tmp_path / "one", 1)
    ten, ten_closed = streamed_sizes(tmp_path / "ten", 10)
    assert one_closed > MANY_A_WINDOW * 4_000
    assert ten_closed <= 1.5 * one_closed
    assert ten[-1] <= 1.5 * one[-1]
    # Between two expiries, and while tables are rewritten, it is more, but never without bound.
    latter = ten[len(ten) // 2 :]
    assert sum(latter) / len(latter) <= 1.5 * one_closed
    assert max(latter) <= 2 * one_closed


def test_a_segment_stays_as_long_as_its_newest_article_may_match(tmp_path: Path) -> None:
    unmerged = msgspec.structs.replace(NARROW, fan_in=8)
    remembered = []
    with closing(open_rocks(tmp_path, unmerged, window_ms=1_000)) as store:
        for now_ms, articles in ((5_000, 16), (6_000, 40), (6_001, 2)):
            for _ in range(articles):
                store.append(records_of([[7]], [now_ms]))
            remembered.append(store.figures().articles)
    assert remembered == [16, 56, 42]


def test_nothing_is_left_of_what_has_expired(tmp_path: Path) -> None:
    streamed(tmp_path, 4)
    open_rocks(tmp_path, NARROW, window_ms=1_000 * ARTICLES_A_WINDOW).close()
    database = Database(tmp_path, read_only=True)
    manifest = read_manifest(database)
    kept = {}
    for family in (RECORDS, PAGES, FILTERS):
        with closing(database.scan(family, b"")) as stored:
            kept[family] = [key for key, _ in stored]
    database.close()
    live = {segment.id for segment in manifest.segments}
    assert {int.from_bytes(key[:4]) for key in kept[PAGES]} == live
    assert {int.from_bytes(key[:4]) for key in kept[FILTERS]} == live
    numbers = [int.from_bytes(key) for key in kept[RECORDS]]
    assert numbers == list(range(manifest.first_number, 4 * ARTICLES_A_WINDOW))
    # One window is alive; the oldest segment may reach behind it by an eighth and a head or two.
    assert ARTICLES_A_WINDOW <= len(numbers) <= 1.25 * ARTICLES_A_WINDOW


# -- parameters ------------------------------------------------------------------------------


def refused(path: Path, config: Config) -> list[str]:
    """The lines that name the differences."""
    with pytest.raises(StateMismatch, match=str(path)) as caught:
        Deduplicator.open(path, config)
    return [line.strip() for line in str(caught.value).splitlines()[1:-1]]


def test_other_parameters_are_refused_and_each_difference_is_named(tmp_path: Path) -> None:
    Deduplicator.open(tmp_path, Config(state=ROOMY)).close()
    other = Config(
        state=msgspec.structs.replace(ROOMY, head_articles=32),
        scheme=SchemeConfig(bands=9, stop_share=0.2),
    )
    named = {line.partition(":")[0] for line in refused(tmp_path, other)}
    assert {"scheme.bands", "text.stop_share", "state.head_articles"} <= named
    assert "state.fan_in" not in named
    Deduplicator.open(tmp_path, Config(state=ROOMY)).close()


def test_another_format_is_refused_by_its_number(tmp_path: Path) -> None:
    Deduplicator.open(tmp_path, Config(state=ROOMY)).close()
    database = Database(tmp_path)
    identity = read_identity(database)
    assert identity is not None
    batch = database.batch()
    later = msgspec.structs.replace(identity, format=FORMAT + 1)
    batch.put(META, b"identity", msgspec.json.encode(later))
    database.write(batch)
    database.close()
    assert refused(tmp_path, Config(state=ROOMY)) == [
        f"format: the directory has {FORMAT + 1}, this version {FORMAT}"
    ]
