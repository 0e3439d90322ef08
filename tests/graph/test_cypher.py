"""Every Cypher text is planned by a real Neo4j: each constant, and each shape of what is composed."""

import ast
import asyncio
import importlib
import inspect
import pkgutil
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from itertools import product
from typing import Any

import pytest
import pytest_asyncio
from neo4j import AsyncGraphDatabase, NotificationDisabledClassification
from tests.crowd import Crowd

import reverie.graph
from reverie.domain import policy
from reverie.domain.beliefs import BeliefChangeKind, BeliefType
from reverie.domain.changes import BeliefChangeFilter
from reverie.domain.dreaming import HALF_LIVES
from reverie.domain.entities import EntityType
from reverie.domain.episodes import ConsolidationStatus, EpisodeFilter, EpisodeOutcome
from reverie.domain.events import EventFilter, EventType
from reverie.domain.facts import FactFilter
from reverie.domain.memories import MemoryFilter, MemoryOrder, MemoryOrderField, MemoryType
from reverie.domain.search import VECTOR_KINDS, SearchKind
from reverie.domain.topics import NameOrder, NameOrderField
from reverie.graph import listings, schema
from reverie.graph.changes import count_changes_statement, find_changes_statement
from reverie.graph.episodes import unfinished_statement
from reverie.graph.filters import change_where, entity_where, episode_where, index_can_decide, memory_where
from reverie.graph.listings import Listing, list_statement, size_statement
from reverie.graph.maps import map_statement
from reverie.graph.records import ENTITY, MEMORY, TOPIC
from reverie.graph.relations import (
    RELATIONS,
    Relation,
    count_statement,
    memory_order,
    one_statement,
    page_statement,
)
from reverie.graph.search import Arms, search_statement
from reverie.graph.words import VECTOR_LABELS
from reverie.local import LocalNeo4j

MODULES = {
    found.name: importlib.import_module(f"reverie.graph.{found.name}")
    for found in pkgutil.iter_modules(reverie.graph.__path__)
}
STATEMENT = re.compile(r"\s*(CYPHER 25\s+)?(CALL|CREATE|DROP|MATCH|MERGE|OPTIONAL|RETURN|SHOW|UNWIND|WITH)\b")
FRAGMENTS = {
    "NAMED",
    "OF_FORM",
    "SOME_EXPIRED",
    "STEP",
    "_ALONE",
    "_BEFORE",
    "_BELIEFS",
    "_DEGREE",
    "_DRAWN",
    "_DREAM",
    "_EPISODES",
    "_HELD",
    "_HOLDS",
    "_LEARNED_FROM",
    "_LIVING",
    "_NEAR",
    "_OF_KIND",
    "_OWN",
    "_RELATED",
    "_SOURCE",
    "_SOURCED",
    "_STEP",
    "_SUBJECT",
    "_SUBJECTS_BELIEFS",
    "_SURE",
    "_TAUGHT",
}
"""Upper-case texts that statements are composed of."""
COMPOSERS = {
    "count_changes_statement",
    "count_statement",
    "find_changes_statement",
    "list_statement",
    "map_statement",
    "no_index",
    "one_statement",
    "page_statement",
    "search_statement",
    "size_statement",
    "unfinished_statement",
    "vector_index",
}
"""The functions whose texts are planned shape by shape below."""
BY_LABEL = {
    # whether there is one at all, in the whole store
    "embeddings.ANYTHING_TO_EMBED",
    # the label is on nothing but what waits
    "embeddings.UNEMBEDDED",
    # tenants and workers are few
    "dreaming.ANY_WORKER",
    "dreaming.CANDIDATES",
    "enrichment.EXPIRED_MEMORIES",
    # all that is found by word, counted once before it is indexed anew
    "words.COUNT_WORDED",
}
"""Reading texts that may look through all nodes of a label."""
MOMENT = datetime(2026, 3, 1, tzinfo=UTC)


def constants() -> dict[str, str]:
    """Every upper-case text of the graph's modules, private ones and those in tuples among them, by its name."""
    found: dict[str, str] = {}
    for module, contents in MODULES.items():
        for name, value in vars(contents).items():
            if not name.strip("_").isupper():
                continue
            texts = value if isinstance(value, tuple) else (value,)
            for place, text in enumerate(texts):
                if isinstance(text, str) and " " in text and name not in FRAGMENTS and text not in found.values():
                    found[f"{module}.{name}{f'[{place}]' if isinstance(value, tuple) else ''}"] = text
    return found


CONSTANTS = constants()


@dataclass(frozen=True)
class Plan:
    """What Neo4j would do: the operators, from the result to the sources, with what each works on."""

    kind: str
    operators: Sequence[tuple[str, str]]

    def named(self, *names: str) -> list[tuple[str, str]]:
        return [operator for operator in self.operators if operator[0] in names]


Explain = Callable[[str], Awaitable[Plan]]


@pytest_asyncio.fixture(scope="module")
async def explain(neo4j: LocalNeo4j, crowd: Crowd) -> AsyncIterator[Explain]:
    """Plans a text on a store of some size, as plans follow the statistics; what is deprecated fails."""
    classifications = NotificationDisabledClassification
    driver = AsyncGraphDatabase.driver(
        neo4j.uri,
        auth=(neo4j.username, neo4j.password),
        # parameters are left out, and what nothing has yet is no news
        notifications_disabled_classifications=[
            classifications.GENERIC,
            classifications.UNRECOGNIZED,
            classifications.PERFORMANCE,
        ],
    )
    async with driver:

        async def plan(text: str) -> Plan:
            async with driver.session() as session:
                summary = await (await session.run(f"EXPLAIN {text}")).consume()
            news = [status.status_description for status in summary.gql_status_objects if status.is_notification]
            assert news == [], text
            return Plan(summary.query_type or "", list(_operators(summary.plan)))

        yield plan


def _operators(plan: dict[str, Any] | None) -> Iterator[tuple[str, str]]:
    if plan is not None:
        yield plan["operatorType"].split("@")[0], plan.get("args", {}).get("Details", "")
        for child in plan.get("children", ()):
            yield from _operators(child)


async def all_of(explain: Explain, texts: Sequence[str]) -> list[tuple[str, Plan]]:
    """The plans of some texts, two at a time, as planning is what takes the time here."""
    turns = asyncio.Semaphore(2)

    async def one(text: str) -> tuple[str, Plan]:
        async with turns:
            return text, await explain(text)

    return await asyncio.gather(*(one(text) for text in texts))


def check_read(plan: Plan, text: str) -> None:
    """A read comes from an index or from given nodes, never from all nodes there are."""
    assert plan.kind == "r", text
    scans = plan.named("NodeByLabelScan", "AllNodesScan", "UnionNodeByLabelsScan", "IntersectionNodeByLabelsScan")
    assert scans == [], text
    assert [operator for operator in plan.operators if "RelationshipTypeScan" in operator[0]] == [], text


# ---------------------------------------------------------------- constants


def test_every_upper_case_text_is_a_statement() -> None:
    assert [name for name, text in CONSTANTS.items() if not STATEMENT.match(text)] == []
    assert len(CONSTANTS) > 80


def test_no_text_is_written_where_it_is_run() -> None:
    inline, composed = [], set()
    for name, module in MODULES.items():
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called not in ("run", "read", "write", "execute", "_patiently"):
                continue
            texts = [argument for argument in node.args if not isinstance(argument, ast.Starred)]
            if any(isinstance(text, (ast.Constant, ast.JoinedStr, ast.BinOp)) for text in texts):
                inline.append(f"{name}:{node.lineno}")
            composed |= {
                text.func.id for text in texts if isinstance(text, ast.Call) and isinstance(text.func, ast.Name)
            }

    assert inline == []
    assert composed - {"Query"} <= COMPOSERS


@pytest.mark.parametrize("name", CONSTANTS)
async def test_a_constant_is_planned(explain: Explain, name: str) -> None:
    plan = await explain(CONSTANTS[name])

    if plan.kind == "r" and name not in BY_LABEL:
        check_read(plan, CONSTANTS[name])


def test_what_may_go_by_label_is_there() -> None:
    assert CONSTANTS.keys() >= BY_LABEL


@pytest.mark.parametrize("label", VECTOR_LABELS)
async def test_a_vector_index_is_planned(explain: Explain, label: str) -> None:
    for text in (schema.vector_index(label, 384), schema.no_index(f"{label.lower()}_embedding")):
        assert (await explain(text)).kind == "s"


# ---------------------------------------------------------------- shapes

EVERY_FIELD = MemoryFilter(
    memory_types=(MemoryType.SEMANTIC,),
    min_importance=0.5,
    conversation_id="a",
    topic_ids=("a",),
    entity_ids=("a",),
    subject_id="a",
    agent_id="a",
    user_id="a",
    created_after=MOMENT,
    created_before=MOMENT,
    event_after=MOMENT,
    event_before=MOMENT,
)
IN_INDEX = MemoryFilter(
    memory_types=(MemoryType.SEMANTIC,),
    min_importance=0.5,
    agent_id="a",
    created_after=MOMENT,
    created_before=MOMENT,
    event_after=MOMENT,
    event_before=MOMENT,
)
"""Every field that leaves a list in the order of its index; each alone is run for real where filters are tested."""
EVENTS_IN_INDEX = EventFilter(
    agent_id="a", event_types=(EventType.TOOL_CALL,), occurred_after=MOMENT, occurred_before=MOMENT
)
EPISODES_IN_INDEX = EpisodeFilter(
    agent_id="a", consolidation_statuses=(ConsolidationStatus.OPEN,), outcomes=(EpisodeOutcome.COMPLETED,)
)
EVERY_CHANGE_FIELD = BeliefChangeFilter(
    subject_ids=("a",),
    keys=("a",),
    domains=("a",),
    belief_types=(BeliefType.FACT,),
    kinds=(BeliefChangeKind.CREATED,),
)
STARTS = (
    MemoryFilter(conversation_id="a"),
    MemoryFilter(topic_ids=("a", "b"), min_importance=0.5),
    MemoryFilter(entity_ids=("a", "b")),
    MemoryFilter(subject_id="a"),
)
"""Every field that a list is better read from."""
MEMORY_ORDERS = tuple(MemoryOrder(field, down) for field, down in product(MemoryOrderField, (True, False)))
INDEXED_NAME_ORDERS = tuple(
    NameOrder(field, down)
    for field, down in product(NameOrderField, (True, False))
    if field is not NameOrderField.MEMORIES
)
FROM_ENDS = ((False, False, False), (False, False, True))
WITH_CURSOR = ((True, False, False), (False, True, True))
ALL_BOUNDS = (True, True, False)
"""After, before, backward."""


def test_the_filters_here_have_every_field() -> None:
    names = {field.name for field in fields(MemoryFilter)}

    assert {name for name in names if getattr(EVERY_FIELD, name) is not None} == names
    # episodes are searched by their user, and no memories are listed by it
    listed = names - {"user_id"}
    assert {name for name in names for wanted in (IN_INDEX, *STARTS) if getattr(wanted, name) is not None} == listed
    assert memory_where(IN_INDEX).start is None
    assert None not in [memory_where(wanted).start for wanted in STARTS]


# ---------------------------------------------------------------- relations


def _relation_texts(relation: Relation) -> Iterator[str]:
    """What is read along a relation: in its own order, then in other orders and with filters."""
    yield one_statement(relation)
    yield count_statement(relation, ())
    for bounds in (FROM_ENDS[0], ALL_BOUNDS):
        yield page_statement(relation, relation.order, (), *bounds)
    if relation.target is ENTITY:
        typed = entity_where(EntityType.TOOL).predicates
        yield page_statement(relation, relation.order, typed, *ALL_BOUNDS)
        yield count_statement(relation, typed)
    if relation.target is MEMORY and relation.name == "memories":
        # orders and predicates are over x alone: one relation stands for the others
        for order in MEMORY_ORDERS if relation.owner is TOPIC else MEMORY_ORDERS[:2]:
            yield page_statement(relation, memory_order(order), (), *ALL_BOUNDS)
        every = memory_where(EVERY_FIELD).predicates
        yield page_statement(relation, memory_order(None), every, *ALL_BOUNDS)
        yield count_statement(relation, every)


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda relation: relation.scope)
async def test_a_relation_is_planned(explain: Explain, relation: Relation) -> None:
    for text, plan in await all_of(explain, list(_relation_texts(relation))):
        check_read(plan, text)


# ---------------------------------------------------------------- the change log, and what is followed


@pytest.mark.parametrize("wanted", [BeliefChangeFilter(), EVERY_CHANGE_FIELD], ids=["all", "filtered"])
async def test_the_log_is_read_by_its_numbers(explain: Explain, wanted: BeliefChangeFilter) -> None:
    where = change_where(wanted)
    for text in (find_changes_statement(where), count_changes_statement(where)):
        check_read(await explain(text), text)


@pytest.mark.parametrize("wanted", [EpisodeFilter(), EPISODES_IN_INDEX], ids=["all", "filtered"])
async def test_what_is_unfinished_is_found_by_its_status(explain: Explain, wanted: EpisodeFilter) -> None:
    text = unfinished_statement(episode_where(wanted))

    check_read(await explain(text), text)


# ---------------------------------------------------------------- lists


def _in_order() -> list[Listing]:
    """Lists whose order an index keeps, bare and filtered."""
    found = [
        *(listings.memories(None, order) for order in MEMORY_ORDERS),
        *(listings.conversations(None, order) for order in INDEXED_NAME_ORDERS),
        *(listings.topics(None, order) for order in INDEXED_NAME_ORDERS),
        *(listings.entities(None, None, order) for order in INDEXED_NAME_ORDERS),
        listings.facts(FactFilter()),
        listings.communities(None),
        listings.events(None),
        listings.episodes(None),
        listings.beliefs(None, HALF_LIVES),
        listings.documents(),
    ]
    # the defaults are among them
    assert {listings.memories(None, None), listings.conversations(None, None), listings.topics(None, None)} <= {*found}
    return found


def _filtered() -> list[Listing]:
    """Lists of which a filter leaves some, still in the order of an index."""
    return [
        *(listings.memories(IN_INDEX, order) for order in MEMORY_ORDERS[:2]),
        *(listings.conversations("a", order) for order in INDEXED_NAME_ORDERS[:2]),
        *(listings.topics("a", order) for order in INDEXED_NAME_ORDERS[:2]),
        *(listings.entities(EntityType.TOOL, "a", order) for order in INDEXED_NAME_ORDERS[:2]),
        listings.facts(FactFilter(predicate="b", min_confidence=0.5)),
        listings.communities("LEIDEN"),
        listings.events(EVENTS_IN_INDEX),
        listings.episodes(EPISODES_IN_INDEX),
    ]


def _sorted() -> list[Listing]:
    """Lists that are sorted after they are read: by a count, or as few as lie beyond what their filter starts from."""
    most, least = NameOrder(NameOrderField.MEMORIES, True), NameOrder(NameOrderField.MEMORIES)
    return [
        listings.conversations(None, most),
        listings.topics("a", least),
        listings.entities(EntityType.TOOL, "a", most),
        *(listings.memories(wanted, None) for wanted in STARTS),
        listings.facts(FactFilter(subject="a")),
        listings.facts(FactFilter(subject="a", predicate="b", object="c", min_confidence=0.5)),
        listings.facts(FactFilter(object="c")),
        listings.events(replace(EVENTS_IN_INDEX, thread_id="a", user_id="b")),
        listings.events(EventFilter(user_id="b")),
        listings.episodes(replace(EPISODES_IN_INDEX, thread_id="a", user_id="b")),
        listings.episodes(EpisodeFilter(user_id="b")),
    ]


def test_the_lists_here_are_all_there_are() -> None:
    makers = [
        name
        for name, made in inspect.getmembers(listings, inspect.isfunction)
        if made.__annotations__.get("return") is Listing
    ]

    assert makers == [
        "beliefs",
        "communities",
        "conversations",
        "documents",
        "entities",
        "episodes",
        "events",
        "facts",
        "memories",
        "topics",
    ]


def _name(listing: Listing) -> str:
    return listing.scope


def check_in_order(listing: Listing, plan: Plan, text: str) -> None:
    """A page is cut from the index that keeps the order, and nothing is sorted."""
    column = listing.order.keys[0].expression.removeprefix("x.")
    check_read(plan, text)
    assert [operator for operator in plan.operators if "Sort" in operator[0] or "Top" in operator[0]] == [], text
    seeks = [details for name, details in plan.operators if name.startswith("NodeIndexSeek")]
    assert len(seeks) == 1, text
    assert f"{listing.label.name}(tenant, {column}, id)" in seeks[0], text


@pytest.mark.parametrize("listing", _in_order(), ids=_name)
async def test_a_list_is_read_in_the_order_of_its_index(explain: Explain, listing: Listing) -> None:
    texts = [list_statement(listing, *bounds) for bounds in (*FROM_ENDS, *WITH_CURSOR)]
    for text, plan in await all_of(explain, texts):
        check_in_order(listing, plan, text)


async def test_a_filtered_list_is_read_in_the_order_of_its_index(explain: Explain) -> None:
    by_text = {list_statement(listing, *ALL_BOUNDS): listing for listing in _filtered()}
    for text, plan in await all_of(explain, list(by_text)):
        check_in_order(by_text[text], plan, text)


async def test_a_list_that_is_sorted_comes_from_an_index_too(explain: Explain) -> None:
    for text, plan in await all_of(explain, [list_statement(listing, *ALL_BOUNDS) for listing in _sorted()]):
        check_read(plan, text)


async def test_lists_are_counted_by_an_index(explain: Explain) -> None:
    texts = {size_statement(listing) for listing in (*_in_order(), *_filtered(), *_sorted())}
    for text, plan in await all_of(explain, sorted(texts)):
        check_read(plan, text)


# ---------------------------------------------------------------- the map


@pytest.mark.parametrize("depth", range(policy.MAP_DEPTH_MOST + 1))
@pytest.mark.parametrize("centred", [True, False], ids=["around", "whole"])
async def test_a_map_comes_from_indexes(explain: Explain, depth: int, centred: bool) -> None:
    text = map_statement(depth, centred=centred)

    check_read(await explain(text), text)


# ---------------------------------------------------------------- search


def _arms() -> Iterator[Arms]:
    yield Arms(VECTOR_KINDS, True)
    yield Arms(VECTOR_KINDS, True, filter_in_index=True)
    yield Arms((), True)
    for kind in VECTOR_KINDS:
        yield Arms((kind,), False)
    for kind, wanted in (
        (SearchKind.BELIEF, MemoryFilter(subject_id="a", created_after=MOMENT)),
        (SearchKind.EPISODE, MemoryFilter(agent_id="a")),
    ):
        yield Arms((kind,), True, memory_where(wanted).predicates, filter_in_index=True)
    for wanted in (EVERY_FIELD, IN_INDEX, *STARTS):
        where = memory_where(wanted)
        start = None if index_can_decide(wanted) else where.start
        yield Arms((SearchKind.MEMORY,), True, where.predicates, start, filter_in_index=True)


async def test_every_search_is_planned(explain: Explain) -> None:
    by_text = {search_statement(arms): arms for arms in _arms()}
    for text, plan in await all_of(explain, list(by_text)):
        check_read(plan, text)
        procedures = [details for name, details in plan.operators if name == "ProcedureCall"]
        assert any("db.index.fulltext.queryNodes" in details for details in procedures) is by_text[text].keyword
