"""How names of topics, entities and the like are compared and shown."""

from unicodedata import normalize


def display_name(name: str) -> str:
    """The name as it is shown: stripped, each run of inner blanks one space."""
    return " ".join(name.split())


def normal_form(name: str) -> str:
    """The form under which two names are the same: NFKC, casefold, inner blanks collapsed, stripped.

    Idempotent. Normalised before the folding, so that equivalent spellings fold alike, and after it, as folding takes
    some letters apart (ΐ becomes three characters).
    """
    return display_name(normalize("NFKC", normalize("NFKC", name).casefold()))
