"""Retrieval measured: dialogues with questions, written as memories, and how well a ranking holds the evidence."""

import math
import statistics
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from reverie.domain.conversations import ConversationDraft
from reverie.domain.entities import EntityRef, EntityType
from reverie.domain.memories import MemoryDraft
from reverie.resources import Resources
from reverie.services.conversations import create_conversation
from reverie.services.memories import create_memories

FOLDER = Path(__file__).parent / "recall"
"""The project's own dialogues, a file for each language."""

Measure = Callable[[Sequence[str], frozenset[str]], float]
"""How good a ranking of ids, best first, is for the ids that are evidence: from 0 to 1."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What one said; the id is the dialogue's own."""

    id: str
    text: str
    speaker: str | None = None
    """Who said it: an entity that its memory mentions."""


@dataclass(frozen=True, slots=True)
class Session:
    """Turns said in one go, in their order."""

    title: str
    turns: tuple[Turn, ...]
    time: datetime | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and the ids of the turns that answer it together."""

    text: str
    evidence: frozenset[str]
    category: str


@dataclass(frozen=True, slots=True)
class Dialogue:
    """Sessions of the same speakers, and what is asked about them."""

    name: str
    sessions: tuple[Session, ...]
    questions: tuple[Question, ...]

    @property
    def turns(self) -> dict[str, Turn]:
        """Every turn by its id, in order."""
        return {turn.id: turn for session in self.sessions for turn in session.turns}


def own_dialogues() -> list[Dialogue]:
    """The project's own, one session each; a question's category is its language."""
    found = []
    for path in sorted(FOLDER.glob("*.toml")):
        for read in tomllib.loads(path.read_text(encoding="utf-8"))["dialogue"]:
            name = read["name"]
            turns = tuple(Turn(f"{name}:{number}", text) for number, text in read["turns"].items())
            questions = tuple(
                Question(text, frozenset(f"{name}:{number}" for number in evidence), path.stem)
                for text, evidence in read["questions"].items()
            )
            found.append(Dialogue(name, (Session(name, turns),), questions))
    return found


async def write_dialogue(
    resources: Resources, tenant: str, dialogue: Dialogue, *, threaded: bool = True
) -> dict[str, str]:
    """Writes each session as a conversation, or its turns as memories of none; the turns' ids by their memories'."""
    written: dict[str, str] = {}
    for session in dialogue.sessions:
        thread = None
        if threaded:
            thread = (await create_conversation(resources, tenant, ConversationDraft(session.title), None)).id
        drafts = [
            MemoryDraft(
                content=turn.text,
                conversation_id=thread,
                event_time=session.time,
                entities=() if turn.speaker is None else (EntityRef(name=turn.speaker, type=EntityType.PERSON),),
                enrich=False,
            )
            for turn in session.turns
        ]
        memories = await create_memories(resources, tenant, drafts, None)
        written |= {memory.id: turn.id for memory, turn in zip(memories, session.turns, strict=True)}
    return written


def any_at(k: int) -> Measure:
    """Whether some of the evidence is among the first k."""
    return lambda ranking, evidence: float(not evidence.isdisjoint(ranking[:k]))


def all_at(k: int) -> Measure:
    """Whether all of the evidence is among the first k."""
    return lambda ranking, evidence: float(evidence.issubset(ranking[:k]))


def reciprocal_rank(ranking: Sequence[str], evidence: frozenset[str]) -> float:
    """One by the rank of the first that is evidence, 0 where none is; its mean is the MRR."""
    return next((1 / rank for rank, item in enumerate(ranking, start=1) if item in evidence), 0.0)


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """The mean and its standard error; of a single value that is not a number."""
    if len(values) == 1:
        return values[0], math.nan
    return statistics.fmean(values), statistics.stdev(values) / math.sqrt(len(values))
