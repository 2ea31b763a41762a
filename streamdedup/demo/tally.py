"""What the demonstration has seen: counts, and how the verdicts stand up to what is known."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from streamdedup.demo.feed import Line
from streamdedup.verdict import Verdict

_BEST_KNOWN = 5


@dataclass
class Copied:
    """A story that others took over."""

    title: str
    copies: Counter[str] = field(default_factory=Counter)  # by reason


class Tally:
    """Fed with every answer; knows nothing of how it came about."""

    def __init__(self) -> None:
        self.reasons: Counter[str] = Counter()
        self.unique = 0
        self.dead: Counter[str] = Counter()
        self.owed = 0
        self.right = 0
        self.wrong = 0
        self._stories: dict[str, Copied] = {}
        self._story_of: dict[str, str] = {}
        self._seen: set[str] = set()

    @property
    def articles(self) -> int:
        """Verdicts so far."""
        return self.reasons.total()

    @property
    def answers(self) -> int:
        """Verdicts and dead letters."""
        return self.articles + self.dead.total()

    def add(self, verdict: Verdict, line: Line) -> None:
        """A verdict about a line of the feed."""
        self.reasons[verdict.reason] += 1
        self.unique += verdict.verdict == "unique"
        story = line.story
        assert story is not None
        self._judge(verdict, story)
        self._story_of[verdict.id] = story
        if verdict.verdict == "unique":
            self._stories.setdefault(verdict.story, Copied(line.title))
        elif verdict.story in self._stories:
            self._stories[verdict.story].copies[verdict.reason] += 1

    def add_dead(self, reason: str) -> None:
        """A line that could not be judged."""
        self.dead[reason] += 1

    def best_known(self) -> list[Copied]:
        """The stories that were copied most."""
        copied = [story for story in self._stories.values() if story.copies]
        return sorted(copied, key=lambda story: -story.copies.total())[:_BEST_KNOWN]

    def figures(self) -> dict[str, Any]:
        """Everything counted."""
        duplicates = self.articles - self.unique
        return {
            "articles": self.articles,
            "unique": self.unique,
            "duplicates": duplicates,
            "duplicate_share": round(duplicates / self.articles, 4) if self.articles else 0.0,
            "reasons": dict(sorted(self.reasons.items())),
            "copies_owed": self.owed,
            "copies_found": self.right,
            "copies_wrong": self.wrong,
            "dead_letters": self.dead.total(),
            "dead_letter_reasons": dict(sorted(self.dead.items())),
            "best_known": [
                {"title": story.title, "copies": dict(sorted(story.copies.items()))}
                for story in self.best_known()
            ],
        }

    def _judge(self, verdict: Verdict, story: str) -> None:
        """Against the truth, as `eval` does it: each id once, at its first verdict."""
        if verdict.reason in ("redelivery", "revision"):
            return
        owed = story in self._seen
        self._seen.add(story)
        self.owed += owed
        if verdict.duplicate_of is None:
            return
        if self._story_of.get(verdict.duplicate_of) == story:
            self.right += owed
        else:
            self.wrong += 1
