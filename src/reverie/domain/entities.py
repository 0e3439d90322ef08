"""Entities: people, tools, projects and other things that memories mention, by name and type."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from reverie.domain.checks import Checks, Path
from reverie.domain.names import normal_form
from reverie.domain.unset import UNSET, Unset, given


class EntityType(StrEnum):
    PERSON = "PERSON"
    TOOL = "TOOL"
    PROJECT = "PROJECT"
    CONCEPT = "CONCEPT"
    ORGANIZATION = "ORGANIZATION"
    PLACE = "PLACE"


@dataclass(frozen=True, slots=True)
class Entity:
    """An entity as it stands; aliases are its further names."""

    id: str
    name: str
    type: EntityType
    aliases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RelatedEntity:
    """An entity at the other end of a RELATED_TO."""

    entity: Entity
    relation: str
    weight: float
    outgoing: bool


@dataclass(frozen=True, slots=True)
class EntityRef:
    """An entity by id, or by name; with a type, a name that nobody has is made, without one it must have one owner."""

    id: str | None = None
    name: str | None = None
    type: EntityType | None = None


@dataclass(frozen=True, slots=True)
class EntityDraft:
    """An entity as a caller wants it."""

    name: str
    type: EntityType
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityChange:
    """What of an entity is to change; what is UNSET keeps its value."""

    id: str
    name: str | Unset = UNSET
    type: EntityType | Unset = UNSET
    aliases: tuple[str, ...] | Unset = UNSET


def check_entity_ref(ref: EntityRef, checks: Checks, path: Path) -> EntityRef:
    """The reference with its name trimmed; what is wrong goes to `checks`."""
    if (ref.id is None) == (ref.name is None):
        checks.bad("takes an id or a name, one of them", path)
        return ref
    return ref if ref.name is None else EntityRef(name=checks.name(ref.name, (*path, "name")), type=ref.type)


def check_entity(draft: EntityDraft) -> EntityDraft:
    """The draft with its names trimmed; Refusals when it can't be."""
    checks = Checks()
    name = checks.name(draft.name, ("name",))
    aliases = _aliases(draft.aliases, checks)
    checks.done()
    return EntityDraft(name, draft.type, aliases)


def check_entity_change(change: EntityChange) -> EntityChange:
    """The change with its names trimmed; Refusals when it can't be made."""
    checks = Checks()
    name = checks.name(change.name, ("name",)) if given(change.name) else UNSET
    aliases = _aliases(change.aliases, checks) if given(change.aliases) else UNSET
    checks.done()
    return EntityChange(id=change.id, name=name, type=change.type, aliases=aliases)


def _aliases(aliases: tuple[str, ...], checks: Checks) -> tuple[str, ...]:
    checks.few(aliases, ("aliases",))
    return tuple(checks.name(alias, ("aliases", index)) for index, alias in enumerate(aliases))


def distinct_names(names: Sequence[str], without: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The names in order, each normal form once, those of `without` left out."""
    seen = {normal_form(name) for name in without}
    found: list[str] = []
    for name in names:
        form = normal_form(name)
        if form not in seen:
            seen.add(form)
            found.append(name)
    return tuple(found)
