"""What of a partition of dead letters was replayed: an offset, and the kinds that are ahead of it.

Letters are chosen by their kind, so an offset alone would forget the ones that were passed over.
It is kept as Kafka keeps the position of a group: an offset and a line of text, in the transaction
that does the replaying.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Replayed:
    """Everything before `base`, and of some kinds more than that.

    >>> replayed = Replayed(10, {"decode/bad_json": 15})
    >>> replayed.has("decode/bad_json", 14), replayed.has("judge/empty", 14)
    (True, False)
    """

    base: int
    ahead: dict[str, int] = field(default_factory=dict)
    _held: int | None = None  # the first letter that was passed over

    def has(self, kind: str, offset: int) -> bool:
        """Whether this letter was replayed before."""
        return offset < self.ahead.get(kind, self.base)

    def add(self, kind: str, offset: int) -> None:
        """A letter that is replayed, or needs no replay."""
        self.ahead[kind] = max(self.ahead.get(kind, self.base), offset + 1)

    def pass_over(self, kind: str, offset: int) -> None:
        """A letter that is not; it must still be found when it is asked for."""
        if self._held is None and not self.has(kind, offset):
            self._held = offset

    def read_to(self, offset: int) -> None:
        """All letters before this offset were added or passed over."""
        end = offset if self._held is None else self._held
        self.base = max(self.base, end)
        self.ahead = {kind: end for kind, end in self.ahead.items() if end > self.base}

    def metadata(self) -> str:
        """The part that an offset cannot say."""
        return " ".join(f"{kind}={end}" for kind, end in sorted(self.ahead.items()))

    @classmethod
    def read(cls, offset: int, metadata: str | None) -> Replayed:
        """From what the group has committed; below zero is nothing yet.

        >>> Replayed.read(3, Replayed(3, {"decode/bad_json": 9}).metadata())
        Replayed(base=3, ahead={'decode/bad_json': 9}, _held=None)
        """
        ahead = {}
        for word in (metadata or "").split():
            kind, equals, end = word.rpartition("=")
            if equals and end.isdigit():
                ahead[kind] = int(end)
        return cls(max(offset, 0), ahead)
