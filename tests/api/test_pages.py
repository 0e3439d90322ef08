"""Pages of every list and relation: each member once, in one order from both ends, whatever ties and whoever writes."""

import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from itertools import cycle, product
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conftest import Api, caller
from tests.recording import message, record

from reverie.domain.clock import EARLIEST_MS, now_ms
from reverie.domain.ids import new_id
from reverie.domain.names import normal_form
from reverie.domain.pages import encode_cursor
from reverie.resources import Resources
from reverie.services.documents import read_some

LATEST_MS = 253_402_300_799_999
"""9999-12-31T23:59:59.999Z."""
MOMENTS = (EARLIEST_MS, -86_400_000, 0, 1_700_000_000_000, 1_700_000_000_001, LATEST_MS)
"""Few instants for many things: ties, before 1970, and both ends of the calendar."""
NAMES = ("same", "Same!", "~ tilde", "\uff5e wide", "\U0001f600 smile", "\uffee", "zebra", "étude")
PAGE_INFO = "pageInfo { hasNextPage hasPreviousPage startCursor endCursor }"
PAGE_ARGUMENTS = "$first: Int, $after: String, $last: Int, $before: String"


# ---------------------------------------------------------------- a tenant full of ties


@dataclass
class World:
    """A tenant whose things tie in every order, and of each label the one that leads to many."""

    api: Api
    resources: Resources
    hubs: dict[str, str] = field(default_factory=dict)

    async def find(self, cypher: str, **parameters: Any) -> Any:
        """What a text of the test's own finds in the graph, past the product."""
        return await self.resources.graph.execute(cypher, t=self.api.tenant, now=now_ms(), **parameters)


CREATE = """
mutation($input: CreateMemoriesInput!) { createMemories(input: $input) { memories { id } errors { message } } }
"""
SET_TIMES = """
MATCH (x:Node) WHERE x.tenant = $t AND $label IN labels(x) WITH x ORDER BY x.id WITH collect(x) AS found
UNWIND range(0, size(found) - 1) AS place
WITH place, found[place] AS x, $moments[place % size($moments)] AS a, $moments[(place / 2) % size($moments)] AS b
SET x.createdAt = a, x.updatedAt = b
SET x += CASE WHEN x:Memory
  THEN {happenedAt: CASE WHEN place % 3 = 0 THEN a ELSE b END, eventTime: CASE WHEN place % 3 = 0 THEN null ELSE b END,
        importance: [0.0, 0.25, 0.5, 0.5, 1.0][place % 5]}
  ELSE {} END
"""
SET_PASSED = """
MATCH (x:Node) WHERE x.tenant = $t AND $label IN labels(x) WITH x ORDER BY x.id WITH collect(x) AS found
UNWIND range(0, size(found) - 1) AS place
WITH found[place] AS x, $moments[place % size($moments)] AS a
SET x += CASE WHEN x:Event THEN {occurredAt: a} ELSE {startedAt: a} END
"""
CONNECT = """
MATCH (f:Fact) WHERE f.tenant = $t
CALL (f) { MATCH (m:Memory) WHERE m.tenant = $t MERGE (f)-[:EXTRACTED_FROM]->(m) }
CALL (f) { MATCH (e:Entity) WHERE e.tenant = $t MERGE (f)-[:ABOUT]->(e) }
"""
RELATE = """
UNWIND $rows AS row MATCH (a:Node {id: row[0]}) MATCH (b:Node {id: row[1]})
CREATE (a)-[:RELATED_TO {id: row[2], relation: row[3], weight: row[4], tenant: $t}]->(b)
"""
GROUP = """
UNWIND $rows AS row
CREATE (c:Community:Node {id: row[0], tenant: $t, name: row[1], form: row[2], algorithm: 'LOUVAIN', size: row[3]})
WITH c, row WHERE row[3] > 0 MATCH (x:Topic) WHERE x.tenant = $t CREATE (x)-[:BELONGS_TO]->(c)
"""
IDS = "MATCH (x:Node) WHERE x.tenant = $t AND $label IN labels(x) WITH x ORDER BY x.id RETURN collect(x.id)"

BUSIEST = """
MATCH (x:Node)<-[:HAS_TOPIC|MENTIONS]-(m:Memory) WHERE x.tenant = $t AND $label IN labels(x)
WITH x, count(m) AS memories ORDER BY memories DESC LIMIT 1 RETURN x.id
"""


async def fill(world: World) -> None:
    """Writes things over the API, then makes them tie, which no writer could by waiting."""
    api = world.api
    conversations = []
    for title in (*NAMES, "same", "SAME"):
        made = await api.mutate(
            "createConversation", "CreateConversationInput", "conversation { id }", {"title": title}
        )
        conversations.append(made["conversation"]["id"])
    topics = [{"name": name} for name in NAMES]
    entities = [{"name": name, "type": type_} for name, type_ in product(NAMES[:4], ("PERSON", "TOOL", "PLACE"))]
    facts = [{"subject": "same", "predicate": "is", "object": str(place)} for place in range(9)]
    hub = {"content": "hub", "conversationId": conversations[0], "topics": topics, "entities": entities, "facts": facts}
    memories = [hub] + [
        {
            "content": f"memory {place}",
            "conversationId": conversations[0 if place % 5 else place % len(conversations)],
            "topics": topics[: 1 + place % 4],
            "entities": entities[: 1 + place % 4],
        }
        for place in range(22)
    ]
    gone = {"content": "gone", "conversationId": conversations[0], "topics": topics, "entities": entities}
    await api(CREATE, input={"memories": [*memories, gone]})
    found = {
        label: await world.find(IDS, label=label) for label in ("Memory", "Conversation", "Topic", "Entity", "Fact")
    }
    for label in found:
        await world.find(SET_TIMES, label=label, moments=MOMENTS)
    await world.find(CONNECT)
    # an episode of ten events, and nine of one; the hub's thread is its id
    events = [
        message(f"event {place}", conversations[0], occurredAt=f"2026-03-{1 + max(0, place - 9):02}T12:00:00Z")
        for place in range(19)
    ]
    longest = (await record(api, *events))[0]["episode"]["id"]
    for label in ("Event", "Episode"):
        await world.find(SET_PASSED, label=label, moments=MOMENTS)
    for place in range(9):
        document = {
            "title": f"document {place}",
            "text": "\n\n".join(f"# Part {n}\n\n{'gate ' * 200}{place}" for n in range(9)),
        }
        await api.mutate("createDocument", "CreateDocumentInput", "document { id }", document)
    while await read_some(world.resources):
        pass
    await world.find(SET_TIMES, label="Document", moments=MOMENTS)
    # parallel relations between one pair, both ways, with equal weights
    rows = []
    for members in (found["Memory"], found["Topic"], found["Entity"]):
        for place, other in enumerate(members[1:9]):
            for relation in ("related", "causes", "blocks")[: 1 + place % 3]:
                pair = (members[0], other) if (place + len(relation)) % 2 else (other, members[0])
                rows.append([*pair, new_id(), relation, [0.0, 1.0, 1.0, 2.5][place % 4]])
    await world.find(RELATE, rows=rows)
    names = (*NAMES, "same")
    groups = [new_id() for _ in names]
    rows = [
        [group, name, normal_form(name), 0 if place else 8]
        for place, (group, name) in enumerate(zip(groups, names, strict=True))
    ]
    await world.find(GROUP, rows=rows)
    await world.find("MATCH (m:Memory) WHERE m.tenant = $t AND m.content = 'gone' SET m.expiresAt = 1")
    world.hubs = {
        "Memory": found["Memory"][0],
        "Conversation": conversations[0],
        "Topic": await world.find(BUSIEST, label="Topic"),
        "Entity": await world.find(BUSIEST, label="Entity"),
        "Fact": found["Fact"][0],
        "Community": groups[0],
        "Episode": longest,
        "Document": (await world.find(IDS, label="Document"))[0],
    }


@pytest_asyncio.fixture(scope="module")
async def world(resources: Resources) -> AsyncIterator[World]:
    tenant = f"ties-{uuid4().hex[:12]}"
    async with caller(resources, tenant) as client:
        made = World(Api(client, tenant), resources)
        await fill(made)
        yield made


# ---------------------------------------------------------------- connections


@dataclass(frozen=True)
class Connection:
    """A field that gives pages, with the text that finds its members in the graph, and what they are sorted by."""

    owner: str | None
    field: str
    match: str
    sorted_by: str
    descending: bool
    order: str = ""
    told_by: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.owner or 'Query'}.{self.field}{self.order and '.'}{self.order}"

    @property
    def ordered(self) -> str:
        """The argument that asks for its order."""
        return "orderBy: {{field: {}, direction: {}}} ".format(*self.order.split(".")) if self.order else ""

    def query(self, arguments: str, selection: str) -> str:
        """An operation with one page of it, as `page`."""
        text = f"page: {self.field}({self.ordered}{arguments}) {{ {selection} }}"
        if self.owner is None:
            return f"query({PAGE_ARGUMENTS}) {{ {text} }}"
        return f"query($id: ID!, {PAGE_ARGUMENTS}) {{ node(id: $id) {{ ... on {self.owner} {{ {text} }} }} }}"

    async def page(self, world: World, arguments: dict[str, Any], *, count: bool = False) -> dict[str, Any]:
        selection = f"edges {{ cursor {' '.join(self.told_by)} node {{ id }} }} nodes {{ id }} {PAGE_INFO}"
        if count:
            selection += " totalCount"
        text = self.query("first: $first, after: $after, last: $last, before: $before", selection)
        data = await world.api(text, **self.at(world), **arguments)
        found: dict[str, Any] = (data if self.owner is None else data["node"])["page"]
        return found

    def at(self, world: World) -> dict[str, str]:
        return {} if self.owner is None else {"id": world.hubs[self.owner]}

    async def members(self, world: World) -> list[tuple[Any, Any]]:
        """Every member, unsorted, as the graph has it: what tells it apart, and what it is to be sorted by."""
        told = ", ".join(("x.id", *(_TOLD[name] for name in self.told_by)))
        found = await world.find(
            f"{self.match} RETURN collect({'' if self.told_by else 'DISTINCT '}[[{told}], {self.sorted_by}])",
            id=self.at(world).get("id"),
        )
        by_name = self.sorted_by in ("x.name", "x.title")
        return [(tuple(told), normal_form(value) if by_name else value) for told, value in found]


_TOLD = {"relation": "r.relation", "weight": "r.weight", "outgoing": "startNode(r) = o"}
_LIVING = "x.tenant = $t AND coalesce(x.expiresAt > $now, true)"
_MEMORY_KEYS = {
    "CREATED_AT": "x.createdAt",
    "UPDATED_AT": "x.updatedAt",
    "EVENT_TIME": "coalesce(x.eventTime, x.createdAt)",
    "IMPORTANCE": "x.importance",
}


def _in_orders(
    owner: str | None, field: str, match: str, keys: dict[str, str], default: tuple[str, bool]
) -> list[Connection]:
    return [
        Connection(owner, field, match, *default),
        *(
            Connection(owner, field, match, key, direction == "DESC", f"{name}.{direction}")
            for (name, key), direction in product(keys.items(), ("ASC", "DESC"))
        ),
    ]


def _named(field: str, label: str, name: str, count: str, default: tuple[str, bool]) -> list[Connection]:
    keys = {
        "NAME": name,
        "CREATED_AT": "x.createdAt",
        "UPDATED_AT": "x.updatedAt",
        "MEMORIES": f"COUNT {{ (x){count}(m:Memory) WHERE m.expiresAt > $now }}",
    }
    return _in_orders(None, field, f"MATCH (x:{label}) WHERE {_LIVING}", keys, default)


def _of(owner: str, field: str, pattern: str, key: str, *told_by: str, descending: bool = False) -> Connection:
    return Connection(owner, field, _along(pattern), key, descending, told_by=told_by)


def _along(pattern: str) -> str:
    return f"MATCH (o:Node {{id: $id}}) MATCH (o){pattern} WHERE {_LIVING}"


NEWEST = ("x.createdAt", True)
CONNECTIONS = [
    *_in_orders(None, "memories", f"MATCH (x:Memory) WHERE {_LIVING}", _MEMORY_KEYS, NEWEST),
    *_named("conversations", "Conversation", "x.title", "<-[:BELONGS_TO]-", ("x.updatedAt", True)),
    *_named("topics", "Topic", "x.name", "<-[:HAS_TOPIC]-", ("x.name", False)),
    *_named("entities", "Entity", "x.name", "<-[:MENTIONS]-", ("x.name", False)),
    Connection(None, "facts", f"MATCH (x:Fact) WHERE {_LIVING}", *NEWEST),
    Connection(None, "communities", f"MATCH (x:Community) WHERE {_LIVING}", "x.name", False),
    Connection(None, "events", f"MATCH (x:Event) WHERE {_LIVING}", "x.occurredAt", True),
    Connection(None, "episodes", f"MATCH (x:Episode) WHERE {_LIVING}", "x.startedAt", True),
    Connection(None, "documents", f"MATCH (x:Document) WHERE {_LIVING}", *NEWEST),
    _of("Conversation", "events", "<-[:IN_THREAD]-(x:Event)", "x.occurredAt"),
    _of("Conversation", "episodes", "<-[:IN_THREAD]-(x:Episode)", "x.startedAt"),
    _of("Episode", "events", "<-[:PART_OF]-(x:Event)", "x.occurredAt"),
    _of("Memory", "topics", "-[:HAS_TOPIC]->(x:Topic)", "x.name"),
    _of("Memory", "entities", "-[:MENTIONS]->(x:Entity)", "x.name"),
    _of("Memory", "facts", "<-[:EXTRACTED_FROM]-(x:Fact)", "x.id"),
    _of(
        "Memory",
        "related",
        "-[r:RELATED_TO]-(x:Memory)",
        "r.weight",
        "relation",
        "weight",
        "outgoing",
        descending=True,
    ),
    *_in_orders("Conversation", "memories", _along("<-[:BELONGS_TO]-(x:Memory)"), _MEMORY_KEYS, NEWEST),
    _of(
        "Conversation",
        "topics",
        "<-[:BELONGS_TO]-(m:Memory WHERE m.expiresAt > $now)-[:HAS_TOPIC]->(x:Topic)",
        "x.name",
    ),
    *_in_orders("Topic", "memories", _along("<-[:HAS_TOPIC]-(x:Memory)"), _MEMORY_KEYS, NEWEST),
    _of("Topic", "related", "-[r:RELATED_TO]-(x:Topic)", "r.weight", "weight", descending=True),
    _of("Fact", "about", "-[:ABOUT]->(x:Entity)", "x.name"),
    _of("Fact", "memories", "-[:EXTRACTED_FROM]->(x:Memory)", "x.createdAt", descending=True),
    *_in_orders("Entity", "memories", _along("<-[:MENTIONS]-(x:Memory)"), _MEMORY_KEYS, NEWEST),
    _of("Entity", "facts", "<-[:ABOUT]-(x:Fact)", "x.id"),
    _of(
        "Entity",
        "related",
        "-[r:RELATED_TO]-(x:Entity)",
        "r.weight",
        "relation",
        "weight",
        "outgoing",
        descending=True,
    ),
    _of("Document", "chunks", "<-[:PART_OF]-(x:Chunk)", "x.position"),
    _of("Community", "topics", "<-[:BELONGS_TO]-(x:Topic)", "x.name"),
    _of(
        "Community",
        "memories",
        "<-[:BELONGS_TO]-(:Topic)<-[:HAS_TOPIC]-(x:Memory)",
        "x.createdAt",
        descending=True,
    ),
]
PLAIN = [connection for connection in CONNECTIONS if not connection.order]
"""Each connection once, in its own order."""
ORDERED = [connection for connection in CONNECTIONS if connection.order]


OF_BELIEFS = {
    "Belief.audit",
    "Belief.episodes",
    "Belief.evidence",
    "Belief.history",
    "Entity.beliefs",
    "Episode.beliefs",
    "Query.beliefChanges",
    "Query.beliefs",
}
"""Walked where beliefs are tested, as the folds that make them write each member's place by themselves."""


def told(connection: Connection, edge: dict[str, Any]) -> tuple[Any, ...]:
    """What tells an edge apart from the others of its connection, but for topics related twice with one weight."""
    return (edge["node"]["id"], *(edge[name] for name in connection.told_by))


def test_the_connections_here_are_all_there_are() -> None:
    from graphql import GraphQLObjectType, build_schema, get_named_type  # noqa: PLC0415 - used here alone

    from reverie.api.schema import sdl  # noqa: PLC0415 - used here alone

    schema = build_schema(sdl())
    pages = {
        f"{name}.{field_name}"
        for name, type_ in schema.type_map.items()
        if isinstance(type_, GraphQLObjectType)
        for field_name, field_ in type_.fields.items()
        if get_named_type(field_.type).name.endswith("Connection")
    }

    assert {str(connection) for connection in PLAIN} == pages - {"Query.search"} - OF_BELIEFS


# ---------------------------------------------------------------- walks

SIZES = st.lists(st.integers(1, 12), min_size=3, max_size=6)
FEW = settings(max_examples=2, deadline=None, suppress_health_check=[HealthCheck.too_slow])


async def walk(
    world: World, connection: Connection, sizes: Sequence[int], *, backward: bool, count: int
) -> list[dict[str, Any]]:
    """All edges in the connection's order, read page by page from one end; each page is what it says it is."""
    edges: list[dict[str, Any]] = []
    cursor: str | None = None
    for size in cycle(sizes):
        arguments = {"last": size, "before": cursor} if backward else {"first": size, "after": cursor}
        page = await connection.page(world, arguments, count=not edges)
        found, info = page["edges"], page["pageInfo"]
        assert page["nodes"] == [edge["node"] for edge in found]
        assert page.get("totalCount", count) == count
        assert len(found) == min(size, count - len(edges))
        ends = (found[0]["cursor"], found[-1]["cursor"]) if found else (None, None)
        assert (info["startCursor"], info["endCursor"]) == ends
        more, came_from = len(edges) + len(found) < count, bool(edges)
        edges = [*found, *edges] if backward else [*edges, *found]
        flags = (came_from, more) if backward else (more, came_from)
        assert (info["hasNextPage"], info["hasPreviousPage"]) == flags
        if not more:
            return edges
        cursor = info["startCursor"] if backward else info["endCursor"]
    raise AssertionError("unreachable")


async def check_walks(world: World, connection: Connection, forth: Sequence[int], back: Sequence[int]) -> None:
    members = await connection.members(world)
    assert len(members) >= 8
    # ids are unique, and so are the names of a tenant's topics; everything else here ties
    unique = connection.sorted_by in ("x.id", "x.position") or (
        connection.sorted_by == "x.name" and "x:Topic" in connection.match
    )
    assert (len({key for _, key in members}) < len(members)) is not unique

    edges = await walk(world, connection, forth, backward=False, count=len(members))

    assert sorted(told(connection, edge) for edge in edges) == sorted(member for member, _ in members)
    assert len({edge["cursor"] for edge in edges}) == len(edges)
    keys = dict(members)
    in_order = [keys[told(connection, edge)] for edge in edges]
    assert in_order == sorted(in_order, reverse=connection.descending)
    assert await walk(world, connection, back, backward=True, count=len(members)) == edges


@pytest.mark.parametrize("connection", PLAIN, ids=str)
@FEW
@given(forth=SIZES, back=SIZES)
async def test_pages_give_every_member_once_from_both_ends(
    world: World, connection: Connection, forth: list[int], back: list[int]
) -> None:
    await check_walks(world, connection, forth, back)


@pytest.mark.parametrize("connection", ORDERED, ids=str)
@settings(FEW, max_examples=1)
@given(forth=SIZES, back=SIZES)
async def test_pages_do_so_in_every_order(
    world: World, connection: Connection, forth: list[int], back: list[int]
) -> None:
    await check_walks(world, connection, forth, back)


@pytest.mark.parametrize("connection", PLAIN, ids=str)
@settings(FEW, max_examples=4)
@given(data=st.data())
async def test_a_page_between_two_cursors(world: World, connection: Connection, data: st.DataObject) -> None:
    whole = (await connection.page(world, {"first": 200}))["edges"]
    place = st.integers(0, len(whole) - 1)
    after, before = data.draw(st.none() | place, "after"), data.draw(st.none() | place, "before")
    size = data.draw(st.integers(0, 9), "size")
    backward = data.draw(st.booleans(), "backward")
    window = whole[0 if after is None else after + 1 : before]

    page = await connection.page(
        world,
        {
            "last" if backward else "first": size,
            "after": None if after is None else whole[after]["cursor"],
            "before": None if before is None else whole[before]["cursor"],
        },
        count=True,
    )

    assert page["edges"] == (window[max(0, len(window) - size) :] if backward else window[:size])
    more = len(window) > size
    flags = (before is not None, more) if backward else (more, after is not None)
    assert (page["pageInfo"]["hasNextPage"], page["pageInfo"]["hasPreviousPage"]) == flags
    assert page["totalCount"] == len(whole)


@pytest.mark.parametrize("connection", PLAIN, ids=str)
async def test_a_page_has_twenty_members_unless_asked(world: World, connection: Connection) -> None:
    whole = (await connection.page(world, {"first": 200}))["edges"]

    assert (await connection.page(world, {}))["edges"] == whole[:20]


# ---------------------------------------------------------------- arguments


def of_another_tenant(cursor: str) -> str:
    """The cursor that another tenant would be given for a member with the same keys."""
    version, scope, *key = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))[6:])
    assert version == 1
    return encode_cursor("another", scope, tuple(key))


def bad_arguments(cursor: str) -> list[tuple[str, str]]:
    """Arguments that can't be, each with the one that is named."""
    flipped = cursor[:-3] + ("A" if cursor[-3] != "A" else "B") + cursor[-2:]
    foreign = of_another_tenant(cursor)
    garbage = ("", "x", "🙂", " ", flipped, cursor + "A", cursor[2:], foreign, "=" * 10, "A" * 10_000)
    texts = [json.dumps(text, ensure_ascii=False) for text in garbage]
    return [
        ("first: 2, last: 2", "last"),
        ("first: 0, last: 0", "last"),
        ("first: -1", "first"),
        ("first: 201", "first"),
        ("first: 2147483647", "first"),
        ("last: -1", "last"),
        ("last: 201", "last"),
        *((f"first: 2, after: {text}", "after") for text in texts),
        *((f"last: 2, before: {text}", "before") for text in texts),
    ]


async def check_refused(
    world: World, connection: Connection, arguments: Sequence[str], **variables: str
) -> dict[str, str]:
    """The messages of one page for each of the arguments, all of which must be refused before anything is read."""
    fields = [
        f"c{place}: {connection.field}({connection.ordered}{given}) {{ edges {{ cursor }} totalCount }}"
        for place, given in enumerate(arguments)
    ]
    declared = [f"${name}: String" for name in variables]
    if connection.owner is not None:
        # a page can't be null: each refusal takes its owner along, so that each has one of its own
        fields = [
            f"o{place}: node(id: $id) {{ ... on {connection.owner} {{ {one} }} }}" for place, one in enumerate(fields)
        ]
        declared.append("$id: ID!")
    text = f"query{'(' if declared else ''}{', '.join(declared)}{')' if declared else ''} {{ {' '.join(fields)} }}"
    before = world.resources.graph.statements

    errors = await world.api.errors(text, **connection.at(world), **variables)

    # nested pages cost the look-up of their owner, and no more
    assert world.resources.graph.statements - before == (0 if connection.owner is None else 1)
    assert {error["extensions"]["code"] for error in errors} == {"BAD_INPUT"}
    return {error["path"][-1]: error["message"] for error in errors}


@pytest.mark.parametrize("connection", PLAIN, ids=str)
async def test_arguments_that_can_not_be_are_refused_and_nothing_is_read(world: World, connection: Connection) -> None:
    cursor = (await connection.page(world, {"first": 1}))["pageInfo"]["endCursor"]
    bad = bad_arguments(cursor)

    messages = await check_refused(world, connection, [arguments for arguments, _ in bad])

    assert len(messages) == len(bad)
    for place, (arguments, named) in enumerate(bad):
        assert messages[f"c{place}"].startswith(("first and last", f"{named}: ")), arguments


@pytest_asyncio.fixture(scope="module")
async def cursors(world: World) -> dict[Connection, str]:
    """A cursor of every connection in every order."""
    pages = {connection: await connection.page(world, {"first": 3}) for connection in CONNECTIONS}
    return {connection: page["edges"][1]["cursor"] for connection, page in pages.items()}


@pytest.mark.parametrize("connection", CONNECTIONS, ids=str)
async def test_cursors_of_another_list_or_order_are_refused(
    world: World, cursors: dict[Connection, str], connection: Connection
) -> None:
    others = [
        cursor
        for other, cursor in cursors.items()
        if not other.order or (other.owner, other.field) == (connection.owner, connection.field)
        # the default order has a name too
        if (other.match, other.sorted_by, other.descending)
        != (connection.match, connection.sorted_by, connection.descending)
    ]
    assert len(others) >= 20
    variables = {f"after{place}": cursor for place, cursor in enumerate(others)}

    messages = await check_refused(world, connection, [f"after: ${name}" for name in variables], **variables)

    assert len(messages) == len(others)
    assert set(messages.values()) == {"after: not a cursor of this connection"}


# ---------------------------------------------------------------- writes in between

ADD = """
MATCH (x:Topic {id: $topic})
CREATE (m:Memory:Node {id: $id, tenant: $t, content: '', memoryType: 'SEMANTIC', importance: $importance,
  enrichment: 'DONE', createdAt: 1, updatedAt: 1, happenedAt: 1, expiresAt: 9007199254740991})-[:HAS_TOPIC]->(x)
"""
REMOVE = "MATCH (m:Memory {id: $id}) WHERE m.tenant = $t DETACH DELETE m"
STEPS = st.sampled_from([0.25, 0.5, 0.75])
ROUNDS = st.lists(
    st.tuples(st.integers(0, 4), st.lists(STEPS, max_size=3), st.lists(st.integers(0, 99), max_size=3)),
    min_size=2,
    max_size=6,
)
"""Of each round: how many members are read, the keys of those that come, and which of those there are go."""


@pytest.mark.parametrize("nested", [False, True], ids=["memories", "Topic.memories"])
@settings(FEW, max_examples=5)
@given(start=st.lists(STEPS, min_size=4, max_size=9), rounds=ROUNDS, descending=st.booleans(), backward=st.booleans())
async def test_writes_between_pages_lose_and_repeat_nothing(
    resources: Resources,
    nested: bool,
    start: list[float],
    rounds: list[tuple[int, list[float], list[int]]],
    descending: bool,
    backward: bool,
) -> None:
    tenant = f"writes-{uuid4().hex[:12]}"
    present: dict[str, float] = {}
    async with caller(resources, tenant) as client:
        world = World(Api(client, tenant), resources)
        made = await world.api.mutate("createTopic", "CreateTopicInput", "topic { id }", {"name": "busy"})
        world.hubs["Topic"] = made["topic"]["id"]
        order = f"IMPORTANCE.{'DESC' if descending else 'ASC'}"
        connection = Connection("Topic" if nested else None, "memories", "", "", descending, order)

        async def add(importance: float) -> None:
            # an id from anywhere, as those of things written in the same millisecond are
            memory = str(uuid4())
            await world.find(ADD, topic=world.hubs["Topic"], id=memory, importance=importance)
            present[memory] = importance

        for importance in start:
            await add(importance)
        seen: list[tuple[float, str]] = []
        cursor: str | None = None
        for size, coming, going in rounds:
            arguments = {"last": size, "before": cursor} if backward else {"first": size, "after": cursor}
            page = await connection.page(world, arguments, count=True)

            left = sorted(((key, memory) for memory, key in present.items()), reverse=descending != backward)
            if seen:
                left = [place for place in left if (place < seen[-1] if descending != backward else place > seen[-1])]
            found = [edge["node"]["id"] for edge in page["edges"]][:: -1 if backward else 1]
            assert found == [memory for _, memory in left[:size]]
            assert page["pageInfo"]["hasPreviousPage" if backward else "hasNextPage"] is (len(left) > size)
            assert page["totalCount"] == len(present)
            seen += left[:size]
            cursor = page["pageInfo"]["startCursor" if backward else "endCursor"] or cursor
            for importance in coming:
                await add(importance)
            for place in going:
                # the one the cursor was made of is the likeliest to be missed
                gone = (
                    seen[-1][1] if seen and place % 3 == 0 else sorted(present)[place % len(present)] if present else ""
                )
                await world.find(REMOVE, id=gone)
                present.pop(gone, None)
        assert len(seen) == len(set(seen))


# ---------------------------------------------------------------- counts, edges, times


@pytest.mark.parametrize("connection", PLAIN, ids=str)
async def test_the_whole_is_counted_only_when_that_is_selected(world: World, connection: Connection) -> None:
    counts = []
    for selection in ("edges { cursor node { id } } nodes { id } pageInfo { endCursor }", "nodes { id } totalCount"):
        before = world.resources.graph.statements
        text = connection.query("first: $first, after: $after, last: $last, before: $before", selection)
        await world.api(text, **connection.at(world), first=3)
        counts.append(world.resources.graph.statements - before)

    owner = 0 if connection.owner is None else 1
    assert counts == [owner + 1, owner + 2]


RELATED = """
query($id: ID!, $first: Int, $after: String) { node(id: $id) { ... on LABEL {
  related(first: $first, after: $after) {
    totalCount edges { cursor relation weight outgoing node { id } } nodes { id } pageInfo { hasNextPage }
  }
} } }
"""


async def write_memory(api: Api, content: str) -> str:
    made = await api.mutate("createMemory", "CreateMemoryInput", "memory { id }", {"content": content})
    return str(made["memory"]["id"])


async def write_entity(api: Api, name: str) -> str:
    given = {"name": name, "type": "PERSON"}
    return str((await api.mutate("createEntity", "CreateEntityInput", "entity { id }", given))["entity"]["id"])


@pytest.mark.parametrize(
    ("label", "write", "relate", "input_type"),
    [
        ("Memory", write_memory, "relateMemories", "RelateMemoriesInput"),
        ("Entity", write_entity, "relateEntities", "RelateEntitiesInput"),
    ],
    ids=["memories", "entities"],
)
async def test_several_relations_of_one_pair(
    api: Api, label: str, write: Callable[[Api, str], Awaitable[str]], relate: str, input_type: str
) -> None:
    one, other = [await write(api, name) for name in ("one", "other")]
    for from_id, to_id, relation, weight in (
        (one, other, "causes", 0.5),
        (other, one, "blocks", 0.5),
        (one, other, "related", 2.0),
        (other, one, "related", 0.0),
    ):
        drawn = {"fromId": from_id, "toId": to_id, "relation": relation, "weight": weight}
        assert (await api.mutate(relate, input_type, "", drawn))["errors"] == []
    text = RELATED.replace("LABEL", label)

    seen = {}
    for node, neighbour in ((one, other), (other, one)):
        whole = (await api(text, id=node))["node"]["related"]
        assert whole["totalCount"] == 4
        assert whole["nodes"] == [{"id": neighbour}] * 4
        edges, cursor = [], None
        for place in range(4):
            page = (await api(text, id=node, first=1, after=cursor))["node"]["related"]
            assert page["pageInfo"]["hasNextPage"] is (place < 3)
            edges += page["edges"]
            cursor = page["edges"][0]["cursor"]
        assert edges == whole["edges"]
        seen[node] = [(edge["relation"], edge["weight"], edge["outgoing"]) for edge in edges]

    # strongest first; of equals the later first
    assert seen[one] == [("related", 2.0, True), ("blocks", 0.5, False), ("causes", 0.5, True), ("related", 0.0, False)]
    assert seen[other] == [(relation, weight, not outgoing) for relation, weight, outgoing in seen[one]]


TIMES = ("0001-01-01T00:00:00.000Z", "1969-12-31T23:59:59.999Z", "1970-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z")


async def test_events_of_any_age_are_sorted_and_told_to_the_millisecond(api: Api) -> None:
    memories = [{"content": time, "eventTime": time} for time in TIMES]
    await api(CREATE, input={"memories": [*memories[2:], {"content": "now"}, *memories[:2]]})

    for direction, wanted in (("ASC", [*TIMES[:3], None, TIMES[3]]), ("DESC", [TIMES[3], None, *TIMES[2::-1]])):
        found = await api(
            f"{{ memories(orderBy: {{field: EVENT_TIME, direction: {direction}}}) {{ nodes {{ eventTime }} }} }}"
        )
        assert [node["eventTime"] for node in found["memories"]["nodes"]] == wanted


async def test_a_page_of_none_tells_whether_there_are_any(api: Api) -> None:
    text = "{ memories(first: 0) { nodes { id } totalCount pageInfo { hasNextPage startCursor endCursor } } }"

    empty = (await api(text))["memories"]
    await api(CREATE, input={"memories": [{"content": "a"}]})
    some = (await api(text))["memories"]

    nothing = {"startCursor": None, "endCursor": None}
    assert empty == {"nodes": [], "totalCount": 0, "pageInfo": {"hasNextPage": False, **nothing}}
    assert some == {"nodes": [], "totalCount": 1, "pageInfo": {"hasNextPage": True, **nothing}}
