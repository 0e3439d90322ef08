"""Topics: what memories are about, by name."""

from dataclasses import dataclass
from enum import StrEnum

from reverie.domain.checks import Checks, Path


class NameOrderField(StrEnum):
    """What named things are listed by."""

    NAME = "NAME"
    CREATED_AT = "CREATED_AT"
    UPDATED_AT = "UPDATED_AT"
    MEMORIES = "MEMORIES"


@dataclass(frozen=True, slots=True)
class NameOrder:
    field: NameOrderField = NameOrderField.NAME
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as it stands; its vector is read apart."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class RelatedTopic:
    """A topic at the other end of a RELATED_TO."""

    topic: Topic
    weight: float


@dataclass(frozen=True, slots=True)
class TopicRef:
    """A topic by id, or by a name that is made where nobody has it."""

    id: str | None = None
    name: str | None = None


def check_topic_ref(ref: TopicRef, checks: Checks, path: Path) -> TopicRef:
    """The reference with its name trimmed; what is wrong goes to `checks`."""
    if (ref.id is None) == (ref.name is None):
        checks.bad("takes an id or a name, one of them", path)
        return ref
    return ref if ref.name is None else TopicRef(name=checks.name(ref.name, (*path, "name")))


def check_topic_name(name: str) -> str:
    """The trimmed name; Refusals when it can't be one."""
    checks = Checks()
    name = checks.name(name, ("name",))
    checks.done()
    return name
