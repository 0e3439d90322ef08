"""Reads English by fixed rules: only what is stated outright, by the user's own word, and the same at every time."""

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from reverie.ai.memory_rules import read_memory
from reverie.ai.sentences import sentences, word_set
from reverie.domain import policy
from reverie.domain.beliefs import BeliefType, EvidenceKind
from reverie.domain.entities import EntityType
from reverie.domain.events import Event, EventType
from reverie.domain.extraction import KnownBelief, MemoryReading, Reading, Statement, occurs
from reverie.domain.names import normal_form
from reverie.domain.secrets import has_secret

NAME = "rules:en"

_SURE = 0.9
_HEDGED = 0.6
_WORDS_OF_A_VALUE = 12
_WORDS_OF_A_KEY = 6
_CHARACTERS_OF_A_KEY = 60
_MEMBERS_OF_A_LIST = 12
_WORDS_OF_A_MEMBER = 5

_LEAD = re.compile(
    r"(?:(?P<corrects>actually|correction|no|nope|sorry|wait|scratch that|never ?mind|on second thou?ght"
    r"|i(?:'ve| have)? changed my mind|i take that back|from now on|going forward|as of (?:now|today|this week)|now"
    r"|these days|nowadays)"
    r"|(?:hi|hey|hello)(?: there| all| everyone)?|ok(?:ay)?|well|so|and|but|also|oh|yes|yeah|yep|btw"
    r"|by the way|fyi|for the record|for reference|for context|just so you know|just to let you know|just fyi"
    r"|(?:please )?(?:note|remember|know|keep in mind)(?: that)?|personally|honestly|frankly|to be honest|tbh|in fact"
    r"|generally|usually|in general|currently|finally|one more thing|additionally|plus|again|please"
    r"|(?:thanks(?: a lot)?|thank you|great|cool|sure|right|first|second|update|edit|about me"
    r"|a bit about me)(?=[,.;:!-]|\Z)"
    r")(?:[ ,.;:!-]+|\Z)",
    re.IGNORECASE,
)
_MOST_LEADS = 6
# What makes a sentence a supposition, a wish, or somebody else's word, wherever it stands in it.
_UNREAL = re.compile(
    r"\b(?:if|unless|suppose|supposing|imagine|assume|assuming|pretend|hypothetically|would|could|might|maybe|perhaps"
    r"|whether|wish|hopefully|as though|what happens|let's say|lets say|not sure|don't know|do not know|don't think"
    r"|do not think|just kidding|said|says|told|claims|claimed|asked|wrote|thinks|thought|believes)\b"
    r"|\b(?:i|we)'d\b|\bnot(?:[.!]|\Z)",
    re.IGNORECASE,
)
_CLAUSE = re.compile(
    r"(?:[,;.]? (?:and|but|so|also|plus)(?: (?:also|now|please|that))?|[;,]|(?: -|-) ) *"
    r"(?=(?:i|i'm|i've|my|we|we're|we've|our|you can call me|call me|actually)\b)",
    re.IGNORECASE,
)
_OPENS_A_STATEMENT = re.compile(r"(?:i|i'm|im|i've|my|we|we're|we've|our|call me|you can call me|for)\b", re.IGNORECASE)
_OTHERS = re.compile(r"(?:the )?(?:user|customer)(?P<own>'s)? +(?P<verb>[a-z]+)?", re.IGNORECASE)
_OTHERS_VERBS = {
    "prefers": "prefer",
    "likes": "like",
    "loves": "love",
    "hates": "hate",
    "dislikes": "dislike",
    "enjoys": "enjoy",
    "uses": "use",
    "works": "work",
    "lives": "live",
    "is": "am",
}

# Adverbs between the subject and the verb.
_ADVERB = (
    r"(?:(?:really|actually|now|still|usually|personally|also|definitely|absolutely|mostly|typically|currently|always"
    r"|generally|strongly|much|just|both|do|mainly|primarily|sometimes|often|normally|truly|quite|very much) +)*"
)
_I = rf"i +{_ADVERB}"
_I_AM = rf"(?:i +am|i'm|im) +{_ADVERB}"
_WE = rf"(?:i|we|our team|my team|our company|my company) +{_ADVERB}"
_NOT = r"(?:don't|do +not|dont|doesn't|does +not)"

_CHANGES = re.compile(
    r"\b(?:now|from now on|instead|these days|nowadays|going forward|after all|rather)[.!]*\Z|\b(?:actually|now)\b",
    re.IGNORECASE,
)
_HEDGES = re.compile(r"\b(?:usually|mostly|typically|generally|sometimes|often|normally|in general|mainly)\b", re.I)
_TAIL = re.compile(
    r"(?:[ ,]+(?:now|from now on|instead|these days|nowadays|going forward|after all|right now|at the moment|currently"
    r"|please|though|too|as well|also|a lot|very much|so much|the most|thanks|thank you|by the way|btw|again|actually"
    r"|in general|generally|ok|okay|always|honestly|tbh|personally|lol|haha|any ?more|any longer))+\Z",
    re.IGNORECASE,
)
_CUT = re.compile(
    r"[;(\[{]|:\s| - | -- | [\u2013\u2014] |\s(?:because|since|so that|although|though|while|whereas|which|who"
    r"|where|but|except|especially|until|before|after|and +(?:i|we|my|our|you|he|she|it|they|that|this|so|then)"
    r"|so +(?:i|we|my|please|you|that))\b",
    re.IGNORECASE,
)
# A comma that ends a value: "short, direct answers" has none, "tabs, as you know" has.
_COMMA = re.compile(
    r",\s+(?=(?:and|or|but|so|not|it|they|this|that|please|since|which|thanks|thank|though|as|can|do|don't|is|are|what|how"
    r"|let|the|an?|i|i'm|i've|we|my|our|you|your|he|she|there|nice|just|ok|okay|right|even|like|who|where|when)\b)",
    re.IGNORECASE,
)
_SPLIT = re.compile(r"\s*,\s*(?:and\s+|or\s+)?|\s+and\s+|\s+or\s+", re.IGNORECASE)
_DETERMINER = re.compile(
    r"\A(?:an?|the|my|our|some|all|any|most|both|lots of|a lot of|plenty of|playing around with)\s+(?=\S)",
    re.IGNORECASE,
)
_INFINITIVE = re.compile(r"\Ato\s+(?=[a-z])", re.IGNORECASE)
_USING = re.compile(r"\A(?:to\s+)?(?:use|using|have|having|get|getting|receive|receiving)\s+(?=\S)", re.IGNORECASE)
_PURPOSE = re.compile(
    r"\s(?:for|as)\s+(?:(?:my|our|the|all|all my|all our|any|every|most)\s+)*(?P<purpose>[^,]+)\Z"
    r"|\s(?:when|while)\s+(?:i'm\s+|we're\s+|i am\s+|we are\s+)?(?P<doing>\w+ing\b[^,]*)\Z",
    re.IGNORECASE,
)
_FOR = re.compile(r"\sfor\s", re.IGNORECASE)
_RIVALS = re.compile(
    r"\s+(?:over|rather than|instead of|more than|better than)\s+|(?<=\w)\s+to\s+(?=\S+(?:\s\S+)?\Z)", re.IGNORECASE
)
_PHRASE_END = re.compile(
    r"\s(?:to|at|on|in|with|every|when|whenever|from|by|of|for|as|than|more|over|under|without|during|about)\b", re.I
)
# What begins so isn't a thing that has a name outside of its conversation.
_VAGUE = re.compile(
    r"(?:it|it's|its|this|that|that's|these|those|they|them|you|you're|your|yours|him|her|his|hers|us|me|mine|myself"
    r"|yourself|one|ones|what|when|where|how|why|who|if|not|no|neither|either|nothing|none|something|anything|everything"
    r"|everyone|someone|somebody|nobody|the way|the idea|the fact|the new|the first|the second|the one|the other|so|be"
    r"|being|both|each|here|there|more|less|another|any|same|to be|hearing|seeing|see|hear|know|think|ask|say)\b",
    re.IGNORECASE,
)
_ONE = re.compile(r"\bones?\Z", re.IGNORECASE)
_ARTICLE = re.compile(r"the\s", re.IGNORECASE)
_NAME_WORDS = re.compile(r"(?:(?:Mr|Mrs|Ms|Dr|Prof)\.? )?[^\W\d_][\w'.-]*(?: [^\W\d_][\w'.-]*){0,3}")
_NOT_A_NAME = word_set(
    "not on in at the a an of for to from by with and or but is was hard easy difficult spelled spelt pronounced "
    "so very just also back later tomorrow today now when if maybe asap crazy names already still important "
    "irrelevant here there called it that this whatever anytime monday tuesday wednesday thursday friday saturday "
    "sunday"
)
_NOT_A_PLACE = word_set(
    "a an the my our this that these those it fear hope peace constant denial sin luxury poverty harmony home "
    "night work times weekends random least present once all first last noon midnight free fun now myself"
)
_PAST = re.compile(
    r"(?:\w+ed|said|thought|knew|was|were|had|did|went|got|saw|heard|told|wanted|meant|felt|been|made|gave|took|came"
    r"|found|understood|wrote|ran|read|could|would|will|can|should|liked|understand|wondered|expected|know|seem|forget"
    r"|remember|think|really)\b",
    re.IGNORECASE,
)
_ATTRIBUTES = {
    "birthday": "birthday",
    "date of birth": "birthday",
    "time zone": "timezone",
    "timezone": "timezone",
    "email": "email",
    "email address": "email",
    "phone number": "phone",
    "job title": "occupation",
    "occupation": "occupation",
    "profession": "occupation",
    "employer": "employer",
    "pronouns": "pronouns",
    "native language": "native_language",
    "mother tongue": "native_language",
    "first language": "native_language",
    "nationality": "nationality",
    "hometown": "hometown",
    "home town": "hometown",
    "preferred language": "preference.language",
    "preferred editor": "preference.editor",
    "operating system": "operating_system",
    "age": "age",
}
_ANYTHING = re.compile("")
# "my birthday is soon" tells no birthday
_SHOWS_IN = {
    "pronouns": re.compile("/"),
    "birthday": re.compile(r"\d"),
    "age": re.compile(r"\d"),
    "phone": re.compile(r"\d"),
    "email": re.compile("@"),
    "employer": re.compile("[A-Z]"),
    "hometown": re.compile("[A-Z]"),
}
_TECHNICAL = "technical"
_PERSONAL = "personal"
_WORK = "work"
_HABITS = "workflow"
_PREFERENCES = "preferences"


@dataclass(frozen=True, slots=True)
class _Found:
    """A claim of one clause; `also_ends` are keys under which the same value no longer holds."""

    key: str
    value: str
    belief_type: BeliefType
    domain: str
    kind: EvidenceKind = EvidenceKind.STATE
    also_ends: tuple[str, ...] = ()


@dataclass(slots=True)
class _Belief:
    """What is known while an episode is read: values by key, as they were told last."""

    values: dict[str, str] = field(default_factory=dict)

    def key_of(self, value: str, prefix: str) -> str | None:
        """The one key with that prefix that has this value."""
        form = normal_form(value)
        keys = [key for key, held in self.values.items() if key.startswith(prefix) and normal_form(held) == form]
        return keys[0] if len(keys) == 1 else None


class RulesExtractor:
    """An extractor (`reverie.ai.extractors.Extractor`) without a model, for English.

    It takes statements such as "I prefer … for …", "my name is …", "we use … for …", "actually, …" and "I no longer …"
    where they open a sentence of the user's own. Questions, suppositions, wishes, reported speech, quotations and code
    give nothing. Of what agents and tools say, only "the user prefers …" and its like counts. It knows no irony, no
    other language, and no statement that is made in other words.
    """

    @property
    def name(self) -> str:
        """The rules and their language."""
        return NAME

    async def read_episode(self, events: Sequence[Event], known: Sequence[KnownBelief]) -> Reading:
        """The statements of an episode's events; never fails."""
        return await asyncio.to_thread(_read_episode, events, known)

    async def read_memory(self, content: str, known_entities: Sequence[tuple[str, EntityType]]) -> MemoryReading:
        """What a memory names and states; never fails."""
        return await asyncio.to_thread(read_memory, content, known_entities)

    async def close(self) -> None:
        """There is nothing to close."""


def _read_episode(events: Sequence[Event], known: Sequence[KnownBelief]) -> Reading:
    believed: dict[str | None, _Belief] = {}
    found: list[Statement] = []
    for event in events:
        before = believed.setdefault(event.user_id, _Belief({one.key: one.value for one in known}))
        found.extend(_read_event(event, before))
    return Reading(tuple(found))


def _read_event(event: Event, before: _Belief) -> Iterator[Statement]:
    own_word = event.event_type is EventType.USER_MESSAGE
    corrects = False
    for sentence in sentences(event.text):
        told = sentence.plain if own_word else _by_others(sentence.plain)
        if not told or sentence.asks or _UNREAL.search(told):
            corrects = False
            continue
        for clause in _clauses(told):
            rest, by_lead = _without_leads(clause.text)
            corrects = corrects or by_lead
            if not rest:
                continue
            quote = sentence.text[clause.start : clause.stop].strip() if own_word else sentence.text
            # "Usually" hedges before the subject, too, where it is taken off as a lead
            hedged = _HEDGES.search(clause.text) is not None
            yield from _statements(event, rest, quote, before, corrects=corrects, hedged=hedged)
            corrects = False


@dataclass(frozen=True, slots=True)
class _Clause:
    text: str
    start: int
    stop: int


def _clauses(told: str) -> Iterator[_Clause]:
    """The parts of a sentence that can state something by themselves; only the first where that one states nothing."""
    rest, _ = _without_leads(told)
    if rest and not _OPENS_A_STATEMENT.match(rest):
        yield _Clause(told, 0, len(told))
        return
    start = 0
    for match in _CLAUSE.finditer(told):
        part = told[start : match.start()].strip()
        if part.lower().startswith("for "):
            # "For indentation, I prefer tabs" is one
            continue
        if part:
            yield _Clause(part, start, match.start())
        start = match.end()
    yield _Clause(told[start:].strip(), start, len(told))


def _without_leads(clause: str) -> tuple[str, bool]:
    """A clause without words such as "Actually," before it, and whether they announce a correction."""
    corrects = False
    for _ in range(_MOST_LEADS):
        match = _LEAD.match(clause)
        if match is None:
            break
        corrects = corrects or match["corrects"] is not None
        clause = clause[match.end() :].lstrip()
    return clause, corrects


def _by_others(plain: str) -> str | None:
    """What a tool or an agent says about the user, in the user's own person; None where it says nothing outright."""
    match = _OTHERS.match(plain)
    if match is None:
        return None
    if match["own"]:
        return "my " + plain[match.end("own") :].lstrip()
    verb = _OTHERS_VERBS.get((match["verb"] or "").lower())
    return None if verb is None else f"i {verb}{plain[match.end('verb') :]}"


def _statements(
    event: Event, clause: str, quote: str, before: _Belief, *, corrects: bool, hedged: bool
) -> Iterator[Statement]:
    for rule, pattern in _RULES:
        match = pattern.match(clause)
        if match is None:
            continue
        for claim in rule(match, before):
            changes = corrects or _CHANGES.search(clause) is not None
            kind = EvidenceKind.CORRECT if claim.kind is EvidenceKind.STATE and changes else claim.kind
            for one in (replace(claim, kind=kind), *_endings(claim, before)):
                statement = Statement(
                    event_id=event.id,
                    kind=one.kind,
                    key=one.key,
                    value=one.value,
                    confidence=_HEDGED if hedged else _SURE,
                    belief_type=one.belief_type,
                    domain=one.domain,
                    quote=quote,
                )
                if _sound(statement, event):
                    yield statement
                    if one.kind is EvidenceKind.END:
                        before.values.pop(one.key, None)
                    else:
                        before.values[one.key] = one.value
        return


def _endings(claim: _Found, before: _Belief) -> Iterator[_Found]:
    """What a claim ends, where that was believed."""
    for key in claim.also_ends:
        if key in before.values:
            yield replace(claim, key=key, value=before.values[key], kind=EvidenceKind.END, also_ends=())


def _sound(statement: Statement, event: Event) -> bool:
    if len(statement.value) > policy.PHRASE_MOST or not normal_form(statement.value) or not statement.key:
        return False
    # a combining mark after the last letter makes another letter of it
    return occurs(statement.quote, event.text) and not has_secret(f"{statement.value}\n{statement.quote}")


def _slug(text: str, words: int = _WORDS_OF_A_KEY) -> str:
    """A part of a key: the words of a text, joined by `_`."""
    form = normal_form(text).replace("++", " plus plus ").replace("#", " sharp ").replace("'", "")
    parts = re.findall(r"\w+", form.replace("_", " "))[:words]
    return "_".join(parts)[:_CHARACTERS_OF_A_KEY].strip("_")


def _trimmed(text: str) -> str:
    """A value without what follows its end, and without quotation marks and words of courtesy."""
    cut = _CUT.search(text)
    text = (text[: cut.start()] if cut else text).strip()
    text = _TAIL.sub("", text.rstrip(" .,!?…")).strip(" .,!?…")
    return _bare(text)


def _bare(text: str) -> str:
    if len(text) > 1 and text[0] in "\"'`*_" and text[-1] == text[0]:
        return text[1:-1].strip()
    return text.strip('`"*')


def _value(text: str) -> str:
    """A whole value: not vague, and not a whole story; "" where there is none."""
    text = _DETERMINER.sub("", _trimmed(text), count=1)
    if _VAGUE.match(text) or _ONE.search(text) or _INFINITIVE.match(text) or len(text.split()) > _WORDS_OF_A_VALUE:
        return ""
    return text


def _first_part(text: str) -> str:
    comma = _COMMA.search(text)
    return text[: comma.start()] if comma else text


def _members(text: str) -> Iterator[str]:
    """The members of a list such as "hiking, cycling and chess"; as far as they are plain ones."""
    for part in _SPLIT.split(_trimmed(text))[:_MEMBERS_OF_A_LIST]:
        member = _TAIL.sub("", part)
        if _ARTICLE.match(member) or _VAGUE.match(member):
            return
        member = _INFINITIVE.sub("", _DETERMINER.sub("", member, count=1), count=1)
        cut = _PHRASE_END.search(member)
        member = _bare(member[: cut.start()] if cut else member)
        if not member or _VAGUE.match(member) or len(member.split()) > _WORDS_OF_A_MEMBER:
            return
        yield member


def _with_purpose(text: str) -> tuple[str, str]:
    """ "tabs for indentation" → ("tabs", "indentation"); "" where no purpose is named."""
    text = _first_part(_trimmed(text))
    match = _PURPOSE.search(text)
    if match is None:
        return text, ""
    return text[: match.start()], _trimmed(match["purpose"] or match["doing"])


def _preference_key(value: str, purpose: str, *, doing: bool) -> tuple[str, str]:
    """The key of a preference, and its value: by purpose, else by the rivals, else by what kind of thing it is.

    What is done ("to work alone") has no kind, and is its own key.
    """
    rivals = _RIVALS.split(value, maxsplit=1)
    value = _value(rivals[0])
    if purpose:
        return f"preference.{_slug(purpose)}" if _slug(purpose) else "", value
    if len(rivals) > 1:
        other = _value(rivals[1])
        slugs = sorted((_slug(value), _slug(other)))
        return ("preference." + "_or_".join(slugs) if other and all(slugs) else ""), value
    head = value if doing else _PHRASE_END.split(value, maxsplit=1)[0].rpartition(" ")[2]
    return f"preference.{_slug(head)}" if _slug(head) else "", value


def _pairs(match: re.Match[str]) -> Iterator[tuple[str, str]]:
    """What is named with its purpose, "" for none: "Postgres for storage and Redis for caching" has two pairs."""
    if match.groupdict().get("purpose"):
        yield _first_part(_trimmed(match["what"])), _trimmed(match["purpose"])
        return
    parts = _SPLIT.split(_trimmed(match["what"]))
    yield from map(_with_purpose, parts if all(map(_FOR.search, parts)) else [match["what"]])


def _preferred(match: re.Match[str], before: _Belief) -> Iterator[_Found]:
    for value, purpose in _pairs(match):
        yield from _preference(value, purpose)


def _preference(value: str, purpose: str, kind: EvidenceKind = EvidenceKind.STATE) -> Iterator[_Found]:
    using = _USING.match(value)
    doing = using is None and _INFINITIVE.match(value) is not None
    value = value[using.end() :] if using else _INFINITIVE.sub("", value, count=1)
    key, shown = _preference_key(value, purpose, doing=doing)
    if key and shown:
        yield _Found(key, shown, BeliefType.PREFERENCE, _PREFERENCES, kind)


def _no_longer_preferred(match: re.Match[str], before: _Belief) -> Iterator[_Found]:
    for value, purpose in _pairs(match):
        for claim in _preference(value, purpose, EvidenceKind.END):
            known = None if purpose else before.key_of(claim.value, "preference.")
            yield replace(claim, key=known or claim.key)


def _favourite(match: re.Match[str], before: _Belief) -> Iterator[_Found]:
    kind, value = _slug(match["kind"]), _value(_first_part(match["what"]))
    if kind and value:
        yield _Found(f"favorite.{kind}", value, BeliefType.PREFERENCE, _PREFERENCES)


def _taste(prefix: str, opposite: str) -> "_Rule":
    def rule(match: re.Match[str], before: _Belief) -> Iterator[_Found]:
        if prefix == "dislikes" and _INFINITIVE.match(match["what"]):
            # "I hate to say it"
            return
        for member in _members(match["what"]):
            if slug := _slug(member):
                ends = (f"{opposite}.{slug}",)
                yield _Found(f"{prefix}.{slug}", member, BeliefType.PREFERENCE, _PREFERENCES, also_ends=ends)

    return rule


def _ended(prefix: str, belief_type: BeliefType, domain: str) -> "_Rule":
    def rule(match: re.Match[str], before: _Belief) -> Iterator[_Found]:
        for member in _members(match["what"]):
            if slug := _slug(member):
                yield _Found(f"{prefix}.{slug}", member, belief_type, domain, EvidenceKind.END)

    return rule


def _used(match: re.Match[str], before: _Belief) -> Iterator[_Found]:
    yield from _use(match, before, EvidenceKind.STATE)


def _no_longer_used(match: re.Match[str], before: _Belief) -> Iterator[_Found]:
    yield from _use(match, before, EvidenceKind.END)


def _use(match: re.Match[str], before: _Belief, kind: EvidenceKind) -> Iterator[_Found]:
    pairs = [(_value(value), _slug(purpose)) for value, purpose in _pairs(match) if purpose]
    for value, slug in pairs:
        if value and slug:
            yield _Found(f"uses.{slug}", value, BeliefType.FACT, _TECHNICAL, kind)
    if pairs:
        return
    for member in _members(match["what"]):
        known = before.key_of(member, "uses.") if kind is EvidenceKind.END else None
        if slug := _slug(member):
            yield _Found(known or f"uses.{slug}", member, BeliefType.FACT, _TECHNICAL, kind)


def _switched(match: re.Match[str], before: _Belief) -> Iterator[_Found]:
    value, purpose = _with_purpose(match["to"])
    value, old = _value(value), _value(match["from"] or "")
    if not value:
        return
    known = before.key_of(old, "uses.") if old and not purpose else None
    if known and known != f"uses.{_slug(old)}":
        yield _Found(known, value, BeliefType.FACT, _TECHNICAL, EvidenceKind.CORRECT)
        return
    key = _slug(purpose) or _slug(value)
    if key:
        yield _Found(f"uses.{key}", value, BeliefType.FACT, _TECHNICAL, EvidenceKind.CORRECT)
    if old and not purpose and _slug(old):
        yield _Found(f"uses.{_slug(old)}", old, BeliefType.FACT, _TECHNICAL, EvidenceKind.END)


def _named(key: str, *, capital: bool) -> "_Rule":
    def rule(match: re.Match[str], before: _Belief) -> Iterator[_Found]:
        name = _NAME_WORDS.match(_trimmed(match["what"]))
        if name is None:
            return
        words = name[0].split()
        if not words[0][0].isupper():
            words = [] if capital else words[:1]
        # a name ends where a word in lower case isn't one of its particles
        kept: list[str] = []
        for word in words:
            if kept and not word[0].isupper() and word not in ("de", "van", "von", "der", "da", "bin", "al", "la"):
                break
            kept.append(word.rstrip(".") if len(word) > 3 else word)  # noqa: PLR2004 - the longest title, Mrs
        if kept and kept[0].casefold() not in _NOT_A_NAME:
            yield _Found(key, " ".join(kept), BeliefType.FACT, _PERSONAL)

    return rule


def _place(key: str, domain: str, kind: EvidenceKind = EvidenceKind.STATE) -> "_Rule":
    def rule(match: re.Match[str], before: _Belief) -> Iterator[_Found]:
        text = re.sub(r"\A[Tt]he (?=[A-Z])", "", _first_part(_trimmed(match["what"])))
        cut = re.search(r"\s(?:as|for|with|on|since|near|and|or|but|from|where|right)\b", text)
        text = (text[: cut.start()] if cut else text).strip(" ,")
        words = text.split()
        if not words or words[0].casefold() in _NOT_A_PLACE or len(words) > _WORDS_OF_A_MEMBER or _VAGUE.match(text):
            return
        if len(words) > 1 and not any(word[0].isupper() for word in words):
            return
        yield _Found(key, text, BeliefType.FACT, domain, kind)

    return rule


def _moved(match: re.Match[str], before: _Belief) -> Iterator[_Found]:
    # one moves to other tools, too
    if "residence" in before.values:
        yield from _place("residence", _PERSONAL, EvidenceKind.CORRECT)(match, before)


def _occupation(match: re.Match[str], before: _Belief) -> Iterator[_Found]:
    text = re.split(r"\s(?:at|for|with|in|on)\s", match["what"], maxsplit=1)[0]
    if value := _value(_first_part(text)):
        yield _Found("occupation", value, BeliefType.FACT, _WORK)
    employer = re.search(r"\s(?:at|for)\s(?P<what>.+)", match["what"])
    if employer and value:
        yield from _place("employer", _WORK)(employer, before)


def _allergic(kind: EvidenceKind) -> "_Rule":
    def rule(match: re.Match[str], before: _Belief) -> Iterator[_Found]:
        for member in _members(match["what"]):
            if slug := _slug(member):
                yield _Found(f"allergies.{slug}", member, BeliefType.FACT, "health", kind)

    return rule


def _spoken(match: re.Match[str], before: _Belief) -> Iterator[_Found]:
    for member in _members(match["what"]):
        if member[0].isupper() and len(member.split()) == 1:
            yield _Found(f"speaks.{_slug(member)}", member, BeliefType.FACT, _PERSONAL)


def _diet(match: re.Match[str], before: _Belief) -> Iterator[_Found]:
    kind = EvidenceKind.END if match["ended"] else EvidenceKind.STATE
    yield _Found("diet", match["diet"].lower(), BeliefType.FACT, "health", kind)


def _habit(match: re.Match[str], before: _Belief) -> Iterator[_Found]:
    what = _trimmed(match["what"])
    slug = _slug(what)
    if slug and not _PAST.match(what) and not _VAGUE.match(what) and len(what.split()) <= _WORDS_OF_A_VALUE:
        yield _Found(f"habit.{slug}", match["often"].lower(), BeliefType.PREFERENCE, _HABITS)


def _attribute(match: re.Match[str], before: _Belief) -> Iterator[_Found]:
    key = _ATTRIBUTES[" ".join(match["attribute"].lower().split())]
    told = _first_part(match["what"])
    value = _trimmed(told) if key == "pronouns" else _value(told)
    if value and _SHOWS_IN.get(key, _ANYTHING).search(value):
        yield _Found(key, value, BeliefType.FACT, _PERSONAL)


_Rule = Callable[[re.Match[str], _Belief], Iterator[_Found]]

_WHAT = r" +(?P<what>\S.*)"
_NO_MORE = r"(?P<what>\S.*?) +(?:any ?more|any longer)\b"

_RULE_TEXTS: tuple[tuple[_Rule, str], ...] = (
    # what holds no longer, before what it looks like
    (_no_longer_preferred, rf"i +(?:really +|actually +)?no +longer +prefer{_WHAT}"),
    (_no_longer_preferred, rf"i +(?:really +|actually +)?{_NOT} +prefer +{_NO_MORE}"),
    (
        _ended("likes", BeliefType.PREFERENCE, _PREFERENCES),
        rf"i +(?:really +|actually +)?no +longer +(?:like|love|enjoy|care +for){_WHAT}",
    ),
    (
        _ended("likes", BeliefType.PREFERENCE, _PREFERENCES),
        rf"i +(?:really +|actually +)?{_NOT} +(?:like|love|enjoy) +{_NO_MORE}",
    ),
    (
        _ended("dislikes", BeliefType.PREFERENCE, _PREFERENCES),
        rf"i +(?:really +|actually +)?no +longer +(?:dislike|hate|loathe){_WHAT}",
    ),
    (
        _ended("dislikes", BeliefType.PREFERENCE, _PREFERENCES),
        rf"i +(?:really +|actually +)?{_NOT} +(?:dislike|hate|mind) +{_NO_MORE}",
    ),
    (_no_longer_used, rf"(?:i|we) +(?:now +|actually +)?no +longer +use{_WHAT}"),
    (_no_longer_used, rf"(?:i|we) +(?:actually +)?{_NOT} +use +{_NO_MORE}"),
    (_no_longer_used, rf"(?:(?:i|we) +(?:have +)?|(?:i|we)'ve +)(?:stopped|quit) +using{_WHAT}"),
    (_place("residence", _PERSONAL, EvidenceKind.END), rf"i +(?:actually +)?no +longer +live +in{_WHAT}"),
    (_place("residence", _PERSONAL, EvidenceKind.END), rf"i +{_NOT} +live +in +{_NO_MORE}"),
    (_place("employer", _WORK, EvidenceKind.END), rf"i +(?:actually +)?no +longer +work +(?:at|for){_WHAT}"),
    (_place("employer", _WORK, EvidenceKind.END), rf"i +{_NOT} +work +(?:at|for) +{_NO_MORE}"),
    (_allergic(EvidenceKind.END), rf"{_I_AM}(?:no +longer|not) +allergic +to{_WHAT}"),
    # who the user is
    (_named("name", capital=False), r"my +(?:full +|first +|real +)?name(?: +is|'s) +(?P<what>\S.*)"),
    (_named("name", capital=True), rf"{_I_AM}(?:called|named){_WHAT}"),
    (_named("preferred_name", capital=True), rf"(?:you +(?:can|may) +)?(?:just +)?call +me{_WHAT}"),
    (_named("preferred_name", capital=True), rf"{_I}(?:go +by|prefer +to +be +called){_WHAT}"),
    (_occupation, rf"{_I}work +as +(?:an? +|the +)?(?P<what>\S.*)"),
    (_place("employer", _WORK), rf"{_I}work +(?:at|for){_WHAT}"),
    (_place("residence", _PERSONAL), rf"{_I}live +in{_WHAT}"),
    (_place("residence", _PERSONAL), rf"{_I_AM}(?:based|living) +in{_WHAT}"),
    (_moved, rf"(?:i|i've|i +have) +(?:just +|recently +)?moved +to{_WHAT}"),
    (_place("hometown", _PERSONAL), rf"{_I_AM}(?:originally +)?from{_WHAT}"),
    (_allergic(EvidenceKind.STATE), rf"{_I_AM}(?:severely +|very +|highly +|mildly +)?allergic +to{_WHAT}"),
    (_diet, rf"{_I_AM}(?P<ended>no +longer +)?(?:an? +)?(?P<diet>vegetarian|vegan|pescatarian)\b"),
    (_spoken, rf"{_I}speak{_WHAT}"),
    # what the user wants
    (_favourite, r"my +(?:all-time +)?favou?rite +(?P<kind>[\w +#-]{2,40}?) +(?:is|are) +(?P<what>\S.*)"),
    (_preferred, rf"for +(?P<purpose>[^,]{{2,60}}?),? +{_I}prefer +(?P<what>\S.*)"),
    (_preferred, rf"{_I}prefer{_WHAT}"),
    (_preferred, r"my +preference +is(?: +for)? +(?P<what>\S.*)"),
    (_taste("dislikes", "likes"), rf"i +(?:really +|actually +)?{_NOT} +(?:really +)?(?:like|love|enjoy){_WHAT}"),
    (_taste("dislikes", "likes"), rf"{_I}(?:hate|dislike|loathe|detest|can't +stand){_WHAT}"),
    (_taste("likes", "dislikes"), rf"{_I}(?:like|love|enjoy|adore){_WHAT}"),
    (_taste("likes", "dislikes"), rf"{_I_AM}(?:an? +)?(?:big +|huge +)?(?:fan +of|fond +of){_WHAT}"),
    # what the user works with, and how
    (
        _switched,
        r"(?:i|we|i've|we've|i +have|we +have|our team|my team) +(?:just +|now +|recently +)?"
        r"(?:switched|migrated|(?<=we )moved|(?<=we've )moved)(?: +over)?"
        r"(?: +from +(?P<from>\S.{0,60}?))? +to +(?P<to>\S.*)",
    ),
    (_used, rf"for +(?P<purpose>[^,]{{2,60}}?),? +{_WE}use +(?P<what>\S.*)"),
    (_used, rf"{_WE}uses?{_WHAT}"),
    (_used, rf"(?:i'm|i am|we're|we are) +(?:now +|currently +|still +)?using{_WHAT}"),
    (_habit, r"(?:i|we) +(?P<often>always|never) +(?P<what>\S.*)"),
    (
        _attribute,
        r"my +(?P<attribute>" + "|".join(sorted(_ATTRIBUTES, key=len, reverse=True)) + r") +(?:is|are) +(?P<what>\S.*)",
    ),
)
_RULES = tuple((rule, re.compile(text, re.IGNORECASE | re.DOTALL)) for rule, text in _RULE_TEXTS)
