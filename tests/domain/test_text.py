import sys
from concurrent.futures import ThreadPoolExecutor
from unicodedata import normalize

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from reverie.domain.text import (
    LONGEST_WORD,
    MOST_CLAUSES,
    highlights,
    index_text,
    keyword_query,
    keywords,
    query_words,
    words,
)

UUID = "550e8400-e29b-41d4-a716-446655440000"
WORD = regex.compile(r"[\p{L}\p{M}\p{N}_.]+")

# Any text, and text full of what the analysis looks at.
texts = st.one_of(
    st.text(),
    st.text(st.sampled_from("aAbZsé1٣_-./:@+#'\u2019&? \n,漢字かガ한กิ👍🇩\u0301\u200d\u00ad")),
    st.lists(
        st.sampled_from(["Invoice", "the", "getUserById", "v1.2.3", "AND", "it's", "東京都", "C++", UUID, "a.b@c.de"])
    ).map(" ".join),
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("The meetings were running late.", ["the", "meet", "were", "run", "late"]),
        ("café CAFÉ cafe\u0301s", ["cafe", "cafe", "cafe"]),
        ("Müller ŁÓDŹ Straße Ærø", ["muller", "lodz", "strass", "aero"]),
        ("ΆΛΦΑ άλφα", ["αλφα", "αλφα"]),
        ("ёлка йод", ["елка", "йод"]),
        ("\u0623\u062d\u0645\u064e\u062f", ["\u0627\u062d\u0645\u062f"]),
        ("हिन्दी", ["हिन्दी"]),
        ("\uff25\uff23\uff2f\uff2e\uff2e \uff12\uff10\uff12\uff14 ٢٠٢٤", ["econn", "2024", "2024"]),
        ("re\u00adport zero\u200bwidth", ["report", "zero", "width"]),
        # apostrophes
        ("the user's users\u2019 data", ["the", "user", "user", "data"]),
        ("don't I'd she'll", ["dont", "i", "she"]),
        ("O'Brien l'homme", ["obrien", "o", "brien", "lhomm", "l", "homm"]),
        # identifiers: the whole and its parts
        ("ECONNREFUSED", ["econnrefus"]),
        ("getUserById", ["getuserbyid", "get", "user", "by", "id"]),
        ("snake_case_name", ["snakecasenam", "snake", "case", "name"]),
        ("kebab-case", ["kebabcas", "kebab", "case"]),
        ("__init__ _ __", ["init"]),
        ("HTTPServer userIDs APIs sha256Sum", ["httpserver", "http", "server", "userid", "user", "id", "api",
                                               "sha256sum", "sha256", "sum"]),
        ("v1.2.3", ["v1.2.3", "1.2.3", "v1", "2", "3"]),
        ("1.23 12.3", ["1.23", "1", "23", "12.3", "12", "3"]),
        ("1,000,000 1,2", ["1000000", "1", "2"]),
        ("2024-01-15 10:30", ["2024_01_15", "2024", "01", "15", "10_30", "10", "30"]),
        (UUID, ["550e8400e29b41d4a716446655440000", "550e8400", "e29b", "41d4", "a716", "446655440000"]),
        ("ann.lee@example.com", ["annlee_examplecom", "annle", "ann", "lee", "examplecom", "exampl", "com"]),
        ("/src/api/text.py:12", ["src_api_textpy_12", "src", "api", "textpi", "text", "py", "12"]),
        (r"C:\Users\ann", ["c_users_ann", "c", "user", "ann"]),
        ("https://x.org/?q=1", ["https_xorg_q_1", "https", "xorg", "x", "org", "q", "1"]),
        ("--data-dir=/tmp", ["datadir_tmp", "datadir", "data", "dir", "tmp"]),
        ("C++ C# C++17", ["c", "c_2b2b", "c", "c_23", "c_17", "c", "17", "c_2b2b"]),
        ("R&D U.S.A.", ["r_d", "r", "d", "usa", "u", "s", "a"]),
        ("wait...what this--that", ["wait", "what", "this", "that"]),
        # no blanks between words
        ("東京都", ["東", "東京", "京", "京都", "都"]),
        ("猫", ["猫"]),
        ("ｶﾞｷﾞ", ["ガギ"]),
        ("회의에서", ["회", "회의", "의", "의에", "에", "에서", "서"]),
        ("2024年iPhone用", ["2024", "年", "iphon", "i", "phone", "用"]),
        ("สวัสดี", ["สวั", "วัส", "สดี"]),
        ("๒๐๒๔", ["2024"]),
        # emoji
        ("👍🏽 👩\u200d💻 🇩🇪 ❤\ufe0f 1\ufe0f\u20e3", ["_1f44d", "_1f469", "_1f4bb", "_1f1e9_1f1ea", "_2764", "1"]),
        ("done👍", ["done", "_1f44d"]),
        # signs, and what is no text
        ('+ - && || ! ( ) { } [ ] ^ " ~ * ? : \\ / \u00b4 ¨ \u0301 € — …', []),
        ("\ud800 a\x00b \ue000", ["a", "b"]),
    ],
)  # fmt: skip
def test_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(
    ("text", "queries"),
    [
        (
            "calls getUserById twice",
            ["user", "getUserById", "getuserbyid", "get_user_by_id", "GETUSERBYID", "get-user"],
        ),
        ("set data_dir", ["--data-dir", "dataDir", "DATA_DIR", "datadir"]),
        ("Error: connect ECONNREFUSED 127.0.0.1:5432", ["ECONNREFUSED", "econnrefused", "127.0.0.1", "5432"]),
        (f"order {UUID} failed", [UUID, UUID.upper(), UUID.replace("-", ""), "550e8400"]),
        ("mail ann.lee@example.com", ["ann.lee@example.com", "example.com", "lee", "ANN.LEE@EXAMPLE.COM"]),
        ("see src/reverie/domain/text.py", ["text.py", "domain/text.py", "src/reverie/domain/text.py", "domain"]),
        ("at https://example.com/docs/start/", ["https://example.com/docs/start", "example.com", "docs/start"]),
        ("upgraded to v1.2.3.", ["v1.2.3", "1.2.3", "V1.2.3"]),
        ("Deployments failed", ["deployment", "deploying", "failure failing"]),
        ("the naïve Zoë", ["naive", "zoe", "ZOË"]),
        ("我们在东京开会", ["东京", "会", "开会"]),
        ("回覧板にメモを貼った", ["メモ", "板"]),
        ("회의에서 결정했다", ["회의", "결정"]),
        ("Wir wohnen in der Hauptstraße", ["HAUPTSTRASSE", "hauptstrasse"]),
        ("thanks 👍🏽", ["👍", "👍🏿"]),
        ("knows C++ and C#", ["C++", "c#"]),
    ],
)
def test_found_by(text: str, queries: list[str]) -> None:
    indexed = set(words(text))
    for query in queries:
        assert indexed & set(query_words(query)), query


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("version 1.23", "12.3"),
        ("tea at ten", "C++"),
        ("か", "が"),
        ("plain C code", "C++"),
        ("東京", "京都"),
        ("1.2", "1.2.3"),
    ],
)
def test_wholes_are_kept_apart(text: str, query: str) -> None:
    assert query_words(query)[-1] not in words(text)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", []),
        ("?!+-&&||(){}[]^\"~*:\\/", []),
        ("What did we decide about the invoices?", ["decid", "invoic"]),
        ("to be or not to be", ["to", "be", "or", "not"]),
        ("deploy deploys deployed", ["deploy"]),
        ("foo AND bar OR NOT baz", ["foo", "bar", "baz"]),
        ("who works for WHO in the US?", ["who", "work", "us"]),
        ("WHO IS IN THE US", ["who", "is", "in", "the", "us"]),
        ("WHERE IS THE BUG", ["bug"]),
        ("state-of-the-art", ["stateoftheart", "state", "art"]),
        ("東京都", ["東京", "京都"]),
        ("京", ["京"]),
        ("the 👍", ["_1f44d"]),
    ],
)  # fmt: skip
def test_query_words(query: str, expected: list[str]) -> None:
    assert query_words(query) == expected


@pytest.mark.parametrize(
    ("most", "expected"),
    [
        (0, []),
        (1, ["getuserbyid"]),
        (2, ["pg5432", "getuserbyid"]),
        (3, ["berlin", "pg5432", "getuserbyid"]),
        (4, ["berlin", "pg5432", "getuserbyid", "configur"]),
        (5, ["berlin", "pg5432", "call", "getuserbyid", "configur"]),
    ],
)
def test_the_most_telling_words_are_kept(most: int, expected: list[str]) -> None:
    assert query_words("cat in Berlin saw pg5432 call getUserById, a configuration", most) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("who are you, and what is it?", []),
        ("A tab, two tabs; the TABS of indentation", ["tab", "indentation", "two"]),
        ("It fails with ECONNREFUSED in src/user_names.py", ["src/user_names.py", "econnrefused", "fails"]),
        ("In 2024, 3.14 of 7", []),
        ("設定を変更", ["設定", "定を", "を変", "変更"]),
        ("x y " + "z" * (LONGEST_WORD + 1), []),
    ],
)
def test_keywords(text: str, expected: list[str]) -> None:
    assert keywords(text, 10) == expected
    assert keywords(text, 1) == expected[:1]


@given(texts, st.integers(0, 5))
def test_keywords_are_words_of_the_text(text: str, most: int) -> None:
    found = keywords(text, most)

    assert len(found) == len(set(found)) <= most
    assert all(any(map(str.isalpha, word)) and 1 < len(word) <= LONGEST_WORD for word in found)
    assert found == keywords(text, 1000)[:most]


def test_long_queries_are_cut() -> None:
    query = " ".join(f"word{n}x" for n in range(5000))

    assert len(query_words(query)) == 64
    assert query_words(query) == query_words(query)


def test_index_text() -> None:
    assert (
        index_text("Invoices, an invoice; user_id", "17m") == "17m_invoic 17m_an 17m_invoic 17m_userid 17m_user 17m_id"
    )
    assert index_text("!!!", "17m") == ""


@pytest.mark.parametrize("prefix", ["", "17 m", "17_m", "17*", "é", "a\n"])
def test_prefixes_are_letters_and_digits(prefix: str) -> None:
    with pytest.raises(ValueError, match="prefix"):
        index_text("a", prefix)
    with pytest.raises(ValueError, match="prefix"):
        keyword_query(["a"], ["17m", prefix])


def test_keyword_query() -> None:
    assert keyword_query(["invoic", "refund"], ["17m", "17f"]) == "17m_invoic 17f_invoic 17m_refund 17f_refund"
    assert keyword_query([], ["17m"]) == ""
    assert keyword_query(["invoic"], []) == ""


@pytest.mark.parametrize("word", ["", "a b", "a*", "a:b", "(a", 'a"', "a\\", "a/b", "a~1", "a^2", "a-b"])
def test_keyword_query_refuses_what_is_no_word(word: str) -> None:
    with pytest.raises(ValueError, match="not a word"):
        keyword_query(["ok", word], ["17m"])


RARE = regex.compile(r"(?V1)[\p{Nd}[[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}]--[\p{L}]]]")
"""Digits, some newer than this Python's tables, and signs of East Asian scripts that are no letters."""


def test_rare_signs_are_written_and_asked_for() -> None:
    for sign in filter(RARE.match, map(chr, range(sys.maxunicode + 1))):
        for text in (f"a{sign}", f"{sign}\u4e00", sign):
            assert all(word.startswith("7m_") for word in index_text(text, "7m").split(" ") if word)
            assert keyword_query(query_words(text), ["7m"]).count("7m_") == len(query_words(text))


def test_keyword_query_is_bounded() -> None:
    many = [f"w{n}" for n in range(5000)]

    assert keyword_query(many, ["1m"]).split() == [f"1m_w{n}" for n in range(MOST_CLAUSES)]
    assert keyword_query(many, ["1m", "1f", "1e"]).split()[:4] == ["1m_w0", "1f_w0", "1e_w0", "1m_w1"]
    assert len(keyword_query(many, [f"{n}m" for n in range(5000)]).split()) == MOST_CLAUSES


@pytest.mark.parametrize(
    "text", ["x" * 100_000, "ab1" * 50, "a." * 500, "é" * 65, "https://example.com/" + "path/" * 40]
)
def test_long_words_are_bounded_and_kept_apart(text: str) -> None:
    (whole, *_), (other, *_) = words(text), words(text[:-1] + "q")

    assert len(whole) == LONGEST_WORD
    assert whole != other
    assert whole in words(f"before ({text}), after")
    assert whole in query_words(text.upper())


@settings(deadline=None)
@given(texts)
def test_words_are_safe(text: str) -> None:
    for word in words(text):
        assert WORD.fullmatch(word)
        assert len(word) <= LONGEST_WORD
    indexed = index_text(text, "17m")
    assert indexed.split() == indexed.split(" ") if indexed else words(text) == []
    assert regex.search(r"[^\p{L}\p{M}\p{N}_. ]", indexed) is None


@settings(deadline=None)
@given(texts)
def test_equivalent_texts_have_the_same_words(text: str) -> None:
    expected = words(text)

    assert words(normalize("NFD", text)) == expected
    assert words(normalize("NFC", text)) == expected
    assert words(normalize("NFKC", text)) == expected


@settings(deadline=None)
@given(texts, texts)
def test_blanks_separate(one: str, other: str) -> None:
    assert words(f"{one} {other}") == words(one) + words(other)


@settings(deadline=None)
@given(texts, st.integers(0, 8))
def test_a_text_is_found_by_itself(text: str, most: int) -> None:
    asked = query_words(text)

    assert len(set(asked)) == len(asked)
    assert bool(asked) == bool(words(text))
    if text != text.upper():
        assert set(asked) <= set(words(text))
    fewer = query_words(text, most)
    assert len(fewer) == min(most, len(asked))
    assert [word for word in asked if word in set(fewer)] == fewer
    assert len(keyword_query(asked, ["1m", "1f"]).split()) == 2 * len(asked)


def test_the_same_from_many_threads() -> None:
    text = " ".join(f"conditionally{chr(97 + n % 26)}{chr(97 + n // 26)}ing meetings" for n in range(400))
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: words(text), range(8)))

    assert [result == words(text) for result in results] == [True] * 8


STORY = (
    "We met on Monday. The deployment of the billing service failed at noon, e.g. with ECONNREFUSED! "
    "Nobody knew why.\nAda restarted the billing database; the deployment went through. Lunch was late."
)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("ECONNREFUSED", ["The deployment of the billing service failed at noon, e.g. with ECONNREFUSED!"]),
        (
            "billing deployments",
            [
                "The deployment of the billing service failed at noon, e.g. with ECONNREFUSED!",
                "Ada restarted the billing database; the deployment went through.",
            ],
        ),
        ("lunches", ["Lunch was late."]),
        ("nothing", []),
        ("?", []),
    ],
)
def test_highlights(query: str, expected: list[str]) -> None:
    assert highlights(STORY, query_words(query)) == expected


def test_highlights_hold_most_words_and_keep_the_order() -> None:
    text = "Alpha here. Beta and alpha there. Alpha, beta, gamma. Gamma!"

    assert highlights(text, ["alpha", "beta", "gamma"], most=2) == ["Beta and alpha there.", "Alpha, beta, gamma."]
    assert highlights(text, ["alpha", "beta", "gamma"], most=0) == []
    assert highlights("alpha.\n" * 9 + "alpha beta", ["alpha"]) == ["alpha.", "alpha beta"]


def test_a_piece_of_a_long_word_is_no_match() -> None:
    assert highlights("0" * 241, ["0"]) == []


def test_highlights_of_long_sentences_are_windows_between_words() -> None:
    filler = [f"filler{n:03}" for n in range(400)]
    text = " ".join([*filler[:150], "needle", *filler[150:152], "haystack", *filler[152:], "needle"])

    first, last = highlights(text, query_words("needle haystack"), around=100)

    assert first in text
    assert set(first.split()) <= set(text.split())
    assert {"needle", "haystack", "filler149", "filler152"} <= set(first.split())
    assert last.endswith("filler399 needle")
    assert 80 <= len(last) <= 100


@pytest.mark.parametrize(
    ("text", "query", "held"),
    [
        ("這是一個很長的故事" * 40 + "我們在東京開會" + "然後大家都回家了" * 40, "東京", "東京"),
        ("がぎ" * 200 + "メモ" + "ぐげ" * 200, "メモ", "メモ"),
        ("https://example.com/" + "path/" * 90 + "needle/" + "path/" * 90, "needle", "needle"),
        ("x" * 500, "x" * 500, "x" * 240),
        ("한국어 문장 " * 60 + normalize("NFD", "회의에서") + " 한국어" * 60, "회의", "회의에서"),
        ("ก" + "\u0e34" * 500, "ก" + "\u0e34" * 500, "ก"),
        ("First one。" + "はい。" * 90 + "猫がいた。", "猫", "猫がいた。"),
    ],
)
def test_highlights_without_blanks(text: str, query: str, held: str) -> None:
    (found,) = highlights(text, query_words(query))

    assert held in found
    assert len(found) <= 240


@settings(deadline=None)
@given(texts, texts, st.integers(1, 4), st.integers(1, 60))
def test_highlights_are_bounded_passages(text: str, query: str, most: int, around: int) -> None:
    found = highlights(text, query_words(query), most, around)

    assert len(found) <= most
    assert len(set(found)) == len(found)
    for passage in found:
        assert passage
        assert len(passage) <= around
        assert passage in normalize("NFC", text)
    if not set(words(text)) & set(query_words(query)):
        assert found == []


@settings(deadline=None)
@given(texts)
def test_the_word_of_a_text_is_highlighted(text: str) -> None:
    asked = query_words(text.lower())

    assert bool(highlights(text.lower(), asked, around=10**6)) == bool(asked)
