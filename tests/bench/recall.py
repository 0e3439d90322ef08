"""`python -m tests.bench.recall --locomo FILE`: how well search finds the evidence of LoCoMo's questions, keyless.

FILE is `data/locomo10.json` of dial481/locomo-audit, whose licence (CC BY-NC 4.0) forbids a copy in here. Each of its
conversations is a tenant of its own, each session a Conversation, each turn a memory that mentions its speaker and has
its session's time; the questions are those of the
categories 1 to 4 with evidence. Neo4j is the one of `NEO4J_URI` (and `NEO4J_PASSWORD`), or a private one; vectors are
the local model's, and kept in the user's cache folder.

Printed is one Markdown table: for turns and for sessions, in all and by category, what each ranking finds among its
first 30 turns, with standard errors, and how its any@10 differs from the product's, over the same questions.
"""

import argparse
import asyncio
import json
import math
import re
import sqlite3
import sys
import tempfile
from array import array
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum, auto
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

from platformdirs import user_cache_path
from tests.bench.changes import neo4j_settings
from tests.recalling import (
    Dialogue,
    Question,
    Session,
    Turn,
    all_at,
    any_at,
    mean_and_error,
    reciprocal_rank,
    write_dialogue,
)

from reverie.ai.embedders import Embedder
from reverie.domain import policy
from reverie.domain.clock import from_ms, now_ms
from reverie.domain.memories import MemoryFilter
from reverie.domain.names import name_forms
from reverie.domain.ranking import rank
from reverie.domain.search import Candidates, SearchFilter, SearchKind, SearchMode
from reverie.domain.text import query_words, words
from reverie.domain.times import named_times
from reverie.errors import ReverieError
from reverie.graph.search import Asked, candidates
from reverie.resources import Resources, open_resources
from reverie.services.embedding import embed_all, embed_query
from reverie.services.search import search
from reverie.settings import Settings

DEPTH = 30
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "inference", 4: "single-hop"}
MEASURES = {
    "any@1": any_at(1),
    "any@5": any_at(5),
    "any@10": any_at(10),
    "all@10": all_at(10),
    "any@30": any_at(30),
    "MRR": reciprocal_rank,
}
PRODUCT = "**search, as it is**"
PLAIN = "BM25 alone, no product"
TURN = re.compile(r"D(\d+):(\d+)")
TIME = "%I:%M %p on %d %B, %Y"


class Lever(Enum):
    """What search does beyond fusing both arms, but for what its vectors know."""

    LENDING = auto()
    NAMES = auto()
    TIMES = auto()


Ranks = dict[str, list[tuple[Question, list[str]]]]
"""By the name of a ranking, what it found for each question, in the order of the questions."""


class BadFile(Exception):
    """The file isn't LoCoMo's."""


def read_locomo(path: Path, first: int, last: int) -> list[Dialogue]:
    """The conversations of these numbers, counted from 1. Raises BadFile, which says what and where."""
    try:
        samples = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise BadFile(f"{path}: can't be read as JSON: {problem}") from None
    if not isinstance(samples, list) or not 1 <= first <= last <= len(samples):
        count = len(samples) if isinstance(samples, list) else "no"
        raise BadFile(f"{path}: has {count} conversations, of which {first} to {last} were asked for")
    dialogues = []
    for number, sample in enumerate(samples[first - 1 : last], start=first):
        try:
            dialogues.append(_dialogue(sample))
        except (AttributeError, KeyError, TypeError, ValueError) as problem:
            raise BadFile(f"{path}: conversation {number} isn't LoCoMo's: {problem!r}") from None
    return dialogues


def _dialogue(sample: dict[str, Any]) -> Dialogue:
    told = sample["conversation"]
    sessions = []
    for number in range(1, len(told)):
        if f"session_{number}" in told:
            time = datetime.strptime(told[f"session_{number}_date_time"], TIME).replace(tzinfo=UTC)
            turns = tuple(Turn(turn["dia_id"], _text(turn), turn["speaker"]) for turn in told[f"session_{number}"])
            sessions.append(Session(f"session {number}", turns, time))
    known = {turn.id for session in sessions for turn in session.turns}
    questions = []
    for asked in sample["qa"]:
        named = {f"D{int(session)}:{int(turn)}" for session, turn in TURN.findall(" ".join(asked.get("evidence", ())))}
        # a few questions name turns that don't exist
        if asked["category"] in CATEGORIES and (evidence := frozenset(named & known)):
            questions.append(Question(asked["question"], evidence, CATEGORIES[asked["category"]]))
    return Dialogue(sample["sample_id"], tuple(sessions), tuple(questions))


def _text(turn: dict[str, Any]) -> str:
    caption = f" [image: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
    return f"{turn['speaker']}: {turn['text']}{caption}"


class KeptVectors:
    """An embedder over another one whose vectors are kept in a file, in 4 bytes a dimension."""

    def __init__(self, embedder: Embedder, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._embedder = embedder
        self._file = sqlite3.connect(path)
        self._file.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID")
        self.name, self.dimensions, self.batch_size = embedder.name, embedder.dimensions, embedder.batch_size

    async def embed_query(self, text: str) -> list[float]:
        """The vector of a question, kept or made."""
        return (await self._vectors("query", [text]))[0]

    async def embed_passages(self, texts: Sequence[str]) -> list[list[float]]:
        """The vectors of texts, kept or made."""
        return await self._vectors("passage", texts)

    async def close(self) -> None:
        """Closes the file; the other embedder is its opener's."""
        self._file.close()

    async def _vectors(self, kind: Literal["query", "passage"], texts: Sequence[str]) -> list[list[float]]:
        keys = {text: blake2b("\0".join((self.name, kind, text)).encode(), digest_size=16).digest() for text in texts}
        missing = [text for text, key in keys.items() if self._kept(key) is None]
        if missing:
            if kind == "query":
                made = [await self._embedder.embed_query(text) for text in missing]
            else:
                made = await self._embedder.embed_passages(missing)
            rows = [(keys[text], array("f", vector).tobytes()) for text, vector in zip(missing, made, strict=True)]
            with self._file:
                self._file.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?)", rows)
        kept = [self._kept(keys[text]) for text in texts]
        return [array("f", vector).tolist() for vector in kept if vector is not None]

    def _kept(self, key: bytes) -> bytes | None:
        row: tuple[bytes] | None = self._file.execute("SELECT vector FROM vectors WHERE key = ?", (key,)).fetchone()
        return None if row is None else row[0]


class BM25:
    """The baseline: Okapi BM25 over the same words that the product indexes, k1 = 1.2 and b = 0.75.

    Source: S. Robertson, H. Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009.
    """

    def __init__(self, texts: dict[str, str], k1: float = 1.2, b: float = 0.75) -> None:
        counts = {item: Counter(words(text)) for item, text in texts.items()}
        average = sum(count.total() for count in counts.values()) / len(counts)
        self._weights: dict[str, dict[str, float]] = defaultdict(dict)
        holding = Counter(word for count in counts.values() for word in count)
        for item, count in counts.items():
            norm = k1 * (1 - b + b * count.total() / average)
            for word, times in count.items():
                rarity = math.log(1 + (len(counts) - holding[word] + 0.5) / (holding[word] + 0.5))
                self._weights[word][item] = rarity * times / (times + norm)

    def ranking(self, query: str) -> list[str]:
        """The items that hold some of the query's words, best first."""
        scores: Counter[str] = Counter()
        for word in query_words(query):
            scores.update(self._weights.get(word, {}))
        return [item for item, _ in scores.most_common()]


@dataclass(frozen=True, slots=True)
class Copy:
    """A dialogue as one tenant has it: the turns' ids by their memories', and every turn's place."""

    tenant: str
    turns: dict[str, str]
    places: dict[str, tuple[str, int]]


async def write(resources: Resources, tenant: str, dialogue: Dialogue, *, threaded: bool) -> Copy:
    """Writes a dialogue with its conversations, or without them: then no vector knows what was said before."""
    turns = await write_dialogue(resources, tenant, dialogue, threaded=threaded)
    await embed_all(resources)
    stood = {
        turn.id: (session.title, place)
        for session in dialogue.sessions
        for place, turn in enumerate(session.turns, start=1)
    }
    return Copy(tenant, turns, {memory: stood[turn] for memory, turn in turns.items()})


async def both_arms(resources: Resources, copy: Copy, question: str) -> Candidates:
    """What `search` has before it ranks."""
    asked = Asked(
        tenant=copy.tenant,
        number=await resources.tenant_number(copy.tenant),
        kinds=(SearchKind.MEMORY,),
        wanted=MemoryFilter(),
        vector=await embed_query(resources, question),
        words=query_words(question),
        forms=list(name_forms(question)),
        sure=None,
        whole=policy.ARM_DEPTH,
        now=now_ms(),
    )
    return await candidates(resources.graph, asked)


async def rankings(resources: Resources, own: Copy, plain: Copy, bm25: BM25, question: str) -> dict[str, list[str]]:
    """The first turns for a question by each way of ranking."""
    wanted = SearchFilter(kinds=(SearchKind.MEMORY,))

    async def searched(mode: SearchMode) -> list[str]:
        hits = await search(resources, own.tenant, question, mode=mode, wanted=wanted, first=DEPTH)
        return [own.turns[node.id] for node in hits.nodes]

    def ranked(
        copy: Copy, semantic: list[tuple[str, float]], keyword: list[tuple[str, float]], *levers: Lever
    ) -> list[str]:
        found = replace(knowing if copy is own else unknowing, semantic=semantic, keyword=keyword)
        found = replace(found, places=copy.places if Lever.LENDING in levers else {})
        found = found if Lever.NAMES in levers else replace(found, naming=frozenset())
        times = named_times(question, now) if Lever.TIMES in levers else []
        return [copy.turns[one.item] for one in rank(found, times)[:DEPTH]]

    knowing = await both_arms(resources, own, question)
    unknowing = await both_arms(resources, plain, question)
    knowing_arms, unknowing_arms = (knowing.semantic, knowing.keyword), (unknowing.semantic, unknowing.keyword)
    now = from_ms(now_ms())
    return {
        PRODUCT: await searched(SearchMode.HYBRID),
        "without lending": ranked(own, *knowing_arms, Lever.NAMES, Lever.TIMES),
        "without names": ranked(own, *knowing_arms, Lever.LENDING, Lever.TIMES),
        "without times": ranked(own, *knowing_arms, Lever.LENDING, Lever.NAMES),
        "without context in vectors": ranked(plain, *unknowing_arms, *Lever),
        "plain hybrid: without all of them": ranked(plain, *unknowing_arms),
        "plain hybrid and lending": ranked(plain, *unknowing_arms, Lever.LENDING),
        "plain hybrid and names": ranked(plain, *unknowing_arms, Lever.NAMES),
        "plain hybrid and times": ranked(plain, *unknowing_arms, Lever.TIMES),
        "plain hybrid and context in vectors": ranked(own, *knowing_arms),
        "mode SEMANTIC": await searched(SearchMode.SEMANTIC),
        "mode KEYWORD": await searched(SearchMode.KEYWORD),
        "vectors with context alone": ranked(own, knowing.semantic, []),
        "vectors without context alone": ranked(plain, unknowing.semantic, []),
        "words alone": ranked(own, [], knowing.keyword),
        PLAIN: bm25.ranking(question)[:DEPTH],
    }


async def ranks_of(resources: Resources, dialogue: Dialogue) -> Ranks:
    """Writes a dialogue and asks its questions."""
    tenant = f"bench-{uuid4().hex[:12]}"
    own = await write(resources, tenant, dialogue, threaded=True)
    plain = await write(resources, f"{tenant}-plain", dialogue, threaded=False)
    bm25 = BM25({turn.id: turn.text for turn in dialogue.turns.values()})
    found: Ranks = defaultdict(list)
    for question in dialogue.questions:
        for name, ranking in (await rankings(resources, own, plain, bm25, question.text)).items():
            found[name].append((question, ranking))
    return found


def sessions_of(found: list[tuple[Question, list[str]]]) -> list[tuple[Question, list[str]]]:
    """The same for sessions, each where its best turn is."""

    def session(turn: str) -> str:
        return turn.partition(":")[0]

    return [
        (
            replace(question, evidence=frozenset(map(session, question.evidence))),
            list(dict.fromkeys(map(session, turns))),
        )
        for question, turns in found
    ]


def table(ranks: Ranks) -> str:
    """Every ranking's measures, for turns and sessions, in all and by category."""
    lines = [
        f"| found | questions | ranking | {' | '.join(MEASURES)} | any@10 against search |",
        f"| --- | --- | --- | {' | '.join('---' for _ in MEASURES)} | --- |",
    ]
    levels = {"turns": ranks, "sessions": {name: sessions_of(found) for name, found in ranks.items()}}
    for level, of_level in levels.items():
        for category in ("all", *CATEGORIES.values()):
            chosen = {
                name: [one for one in found if category in ("all", one[0].category)] for name, found in of_level.items()
            }
            count = len(chosen[PRODUCT])
            if count:
                lines += [
                    f"| {level} | {category}, {count} | {name} | {_figures(found, chosen[PRODUCT])} |"
                    for name, found in chosen.items()
                ]
    return "\n".join(lines)


def _figures(found: list[tuple[Question, list[str]]], product: list[tuple[Question, list[str]]]) -> str:
    cells = []
    for measure in MEASURES.values():
        mean, error = mean_and_error([measure(ranking, question.evidence) for question, ranking in found])
        cells.append(f"{mean:.3f} ± {error:.3f}")
    measure = MEASURES["any@10"]
    gains = [
        measure(ranking, question.evidence) - measure(other, question.evidence)
        for (question, ranking), (_, other) in zip(found, product, strict=True)
    ]
    mean, error = mean_and_error(gains)
    return " | ".join((*cells, "" if found is product else f"{mean:+.3f} ± {error:.3f}"))


def numbers(text: str) -> tuple[int, int]:
    """The first and the last of `1-5`, or of `3` alone."""
    match = re.fullmatch(r"(\d+)(?:-(\d+))?", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"must be like 1-5 or 3, not {text!r}")
    return int(match[1]), int(match[2] or match[1])


async def measured(dialogues: Sequence[Dialogue]) -> Ranks:
    """What every ranking finds for every question of the dialogues."""
    ranks: Ranks = defaultdict(list)
    with tempfile.TemporaryDirectory() as name:
        async with neo4j_settings(Path(name)) as variables:
            settings = Settings.read({**variables, "REVERIE_EMBEDDER": "local", "REVERIE_EMBEDDING_TIMEOUT": "600"})
            async with open_resources(settings) as opened:
                assert opened.embedder is not None
                path = user_cache_path("reverie", appauthor=False) / "bench-vectors.sqlite"
                kept = KeptVectors(opened.embedder, path)
                for dialogue in dialogues:
                    turns, asked = len(dialogue.turns), len(dialogue.questions)
                    print(f"{dialogue.name}: {turns} turns, {asked} questions…", file=sys.stderr, flush=True)
                    for ranking, found in (await ranks_of(replace(opened, embedder=kept), dialogue)).items():
                        ranks[ranking] += found
                await kept.close()
    return ranks


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, prog="python -m tests.bench.recall"
    )
    parser.add_argument("--locomo", type=Path, required=True, metavar="FILE")
    parser.add_argument("--conversations", type=numbers, default=(1, 5), metavar="FIRST-LAST", help="default: 1-5")
    options = parser.parse_args()
    try:
        dialogues = read_locomo(options.locomo, *options.conversations)
    except BadFile as problem:
        parser.error(f"--locomo {problem}")
    try:
        print(table(asyncio.run(measured(dialogues))))
    except ReverieError as problem:
        sys.exit(str(problem))


if __name__ == "__main__":
    main()
