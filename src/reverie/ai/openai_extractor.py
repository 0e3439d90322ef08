"""Reads with a chat model of OpenAI's, or of a server compatible with OpenAI's API."""

import asyncio
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.resources import files
from secrets import token_hex
from typing import Any, Generic, Literal, TypeVar

import openai
import orjson
from pydantic import BaseModel, ConfigDict, ValidationError

from reverie.ai.openai_client import OpenAIClient, ProviderError
from reverie.ai.windows import legible
from reverie.domain.beliefs import BeliefType, EvidenceKind
from reverie.domain.entities import EntityType
from reverie.domain.episodes import EpisodeOutcome
from reverie.domain.events import Event, EventType
from reverie.domain.extraction import (
    KnownBelief,
    MemoryReading,
    Reading,
    Statement,
    cleaned_memory_reading,
    cleaned_reading,
)
from reverie.domain.facts import FactDraft
from reverie.domain.names import normal_form
from reverie.domain.secrets import masked
from reverie.errors import ExtractionFailed

EVENT_MOST = 4_000
"""Characters of one event's text that are sent; of a longer one the beginning and the end."""
EPISODE_MOST = 60_000
"""Characters of all events' texts of an episode that are sent: some 15,000 tokens of English."""
MEMORY_MOST = 20_000
"""Characters of a memory that are sent; of a longer one the beginning and the end."""
KNOWN_MOST = 100
"""Known beliefs, or entities, that are sent."""

_KNOWN_VALUE_MOST = 200
_OTHERS_SHARE = 0.25
"""The least part of an episode's characters that agents, tools and logs get, where users' messages would fill it."""
_LEFT_OUT = "\n[…]\n"
_HALVINGS = 3
"""How often what is sent may be halved for a model with a small window."""
_REFUSED_REQUEST = frozenset({400, 422})
_QUOTED_PROBLEM_MOST = 500
_ANSWER_SENT_BACK_MOST = 20_000

_THOUGHTS = re.compile(r"\A\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)
_SPEAKERS = {
    EventType.USER_MESSAGE: "user",
    EventType.AGENT_RESPONSE: "agent",
    EventType.TOOL_CALL: "tool",
    EventType.SYSTEM_LOG: "system",
}


class _Answer(BaseModel):
    """An answer's form. Further fields are forbidden in the schema, and passed over where a server ignores that."""

    model_config = ConfigDict(json_schema_extra={"additionalProperties": False})


class _Claim(_Answer):
    event: str
    quote: str
    key: str
    value: str
    kind: Literal["STATE", "CORRECT", "END"]
    type: Literal["FACT", "PREFERENCE", "BELIEF"]
    domain: str
    confidence: float
    reason: str | None


class _EpisodeAnswer(_Answer):
    statements: list[_Claim]
    summary: str
    tags: list[str]
    outcome: Literal["COMPLETED", "ABANDONED", "ESCALATED"]


class _Named(_Answer):
    name: str
    type: Literal["PERSON", "TOOL", "PROJECT", "CONCEPT", "ORGANIZATION", "PLACE"]


class _Stated(_Answer):
    subject: str
    predicate: str
    object: str
    confidence: float


class _MemoryAnswer(_Answer):
    topics: list[str]
    entities: list[_Named]
    facts: list[_Stated]


Form = TypeVar("Form", bound=_Answer)


@dataclass(frozen=True, kw_only=True)
class OpenAIExtractorOptions:
    """Where and how to ask; OpenAI itself without a `base_url`.

    `timeout` is for one try, `deadline` for all tries of a request, in seconds.
    """

    api_key: str = field(repr=False)
    base_url: str | None = None
    model: str = "gpt-4.1-mini"
    timeout: float = 60.0
    deadline: float = 180.0
    max_attempts: int = 4

    @property
    def name(self) -> str:
        """The model, as it is shown."""
        return f"openai:{self.model}"


@dataclass(slots=True)
class _Spent:
    """Tokens over all tries of one reading."""

    tokens: int = 0


@dataclass(frozen=True, slots=True)
class _Task(Generic[Form]):
    """One thing to ask: the prompt's file, the answer's form and its name."""

    prompt: str
    name: str
    form: type[Form]

    def instructions(self) -> str:
        return _prompt(self.prompt)


_EPISODE = _Task("episode.md", "episode_reading", _EpisodeAnswer)
_MEMORY = _Task("memory.md", "memory_reading", _MemoryAnswer)


class _UnfitError(Exception):
    """An answer that isn't in the required form; the words are for the model."""


class OpenAIExtractor:
    """An extractor (`reverie.ai.extractors.Extractor`) over POST /chat/completions.

    Texts are sent without their secrets, as data that can't pose as instructions, and cut to `EVENT_MOST` and
    `EPISODE_MOST` (half as much, and half again, for a model that finds that too long). An answer in a wrong form is
    sent back once with what is wrong in it. A server that refuses strict JSON schemas, or a temperature, is asked
    without them from then on.
    """

    def __init__(self, options: OpenAIExtractorOptions) -> None:
        self._name = options.name
        self._model = options.model
        self._client = OpenAIClient(
            api_key=options.api_key,
            base_url=options.base_url,
            timeout=options.timeout,
            deadline=options.deadline,
            max_attempts=options.max_attempts,
        )
        self._strict = True
        self._temperature = True

    @property
    def name(self) -> str:
        """The model, as it is shown."""
        return self._name

    async def read_episode(self, events: Sequence[Event], known: Sequence[KnownBelief]) -> Reading:
        """What the model finds in an episode. Raises ExtractionFailed; asks nothing where no event has a text."""
        heard = [event for event in events if event.text.strip()]
        if not heard:
            return Reading(())
        aliases = {f"e{place}": event.id for place, event in enumerate(heard, 1)}
        texts = await asyncio.to_thread(lambda: [masked(legible(event.text)) for event in heard])
        spent = _Spent()

        def message(most: int) -> str:
            parts = _fitted(heard, texts, most)
            return _with_known(
                _fenced("events", "\n".join(_as_lines(heard, parts))),
                "Beliefs that are known already",
                [{"key": one.key, "value": _cut(masked(one.value), _KNOWN_VALUE_MOST)} for one in known],
            )

        answer = await self._read(_EPISODE, message, EPISODE_MOST, spent)
        statements = tuple(
            Statement(
                event_id=aliases.get(claim.event, claim.event),
                kind=EvidenceKind[claim.kind],
                key=claim.key,
                value=claim.value,
                confidence=claim.confidence,
                belief_type=BeliefType(claim.type),
                domain=claim.domain,
                quote=claim.quote,
                reason=claim.reason,
            )
            for claim in answer.statements
        )
        outcome = EpisodeOutcome(answer.outcome)
        return cleaned_reading(Reading(statements, answer.summary, tuple(answer.tags), outcome, spent.tokens))

    async def read_memory(self, content: str, known_entities: Sequence[tuple[str, EntityType]]) -> MemoryReading:
        """What the model finds in a memory. Raises ExtractionFailed; asks nothing where the memory is blank."""
        if not content.strip():
            return MemoryReading()
        text = await asyncio.to_thread(masked, legible(content))
        form = normal_form(text)
        named_first = sorted(known_entities, key=lambda one: normal_form(one[0]) not in form)
        spent = _Spent()

        def message(most: int) -> str:
            return _with_known(
                _fenced("memory", _json(_cut(text, most))),
                "Known entities",
                [{"name": masked(name), "type": kind.value} for name, kind in named_first],
            )

        answer = await self._read(_MEMORY, message, MEMORY_MOST, spent)
        return cleaned_memory_reading(
            MemoryReading(
                tuple(answer.topics),
                tuple((one.name, EntityType(one.type)) for one in answer.entities),
                tuple(FactDraft(one.subject, one.predicate, one.object, one.confidence) for one in answer.facts),
                spent.tokens,
            )
        )

    async def close(self) -> None:
        """Closes the connections; what is under way fails."""
        await self._client.close()

    async def _read(self, task: _Task[Form], message: Callable[[int], str], most: int, spent: _Spent) -> Form:
        """The answer in its form, after one repair at most."""
        for halving in range(_HALVINGS + 1):
            messages = [_said("system", task.instructions()), _said("user", message(most >> halving))]
            try:
                text = await self._ask(task, messages, spent)
                break
            except ProviderError as fault:
                if not fault.too_long or halving == _HALVINGS:
                    raise _failed(fault) from None
        try:
            return _parsed(task.form, text)
        except _UnfitError as unfit:
            problem = str(unfit)
        messages.append(_said("assistant", text[:_ANSWER_SENT_BACK_MOST] or "(nothing)"))
        messages.append(_said("user", _prompt("repair.md").replace("{problem}", problem)))
        try:
            return _parsed(task.form, await self._ask(task, messages, spent))
        except ProviderError as fault:
            raise _failed(fault) from None
        except _UnfitError:
            raise ExtractionFailed(
                f"Extraction failed: {self._model} answered twice in a form that can't be used."
            ) from None

    async def _ask(self, task: _Task[Form], messages: list[dict[str, str]], spent: _Spent) -> str:
        """The text of one answer. Raises ProviderError, or ExtractionFailed for an answer that isn't whole."""
        strict, temperature = self._strict, self._temperature
        while True:
            body = self._body(task, messages, strict=strict, temperature=temperature)
            try:
                answer = await self._client.call(partial(self._request, body))
                break
            except ProviderError as fault:
                if fault.status not in _REFUSED_REQUEST or fault.too_long:
                    raise
                if temperature and fault.param == "temperature":
                    temperature = False
                elif strict and (fault.param is None or fault.param.startswith("response_format")):
                    strict = False
                else:
                    raise
        # only what has helped is remembered
        self._strict, self._temperature = strict, temperature
        return self._content(answer, spent)

    def _body(
        self, task: _Task[Form], messages: list[dict[str, str]], *, strict: bool, temperature: bool
    ) -> dict[str, Any]:
        schema = task.form.model_json_schema()
        body: dict[str, Any] = {"model": self._model, "messages": messages}
        if temperature:
            body["temperature"] = 0.0
        if strict:
            asked = {"name": task.name, "strict": True, "schema": schema}
            return body | {"response_format": {"type": "json_schema", "json_schema": asked}}
        first = _said("system", f"{messages[0]['content']}\n\nThe JSON object follows this schema:\n{_json(schema)}")
        return body | {"messages": [first, *messages[1:]], "response_format": {"type": "json_object"}}

    @staticmethod
    async def _request(body: dict[str, Any], client: openai.AsyncOpenAI) -> object:
        answer = await client.chat.completions.with_raw_response.create(**body)
        return json.loads(answer.content)

    def _content(self, answer: object, spent: _Spent) -> str:
        """The text of an answer; "" where it has none, which has no form either."""
        found = answer if isinstance(answer, dict) else {}
        spent.tokens += _tokens(found.get("usage"))
        choices = found.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
        message = choice.get("message")
        message = message if isinstance(message, dict) else {}
        if message.get("refusal") or choice.get("finish_reason") == "content_filter":
            raise ExtractionFailed(f"Extraction failed: {self._model} declined to read this.")
        if choice.get("finish_reason") == "length":
            raise ExtractionFailed(f"Extraction failed: the answer of {self._model} was cut off at its length limit.")
        content = message.get("content")
        return content if isinstance(content, str) else ""


def _failed(fault: ProviderError) -> ExtractionFailed:
    return ExtractionFailed(f"Extraction failed: {fault}.", retry_after=fault.retry_after)


def _prompt(name: str) -> str:
    return files("reverie.ai").joinpath("prompts", name).read_text(encoding="utf-8").strip()


def _said(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


def _json(value: object) -> str:
    # Letters as they are: escapes cost tokens, and models copy them into their answers.
    return orjson.dumps(value).decode()


def _fenced(kind: str, content: str) -> str:
    """Data between two lines that nobody who wrote the data could know. JSON holds no line break of its own."""
    fence = f"{kind}-{token_hex(8)}"
    return f"<{fence}>\n{content}\n</{fence}>"


def _with_known(message: str, title: str, known: Sequence[dict[str, str]]) -> str:
    if not known:
        return message
    lines = "\n".join(_json({name: legible(text) for name, text in one.items()}) for one in known[:KNOWN_MOST])
    return f"{title}:\n{_fenced('known', lines)}\n\n{message}"


def _as_lines(events: Sequence[Event], texts: Sequence[str]) -> Iterator[str]:
    users: dict[str, str] = {}
    for place, (event, text) in enumerate(zip(events, texts, strict=True), 1):
        line = {"event": f"e{place}", "from": _SPEAKERS[event.event_type]}
        if event.user_id:
            # who it is is nobody's business
            line["user"] = users.setdefault(event.user_id, f"u{len(users) + 1}")
        line["at"] = event.occurred_at.isoformat(timespec="seconds")
        yield _json(line | {"text": text})


def _fitted(events: Sequence[Event], texts: Sequence[str], most: int) -> list[str]:
    """The texts, each of at most `EVENT_MOST` characters and all of at most `most`; what users say before the rest."""
    own = [event.event_type is EventType.USER_MESSAGE for event in events]
    others_need = sum(min(len(text), EVENT_MOST) for text, is_own in zip(texts, own, strict=True) if not is_own)
    reserved = min(others_need, int(most * _OTHERS_SHARE))
    own_cap = _even_cap([len(text) for text, is_own in zip(texts, own, strict=True) if is_own], most - reserved)
    taken = sum(min(len(text), own_cap) for text, is_own in zip(texts, own, strict=True) if is_own)
    others_cap = _even_cap([len(text) for text, is_own in zip(texts, own, strict=True) if not is_own], most - taken)
    return [_cut(text, own_cap if is_own else others_cap) for text, is_own in zip(texts, own, strict=True)]


def _even_cap(lengths: Iterable[int], most: int) -> int:
    """The greatest length to which all can be cut so that together they have at most `most`."""
    ordered = sorted(min(length, EVENT_MOST) for length in lengths)
    for place, length in enumerate(ordered):
        left = len(ordered) - place
        if length * left > most:
            return most // left
        most -= length
    return EVENT_MOST


def _cut(text: str, most: int) -> str:
    """The beginning and the end of a text that is too long, the beginning twice as long."""
    if len(text) <= most:
        return text
    room = max(most - len(_LEFT_OUT), 0)
    tail = room // 3
    return text[: room - tail] + _LEFT_OUT + text[len(text) - tail :]


def _parsed(form: type[Form], text: str) -> Form:
    """An answer in its form: fences, thoughts and words around the JSON are passed over. Raises _UnfitError."""
    bare = _THOUGHTS.sub("", text, count=1)
    start = bare.find("{")
    if start < 0:
        raise _UnfitError("it has no JSON object")
    try:
        found, _ = json.JSONDecoder().raw_decode(bare, start)
    except (json.JSONDecodeError, RecursionError) as error:
        where = f" at character {error.pos - start}: {error.msg}" if isinstance(error, json.JSONDecodeError) else ""
        raise _UnfitError(f"it is no whole JSON object{where}") from None
    try:
        return form.model_validate(found, strict=True)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, one['loc'])) or 'the answer'}: {one['msg']}"
            for one in error.errors(include_url=False, include_input=False)
        )
        raise _UnfitError(f"it doesn't follow the schema ({problems[:_QUOTED_PROBLEM_MOST]})") from None


def _tokens(usage: object) -> int:
    """All tokens of one try: what the server counted, 0 where it didn't."""
    if not isinstance(usage, dict):
        return 0
    total = usage.get("total_tokens")
    parts = [total] if isinstance(total, int) else [usage.get("prompt_tokens"), usage.get("completion_tokens")]
    return sum(part for part in parts if isinstance(part, int) and not isinstance(part, bool) and part > 0)
