"""How names of topics, entities and the like are compared and shown."""

from collections.abc import Iterator
from unicodedata import normalize

import regex


def display_name(name: str) -> str:
    """The name as it is shown: stripped, each run of inner blanks one space."""
    return " ".join(name.split())


def part_form(part: str) -> str:
    """The form of a part of a name: as `normal_form`, but blanks at its ends count, each run as one.

    "new " begins "New York" and doesn't begin "Newton".
    """
    form = normal_form(part)
    # as they are written: NFKC makes a blank with a mark of a spacing accent
    before, after = part[:1].isspace(), part[-1:].isspace()
    return f"{' ' * before}{form}{' ' * after}" if form else ""


def normal_form(name: str) -> str:
    """The form under which two names are the same: NFKC, casefold, inner blanks collapsed, stripped.

    Idempotent. Normalised before the folding, so that equivalent spellings fold alike, and after it, as folding takes
    some letters apart (ΐ becomes three characters).
    """
    return display_name(normalize("NFKC", normalize("NFKC", name).casefold()))


_LONGEST_NAME = 4
_WORDS_LOOKED_AT = 2_000
_AROUND = r"(?V1)[\p{P}`--[#@&%/\\\-]]+"
_BEFORE_NAMES, _AFTER_NAMES = regex.compile(rf"^{_AROUND}"), regex.compile(rf"{_AROUND}$")
"""Signs that stand around names in a text; C#, R&D and -f keep theirs."""


def name_forms(text: str) -> Iterator[str]:
    """The normal forms of what in a text could be a name, each once: each run of one to four words.

    A run is there as it stands, without the signs at its end, without those around it, and without the English "'s" at
    its end. Of a long text its first 2,000 words.
    """
    words = text.split(None, _WORDS_LOOKED_AT)[:_WORDS_LOOKED_AT]
    seen: set[str] = set()
    for start in range(len(words)):
        for end in range(start + 1, min(start + _LONGEST_NAME, len(words)) + 1):
            run = normal_form(" ".join(words[start:end]))
            ended = _AFTER_NAMES.sub("", run)
            bare = _BEFORE_NAMES.sub("", ended)
            for form in (run, ended, bare, bare.removesuffix("'s").removesuffix("\u2019s")):
                if form and form not in seen:
                    seen.add(form)
                    yield form
