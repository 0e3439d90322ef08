"""The statements of an operation grow with its depth, never with its rows."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from tests.conftest import Api, caller
from tests.recording import message, record

from reverie.resources import Resources

ROWS = (5, 50)


@dataclass
class World:
    """A tenant with 50 memories, each with a fact, two topics and two entities, which it shares with the next."""

    api: Api
    resources: Resources
    memories: list[str] = field(default_factory=list)

    async def count(self, text: str, **variables: Any) -> tuple[int, dict[str, Any]]:
        """How many statements an operation takes, and its data."""
        before = self.resources.graph.statements
        data = await self.api(text, **variables)
        return self.resources.graph.statements - before, data


CREATE = """
mutation($input: CreateMemoriesInput!) { createMemories(input: $input) { memories { id } errors { message } } }
"""


@pytest_asyncio.fixture(scope="module")
async def world(resources: Resources) -> AsyncIterator[World]:
    tenant = f"statements-{uuid4().hex[:12]}"
    async with caller(resources, tenant) as client:
        made = World(Api(client, tenant), resources)
        title = {"title": "all of it"}
        payload = await made.api.mutate("createConversation", "CreateConversationInput", "conversation { id }", title)
        memories = [
            {
                "content": f"memory {place} of the harbour",
                "conversationId": payload["conversation"]["id"],
                "topics": [{"name": f"topic {place % 50}"}, {"name": f"topic {(place + 1) % 50}"}],
                "entities": [
                    {"name": f"entity {place % 50}", "type": "TOOL"},
                    {"name": f"entity {(place + 1) % 50}", "type": "TOOL"},
                ],
                "facts": [{"subject": f"entity {place}", "predicate": "is in", "object": f"entity {(place + 1) % 50}"}],
            }
            for place in range(50)
        ]
        written = await made.api(CREATE, input={"memories": memories})
        made.memories = [memory["id"] for memory in written["createMemories"]["memories"]]
        await record(made.api, *(message(f"event {place}", f"thread {place % 5}") for place in range(50)))
        yield made


@dataclass(frozen=True)
class Nested:
    """An operation over $rows rows, and what it must take: one statement for each level of each path."""

    name: str
    text: str
    statements: int

    def __str__(self) -> str:
        return self.name


OPERATIONS = [
    Nested("a list", "query($rows: Int) { memories(first: $rows) { nodes { id content } } }", 1),
    Nested("a list and its size", "query($rows: Int) { memories(first: $rows) { nodes { id } totalCount } }", 2),
    Nested(
        "four levels",
        """query($rows: Int) { memories(first: $rows) { nodes { content
             entities { nodes { name facts { nodes { object memories { nodes { id } } } } } } } } }""",
        4,
    ),
    Nested(
        "three paths, one of them twice",
        """query($rows: Int) { memories(first: $rows) { nodes {
             topics { nodes { name } } again: topics { edges { cursor node { id } } pageInfo { hasNextPage } }
             entities { nodes { name } } facts { nodes { object } } } } }""",
        4,
    ),
    Nested(
        "the same relation with two sets of arguments",
        """query($rows: Int) { memories(first: $rows) { nodes {
             one: topics(first: 1) { nodes { id } } two: topics(first: 2) { nodes { id } } } } }""",
        3,
    ),
    Nested(
        "counts on every level",
        """query($rows: Int) { memories(first: $rows) { totalCount nodes {
             topics { totalCount nodes { memories { totalCount nodes { id } } } } } } }""",
        6,
    ),
    Nested(
        "filters and orders below",
        """query($rows: Int) { topics(first: $rows) { nodes {
             memories(filter: {minImportance: 0.1}, orderBy: {field: IMPORTANCE}) { nodes { id } } } } }""",
        2,
    ),
    Nested(
        "single members",
        """query($rows: Int) { facts(first: $rows) { nodes {
             subjectEntity { name } objectEntity { name } about { nodes { id } } } } }""",
        4,
    ),
    Nested(
        "conversations and communities",
        """query($rows: Int) { memories(first: $rows) { nodes {
             conversation { title topics { nodes { name community { name } } } } } } }""",
        4,
    ),
    Nested(
        "events, episodes and their thread",
        """query($rows: Int) { events(first: $rows) { nodes { text
             episode { events { totalCount nodes { id } } } conversation { title episodes { nodes { id } } } } } }""",
        6,
    ),
    Nested("vectors", "query($rows: Int) { memories(first: $rows) { nodes { embedding } } }", 2),
    Nested(
        "neighbours",
        """query($rows: Int) { memories(first: $rows) { nodes {
             similar(first: 2) { score memory { topics { nodes { id } } } } } } }""",
        3,
    ),
    Nested(
        "related",
        """query($rows: Int) { memories(first: $rows) { nodes { related { nodes { id } }
             entities { nodes { related { nodes { id } } } } } } }""",
        4,
    ),
    Nested(
        "a search with what hangs on its hits",
        """query($rows: Int) { search(query: "harbour", filter: {kinds: [MEMORY]}, first: $rows) { nodes {
             ... on Memory { topics { nodes { name } } } } } }""",
        2,
    ),
]


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
async def test_statements_grow_with_depth_and_not_with_rows(world: World, operation: Nested) -> None:
    counts, sizes = {}, {}
    for rows in ROWS:
        counts[rows], data = await world.count(operation.text, rows=rows)
        sizes[rows] = len(str(data))

    assert counts == dict.fromkeys(ROWS, operation.statements)
    assert sizes[50] > 5 * sizes[5]


async def test_a_level_of_thousands_is_one_statement(world: World) -> None:
    text = """{ memories(first: 50) { nodes {
      conversation { memories(first: 50) { nodes { topics { nodes { id } } } } } } } }"""

    count, data = await world.count(text)

    below = [
        memory
        for node in data["memories"]["nodes"]
        for memory in node["conversation"]["memories"]["nodes"]
        if memory["topics"]["nodes"]
    ]
    assert len(below) == 2_500
    assert count == 4


@pytest.mark.parametrize("text", ["query($ids: [ID!]!) { nodes(ids: $ids) { id } }"])
async def test_nodes_are_one_statement(world: World, text: str) -> None:
    for ids in (world.memories[:1], world.memories, [*world.memories, "no id", str(uuid4())]):
        count, data = await world.count(text, ids=ids)

        assert count == 1
        assert [node and node["id"] for node in data["nodes"]] == [*ids[: len(world.memories)], None, None][: len(ids)]


async def test_things_by_their_ids_are_one_statement_together(world: World) -> None:
    fields = " ".join(f'm{place}: node(id: "{memory}") {{ id }}' for place, memory in enumerate(world.memories[:20]))
    same = " ".join(
        f'n{place}: memory(id: "{memory}") {{ content }}' for place, memory in enumerate(world.memories[:9])
    )

    count, data = await world.count(f"{{ {fields} {same} }}")

    assert (count, len(data)) == (1, 29)
    assert None not in data.values()


async def test_what_is_no_id_is_not_asked_for(world: World) -> None:
    count, data = await world.count('{ node(id: "x") { id } memory(id: "") { id } nodes(ids: ["a", "b"]) { id } }')

    assert (count, data) == (0, {"node": None, "memory": None, "nodes": [None, None]})
