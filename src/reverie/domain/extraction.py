"""What a reader finds in an episode or a memory, and which of it counts as evidence."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from math import isfinite

from reverie.domain import policy
from reverie.domain.beliefs import KEY, BeliefType, Evidence, EvidenceKind
from reverie.domain.checks import Checks
from reverie.domain.clock import to_ms
from reverie.domain.entities import EntityType
from reverie.domain.episodes import EpisodeOutcome
from reverie.domain.events import Event, EventType, happened_at
from reverie.domain.facts import FactDraft, check_fact
from reverie.domain.ids import new_id
from reverie.domain.names import display_name, normal_form
from reverie.domain.secrets import has_secret, secrets_in

GENERAL = "general"
"""The domain of what belongs to no other."""
SUMMARY_MOST = 2_000
"""Characters of an episode's summary."""
TAGS_MOST = 10
TOPICS_MOST = 8
ENTITIES_MOST = 40
FACTS_MOST = 40
"""What is taken from one memory; more than this is noise."""

_KINDS = (EvidenceKind.STATE, EvidenceKind.CORRECT, EvidenceKind.END)
_OTHERS_COUNT = 0.5
"""How much of its confidence what tools and agents say about a user keeps."""
_FEWEST_OF_A_SECRET = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """Something that an event says of its user: what is claimed, and the words that show it.

    `kind` is STATE, CORRECT or END. `event_id` names the event in which `quote` must occur.
    """

    event_id: str
    kind: EvidenceKind
    key: str
    value: str
    confidence: float
    belief_type: BeliefType
    domain: str
    quote: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """What was found in an episode. A summary, tags and an outcome of None leave the episode's own as they are."""

    statements: tuple[Statement, ...]
    summary: str | None = None
    tags: tuple[str, ...] | None = None
    outcome: EpisodeOutcome | None = None
    tokens: int = 0
    """What a model was sent and answered, in its tokens."""


@dataclass(frozen=True, slots=True)
class MemoryReading:
    """What was found in a memory: names of topics, named entities, facts."""

    topics: tuple[str, ...] = ()
    entities: tuple[tuple[str, EntityType], ...] = ()
    facts: tuple[FactDraft, ...] = ()
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class KnownBelief:
    """A belief that holds already, given to a reader so that it finds the same keys again."""

    key: str
    value: str


class DropReason(StrEnum):
    """Why a statement doesn't count."""

    UNKNOWN_EVENT = "unknown event"
    NO_USER = "event without a user"
    QUOTE_NOT_FOUND = "quote not in the event"
    MALFORMED_KEY = "malformed key"
    BAD_VALUE = "value empty, too long or unfit to be stored"
    BAD_CONFIDENCE = "confidence not from 0 to 1"
    BAD_KIND = "neither stated, corrected nor ended"
    SECRET = "secret"  # noqa: S105 - a reason, no password
    REPEATED = "repeated"


@dataclass(slots=True)
class Dropped:
    """How many statements didn't count, by reason."""

    counts: dict[str, int] = field(default_factory=dict)

    def note(self, reason: str) -> None:
        self.counts[reason] = self.counts.get(reason, 0) + 1


@dataclass(slots=True)
class _Source:
    """An event in the forms in which statements are compared with it."""

    event: Event
    _form: str | None = None
    _secrets: tuple[str, ...] | None = None

    @property
    def form(self) -> str:
        if self._form is None:
            self._form = normal_form(self.event.text)
        return self._form

    @property
    def secrets(self) -> tuple[str, ...]:
        """The forms of the secrets in the event."""
        if self._secrets is None:
            forms = map(normal_form, secrets_in(self.event.text))
            self._secrets = tuple(form for form in forms if len(form) >= _FEWEST_OF_A_SECRET)
        return self._secrets


def evidence_of(
    reading: Reading, events: Sequence[Event], episode: str, dropped: Dropped
) -> list[tuple[str, str, Evidence]]:
    """The evidence that a reading of an episode's events comes to: of which subject, for which key, and what.

    What doesn't count is noted in `dropped`, by DropReason. Of several statements of one event with equal subject, key
    and value one counts: an end before a correction before a plain statement, then the surest.
    """
    sources = {event.id: _Source(event) for event in events}
    chosen: dict[tuple[str, str, str, str], Evidence] = {}
    for statement in reading.statements:
        source = sources.get(statement.event_id)
        if source is None:
            dropped.note(DropReason.UNKNOWN_EVENT)
        elif reason := _why_not(statement, source):
            dropped.note(reason)
        else:
            one = _evidence(statement, source.event, episode)
            # _why_not has seen that the event has a user
            place = (str(source.event.user_id), statement.key, source.event.id, one.form)
            before = chosen.get(place)
            if before is not None:
                dropped.note(DropReason.REPEATED)
            if before is None or (one.kind, one.confidence) > (before.kind, before.confidence):
                chosen[place] = one
    return [(subject, key, one) for (subject, key, _, _), one in chosen.items()]


def _why_not(statement: Statement, source: _Source) -> DropReason | None:
    value, quote = normal_form(statement.value), normal_form(statement.quote)
    told = (statement.key, statement.value, statement.quote, statement.reason or "", statement.domain)
    forms = [value, quote, normal_form(statement.reason or "")]
    checks: tuple[tuple[DropReason, Callable[[], bool]], ...] = (
        (DropReason.NO_USER, lambda: not source.event.user_id),
        (DropReason.BAD_KIND, lambda: statement.kind not in _KINDS),
        (
            DropReason.MALFORMED_KEY,
            lambda: len(statement.key) > policy.NAME_MOST or not KEY.fullmatch(statement.key),
        ),
        (
            DropReason.BAD_VALUE,
            lambda: not value or len(statement.value) > policy.PHRASE_MOST or not storable(statement.value),
        ),
        (DropReason.BAD_CONFIDENCE, lambda: not _is_unit(statement.confidence)),
        (DropReason.SECRET, lambda: any(map(has_secret, told))),
        (DropReason.QUOTE_NOT_FOUND, lambda: not quote or quote not in source.form),
        (DropReason.SECRET, lambda: any(secret in form for secret in source.secrets for form in forms)),
    )
    return next((reason for reason, applies in checks if applies()), None)


def _evidence(statement: Statement, event: Event, episode: str) -> Evidence:
    own_word = event.event_type is EventType.USER_MESSAGE
    domain = display_name(statement.domain)
    return Evidence(
        id=new_id(),
        kind=statement.kind,
        value=statement.value.strip(),
        time=to_ms(happened_at(event.occurred_at, event.recorded_at)),
        confidence=float(statement.confidence) * (1.0 if own_word else _OTHERS_COUNT),
        belief_type=statement.belief_type,
        domain=domain if domain and len(domain) <= policy.NAME_MOST and storable(domain) else GENERAL,
        episode=episode,
        event=event.id,
        reason=_text(statement.reason, policy.PHRASE_MOST),
    )


def cleaned_reading(reading: Reading) -> Reading:
    """The reading with a summary and tags that can be stored and hold no secret; its statements as they are."""
    tags = None
    if reading.tags is not None:
        tags = tuple(_names(reading.tags, TAGS_MOST))
    return Reading(reading.statements, _text(reading.summary, SUMMARY_MOST), tags, reading.outcome, reading.tokens)


def cleaned_memory_reading(reading: MemoryReading) -> MemoryReading:
    """What of a reading can be stored and holds no secret: names trimmed, each once, no more than the caps."""
    entities: dict[tuple[str, EntityType], tuple[str, EntityType]] = {}
    for name, kind in reading.entities:
        for shown in _names((name,), 1):
            entities.setdefault((normal_form(shown), kind), (shown, kind))
    facts: dict[tuple[str, str, str], FactDraft] = {}
    for fact in reading.facts:
        whole = f"{fact.subject} {fact.predicate} {fact.object}"
        checks = Checks()
        if not storable(whole) or has_secret(whole) or not _is_unit(fact.confidence):
            continue
        checked = check_fact(fact, checks)
        if not checks.refusals:
            place = (normal_form(checked.subject), normal_form(checked.predicate), normal_form(checked.object))
            facts.setdefault(place, checked)
    return MemoryReading(
        tuple(_names(reading.topics, TOPICS_MOST)),
        tuple(entities.values())[:ENTITIES_MOST],
        tuple(facts.values())[:FACTS_MOST],
        reading.tokens,
    )


def occurs(quote: str, text: str) -> bool:
    """Whether a quote's words stand in a text, blanks, case and compatible forms of letters aside."""
    form = normal_form(quote)
    return bool(form) and form in _form_of(text)


@lru_cache(maxsize=8)
def _form_of(text: str) -> str:
    return normal_form(text)


def storable(text: str) -> bool:
    """Whether the store can keep a text: it has no NUL and no lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text


def _names(names: Iterable[str], most: int) -> list[str]:
    found: dict[str, str] = {}
    for name in names:
        checks = Checks()
        if not storable(name) or has_secret(name):
            continue
        shown = checks.name(name, ())
        if not checks.refusals:
            found.setdefault(normal_form(shown), shown)
    return list(found.values())[:most]


def _text(text: str | None, most: int) -> str | None:
    """A text in prose, cut to size; None where there is none, or none that may be kept."""
    if text is None or not text.strip() or not storable(text) or has_secret(text):
        return None
    text = text.strip()
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def _is_unit(number: object) -> bool:
    if isinstance(number, bool) or not isinstance(number, int | float):
        return False
    return isfinite(number) and 0 <= number <= 1
