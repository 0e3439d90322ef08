import sys
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.domain.names import display_name, name_forms, normal_form, part_form


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ada Lovelace", "  ada \t LOVELACE\n"),
        ("Straße", "STRASSE"),
        ("Zoe\u0308", "zo\u00eb"),
        ("\uff21\uff23\uff2d\uff25", "acme"),  # full width
        ("\ufb01le", "FILE"),  # ligature fi
        ("ΟΔΥΣΣΕΥΣ", "οδυσσευς"),
        ("New\u00a0York", "new\u3000york"),
        ("x\u00b2", "X2"),
        ("\uff8a\uff9f", "\u30d1"),  # half-width katakana pa
    ],
)
def test_same_name(one: str, other: str) -> None:
    assert normal_form(one) == normal_form(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("resume", "résumé"), ("3.1", "3.10"), ("new york", "newyork"), ("か", "が"), ("C", "C++"), ("и", "й")],
)
def test_other_name(one: str, other: str) -> None:
    assert normal_form(one) != normal_form(other)


@pytest.mark.parametrize(
    ("name", "form", "shown"),
    [
        ("  Ada \n Lovelace ", "ada lovelace", "Ada Lovelace"),
        ("", "", ""),
        (" \t\u3000", "", ""),
        ("\uff21da", "ada", "\uff21da"),
        ("\u0390", "\u0390", "\u0390"),  # its casefold is three characters
        ("GraphQL", "graphql", "GraphQL"),
    ],
)
def test_forms(name: str, form: str, shown: str) -> None:
    assert normal_form(name) == form
    assert display_name(name) == shown


def test_normal_form_of_every_character_rests() -> None:
    changed = [sign for sign in map(chr, range(sys.maxunicode + 1)) if normalize("NFKC", sign).casefold() != sign]
    assert len(changed) > 5000
    for sign in changed:
        once = normal_form(f"a{sign}\u0345 {sign}")
        assert normal_form(once) == once, hex(ord(sign))
        assert normalize("NFKC", once) == once, hex(ord(sign))


@given(
    st.text() | st.text(st.sampled_from("aI\u0130\u0131ß\u0390\u1fb7\u0345\u0301\u0308\ufb03\u00a8\u00a0 \uff21\u1e9e"))
)
def test_forms_rest(name: str) -> None:
    form, shown = normal_form(name), display_name(name)
    assert normal_form(form) == form
    assert display_name(shown) == shown
    assert normal_form(shown) == form
    assert normal_form(normalize("NFD", name)) == form
    assert form == " ".join(form.split())
    assert normalize("NFKC", form) == form
    assert normal_form(form.casefold()) == form


@pytest.mark.parametrize(
    ("part", "form"),
    [
        ("NEW", "new"),
        ("new ", "new "),
        ("new\u3000\t", "new "),
        (" York", " york"),
        ("\u00b4", "\u0301"),  # an accent on a blank of its own
        ("\uff2e\uff45\uff57", "new"),  # full width
        ("\u00a8", "\u0308"),  # a lone diaeresis, which NFKC puts on a blank
        ("", ""),
        (" \n", ""),
    ],
)
def test_part_of_a_name(part: str, form: str) -> None:
    assert part_form(part) == form


@given(st.text())
def test_a_name_begins_with_itself(name: str) -> None:
    assert normal_form(name) == part_form(name.strip()) == part_form(name).strip()


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        ("Ann's gate", ["ann's", "ann", "ann's gate", "gate"]),
        ("(Ann\u2019s!)", ["(ann\u2019s!)", "(ann\u2019s", "ann\u2019s", "ann"]),
        (
            "\u00abAnn Lee\u00bb",
            ["\u00abann", "ann", "\u00abann lee\u00bb", "\u00abann lee", "ann lee", "lee\u00bb", "lee"],
        ),
        ("'s", ["'s", "s"]),
        (".NET, C#!", [".net,", ".net", "net", ".net, c#!", ".net, c#", "net, c#", "c#!", "c#"]),
        (" ", []),
    ],
)
def test_what_could_be_names(text: str, forms: list[str]) -> None:
    assert list(name_forms(text)) == forms
