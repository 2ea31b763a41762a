"""The compiled kernel says of every text what the plain-Python reference says, and what a reader
would say of its language."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from reference import (
    Reference,
    ReferenceShingler,
    assigned,
    characters_of,
    hash_token,
    tokens_of,
)

from streamdedup.text.folding import MOST_FOLDED_BYTES, PADDING
from streamdedup.text.kernel import MODE_STOP, MODE_UNSPACED, MODE_WORD
from streamdedup.text.normal import APOSTROPHES, normalise
from streamdedup.text.shingler import Shingler, ShingleSets
from streamdedup.text.stopwords import default_stop_table
from streamdedup.text.tables import TABLE_FILE, build_tables
from streamdedup.text.words import hash_word

# Characters that expand, compose, reorder, vanish, stand alone or separate.
TRICKY = (
    "aéßİıſΣςﬁﬃŉᾳǅΐＡ１Å℡½①㌖ﷺؐ가각각ㅏﾡカﾞｶゞは漢〇々ำกิ้ກຳက်"
    "\u0301\u0307\u0316\u0323\u0327\u0334\u0345\u093c\u094d\u05b0\u05bc\u064b\u0651\u3099\u20dd"
    "\u0915\u0958\u095c\ufb1d\ufb2a\u00a8\u037a\u1ffd\u0344\u0f73\u0f77\U0001d15e"
    "\u00ad\u200b\u200c\u200d\u2060\ufeff\ufe0f\u0640\u115f\u00a0\u3000\u2028"
    "'`´’‘ʼ′-–.,!?0 9٣५\t\n\x00😀\U000e0001"
)
LISTS = default_stop_table().lists
CHARACTERS = st.one_of(
    st.sampled_from(TRICKY),
    st.characters(max_codepoint=0x24F),
    st.characters(categories=("Mn", "Mc", "Me")).filter(assigned),
    st.characters(exclude_categories=("Cs", "Cn")).filter(assigned),
)
LOOSE = st.text(CHARACTERS, max_size=60)
WORDS = st.one_of(
    st.sampled_from(sorted(LISTS.words)),
    st.sampled_from(["the", "of", "minister", "Küche", "don’t", "o'", "東京", "ข่าว", "дом", "42"]),
    st.text(CHARACTERS, min_size=1, max_size=40),
)
PROSE = st.lists(WORDS, max_size=40).map(" ".join)
TEXTS = st.one_of(LOOSE, PROSE)


def result(sets: ShingleSets, article: int) -> Reference:
    extras = sets.extras[sets.starts[article] : sets.starts[article + 1]]
    return Reference(
        list(zip(sets.of(article).tolist(), extras.tolist(), strict=True)),
        int(sets.digests[article]),
        int(sets.modes[article]),
        int(sets.languages[article]),
    )


def results(shingler: Shingler, texts: list[str]) -> list[Reference]:
    sets = shingler.shingle(texts)
    return [result(sets, article) for article in range(len(texts))]


@settings(max_examples=300)
@given(st.lists(TEXTS, max_size=6))
def test_stop_word_shingles_of_a_batch_are_those_of_the_reference(texts: list[str]) -> None:
    reference = ReferenceShingler()
    assert results(Shingler(), texts) == [reference.shingle(text) for text in texts]


@settings(max_examples=300)
@given(
    st.lists(TEXTS, max_size=4),
    st.sampled_from(["word", "char"]),
    st.integers(1, 12),
    st.booleans(),
)
def test_k_shingles_are_those_of_the_reference(
    texts: list[str], unit: str, k: int, bag: bool
) -> None:
    reference = ReferenceShingler(unit=unit, k=k, bag=bag)
    got = results(Shingler(unit=unit, k=k, bag=bag), texts)
    assert got == [reference.shingle(text) for text in texts]


@settings(max_examples=100)
@given(st.text("ab ", max_size=200), st.integers(1, 3), st.sampled_from(["word", "char"]))
def test_a_bag_of_many_repeats_is_that_of_the_reference(text: str, k: int, unit: str) -> None:
    reference = ReferenceShingler(unit=unit, k=k, bag=True)
    assert results(Shingler(unit=unit, k=k, bag=True), [text]) == [reference.shingle(text)]


@settings(max_examples=60)
@given(PROSE, st.sampled_from([0.0, 0.05, 0.3, 0.5, 1.0]))
def test_the_share_of_stop_words_decides_as_in_the_reference(text: str, share: float) -> None:
    reference = ReferenceShingler(stop_share=share)
    assert results(Shingler(stop_share=share), [text]) == [reference.shingle(text)]


@pytest.mark.parametrize("words", [300, 3_000, 70_000])
def test_long_texts_are_those_of_the_reference(words: int) -> None:
    random = np.random.default_rng(words)
    vocabulary = ["the", "of", "and", *(f"w{number}é" for number in range(words // 3))]
    text = " ".join(random.choice(vocabulary, words).tolist()) + " " + "x" * 200
    assert results(Shingler(), [text]) == [ReferenceShingler().shingle(text)]


@settings(max_examples=100)
@given(st.lists(TEXTS, min_size=1, max_size=8), st.data())
def test_a_batch_may_be_split_anywhere(texts: list[str], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(texts)))
    shingler = Shingler()
    apart = results(shingler, texts[:cut]) + results(shingler, texts[cut:])
    assert results(shingler, texts) == apart


@settings(max_examples=500)
@given(LOOSE)
def test_normalising_twice_changes_nothing_more(text: str) -> None:
    once = normalise(text)
    assert normalise(once) == once


def test_every_character_alone_normalises_once_and_for_all() -> None:
    for point in range(0x110000):
        once = normalise(chr(point))
        if once != chr(point):
            assert normalise(once) == once, hex(point)


@settings(max_examples=300)
@given(LOOSE)
@example("a\u1ffdb")  # decomposes into an acute accent standing alone, one of the apostrophes
def test_canonically_equal_texts_have_equal_shingles(text: str) -> None:
    forms = [text, *(unicodedata.normalize(form, text) for form in ("NFC", "NFD"))]
    shingler = Shingler(unit="char", k=2)
    first, *others = results(shingler, forms)
    assert all(other == first for other in others)


# Marks that neither compose nor stand out of order behind one another: only the order of the
# marks inside an expansion shows that these pairs must not be folded one by one.
@pytest.mark.parametrize("first", "\u0958\u095c\ufb1d\ufb2a\u00a8\u037a\U0001d15e")
@pytest.mark.parametrize("mark", "\u0316\u0334\u05b0\u05b1\u0321")
def test_marks_behind_an_expansion_take_their_canonical_place(first: str, mark: str) -> None:
    text = f"x{first}{mark}y"
    for unit in ("word", "char"):
        reference = ReferenceShingler(unit=unit, k=1).shingle(text)
        assert results(Shingler(unit=unit, k=1), [text]) == [reference]


PLAIN = "It's the minister's co-operation that wasn't expected at a café in Zürich 2026"


@pytest.mark.parametrize(
    "variant",
    [
        *(PLAIN.replace("'", apostrophe) for apostrophe in APOSTROPHES),
        PLAIN.replace("minister", "min\u00adis\u00adter"),
        PLAIN.replace("minister", "mini\u200dster").replace("expected", "exp\u200bec\u2060ted"),
        PLAIN.replace(" ", "\u00a0"),
        PLAIN.replace(" ", " \u2003\n"),
        "\ufeff" + PLAIN,
        unicodedata.normalize("NFD", PLAIN),
        PLAIN.upper(),
        "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in PLAIN),
        PLAIN.replace("-", "–"),
        f"“{PLAIN}”.",
        PLAIN.replace("café", "cafe\u200d\u0301"),
    ],
)
def test_typography_does_not_change_the_shingles(variant: str) -> None:
    plain, other = results(Shingler(), [PLAIN, variant])
    assert len(plain.shingles) > 3
    assert other == plain


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Rock 'n' roll", ["rock", "n", "roll"]),
        ("the players' o'clock", ["the", "players", "o'clock"]),
        ("a''b 'tis l’été", ["a", "b", "tis", "l'été"]),
        ("3.5 x2 1'000", ["3", "5", "x2", "1'000"]),
        ("Ｔｏｋｙｏ東京tower", ["tokyo", "東", "京", "tower"]),
        ("がか\u3099ｶﾞ", ["が", "が", "ガ"]),
        ("กิ้น", ["กิ้", "น"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("ﬁne Straße ǅ", ["fine", "strasse", "dž"]),
        ("", []),
        ("!? — …", []),
    ],
)
def test_tokens_are_words_and_single_characters_of_unspaced_scripts(
    text: str, tokens: list[str]
) -> None:
    assert tokens_of(normalise(text)) == tokens
    words = results(Shingler(unit="word", k=1), [text])
    assert words == [ReferenceShingler(unit="word", k=1).shingle(" ".join(tokens))]


def test_characters_are_one_space_apart_where_anything_separates() -> None:
    assert "".join(characters_of(normalise("  Don’t -- stop!\n"))) == "don't stop"


@pytest.mark.parametrize(
    "text", ["\ud800", "a\udfffb", "the \ud83d cat of the e\u0301 house \ude00"]
)
@pytest.mark.parametrize("unit", ["stop", "word", "char"])
def test_half_a_surrogate_pair_separates_and_does_no_harm(text: str, unit: str) -> None:
    replaced = text.encode("utf-8", "replace").decode()
    first, second = results(Shingler(unit=unit), [text, replaced])
    assert first == second == ReferenceShingler(unit=unit).shingle(text)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("قَالَ الرَّئِيسُ إِنَّ الجِسْرَ", "قال الرئيس إن الجسر"),  # with and without vowel signs
        ("گفت كه اين پل مي‌شود", "گفت که این پل میشود"),  # Arabic and Persian letters
        ("הַגֶּשֶׁר נִסְגָּר", "הגשר נסגר"),  # with and without points
        ("BAKANLIK KIYI YOLUNU AÇTI", "bakanlık kıyı yolunu açtı"),  # the capital of the dotless i
        ("İSTANBUL’DA YAĞMUR", "İstanbul'da yağmur"),
    ],
)
def test_one_word_is_one_word_however_it_is_typed(one: str, other: str) -> None:
    assert tokens_of(normalise(one)) == tokens_of(normalise(other))
    for unit in ("word", "char"):
        sets = Shingler(unit=unit, k=1).shingle([one, other])
        assert sets.digests[0] == sets.digests[1]
        assert sets.of(0).tolist() == sets.of(1).tolist()


def test_no_text_and_empty_texts_have_no_shingles() -> None:
    assert len(Shingler().shingle([]).starts) == 1
    sets = Shingler().shingle(["", "…", "a"])
    assert sets.starts.tolist() == [0, 0, 0, 0]
    assert sets.digests[0] == sets.digests[1] != sets.digests[2]


@pytest.mark.skipif(unicodedata.unidata_version != "14.0.0", reason="tables are of Unicode 14")
def test_the_shipped_tables_are_what_the_definition_gives() -> None:
    with np.load(TABLE_FILE, allow_pickle=False) as shipped:
        for name, built in build_tables().items():
            assert np.array_equal(shipped[name], built), name


NEWS = {
    "en": "The mayor said on Monday that the bridge would be closed for a week after the flood.",
    "de": "Der Bürgermeister sagte am Montag, dass die Brücke nach dem Hochwasser gesperrt wird.",
    "nl": "De burgemeester zei maandag dat de brug na de overstroming een week dicht blijft.",
    "sv": "Borgmästaren sade på måndagen att bron ska vara stängd en vecka efter översvämningen.",
    "da": "Borgmesteren sagde mandag, at broen skal være lukket i en uge efter oversvømmelsen.",
    "is": "Borgarstjórinn sagði á mánudag að brúin yrði lokuð í viku eftir flóðið við ána.",
    "fr": "Le maire a déclaré lundi que le pont serait fermé pendant une semaine après la crue.",
    "es": "El alcalde dijo el lunes que el puente estará cerrado una semana por la inundación.",
    "ca": "L'alcalde va dir dilluns que el pont estarà tancat amb motiu de les pluges "
    "d'aquest mes.",
    "pt": "O prefeito disse na segunda-feira que a ponte não será aberta após as cheias do rio.",
    "it": "Il sindaco ha detto lunedì che il ponte sarà chiuso per una settimana dopo la piena.",
    "ro": "Primarul a spus luni că podul va fi închis timp de o săptămână după "
    "inundațiile din oraș.",
    "el": "Ο δήμαρχος είπε τη Δευτέρα ότι η γέφυρα θα μείνει κλειστή για μία εβδομάδα.",
    "sq": "Kryetari i bashkisë tha të hënën se ura do të mbyllet për një javë pas përmbytjes.",
    "pl": "Burmistrz powiedział w poniedziałek, że most będzie zamknięty przez tydzień po powodzi.",
    "cs": "Starosta v pondělí řekl, že most bude po povodni na týden uzavřen, protože je to nutné.",
    "hr": "Gradonačelnik je u ponedjeljak rekao da će most biti zatvoren nakon poplave "
    "koja je bila.",
    "bg": "Кметът каза в понеделник, че мостът ще бъде затворен за една седмица след наводнението.",
    "ru": "Мэр заявил в понедельник, что мост будет закрыт на неделю, но это не повлияет на город.",
    "uk": "Мер заявив у понеділок, що міст буде закритий на тиждень після повені, яка "
    "була в місті.",
    "lt": "Meras pirmadienį sakė, kad tiltas bus uždarytas savaitei, nes po potvynio "
    "jis yra pavojingas.",
    "lv": "Mērs pirmdien teica, ka tilts pēc plūdiem būs slēgts un ka tas ir bīstams arī gājējiem.",
    "fi": "Pormestari sanoi maanantaina, että silta on viikon kiinni, koska se ei ole "
    "enää turvallinen.",
    "et": "Linnapea ütles esmaspäeval, et sild on nädala suletud, sest see ei ole enam ohutu.",
    "hu": "A polgármester hétfőn azt mondta, hogy a híd egy hétig zárva lesz az árvíz után.",
    "tr": "Belediye başkanı pazartesi günü köprünün sel nedeniyle bir hafta kapalı "
    "kalacağını ve bu "
    "süre için yeni bir yol açılacağını söyledi.",
    "ar": "قال رئيس البلدية يوم الاثنين إن الجسر سوف يغلق لمدة أسبوع بعد الفيضان الذي "
    "وقع في المدينة.",
    "fa": "شهردار روز دوشنبه گفت که این پل پس از سیل به مدت یک هفته برای مردم بسته خواهد بود.",
    "ur": "میئر نے پیر کو کہا کہ سیلاب کے بعد پل ایک ہفتے کے لیے بند رہے گا اور یہ سڑک بھی بند ہے۔",
    "he": "ראש העיר אמר ביום שני כי הגשר יהיה סגור במשך שבוע לאחר השיטפון, אבל לא של הרכבת.",
    "hi": "महापौर ने सोमवार को कहा कि बाढ़ के बाद पुल एक सप्ताह के लिए बंद रहेगा और यह सुरक्षित नहीं है।",
    "mr": "महापौरांनी सोमवारी सांगितले की पुरानंतर हा पूल एक आठवडा बंद राहील आणि तो सुरक्षित नाही.",
    "bn": "মেয়র সোমবার বলেন যে বন্যার পর এই সেতু এক সপ্তাহ বন্ধ থাকবে এবং এটি নিরাপদ নয়।",
    "id": "Wali kota mengatakan pada Senin bahwa jembatan itu akan ditutup selama "
    "sepekan untuk umum.",
    "vi": "Thị trưởng nói hôm thứ Hai rằng cây cầu sẽ bị đóng cửa trong một tuần vì nó "
    "không an toàn.",
    "ko": "시장은 월요일 홍수로 인해 다리가 일주일 동안 폐쇄될 것이라고 말했다. 그러나 "
    "이 도로는 그 후 다시 열릴 수 있다.",
    "sw": "Meya alisema siku ya Jumatatu kwamba daraja hilo litafungwa kwa wiki moja "
    "baada ya mafuriko.",
}


@pytest.mark.parametrize("language", NEWS)
def test_a_sentence_of_news_is_cut_by_the_stop_words_of_its_language(language: str) -> None:
    sets = Shingler().shingle([NEWS[language]])
    assert language in LISTS.groups[sets.languages[0]].split()
    assert sets.modes[0] == MODE_STOP


@pytest.mark.parametrize(
    "text",
    [
        "市长星期一表示，由于洪水，这座桥将关闭一周。",
        "市長は月曜日、洪水のため橋を一週間閉鎖すると発表した。",
        "นายกเทศมนตรีกล่าวเมื่อวันจันทร์ว่าสะพานจะปิดหนึ่งสัปดาห์",
    ],
)
def test_scripts_without_spaces_are_cut_by_characters(text: str) -> None:
    assert Shingler().shingle([text]).modes.tolist() == [MODE_UNSPACED]


def test_a_table_of_numbers_falls_back_to_all_words() -> None:
    table = "\n".join(f"{year} {year * 7 % 311} {year * 13 % 977},5" for year in range(1990, 2020))
    sets = Shingler().shingle([table])
    assert sets.modes.tolist() == [MODE_WORD]
    assert len(sets.of(0)) > 50


def test_every_stop_word_is_one_normalised_token() -> None:
    odd = [word for word in LISTS.words if normalise(word) != word or tokens_of(word) != [word]]
    assert odd == []


def test_every_stop_word_is_found_under_the_hash_that_the_kernel_gives_it() -> None:
    words = sorted(LISTS.words)
    sets = Shingler(unit="word", k=1).shingle(words)
    assert np.all(np.diff(sets.starts) == 1)
    mask_of = {int(key): int(mask) for key, mask in default_stop_table().slots if mask}
    for word in words:
        padded = np.frombuffer(word.encode() + bytes(PADDING), np.uint8)
        assert int(hash_word(padded)) == hash_token(word)
        assert mask_of[hash_token(word)] == LISTS.words[word]


def test_no_character_folds_to_more_bytes_than_the_kernel_has_room_for() -> None:
    characters = (chr(point) for point in range(0x110000) if not 0xD800 <= point < 0xE000)
    grown = max(len(normalise(c).encode()) / len(c.encode()) for c in characters)
    assert grown <= MOST_FOLDED_BYTES
