"""What every store must do, held against a plain dictionary: candidate sets, not only verdicts."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plain import MAX_KEYS, TINY, buckets_in, key_of, listed, open_rocks, records_of

from streamdedup.config import StateConfig
from streamdedup.errors import StateDiskError
from streamdedup.store import pieces
from streamdedup.store.contract import Store
from streamdedup.store.database import FILTERS, PAGES, Batch, Database
from streamdedup.store.manifest import read_manifest
from streamdedup.store.memory import MemoryStore

BUCKETS = 40


@pytest.fixture(scope="module", autouse=True)
def small_pieces() -> Iterator[None]:
    """So small a filter would be one piece; here it has several, the last one shorter."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "PIECE_BLOCKS", 2)
        yield


class Subject:
    """A store under test, together with the dictionary that it must agree with."""

    def __init__(self, open_store: Callable[[], Store], most: int, window_ms: int = 0) -> None:
        self._open = open_store
        self._most = most
        self._window_ms = window_ms
        self.store = open_store()
        self.buckets: dict[int, list[int]] = defaultdict(list)
        self.records: list[bytes] = []
        self.events: list[int] = []

    def append(self, rows: list[list[int]], events: list[int] | None = None) -> None:
        events = events or [0] * len(rows)
        batch = records_of(rows, events)
        self.store.append(batch)
        for number, row in enumerate(rows, len(self.records)):
            for bucket in row:
                self.buckets[bucket].append(number)
        self.records.extend(batch.records)
        self.events.extend(events)

    def reopen(self) -> None:
        self.store.close()
        self.store = self._open()

    def check(self) -> None:
        assert self.store.next_number == len(self.records)
        assert self.store.watermark_ms == max([0, *self.events])
        found = buckets_in(self.store, range(BUCKETS + 2))
        oldest_ms = self.store.watermark_ms - self._window_ms if self._window_ms else 0
        for bucket, numbers in enumerate(found):
            alive = [number for number in numbers if self.events[number] >= oldest_ms]
            newest = self.buckets[bucket][: -self._most - 1 : -1]
            assert alive == [n for n in newest if self.events[n] >= oldest_ms], bucket
        numbers = sorted({number for row in found for number in row})
        fetched = self.store.fetch(np.array(numbers, np.int64))
        assert list(fetched.encoded) == [self.records[number] for number in numbers]


@pytest.fixture(params=["memory", "rocks"])
def subject(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Subject]:
    """A store of each sort, with heads of 16 articles and buckets of 4 entries."""

    def open_store() -> Store:
        if request.param == "memory":
            return MemoryStore(bucket_entries=TINY.bucket_entries)
        return open_rocks(tmp_path)

    made = Subject(open_store, TINY.bucket_entries)
    yield made
    made.store.close()


def random_rows(random: Random, count: int) -> list[list[int]]:
    """Every bucket is a little hotter than the next."""
    return [
        [min(random.randrange(BUCKETS), random.randrange(BUCKETS)) for _ in range(keys)]
        for keys in random.choices(range(6), k=count)
    ]


def story_rows(random: Random, plan: list[list[int]], count: int) -> list[list[int]]:
    """Articles of six keys; three in four share all but a few keys with an earlier one."""
    for _ in range(count):
        if plan and random.random() < 0.75:
            row = list(plan[-random.randint(1, min(len(plan), 300))])
            for _ in range(random.choice([0, 1, 1, 2, 3])):
                row[random.randrange(len(row))] = random.randrange(1 << 20)
        else:
            row = [random.randrange(1 << 20) for _ in range(MAX_KEYS)]
        # Some keys are everybody's, and some articles have one twice.
        if random.random() < 0.2:
            row[random.randrange(len(row))] = random.randrange(3)
        plan.append(row)
    return plan[len(plan) - count :]


def test_a_new_store_is_empty(subject: Subject) -> None:
    subject.check()


def test_an_append_of_nothing_changes_nothing(subject: Subject) -> None:
    subject.append([])
    subject.check()


def test_a_bucket_gives_its_newest_entries_first(subject: Subject) -> None:
    subject.append([[1], [2], [1]])
    assert buckets_in(subject.store, [1, 2, 3]) == [[2, 0], [1], []]


def test_a_hot_bucket_keeps_its_newest_entries_whatever_the_layout(subject: Subject) -> None:
    hot = BUCKETS
    for number in range(150):
        subject.append([[hot, number % BUCKETS]])
        newest = list(range(number, max(-1, number - TINY.bucket_entries), -1))
        assert buckets_in(subject.store, [hot]) == [newest]


def test_a_batch_of_many_heads_is_one_append(subject: Subject) -> None:
    subject.append(random_rows(Random(1), 500))
    subject.check()
    subject.append(random_rows(Random(2), 1))
    subject.check()


def test_articles_without_keys_count_too(subject: Subject) -> None:
    subject.append([[] for _ in range(100)])
    subject.append([[1]])
    assert buckets_in(subject.store, [1]) == [[100]]
    subject.check()


def test_closing_twice_is_harmless(subject: Subject) -> None:
    subject.store.close()
    subject.store.close()


@contextmanager
def rocks_subject(state: StateConfig, window_ms: int = 0) -> Iterator[Subject]:
    with tempfile.TemporaryDirectory() as folder:
        made = Subject(
            lambda: open_rocks(Path(folder), state, window_ms=window_ms),
            state.bucket_entries,
            window_ms,
        )
        try:
            yield made
        finally:
            made.store.close()


layouts = st.builds(
    StateConfig,
    head_articles=st.sampled_from([16, 64]),
    fan_in=st.sampled_from([2, 4, 8]),
    bucket_entries=st.sampled_from([1, 3, 32]),
    filter_bits=st.sampled_from([4, 12]),
    cache_mib=st.just(8),
)
# How many articles each batch brings; 0 closes the store and opens it again.
counts = st.sampled_from([0, 1, 3, 15, 16, 17, 33, 64, 130, 400])
plans = st.lists(counts, min_size=3, max_size=24)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(state=layouts, plan=plans, seed=st.integers(0, 2**32))
def test_candidates_are_those_of_a_dictionary_wherever_heads_freeze_and_segments_merge(
    state: StateConfig, plan: list[int], seed: int
) -> None:
    random = Random(seed)
    with rocks_subject(state) as subject:
        for count in plan:
            if count:
                subject.append(random_rows(random, count))
            else:
                subject.reopen()
            subject.check()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    state=st.builds(
        StateConfig,
        head_articles=st.sampled_from([16, 64]),
        fan_in=st.sampled_from([2, 4]),
        bucket_entries=st.sampled_from([1, 2, 3, 4, 32]),
        filter_bits=st.sampled_from([4, 5, 12, 32]),  # at four bits every other key passes
        cache_mib=st.just(8),
    ),
    plan=st.lists(counts, min_size=3, max_size=16),
    seed=st.integers(0, 2**32),
)
def test_what_is_told_without_reading_a_page_is_what_the_page_says(
    state: StateConfig, plan: list[int], seed: int
) -> None:
    random = Random(seed)
    rows: list[list[int]] = []
    buckets: dict[int, list[int]] = defaultdict(list)
    with rocks_subject(state) as subject:
        for count in plan:
            if not count:
                subject.reopen()
                continue
            for number, row in enumerate(story_rows(random, rows, count), len(rows) - count):
                for bucket in row:
                    buckets[bucket].append(number)
            subject.store.append(records_of(rows[-count:], [0] * count))
            asked = random.choices(rows, k=60)
            wanted = [bucket for row in asked for bucket in row]
            found = buckets_in(subject.store, wanted, range(0, len(wanted) + 1, MAX_KEYS))
            for bucket, numbers in zip(wanted, found, strict=True):
                assert numbers == buckets[bucket][: -state.bucket_entries - 1 : -1]
            numbers = sorted({number for row in found for number in row})
            fetched = subject.store.fetch(np.array(numbers, np.int64))
            expected = records_of([rows[number] for number in numbers], [0] * len(numbers))
            assert list(fetched.encoded) == expected.records


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(state=layouts, plan=plans, window_ms=st.sampled_from([0, 400]), seed=st.integers(0, 2**32))
def test_what_was_foreseen_changes_no_answer_however_much_came_since(
    state: StateConfig, plan: list[int], window_ms: int, seed: int
) -> None:
    random = Random(seed)
    every = np.array([key_of(bucket) for bucket in range(BUCKETS)], np.uint64)
    starts = np.arange(0, BUCKETS + 1, 4)
    now = 0
    with rocks_subject(state, window_ms) as subject:
        # Some of what is foreseen is used at once, some when the segments are long gone.
        foreseen = [subject.store.foresee(every, starts)]
        for count in filter(None, plan):
            foreseen.append(subject.store.foresee(every, starts))
            subject.append(random_rows(random, count), list(range(now, now + count)))
            now += count
            expected = listed(subject.store.probe(every, starts))
            for glimpse in foreseen[-3:]:
                assert listed(subject.store.probe(every, starts, glimpse)) == expected
            numbers = sorted({number for row in expected for number in row})
            fetched = subject.store.fetch(np.array(numbers, np.int64))
            assert list(fetched.encoded) == [subject.records[number] for number in numbers]


def test_a_thread_may_foresee_while_segments_freeze_merge_and_expire() -> None:
    state = StateConfig(head_articles=16, fan_in=2, bucket_entries=4, cache_mib=8)
    every = np.array([key_of(bucket) for bucket in range(BUCKETS)], np.uint64)
    starts = np.arange(0, BUCKETS + 1, 4)
    with rocks_subject(state, window_ms=1_000) as subject, ThreadPoolExecutor(1) as other:
        used = 0
        for batch in range(600):
            ahead = [other.submit(subject.store.foresee, every, starts) for _ in range(2)]
            times = range(batch * 7, batch * 7 + 7)
            subject.append(random_rows(Random(batch), 7), list(times))
            expected = listed(subject.store.probe(every, starts))
            for glimpse in (future.result() for future in ahead):
                used += glimpse is not None and len(glimpse.hits.numbers) > 0
                assert listed(subject.store.probe(every, starts, glimpse)) == expected
        assert used > 600  # most of them told something


@pytest.mark.parametrize("prepared", [1, 2])
def test_preparing_an_append_that_comes_later_or_never_changes_no_answer(
    subject: Subject, prepared: int
) -> None:
    for batch in range(60):
        rows = random_rows(Random(batch), 9)
        for _ in range(prepared):
            subject.store.prepare(records_of(random_rows(Random(batch), 5), [0] * 5))
        subject.check()
        subject.append(rows)
    subject.check()


def test_a_prepared_append_can_be_tried_again_after_a_full_disk(tmp_path: Path) -> None:
    batch = records_of([[1], [2]], [0, 0])
    with closing(open_rocks(tmp_path)) as store:
        store.prepare(batch)
        write = Database.write
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Database, "write", full_disk)
            with pytest.raises(StateDiskError):
                store.append(batch)
        assert Database.write is write
        assert buckets_in(store, [1, 2]) == [[], []]
        store.append(batch)
        assert buckets_in(store, [1, 2]) == [[0], [1]]


def full_disk(database: Database, batch: Batch) -> None:
    raise StateDiskError("no space left")


@pytest.mark.parametrize(("bucket_entries", "pages"), [(4, 1), (1, MAX_KEYS)])
def test_a_duplicate_costs_one_page_however_many_keys_it_shares(
    tmp_path: Path, bucket_entries: int, pages: int
) -> None:
    state = StateConfig(
        head_articles=1_024, fan_in=2, bucket_entries=bucket_entries, filter_bits=32, cache_mib=8
    )
    rows = [[6 * number + key for key in range(MAX_KEYS)] for number in range(4_096)]
    with closing(open_rocks(tmp_path, state)) as store:
        for first in range(0, len(rows) + 1_024, 128):
            batch = rows[first : first + 128] or [[]] * 128
            store.append(records_of(batch, [0] * 128))
        before = store.pages_read
        for row in rows[:1_000]:
            assert len(set(map(tuple, buckets_in(store, row)))) == 1
        # Full buckets may have lost entries: there every page must be read (some keys share one).
        assert 0.8 * pages < (store.pages_read - before) / 1_000 < 1.05 * pages


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    state=layouts,
    # Each batch, and how much later it comes than the one before.
    plan=st.lists(st.tuples(counts, st.sampled_from([0, 0, 0, 60, 5_000])), max_size=24),
    window_ms=st.sampled_from([1, 50, 400, 3_000]),
    jitter_ms=st.sampled_from([0, 20, 500]),
    seed=st.integers(0, 2**32),
)
def test_expiry_takes_nothing_that_is_inside_the_window(
    state: StateConfig,
    plan: list[tuple[int, int]],
    window_ms: int,
    jitter_ms: int,
    seed: int,
) -> None:
    random = Random(seed)
    now = 0
    with rocks_subject(state, window_ms) as subject:
        for count, pause_ms in plan:
            if count:
                times = range(now + pause_ms, now + pause_ms + count)
                now = times[-1]
                events = [max(0, time - random.randint(0, jitter_ms)) for time in times]
                subject.append(random_rows(random, count), events)
            else:
                subject.reopen()
            subject.check()


@pytest.mark.parametrize("before", range(32, 52))
def test_a_segment_that_is_being_merged_may_expire_at_any_step(before: int) -> None:
    with rocks_subject(TINY, window_ms=1_000) as subject:
        for number in range(before):
            subject.append([[number % 7, number % 5]], [number])
        for number in range(40):
            subject.append([[number % 7, number % 5]], [5_000 + number])
            subject.check()


@pytest.mark.parametrize("before", range(32, 64, 3))
def test_a_store_may_be_opened_again_at_any_step_of_a_merge(before: int) -> None:
    state = StateConfig(head_articles=16, fan_in=4, bucket_entries=4, cache_mib=8)
    with rocks_subject(state) as subject:
        subject.append(random_rows(Random(before), before))
        for batch in range(40):
            subject.append(random_rows(Random(batch), 3))
            subject.reopen()
            subject.check()


def test_what_a_closed_store_left_half_built_is_gone_when_it_opens_again(tmp_path: Path) -> None:
    store = open_rocks(tmp_path)
    for batch in range(50):
        store.append(records_of(random_rows(Random(batch), 7), [0] * 7))
    store.close()
    pages, filters, segments = stored_ids(tmp_path)
    assert pages > segments, "the test means to stop in the middle of a build"
    assert filters > segments
    open_rocks(tmp_path).close()
    pages, filters, segments = stored_ids(tmp_path)
    assert pages == segments
    assert filters == segments


def stored_ids(path: Path) -> tuple[set[int], set[int], set[int]]:
    """Ids of the segments that have pages, of those that have filters, of those that are live."""
    database = Database(path, read_only=True)
    ids = []
    for family in (PAGES, FILTERS):
        with closing(database.scan(family, b"")) as stored:
            ids.append({int.from_bytes(key[:4]) for key, _ in stored})
    segments = {segment.id for segment in read_manifest(database).segments}
    database.close()
    return ids[0], ids[1], segments


def test_segments_stay_few_as_the_stream_goes_on() -> None:
    state = StateConfig(head_articles=16, fan_in=4, bucket_entries=4, cache_mib=8)
    with rocks_subject(state) as subject:
        most = 0
        for batch in range(16 * 64):
            subject.append(random_rows(Random(batch), 4))
            store = subject.store
            most = max(most, store.segments)  # type: ignore[attr-defined]
        # 256 heads make four tiers; each holds at most its fan-in and what comes during a merge.
        assert most <= 4 * (4 + 1)


def test_old_dates_in_a_feed_do_not_keep_segments_from_merging() -> None:
    state = StateConfig(head_articles=16, fan_in=4, bucket_entries=4, cache_mib=8)
    with rocks_subject(state, window_ms=1_000_000) as subject:
        for batch in range(64):
            now = 2_000_000 + batch * 16
            subject.append(random_rows(Random(batch), 16), [0, *range(now, now + 15)])
        assert subject.store.segments < 12  # type: ignore[attr-defined]
