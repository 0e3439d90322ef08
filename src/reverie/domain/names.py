"""How names of topics, entities and the like are compared and shown."""

from unicodedata import normalize


def display_name(name: str) -> str:
    """The name as it is shown: stripped, each run of inner blanks one space."""
    return " ".join(name.split())


def normal_form(name: str) -> str:
    """The form under which two names are the same: NFKC, casefold, inner blanks collapsed, stripped.

    Idempotent: the folding is repeated until it rests, since a folded text can fall out of NFKC and a normalised one
    can hold letters that fold again (Unicode Standard, chapter 3, D146 and D147).
    """
    form = display_name(name)
    while (folded := display_name(normalize("NFKC", form).casefold())) != form:
        form = folded
    return form
