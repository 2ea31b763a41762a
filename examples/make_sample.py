"""Build the bundled sample feed: invented wire stories and the copies news sites make of them.

Reads stories.txt, flashes.txt, outlets.txt and pages.txt from streamdedup/sample and writes
feed.jsonl (the stream), truth.jsonl (the story behind each id) and junk.jsonl (lines to reject).
The seed is fixed, so running it again gives the same bytes: python3 examples/make_sample.py [DIR].
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

# Chosen so that the sample shows every typographic habit, Chinese and Japanese ones included.
SEED = 20260307
SAMPLE = Path(__file__).resolve().parents[1] / "streamdedup" / "sample"
REDELIVERIES = 3
MIN_CROP_WORDS = 110
UNSPACED = {"zh", "ja"}
HYPHENATED = {"en", "de", "fr", "es", "pt", "it", "ru", "tr", "el", "pl", "id", "uk"}
NBSP, SHY, IDEOGRAPHIC_SPACE = "\u00a0", "\u00ad", "\u3000"
ENGLISH_QUOTES = ("\u201c", "\u201d")
QUOTES = {
    "de": ("\u201e", "\u201c"),
    "pl": ("\u201e", "\u201d"),
    "fr": ("\u00ab" + NBSP, NBSP + "\u00bb"),
    "es": ("\u00ab", "\u00bb"),
    "it": ("\u00ab", "\u00bb"),
    "el": ("\u00ab", "\u00bb"),
}
REPORTERS = ("Maud Ellery", "Joss Okafor", "Perpetua Lim", "Rafe Sundgren", "Ines Calloway")
EDITORS = ("Col Whitby", "Tamsin Roe", "Bao Merrick", "Greta Fonseka")
JUNK = (
    "<html><head><title>502 Bad Gateway</title></head></html>",
    '{"title": "A story without an id", "text": "Nobody knows where this one came from."}',
    '{"id": "junk-001", "title": "Text is a number", "text": 42}',
    '{"id": "junk-002", "title": "Nothing to read here", "text": ""}',
    '{"id": {"value": ["junk-003", null]}, "title": [], "text": {"body": [[["deep"], 7], true]}}',
    '["junk-004", "an array where an object should be"]',
)

# Classes of items in the feed; all items made from one story share its truth cluster.
VARIANTS = {
    "original": "the agency's story as written in stories.txt",
    "verbatim": "same title and text under another id and outlet",
    "typographic": "other quotes, dashes, no-break spaces, soft hyphens, ideographic indents",
    "light": "words changed, a sentence rewritten, a credit line added, often a new title",
    "crop60": "the first 60 percent of the words, if that leaves at least 110",
    "crop35": "the first 35 percent of the words, if that leaves at least 110",
    "embedded": "inside a page: navigation, cookie notice, related links, footer",
    "inserted": "a background paragraph put in after the second one",
    "flash": "a headline and nothing else, 8 to 12 words",
    "flash-copy": "the same flash under another id",
    "revision": "an earlier id again, with corrected facts and one more paragraph",
    "redelivery": "an earlier line again, byte for byte",
}

Swap = tuple[str, str]


@dataclass(frozen=True)
class Story:
    """One story and the hand-written material its variants are made from."""

    slug: str
    lang: str
    when: datetime
    title: str
    text: str
    alt: str = ""
    swaps: tuple[Swap, ...] = ()
    insert: str = ""
    fixes: tuple[Swap, ...] = ()
    added: str = ""


@dataclass(frozen=True)
class Outlet:
    """A publisher, the prefix of its ids and, for some, the page its stories appear in."""

    name: str
    code: str
    page: str = ""


@dataclass(frozen=True)
class Item:
    """One line of the feed; `arrives` fixes its place, `published` is what it claims."""

    cluster: str
    variant: str
    title: str
    text: str
    outlet: Outlet
    published: datetime
    arrives: datetime
    id: str = ""


Outlets = dict[str, list[Outlet]]
Maker = Callable[[Story, Outlet, random.Random], tuple[str, str]]


def blocks(path: Path) -> Iterator[tuple[str, str]]:
    """Yield (header, body) of every '=== header' block of a file."""
    for block in path.read_text(encoding="utf-8").split("=== ")[1:]:
        header, _, body = block.partition("\n")
        yield header.strip(), body.strip("\n")


def parse_time(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def parse_swap(value: str) -> Swap:
    old, _, new = value.partition(" => ")
    return old, new


def parse_story(header: str, body: str) -> Story:
    slug, lang, _topic, when = header.split(" | ")
    head, _, text = body.partition("\n\n")
    fields: dict[str, list[str]] = {}
    for line in head.splitlines():
        name, _, value = line.partition(": ")
        fields.setdefault(name, []).append(value)
    return Story(
        slug=slug,
        lang=lang,
        when=parse_time(when),
        title=fields["Title"][0],
        text=text,
        alt=fields.get("Alt", [""])[0],
        swaps=tuple(map(parse_swap, fields.get("Swap", []))),
        insert=fields.get("Insert", [""])[0],
        fixes=tuple(map(parse_swap, fields.get("Fix", []))),
        added=fields.get("Add", [""])[0],
    )


def read_outlets() -> Outlets:
    """Outlets by language; the first of each language is the agency that writes the stories."""
    pages = dict(blocks(SAMPLE / "pages.txt"))
    outlets: Outlets = {}
    for line in (SAMPLE / "outlets.txt").read_text(encoding="utf-8").splitlines():
        lang, code, name = line.split(" | ")
        outlets.setdefault(lang, []).append(Outlet(name, code, pages.get(name, "")))
    return outlets


def apply_swaps(text: str, swaps: tuple[Swap, ...]) -> str:
    for old, new in swaps:
        # A swap that no longer matches its story would silently yield a verbatim copy.
        if text.count(old) != 1:
            raise ValueError(f"swap must match exactly once: {old!r}")
        text = text.replace(old, new)
    return text


def curl_quotes(text: str, lang: str) -> str:
    opening, closing = QUOTES.get(lang, ENGLISH_QUOTES)
    text = re.sub(r'(^|[\s(])"', lambda m: m[1] + opening, text)
    text = text.replace('"', closing)
    text = re.sub(r"(^|[\s(])'", lambda m: m[1] + "\u2018", text)
    return text.replace("'", "\u2019").replace(" - ", " \u2014 ")


def soft_hyphenate(text: str, rng: random.Random) -> str:
    def split(match: re.Match[str]) -> str:
        word = match[0]
        middle = len(word) // 2
        return word[:middle] + SHY + word[middle:] if rng.random() < 0.25 else word

    return re.sub(r"[^\W\d_]{9,}", split, text)


def make_verbatim(story: Story, _outlet: Outlet, _rng: random.Random) -> tuple[str, str]:
    return story.title, story.text


def make_typographic(story: Story, _outlet: Outlet, rng: random.Random) -> tuple[str, str]:
    if story.lang in UNSPACED:
        corner = story.text.replace("\u201c", "\u300c").replace("\u201d", "\u300d")
        indented = [IDEOGRAPHIC_SPACE + line if line else line for line in corner.split("\n")]
        return story.title, "\n".join(indented)
    text = curl_quotes(story.text, story.lang)
    text = re.sub(r"(\d) (?=[^\W\d])", lambda m: m[1] + NBSP, text)
    if story.lang in HYPHENATED:
        text = soft_hyphenate(text, rng)
    return curl_quotes(story.title, story.lang), text


def make_light(story: Story, outlet: Outlet, rng: random.Random) -> tuple[str, str]:
    credit = f"({outlet.code}/{rng.choice(['mk', 'jo', 'sv', 'ta'])})"
    if story.lang == "en":
        credit = f"Reporting by {rng.choice(REPORTERS)}; Editing by {rng.choice(EDITORS)}"
    return story.alt or story.title, f"{apply_swaps(story.text, story.swaps)}\n\n{credit}"


def crop(text: str, share: float) -> str:
    words = list(re.finditer(r"\S+", text))
    return text[: words[int(len(words) * share) - 1].end()] + " ..."


def make_crop60(story: Story, _outlet: Outlet, _rng: random.Random) -> tuple[str, str]:
    return story.title, crop(story.text, 0.60)


def make_crop35(story: Story, _outlet: Outlet, _rng: random.Random) -> tuple[str, str]:
    return story.title, crop(story.text, 0.35)


def make_embedded(story: Story, outlet: Outlet, _rng: random.Random) -> tuple[str, str]:
    # Related links are filled in afterwards, when the other stories' titles are at hand.
    page = outlet.page.replace("{title}", story.title).replace("{body}", story.text)
    return f"{story.title} | {outlet.name}", page


def make_inserted(story: Story, _outlet: Outlet, _rng: random.Random) -> tuple[str, str]:
    paragraphs = story.text.split("\n\n")
    return story.alt or story.title, "\n\n".join([*paragraphs[:2], story.insert, *paragraphs[2:]])


MAKERS: dict[str, Maker] = {
    "verbatim": make_verbatim,
    "typographic": make_typographic,
    "light": make_light,
    "crop60": make_crop60,
    "crop35": make_crop35,
    "embedded": make_embedded,
    "inserted": make_inserted,
}


def possible_variants(story: Story, outlets: list[Outlet]) -> list[str]:
    words = len(story.text.split())
    allowed = {
        "verbatim": True,
        "typographic": True,
        "light": bool(story.swaps),
        "crop60": int(words * 0.60) >= MIN_CROP_WORDS,
        "crop35": int(words * 0.35) >= MIN_CROP_WORDS,
        "embedded": any(outlet.page for outlet in outlets),
        "inserted": bool(story.insert),
    }
    return [variant for variant, possible in allowed.items() if possible]


def choose_variants(
    story: Story, outlets: list[Outlet], used: Counter[str], rng: random.Random
) -> list[str]:
    """Pick 0 to 4 variants, the rarest so far first so that every class is well represented."""
    count = rng.choices((0, 1, 2, 3, 4), weights=(2, 3, 6, 8, 5))[0]
    pool = possible_variants(story, outlets)
    rng.shuffle(pool)
    chosen = sorted(pool, key=lambda variant: used[variant])[:count]
    used.update(chosen)
    return chosen


def delay(rng: random.Random) -> timedelta:
    """Most copies appear within hours of the story, a few the next day."""
    return timedelta(seconds=min(300 + int(rng.expovariate(1 / 12_000)), 93_600))


def arrival(published: datetime, rng: random.Random) -> datetime:
    """Delivery lags by up to nine minutes, which puts neighbouring items out of order."""
    return published + timedelta(seconds=rng.randint(5, 540))


def copies(
    story: Story, outlets: list[Outlet], chosen: list[str], rng: random.Random
) -> Iterator[Item]:
    free = rng.sample(outlets[1:], len(outlets) - 1)
    for variant in sorted(chosen, key=lambda name: name != "embedded"):
        # Embedded goes first because only some outlets have a page to embed into.
        outlet = next(o for o in free if o.page or variant != "embedded")
        if len(free) > 1:
            free.remove(outlet)
        title, text = MAKERS[variant](story, outlet, rng)
        published = story.when + delay(rng)
        yield Item(story.slug, variant, title, text, outlet, published, arrival(published, rng))


def story_items(stories: list[Story], outlets: Outlets, rng: random.Random) -> Iterator[Item]:
    used: Counter[str] = Counter()
    for story in stories:
        agency = outlets[story.lang][0]
        due = arrival(story.when, rng)
        yield Item(story.slug, "original", story.title, story.text, agency, story.when, due)
        chosen = choose_variants(story, outlets[story.lang], used, rng)
        yield from copies(story, outlets[story.lang], chosen, rng)


def flash_items(outlets: list[Outlet], rng: random.Random) -> Iterator[Item]:
    lines = (SAMPLE / "flashes.txt").read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        when, repeats, text = line.split(" | ")
        places = rng.sample(outlets[1:], int(repeats))
        for outlet in (outlets[0], *places):
            published = parse_time(when)
            if outlet is not outlets[0]:
                published += timedelta(seconds=rng.randint(40, 2400))
            variant = "flash" if outlet is outlets[0] else "flash-copy"
            cluster, due = f"flash-{number:02d}", arrival(published, rng)
            yield Item(cluster, variant, text, text, outlet, published, due)


def link_related(item: Item, stories: list[Story], rng: random.Random) -> Item:
    """Fill the related links of a page with titles that were already out when it was made."""
    if "{related}" not in item.text:
        return item
    titles = [
        story.title
        for story in stories
        if story.lang == "en" and story.slug != item.cluster and story.when < item.published
    ]
    links = rng.sample(titles, min(3, len(titles)))
    return replace(item, text=item.text.replace("{related}", "\n".join(links)))


def number_items(items: list[Item]) -> list[Item]:
    """Give ids in order of publication, numbered per outlet and day."""
    counts: Counter[str] = Counter()
    numbered = []
    for item in sorted(items, key=lambda item: (item.published, item.cluster, item.variant)):
        stem = f"{item.outlet.code}-{item.published:%m%d}"
        counts[stem] += 1
        numbered.append(replace(item, id=f"{stem}-{counts[stem]:02d}"))
    return numbered


def revisions(items: list[Item], stories: list[Story], rng: random.Random) -> Iterator[Item]:
    by_slug = {story.slug: story for story in stories if story.fixes}
    for item in items:
        story = by_slug.get(item.cluster)
        if story is None or item.variant != "original":
            continue
        published = item.published + timedelta(minutes=rng.randint(70, 200))
        text = f"{apply_swaps(story.text, story.fixes)}\n\n{story.added}"
        yield replace(
            item,
            variant="revision",
            title=f"UPDATE: {item.title}",
            text=text,
            published=published,
            arrives=arrival(published, rng),
        )


def redeliveries(items: list[Item], revised: set[str], rng: random.Random) -> Iterator[Item]:
    candidates = [item for item in items if item.id not in revised]
    for item in rng.sample(candidates, REDELIVERIES):
        again = item.arrives + timedelta(seconds=rng.randint(240, 1500))
        yield replace(item, variant="redelivery", arrives=again)


def build_feed(rng: random.Random) -> list[Item]:
    """All items in order of arrival."""
    stories = [parse_story(*block) for block in blocks(SAMPLE / "stories.txt")]
    stories.sort(key=lambda story: (story.when, story.slug))
    outlets = read_outlets()
    items = [*story_items(stories, outlets, rng), *flash_items(outlets["en"], rng)]
    items = number_items([link_related(item, stories, rng) for item in items])
    updates = list(revisions(items, stories, rng))
    again = list(redeliveries(items, {item.id for item in updates}, rng))
    return sorted([*items, *updates, *again], key=lambda item: (item.arrives, item.id))


def feed_line(item: Item) -> str:
    record = {
        "id": item.id,
        "title": item.title,
        "text": item.text,
        "published": f"{item.published:%Y-%m-%dT%H:%M:%SZ}",
        "source": item.outlet.name,
    }
    return json.dumps(record, ensure_ascii=False)


def truth_lines(items: list[Item]) -> list[str]:
    clusters = {item.id: item.cluster for item in items}
    return [json.dumps({"id": key, "cluster": value}) for key, value in clusters.items()]


def write_lines(path: Path, lines: list[str]) -> None:
    path.write_bytes(("\n".join(lines) + "\n").encode("utf-8"))


def main(argv: list[str]) -> None:
    out = Path(argv[1]) if len(argv) > 1 else SAMPLE
    items = build_feed(random.Random(SEED))
    write_lines(out / "feed.jsonl", [feed_line(item) for item in items])
    write_lines(out / "truth.jsonl", truth_lines(items))
    write_lines(out / "junk.jsonl", list(JUNK))
    counts = Counter(item.variant for item in items)
    for variant, meaning in VARIANTS.items():
        print(f"{counts[variant]:4} {variant:12} {meaning}")
    print(f"{len(items):4} lines")


if __name__ == "__main__":
    main(sys.argv)
