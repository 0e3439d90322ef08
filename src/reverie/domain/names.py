"""How names of topics, entities and the like are compared and shown."""

from unicodedata import normalize


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
_AROUND_NAMES = ".,;:!?()[]{}<>\"'`*_\u2018\u2019\u201c\u201d\u2026\u2013\u2014"


def name_forms(text: str) -> list[str]:
    """The normal forms of what in a text could be a name: each run of one to four words, without signs at its ends.

    A run that ends in the English "'s" is there without it too. Of a long text its first 2,000 words.
    """
    words = text.split(None, _WORDS_LOOKED_AT)[:_WORDS_LOOKED_AT]
    forms: dict[str, None] = {}
    for start in range(len(words)):
        for end in range(start + 1, min(start + _LONGEST_NAME, len(words)) + 1):
            form = normal_form(" ".join(words[start:end]).strip(_AROUND_NAMES))
            for one in (form, form.removesuffix("'s").removesuffix("\u2019s")):
                if one:
                    forms[one] = None
    return list(forms)
