"""The one owner of a RocksDB directory: its column families, its options, its errors.

RocksDB reports trouble as text; it is read here and nowhere else, and becomes an error that names
the directory and the remedy.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn, cast

import rocksdict
from rocksdict import (
    AccessType,
    BlockBasedOptions,
    Cache,
    DBCompressionType,
    DBRecoveryMode,
    Options,
    Rdict,
    WriteBatch,
)

from streamdedup.errors import StateCorrupt, StateDiskError, StateError, StateLocked
from streamdedup.store.figures import DatabaseFigures
from streamdedup.store.torn import damaged_before_end

META, RECORDS, PAGES, FILTERS = "default", "records", "pages", "filters"
_MIB = 1 << 20
_COUNT = re.compile(
    r"^rocksdb\.(stall\.micros|block\.cache\.hit|block\.cache\.miss) COUNT : (\d+)$", re.MULTILINE
)


class Database:
    """RocksDB in raw mode: bytes in, bytes out, never a pickle."""

    def __init__(self, path: Path, *, cache_mib: int = 64, read_only: bool = False) -> None:
        self.path = path
        self._db: Rdict | None = None
        self._refuse_foreign(read_only)
        if not read_only:
            self._refuse_damaged_logs()
        # Block cache and memtables share one budget of memory.
        cache = Cache(cache_mib * _MIB)
        families = {
            RECORDS: _in_order(_options(cache, write_buffer_mib=32)),
            PAGES: _options(cache, write_buffer_mib=32),
            FILTERS: _seldom_read(_in_order(_options(cache, write_buffer_mib=16))),
        }
        with self.errors():
            if not read_only:
                path.mkdir(parents=True, exist_ok=True)
            access = AccessType.read_only(False) if read_only else AccessType.read_write()
            # Statistics are one object for all families; RocksDB counts, we read.
            self._options = _options(cache, write_buffer_mib=4)
            if not read_only:
                self._options.enable_statistics()
            self._db = Rdict(
                str(path),
                options=self._options,
                column_families=families,
                access_type=access,
            )
            self._families = {name: self._db.get_column_family(name) for name in families}
            self._families[META] = self._db
            self._handles = {name: self._db.get_column_family_handle(name) for name in families}

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turn RocksDB's words into ours."""
        try:
            yield
        except rocksdict.DbClosedError:
            raise
        except OSError as error:
            raise StateDiskError(
                f"state directory {self.path}: {error.strerror or error}"
            ) from None
        except Exception as error:
            # rocksdict raises bare Exception; anything else is a bug and keeps its traceback.
            if type(error) is not Exception:
                raise
            self._translate(str(error))

    def get(self, family: str, key: bytes) -> bytes | None:
        """One value, or None."""
        with self.errors():
            value: bytes | None = self._family(family).get(key)
        return value

    def get_many(self, family: str, keys: list[bytes]) -> list[bytes | None]:
        """Many values in one call that lets other threads run."""
        if not keys:
            return []
        with self.errors():
            return cast("list[bytes | None]", self._family(family).get(cast("list[Any]", keys)))

    def scan(self, family: str, first: bytes) -> Generator[tuple[bytes, bytes]]:
        """Keys and values in order from `first` on."""
        with self.errors():
            iterator = self._family(family).iter()
            iterator.seek(first)
            while iterator.valid():
                yield iterator.key(), iterator.value()
                iterator.next()
            # An iterator that meets a bad block just ends; its status tells.
            iterator.status()

    def batch(self) -> Batch:
        """A new write batch."""
        return Batch(self._handles)

    def write(self, batch: Batch) -> None:
        """All of the batch or nothing of it."""
        database = self._family(META)
        with self.errors():
            database.write(batch.raw)

    def flush(self) -> None:
        """Write what is in memory and in the log into tables."""
        with self.errors():
            for name in (*self._families,):
                self._family(name).flush()

    def checkpoint(self, path: Path) -> None:
        """A copy of this moment, which shares the files that do not change any more."""
        with self.errors():
            rocksdict.Checkpoint(self._family(META)).create_checkpoint(str(path))

    def property(self, family: str, name: str) -> int:
        """A number that RocksDB knows of itself."""
        value: int | None = self._family(family).property_int_value(name)
        return value or 0

    def figures(self) -> DatabaseFigures:
        """How RocksDB is doing; asks no disk."""

        def total(name: str) -> int:
            return sum(self.property(family, f"rocksdb.{name}") for family in self._families)

        counts = dict(_COUNT.findall(self._options.get_statistics() or ""))
        return DatabaseFigures(
            table_bytes=total("total-sst-files-size"),
            memtable_bytes=total("cur-size-all-mem-tables"),
            pending_compaction_bytes=total("estimate-pending-compaction-bytes"),
            running_compactions=self.property(META, "rocksdb.num-running-compactions"),
            # Whether writes are stopped now is no use: whoever asks has just written.
            stalled_seconds=int(counts.get("stall.micros", 0)) / 1e6,
            background_errors=self.property(META, "rocksdb.background-errors"),
            cache_bytes=self.property(META, "rocksdb.block-cache-usage"),
            cache_hits=int(counts.get("block.cache.hit", 0)),
            cache_misses=int(counts.get("block.cache.miss", 0)),
        )

    def close(self) -> None:
        """Write what is only in the log into tables, and release the lock."""
        if self._db is None:
            return
        # After a full disk this cannot succeed; the log still has it all.
        with suppress(StateError):
            self.flush()
        # RocksDB lets go of its lock only when no handle is left.
        database, self._db = self._db, None
        self._handles.clear()
        self._families.clear()
        with suppress(StateError), self.errors():
            database.close()

    def _family(self, name: str) -> Rdict:
        if self._db is None:
            raise StateError(f"state directory {self.path} is closed")
        return self._families[name]

    def _refuse_foreign(self, read_only: bool) -> None:
        """RocksDB would begin anew over the files of a database that has lost its root."""
        if (self.path / "CURRENT").is_file():
            return
        if read_only:
            raise StateError(f"{self.path} is not a state directory")
        if any(file.suffix in (".sst", ".log") for file in self.path.glob("[0-9]*")):
            raise self.damaged("the file CURRENT is missing")

    def _refuse_damaged_logs(self) -> None:
        """Opening would drop what lies behind the damage, and delete the log."""
        for log in sorted([*self.path.glob("[0-9]*.log"), *self.path.glob("MANIFEST-*")]):
            try:
                at = damaged_before_end(log.read_bytes())
            except FileNotFoundError:  # a live process has just deleted it
                continue
            except OSError as error:
                raise StateDiskError(f"state directory {self.path}: {error.strerror}") from None
            if at is not None:
                raise self.damaged(f"{log.name} is not readable from byte {at} on")

    def damaged(self, what: str) -> StateCorrupt:
        """The error that says what is wrong with the bytes, and what to do."""
        return StateCorrupt(
            f"state directory {self.path} is damaged: {what}; "
            "move it away and build the index again from the articles, or restore a backup"
        )

    def _translate(self, text: str) -> NoReturn:
        text = " ".join(text.split())  # some of RocksDB's messages have several lines
        low = text.lower()
        if "lock" in low and ("hold by" in low or "unavailable" in low or "held" in low):
            raise StateLocked(
                f"state directory {self.path} is in use by another process; "
                "stop that process or choose another directory"
            ) from None
        if "no space" in low or "read-only file system" in low or "permission denied" in low:
            raise StateDiskError(f"state directory {self.path}: {text}") from None
        if "io error" in low and "no such file" not in low:
            raise StateDiskError(f"state directory {self.path}: {text}") from None
        raise self.damaged(text) from None


class Batch:
    """Writes that happen together."""

    def __init__(self, handles: dict[str, rocksdict.ColumnFamily]) -> None:
        self.raw = WriteBatch(raw_mode=True)
        self._handles = handles

    def put(self, family: str, key: bytes, value: bytes) -> None:
        """Set a value."""
        self.raw.put(key, value, self._handles.get(family))

    def delete_range(self, family: str, first: bytes, end: bytes) -> None:
        """Delete from `first` up to but not including `end`."""
        self.raw.delete_range(first, end, self._handles.get(family))


def _in_order(options: Options) -> Options:
    """For keys that only grow: one sorted level below the flushed tables.

    A flushed table moves there as it is.  A deleted range meets its records at once; with more
    levels it may stay above them for ever, and their space with it.
    """
    options.set_num_levels(2)
    options.set_level_compaction_dynamic_level_bytes(False)
    return options


def _seldom_read(options: Options) -> Options:
    """For what is read at open only: a few flushed tables may wait and be sorted in one go."""
    options.set_level_zero_file_num_compaction_trigger(4)
    return options


def _options(cache: Cache, *, write_buffer_mib: int) -> Options:
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    options.set_compression_type(DBCompressionType.none())  # hashes do not compress
    options.set_write_buffer_size(write_buffer_mib * _MIB)
    options.set_max_write_buffer_number(3)
    options.set_target_file_size_base(32 * _MIB)
    options.set_max_bytes_for_level_base(64 * _MIB)
    options.set_level_zero_file_num_compaction_trigger(1)
    options.set_max_background_jobs(2)
    options.set_max_total_wal_size(128 * _MIB)
    options.set_paranoid_checks(True)
    # All families reach the disk together: even a lost log leaves one moment, not a mixture.
    options.set_atomic_flush(True)
    options.set_keep_log_file_num(3)
    options.set_max_log_file_size(_MIB)
    # A torn last write is a crash; a bad checksum before it is damage and must be said.
    options.set_wal_recovery_mode(DBRecoveryMode.tolerate_corrupted_tail_records())
    table = BlockBasedOptions()
    table.set_block_cache(cache)
    table.set_block_size(4096)
    table.set_format_version(5)
    options.set_block_based_table_factory(table)
    return options
