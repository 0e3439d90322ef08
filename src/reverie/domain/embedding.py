"""Which embedder a store is used with: chosen once, never switched in passing, never mixed."""

from dataclasses import dataclass
from typing import Literal

from reverie.errors import ConfigurationError

Provider = Literal["openai", "local", "none"]


@dataclass(frozen=True, slots=True)
class Choice:
    """What makes the vectors, and, where that is nothing, why: the end of a sentence, without its full stop."""

    provider: Provider
    note: str | None = None


def choose_embedder(
    wanted: str, *, recorded: str | None, empty: bool, names: dict[Provider, str], has_key: bool, no_local: str | None
) -> Choice:
    """Decides by the setting, the store's record and what this machine can run.

    `recorded` is what made the store's vectors, None while nothing has; `empty` says that the store holds nothing that
    a vector could be made of. `names` gives what each provider would record; `no_local` says why the local model can't
    run here, without a full stop, and is None if it can. Raises ConfigurationError for a wanted change of a store that
    is in use, with the command that makes it.
    """
    if wanted == "none":
        return Choice("none", "REVERIE_EMBEDDER is none")
    if wanted == "local" and no_local is not None:
        raise ConfigurationError(f"REVERIE_EMBEDDER is local, but: {no_local}")
    if recorded is None:
        return _first(wanted, empty=empty, names=names, has_key=has_key, no_local=no_local)
    chosen = next((provider for provider, name in names.items() if name == recorded), None)
    if wanted not in ("auto", chosen):
        raise ConfigurationError(
            f"this store's vectors were made by {recorded}, and REVERIE_EMBEDDER={wanted} would use "
            f"{_named(names, wanted)}; `reverie reembed` makes them anew"
        )
    if chosen is None:
        raise ConfigurationError(
            f"this store's vectors were made by {recorded}, which the settings don't name any more; set them as they "
            "were, or let `reverie reembed` make the vectors anew"
        )
    if chosen == "openai" and not has_key:
        return Choice("none", f"this store's vectors were made by {recorded}, but OPENAI_API_KEY is not set")
    if chosen == "local" and no_local is not None:
        return Choice("none", f"this store's vectors were made by {recorded}, but: {no_local}")
    return Choice(chosen)


def _first(wanted: str, *, empty: bool, names: dict[Provider, str], has_key: bool, no_local: str | None) -> Choice:
    """The choice for a store without vectors. Texts that were written without any aren't sent anywhere in passing."""
    if not empty and wanted == "auto":
        return Choice("none", "this store was filled without an embedder; `reverie reembed` makes its vectors")
    if not empty:
        raise ConfigurationError(
            f"this store was filled without an embedder, and REVERIE_EMBEDDER={wanted} would use "
            f"{_named(names, wanted)}; `reverie reembed` makes its vectors"
        )
    if wanted == "openai" or (wanted == "auto" and has_key):
        return Choice("openai")
    if no_local is None:
        return Choice("local")
    return Choice("none", no_local)


def _named(names: dict[Provider, str], wanted: str) -> str:
    return next((name for provider, name in names.items() if provider == wanted), wanted)


_RELATED_FROM = {"local": 0.95, "openai": 0.8}
"""By provider, the score from which two memories are related; models differ in how near all texts are to each other.

Measured for multilingual-e5-small over all 40,470 pairs of the demo's memories. Half of the pairs that share neither
conversation, topic nor entity score 0.911 or more, 99 % of them less than 0.939; half of the pairs that the story
itself relates score 0.933 or more. From 0.95 on there are 76 pairs, 5 of them (7 %) with nothing in common; from 0.94
on 569, 171 of them (30 %); from 0.955 on 31, none of them. OpenAI's figure is not measured.
"""


def related_from(embedder: str) -> float:
    """The score, (1 + cosine) / 2, from which two memories with this embedder's vectors are related for being alike."""
    return _RELATED_FROM.get(embedder.partition(":")[0], 0.9)
