"""Filters of lists and relations, each field alone and with every other, against the same rules in plain Python."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from tests.conftest import Api, caller

from reverie.domain.clock import to_ms
from reverie.domain.ids import new_id
from reverie.resources import Resources

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
ANCIENT = datetime(1815, 12, 10, tzinfo=UTC)
Filter = dict[str, Any]
WIDE = {code: code + 0xFEE0 for code in range(ord("!"), ord("~"))}
NARROW = {wide: code for code, wide in WIDE.items()}


@dataclass
class Written:
    """A memory as it was written."""

    id: str
    memory_type: str
    importance: float
    conversation: str | None
    topics: list[str]
    entities: list[str]
    subject: str | None
    agent: str | None
    created: datetime
    event: datetime | None


@dataclass
class World:
    api: Api
    resources: Resources
    conversations: list[str] = field(default_factory=list)
    topics: list[str] = field(default_factory=list)
    entities: list[str] = field(default_factory=list)
    memories: list[Written] = field(default_factory=list)


async def _make(api: Api, noun: str, inputs: Sequence[dict[str, Any]]) -> list[str]:
    made = [
        await api.mutate(f"create{noun.capitalize()}", f"Create{noun.capitalize()}Input", f"{noun} {{ id }}", given)
        for given in inputs
    ]
    return [payload[noun]["id"] for payload in made]


CREATE = """
mutation($input: CreateMemoriesInput!) { createMemories(input: $input) { memories { id } errors { message } } }
"""
SET_CREATED = "UNWIND $rows AS row MATCH (m:Memory&Node {id: row[0]}) SET m.createdAt = row[1], m.happenedAt = row[2]"


@pytest_asyncio.fixture(scope="module")
async def world(resources: Resources) -> AsyncIterator[World]:
    """Memories whose properties are mixed in all ways, written in the same millisecond and then spread over days."""
    tenant = f"filters-{uuid4().hex[:12]}"
    async with caller(resources, tenant) as client:
        made = World(Api(client, tenant), resources)
        made.conversations = await _make(made.api, "conversation", [{"title": str(place)} for place in range(2)])
        made.topics = await _make(made.api, "topic", [{"name": str(place)} for place in range(3)])
        made.entities = await _make(made.api, "entity", [{"name": str(place), "type": "TOOL"} for place in range(3)])
        for place in range(48):
            made.memories.append(
                Written(
                    "",
                    ("EPISODIC", "SEMANTIC", "PROCEDURAL")[place % 3],
                    (0.0, 0.5, 0.75, 1.0)[place % 4],
                    (None, *made.conversations)[place // 2 % 3],
                    [topic for bit, topic in enumerate(made.topics) if place % 8 >> bit & 1],
                    [entity for bit, entity in enumerate(made.entities) if place // 4 % 8 >> bit & 1],
                    (None, "ann", "Ann", "bob")[place // 3 % 4],
                    (None, "agent-1", "agent-2")[place // 5 % 3],
                    START + timedelta(days=place // 6),
                    (None, ANCIENT, START + timedelta(days=3), START + timedelta(days=place % 9))[place // 7 % 4],
                )
            )
        inputs = [
            {
                "content": f"memory {place}",
                "memoryType": memory.memory_type,
                "importance": memory.importance,
                "conversationId": memory.conversation,
                "topics": [{"id": topic} for topic in memory.topics],
                "entities": [{"id": entity} for entity in memory.entities],
                "subjectId": memory.subject,
                "agentId": memory.agent,
                "eventTime": memory.event and memory.event.isoformat(),
            }
            for place, memory in enumerate(made.memories)
        ]
        written = await made.api(CREATE, input={"memories": inputs})
        for memory, node in zip(made.memories, written["createMemories"]["memories"], strict=True):
            memory.id = node["id"]
        rows = [[m.id, to_ms(m.created), to_ms(m.event or m.created)] for m in made.memories]
        await resources.graph.execute(SET_CREATED, rows=rows)
        yield made


# ---------------------------------------------------------------- memories

Rule = Callable[[Written, Any], bool]
RULES: dict[str, Rule] = {
    "memoryTypes": lambda memory, wanted: memory.memory_type in wanted,
    "minImportance": lambda memory, wanted: memory.importance >= wanted,
    "conversationId": lambda memory, wanted: memory.conversation == wanted,
    "topicIds": lambda memory, wanted: bool(set(memory.topics) & set(wanted)),
    "entityIds": lambda memory, wanted: bool(set(memory.entities) & set(wanted)),
    "subjectId": lambda memory, wanted: memory.subject == wanted,
    "agentId": lambda memory, wanted: memory.agent == wanted,
    "createdAfter": lambda memory, wanted: memory.created >= datetime.fromisoformat(wanted),
    "createdBefore": lambda memory, wanted: memory.created < datetime.fromisoformat(wanted),
    "eventAfter": lambda memory, wanted: (memory.event or memory.created) >= datetime.fromisoformat(wanted),
    "eventBefore": lambda memory, wanted: (memory.event or memory.created) < datetime.fromisoformat(wanted),
}


def values(world: World) -> dict[str, list[Any]]:
    """What each field is tried with, the most telling first."""
    day = [(START + timedelta(days=days)).isoformat() for days in range(9)]
    stranger = new_id()
    return {
        "memoryTypes": [["SEMANTIC"], ["EPISODIC", "PROCEDURAL"], []],
        "minImportance": [0.5, 1, 0],
        "conversationId": [*world.conversations, stranger, "no id", ""],
        "topicIds": [world.topics[:1], world.topics[1:], [world.topics[0]] * 200, [stranger, "no id"], []],
        "entityIds": [world.entities[2:], world.entities[:2], [world.entities[0], stranger], []],
        "subjectId": ["ann", "bob", "nobody", ""],
        "agentId": ["agent-1", "agent-2", "AGENT-1"],
        # an instant of some memory: included by After, excluded by Before; the same in another offset
        "createdAfter": [day[2], "2026-03-05T13:00:00+01:00", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"],
        "createdBefore": [day[6], "2026-03-05T13:00:00+01:00", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"],
        "eventAfter": [ANCIENT.isoformat(), day[3], "1815-12-10T00:00:00.001Z"],
        "eventBefore": [day[3], "1815-12-10T00:00:00.001Z", ANCIENT.isoformat()],
    }


def expected(memories: Sequence[Written], wanted: Filter) -> list[str]:
    """The ids of those for which all of a filter holds, newest first."""
    left = [memory for memory in memories if all(RULES[name](memory, value) for name, value in wanted.items())]
    return [memory.id for memory in sorted(left, key=lambda memory: (memory.created, memory.id), reverse=True)]


async def check(world: World, filters: Sequence[Filter], nouns: Sequence[str], *, count: bool = True) -> int:
    """Asks for memories with every filter: "" for all, or those of one thing of a kind. How many came."""
    owners: dict[str, tuple[str, Callable[[Written], bool]]] = {
        "": ("", lambda _: True),
        "topic": (world.topics[0], lambda memory: world.topics[0] in memory.topics),
        "entity": (world.entities[1], lambda memory: world.entities[1] in memory.entities),
        "conversation": (world.conversations[1], lambda memory: memory.conversation == world.conversations[1]),
    }
    came = 0
    for noun in nouns:
        owner, among = owners[noun]
        page = f"memories(filter: $f{{0}}, first: 200) {{{{ nodes {{{{ id }}}} {'totalCount' if count else ''} }}}}"
        one = f"f{{0}}: {page}" if not noun else f'f{{0}}: {noun}(id: "{owner}") {{{{ {page} }}}}'
        declared = ", ".join(f"$f{place}: MemoryFilter" for place in range(len(filters)))
        text = f"query({declared}) {{ {' '.join(one.format(place) for place in range(len(filters)))} }}"
        answer = await world.api(text, **{f"f{place}": wanted for place, wanted in enumerate(filters)})
        members = [memory for memory in world.memories if among(memory)]
        for place, wanted in enumerate(filters):
            found = answer[f"f{place}"] if not noun else answer[f"f{place}"]["memories"]
            assert [node["id"] for node in found["nodes"]] == expected(members, wanted), (noun, wanted)
            assert found.get("totalCount", len(found["nodes"])) == len(found["nodes"]), (noun, wanted)
            came += len(found["nodes"])
    return came


async def test_the_rules_here_are_all_fields(world: World) -> None:
    fields = await world.api('{ __type(name: "MemoryFilter") { inputFields { name } } }')

    assert {given["name"] for given in fields["__type"]["inputFields"]} == RULES.keys() == values(world).keys()


@pytest.mark.parametrize("name", RULES)
async def test_a_field_alone(world: World, name: str) -> None:
    filters = [{name: value} for value in values(world)[name]]
    assert await check(world, filters, ["", "topic"]) > 0


@pytest.mark.parametrize("name", RULES)
async def test_a_field_with_every_other(world: World, name: str) -> None:
    tried = values(world)
    names = list(RULES)
    filters = [
        {name: one, other: another}
        for other in names[names.index(name) + 1 :]
        for one, another in zip(tried[name][:2], tried[other][:2], strict=True)
        # a range that ends before it begins is refused
        if not ({name, other} in ({"createdAfter", "createdBefore"}, {"eventAfter", "eventBefore"}) and one > another)
    ]
    assert not filters or await check(world, filters, ["", "topic"], count=False) > 0


async def test_all_fields_together(world: World) -> None:
    memory = next(m for m in world.memories if m.conversation and m.topics and m.entities and m.subject and m.agent)
    every = {
        "memoryTypes": [memory.memory_type],
        "minImportance": memory.importance,
        "conversationId": memory.conversation,
        "topicIds": memory.topics,
        "entityIds": memory.entities,
        "subjectId": memory.subject,
        "agentId": memory.agent,
        "createdAfter": memory.created.isoformat(),
        "createdBefore": (memory.created + timedelta(milliseconds=1)).isoformat(),
        "eventAfter": (memory.event or memory.created).isoformat(),
        "eventBefore": ((memory.event or memory.created) + timedelta(milliseconds=1)).isoformat(),
    }
    assert every.keys() == RULES.keys()
    assert memory.id in expected(world.memories, every)

    await check(world, [every, {**every, "agentId": "nobody"}], ["", "topic", "entity", "conversation"])


async def test_null_fields_filter_nothing(world: World) -> None:
    await check(world, [{}], [""])
    answer = await world.api(
        "query($none: MemoryFilter) { memories(filter: $none) { totalCount } }", none=dict.fromkeys(RULES)
    )

    assert answer["memories"]["totalCount"] == len(world.memories)


@pytest.mark.parametrize(
    ("wanted", "path"),
    [
        ({"createdAfter": "2026-01-02T00:00:00Z", "createdBefore": "2026-01-01T00:00:00Z"}, "filter.createdAfter"),
        ({"eventAfter": "2026-01-01T00:00:00.001Z", "eventBefore": "2026-01-01T00:00:00Z"}, "filter.eventAfter"),
        ({"minImportance": 1.01}, "filter.minImportance"),
        ({"minImportance": -0.01}, "filter.minImportance"),
        ({"topicIds": ["x"] * 201}, "filter.topicIds"),
        ({"entityIds": ["x"] * 201}, "filter.entityIds"),
    ],
)
async def test_a_filter_that_can_not_be_is_refused_and_nothing_is_read(world: World, wanted: Filter, path: str) -> None:
    owned = f'topic(id: "{world.topics[0]}") {{ memories(filter: $wanted) {{ totalCount }} }}'
    for text, reads in (("memories(filter: $wanted) { totalCount nodes { id } }", 0), (owned, 1)):
        before = world.resources.graph.statements

        errors = await world.api.errors(f"query($wanted: MemoryFilter) {{ {text} }}", wanted=wanted)

        assert [error["extensions"]["code"] for error in errors] == ["BAD_INPUT"]
        assert errors[0]["message"].startswith(path)
        assert world.resources.graph.statements - before == reads


# ---------------------------------------------------------------- lists


@pytest_asyncio.fixture(scope="module")
async def named(resources: Resources) -> AsyncIterator[Api]:
    """A tenant with names that look like patterns, in all cases and widths."""
    tenant = f"names-{uuid4().hex[:12]}"
    async with caller(resources, tenant) as client:
        api = Api(client, tenant)
        await _make(api, "topic", [{"name": name} for name in TOPICS])
        await _make(api, "conversation", [{"title": title} for title in TITLES])
        await _make(api, "entity", [{"name": name, "type": type_} for name, type_ in ENTITIES])
        await _make(api, "fact", [dict(zip(FACT_FIELDS, fact, strict=True)) for fact in FACTS])
        yield api


TOPICS = [
    "New York",
    "Newton",
    "new",
    "%sale",
    "_id",
    "a*b",
    "a.b",
    "[x]",
    "\\d+",
    "$t",
    "Straße",
    "ACME",
    "ｱｰﾄ",
    "漢字",
]


@pytest.mark.parametrize(
    ("prefix", "names"),
    [
        ("new", ["new", "New York", "Newton"]),
        ("NEW", ["new", "New York", "Newton"]),
        ("  new", ["new", "New York", "Newton"]),
        ("new ", ["New York"]),
        ("new\u3000y", ["New York"]),
        ("Newt".translate(WIDE), ["Newton"]),
        ("york", []),
        ("%", ["%sale"]),
        ("_", ["_id"]),
        ("a*", ["a*b"]),
        ("a.", ["a.b"]),
        ("a", ["a*b", "a.b", "ACME"]),
        (".*", []),
        ("*", []),
        ("[", ["[x]"]),
        ("\\", ["\\d+"]),
        ("$", ["$t"]),
        ("$t", ["$t"]),
        ("STRASS", ["Straße"]),
        ("ac".translate(WIDE), ["ACME"]),
        ("アー", ["ｱｰﾄ"]),
        ("漢", ["漢字"]),
        ("' OR true //", []),
        ("new" * 100, []),
    ],
)
async def test_names_start_with(named: Api, prefix: str, names: list[str]) -> None:
    text = "query($prefix: String) { topics(nameStartsWith: $prefix, first: 200) { nodes { name } totalCount } }"
    found = (await named(text, prefix=prefix))["topics"]

    assert [node["name"] for node in found["nodes"]] == names
    assert found["totalCount"] == len(names)


@pytest.mark.parametrize("prefix", ["", " ", "\u3000"])
async def test_every_name_starts_with_nothing(named: Api, prefix: str) -> None:
    text = "query($prefix: String) { topics(nameStartsWith: $prefix) { totalCount } }"

    assert (await named(text, prefix=prefix))["topics"]["totalCount"] == len(TOPICS)


FULL_WIDTH = "Full width".translate(WIDE)
TITLES = ["Plan for Q3", "the plan", "planning 100%", "50_50", "a.*b", "ΟΔΟΣ", FULL_WIDTH, "会議メモ"]


@pytest.mark.parametrize(
    ("part", "titles"),
    [
        ("plan", ["Plan for Q3", "planning 100%", "the plan"]),
        ("PLAN ", ["Plan for Q3"]),
        (" plan", ["the plan"]),
        ("100%", ["planning 100%"]),
        ("%", ["planning 100%"]),
        ("_", ["50_50"]),
        (".*", ["a.*b"]),
        ("οδος", ["ΟΔΟΣ"]),
        ("full width", [FULL_WIDTH]),
        ("議メ", ["会議メモ"]),
        ("nothing", []),
    ],
)
async def test_titles_contain(named: Api, part: str, titles: list[str]) -> None:
    text = """query($part: String) {
      conversations(titleContains: $part, orderBy: {field: NAME}, first: 200) { nodes { title } totalCount }
    }"""
    found = (await named(text, part=part))["conversations"]

    assert [node["title"] for node in found["nodes"]] == titles
    assert found["totalCount"] == len(titles)


ENTITIES = [("Ada", "PERSON"), ("ada", "TOOL"), ("Adam", "PERSON"), ("Bob", "PERSON"), ("Adabas", "TOOL")]


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ("type: PERSON", ["Ada", "Adam", "Bob"]),
        ("type: PLACE", []),
        ('nameStartsWith: "ADA"', ["Ada", "ada", "Adabas", "Adam"]),
        ('type: TOOL, nameStartsWith: "ada"', ["ada", "Adabas"]),
        ('type: TOOL, nameStartsWith: "adab", orderBy: {field: NAME, direction: DESC}', ["Adabas"]),
        ('type: PERSON, nameStartsWith: "ada", orderBy: {field: MEMORIES}', ["Ada", "Adam"]),
    ],
)
async def test_entities_of_a_type_and_name(named: Api, arguments: str, names: list[str]) -> None:
    found = (await named(f"{{ entities({arguments}, first: 200) {{ nodes {{ name }} totalCount }} }}"))["entities"]

    assert [node["name"] for node in found["nodes"]] == names
    assert found["totalCount"] == len(names)


async def test_a_memorys_entities_of_a_type(api: Api) -> None:
    await api(
        CREATE,
        input={
            "memories": [
                {"content": "a", "entities": [{"name": name, "type": type_} for name, type_ in ENTITIES]},
            ]
        },
    )

    found = (await api("{ memories { nodes { entities(type: TOOL) { nodes { name } totalCount } } } }"))["memories"]

    assert found["nodes"] == [{"entities": {"nodes": [{"name": "ada"}, {"name": "Adabas"}], "totalCount": 2}}]


FACT_FIELDS = ("subject", "predicate", "object", "confidence")
FACTS = [
    ("Ann", "likes", "Tea", 0.9),
    ("ann", "LIKES", "coffee", 0.5),
    ("Ann Lee", "likes", "tea", 0.5),
    ("Bob", "likes", "tea", 1.0),
    ("Bob", "hates", "tea".translate(WIDE), 0.0),
]


def _same(one: str, other: str) -> bool:
    return one.translate(NARROW).strip().casefold() == other.translate(NARROW).strip().casefold()


@pytest.mark.parametrize(
    "wanted",
    [
        {name: value}
        for name, value in (
            ("subject", "Ann"),
            ("subject", " ANN\u3000"),
            ("subject", "An"),
            ("predicate", "likes"),
            ("object", "TEA"),
            ("object", "te"),
            ("minConfidence", 0.5),
            ("minConfidence", 1),
            ("minConfidence", 0),
        )
    ]
    + [
        dict(zip(names, pair, strict=True))
        for names, pairs in (
            (("subject", "predicate"), product(("ann", "bob"), ("likes", "hates"))),
            (("subject", "object"), product(("ann", "bob"), ("tea", "coffee"))),
            (("predicate", "object"), product(("likes", "hates"), ("tea", "coffee"))),
            (("subject", "minConfidence"), product(("ann", "bob"), (0.6, 0.0))),
            (("predicate", "minConfidence"), product(("likes",), (0.6, 1.0))),
            (("object", "minConfidence"), product(("tea",), (0.6, 1.0))),
        )
        for pair in pairs
    ],
    ids=str,
)
async def test_facts_by_their_parts(named: Api, wanted: dict[str, Any]) -> None:
    def fits(fact: tuple[str, str, str, float]) -> bool:
        given = dict(zip(FACT_FIELDS, fact, strict=True))
        return all(
            given["confidence"] >= value if name == "minConfidence" else _same(str(given[name]), value)
            for name, value in wanted.items()
        )

    text = """query($subject: String, $predicate: String, $object: String, $minConfidence: Float) {
      facts(subject: $subject, predicate: $predicate, object: $object, minConfidence: $minConfidence) {
        nodes { subject predicate object confidence } totalCount
      }
    }"""
    found = (await named(text, **wanted))["facts"]

    assert [tuple(node.values()) for node in found["nodes"]] == [fact for fact in reversed(FACTS) if fits(fact)]
    assert found["totalCount"] == len(found["nodes"])


@pytest.mark.parametrize("least", [-0.1, 1.1])
async def test_a_confidence_outside_its_range_is_refused(named: Api, least: float) -> None:
    errors = await named.errors("query($least: Float) { facts(minConfidence: $least) { totalCount } }", least=least)

    assert [error["extensions"]["code"] for error in errors] == ["BAD_INPUT"]
    assert errors[0]["message"].startswith("minConfidence: must be from 0 to 1")
