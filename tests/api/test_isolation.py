"""Two tenants see nothing of each other: every query field and every way on from it, taken from the schema itself."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import orjson
import pytest
import pytest_asyncio
from graphql import GraphQLObjectType, GraphQLOutputType, GraphQLUnionType, get_named_type, is_leaf_type
from tests.conftest import Api, caller
from tests.crowd import COMMON, MARK, Crowd
from tests.recording import message, record
from tests.stored import stored

from reverie.api.schema import schema
from reverie.domain.clock import now_ms
from reverie.domain.ids import new_id
from reverie.graph.dreaming import start_dream
from reverie.resources import Resources
from reverie.services.documents import read_some

SMALL_MARK = "smallmark"
SMALL = 50
DEPTH = 2
GRAPHQL = schema._schema
LISTS = {
    "Memory": "memories",
    "Conversation": "conversations",
    "Topic": "topics",
    "Fact": "facts",
    "Entity": "entities",
    "Community": "communities",
    "Event": "events",
    "Episode": "episodes",
    "Belief": "beliefs",
    "Document": "documents",
}
KINDS = (*LISTS, "Chunk")


@dataclass
class Side:
    """One tenant: its caller, a word in all its texts, and an id of each kind of thing it has."""

    api: Api
    mark: str
    ids: dict[str, str] = field(default_factory=dict)


@dataclass
class Sides:
    small: Side
    crowd: Side


CREATE = """
mutation($input: CreateMemoriesInput!) { createMemories(input: $input) { memories { id } errors { code path } } }
"""
IDS = """
{ memories(last: 1) { nodes { id } } conversations(last: 1) { nodes { id } } topics(first: 1) { nodes { id } }
  facts(first: 1) { nodes { id } } entities(first: 1) { nodes { id } } communities(first: 1) { nodes { id } }
  events(first: 1) { nodes { id } } episodes(first: 1) { nodes { id } }
  beliefs(first: 1) { nodes { id } } documents(first: 1) { nodes { id chunks(first: 1) { nodes { id } } } } }
"""


@pytest_asyncio.fixture(scope="module")
async def sides(resources: Resources, crowd: Crowd) -> AsyncIterator[Sides]:
    """A tenant of 50 memories beside one of 20,000."""
    small = f"small-{uuid4().hex[:12]}"
    async with caller(resources, small) as small_client, caller(resources, crowd.tenant) as crowd_client:
        found = Sides(Side(Api(small_client, small), SMALL_MARK), Side(Api(crowd_client, crowd.tenant), MARK))
        await fill_small(resources, found.small.api)
        for side in (found.small, found.crowd):
            await live(side)
        while await read_some(resources):
            pass
        for side in (found.small, found.crowd):
            listed = await side.api(IDS)
            for kind, name in LISTS.items():
                side.ids[kind] = listed[name]["nodes"][0]["id"]
            side.ids["Chunk"] = listed["documents"]["nodes"][0]["chunks"]["nodes"][0]["id"]
            side.ids["Dream"] = (await start_dream(resources.graph, side.api.tenant, [], now_ms())).id
        yield found


async def fill_small(resources: Resources, api: Api) -> None:
    made = await api.mutate(
        "createConversation", "CreateConversationInput", "conversation { id }", {"title": f"{SMALL_MARK} thread"}
    )
    memories = [
        {
            "content": f"{SMALL_MARK} note {place}: the {COMMON} gate {place} was painted",
            "conversationId": made["conversation"]["id"],
            "topics": [{"name": f"{SMALL_MARK} topic {place % 3}"}],
            "entities": [{"name": f"{SMALL_MARK} entity {place % 4}", "type": "TOOL"}],
            "facts": [
                {"subject": f"{SMALL_MARK} entity {place % 4}", "predicate": "has", "object": f"{SMALL_MARK} paint"}
            ],
            "subjectId": f"{SMALL_MARK}-subject",
            "agentId": f"{SMALL_MARK}-agent",
        }
        for place in range(SMALL)
    ]
    payload = (await api(CREATE, input={"memories": memories}))["createMemories"]
    assert payload["errors"] == []
    ids = [memory["id"] for memory in payload["memories"]]
    related = {"fromId": ids[0], "toId": ids[1]}
    assert not (await api.mutate("relateMemories", "RelateMemoriesInput", "memory { id }", related))["errors"]
    await resources.graph.execute(
        "MATCH (t:Topic) WHERE t.tenant = $t AND t.form >= '' AND t.id > '' WITH collect(t) AS topics "
        "CREATE (c:Community:Node {id: $id, tenant: $t, name: $name, form: $name, algorithm: 'LEIDEN', size: 3}) "
        "FOREACH (t IN topics | CREATE (t)-[:BELONGS_TO]->(c))",
        t=api.tenant,
        id=new_id(),
        name=f"{SMALL_MARK} group",
    )


async def live(side: Side) -> None:
    """Threads of events, one of them with an episode that is over, and beliefs."""
    threads = [f"{side.mark}-thread-{number}" for number in range(2)]
    own = {"userId": f"{side.mark}-user", "agentId": f"{side.mark}-agent"}
    await record(
        side.api,
        *(
            message(f"{side.mark} says {turn}", thread, clientEventId=f"{turn} of {place}", **own)
            for place, thread in enumerate(threads)
            for turn in range(3)
        ),
    )
    for turn in range(2):
        belief = {"subjectId": f"{side.mark}-user", "key": "likes.paint", "value": f"{side.mark} paint {turn}"}
        assert not (await side.api.mutate("upsertBelief", "UpsertBeliefInput", "belief { id }", belief))["errors"]
    document = {"title": f"{side.mark} harbour", "text": f"# {side.mark}\n\nIt has gates.", "subjectId": own["userId"]}
    assert not (await side.api.mutate("createDocument", "CreateDocumentInput", "document { id }", document))["errors"]
    closing = {"threadId": threads[0]}
    assert not (await side.api.mutate("closeEpisode", "CloseEpisodeInput", "episode { id }", closing))["errors"]


def selection(type_: GraphQLOutputType, depth: int) -> str:
    """Everything that a type leads to, so many steps deep; a page is a step, its edges and nodes are none."""
    named = get_named_type(type_)
    if isinstance(named, GraphQLUnionType) or named.name == "Node":
        possible = GRAPHQL.get_possible_types(named)  # type: ignore[arg-type]  # a union or an interface
        return " ".join(["__typename", *(f"... on {each.name} {{ {aliased(each, depth)} }}" for each in possible)])
    assert isinstance(named, GraphQLObjectType), named
    return plain(named, depth)


def aliased(type_: GraphQLObjectType, depth: int) -> str:
    """As `plain`, each field under a name of its type's own, since members of a union may differ in a field's type."""
    return plain(type_, depth, prefix=f"{type_.name.lower()}_")


def plain(type_: GraphQLObjectType, depth: int, prefix: str = "") -> str:
    chosen = ["__typename"]
    for name, member in type_.fields.items():
        named = get_named_type(member.type)
        label = f"{prefix}{name}: " if prefix else ""
        if is_leaf_type(named):
            if name != "embedding":
                chosen.append(f"{label}{name}")
            continue
        free = type_.name.endswith(("Connection", "Edge", "Payload")) or named.name == "PageInfo"
        if not free and depth == 0:
            continue
        arguments = "(first: 2)" if "first" in member.args else ""
        chosen.append(f"{label}{name}{arguments} {{ {selection(member.type, depth if free else depth - 1)} }}")
    return " ".join(chosen)


ById = Callable[[dict[str, str]], list[dict[str, Any]]]


def by_id(kind: str) -> ById:
    return lambda ids: [{"id": ids[kind]}]


FILTER_IDS: ById = lambda ids: [  # noqa: E731 - a recipe among recipes
    {},
    {"filter": {"conversationId": ids["Conversation"]}},
    {"filter": {"topicIds": [ids["Topic"]]}},
    {"filter": {"entityIds": [ids["Entity"]]}},
    {"filter": {"subjectId": f"{MARK}-subject-1"}},
    {"filter": {"subjectId": f"{SMALL_MARK}-subject"}},
]
OF_EITHER = [
    {name: f"{mark}-{value}"}
    for mark in (MARK, SMALL_MARK)
    for name, value in (("threadId", "thread-1"), ("userId", "user"), ("agentId", "agent"))
]
OF_EITHER_THREAD: dict[str, Any] = {"threadId": f"{MARK}-1", "tokenBudget": 500}
RECIPES: dict[str, ById] = {
    "node": lambda ids: [{"id": ids[kind]} for kind in KINDS],
    "nodes": lambda ids: [{"ids": list(ids.values())}],
    "memory": by_id("Memory"),
    "memories": FILTER_IDS,
    "conversation": lambda ids: [
        {"id": ids["Conversation"]},
        {"threadId": f"{MARK}-1"},
        {"threadId": f"{SMALL_MARK}-thread-1"},
        {"threadId": ids["Conversation"]},
    ],
    "conversations": lambda _: [{}, {"titleContains": "thread"}, {"titleContains": MARK}],
    "topic": lambda ids: [{"id": ids["Topic"]}, {"name": f"{MARK} topic 1"}, {"name": f"{SMALL_MARK} topic 1"}],
    "topics": lambda _: [{}, {"nameStartsWith": MARK}, {"nameStartsWith": SMALL_MARK}],
    "fact": by_id("Fact"),
    "facts": lambda _: [{}, {"subject": f"{MARK} entity 20"}, {"subject": f"{SMALL_MARK} entity 1"}],
    "entity": lambda ids: [{"id": ids["Entity"]}, {"name": f"{MARK} entity 1"}, {"name": f"{SMALL_MARK} entity 1"}],
    "entities": lambda _: [{}, {"nameStartsWith": MARK}, {"nameStartsWith": SMALL_MARK}],
    "community": by_id("Community"),
    "communities": lambda _: [{}, {"algorithm": "LEIDEN"}],
    "event": by_id("Event"),
    "events": lambda _: [{}, *({"filter": wanted} for wanted in OF_EITHER)],
    "episode": by_id("Episode"),
    "episodes": lambda _: [{}, *({"filter": wanted} for wanted in OF_EITHER)],
    "belief": lambda ids: [
        {"id": ids["Belief"]},
        *({"subjectId": f"{mark}-user", "key": "likes.paint"} for mark in (MARK, SMALL_MARK)),
    ],
    "beliefs": lambda _: [{}, *({"filter": {"subjectId": f"{mark}-user"}} for mark in (MARK, SMALL_MARK))],
    "beliefChanges": lambda _: [{}, *({"filter": {"subjectIds": [f"{mark}-user"]}} for mark in (MARK, SMALL_MARK))],
    "changesCursor": lambda _: [{}],
    "document": by_id("Document"),
    "documents": lambda _: [{}],
    "dream": by_id("Dream"),
    "search": lambda ids: [
        {"query": query, "mode": mode, "first": 200, **filter_}
        for query in (COMMON, MARK, SMALL_MARK)
        for mode in ("HYBRID", "SEMANTIC", "KEYWORD")
        for filter_ in ({}, {"filter": {"topicIds": [ids["Topic"]]}})
    ],
    "context": lambda _: [
        {"input": {"query": query, **given}}
        for query in (COMMON, MARK, SMALL_MARK)
        for given in ({}, *({"subjectId": f"{mark}-subject-1"} for mark in (MARK, SMALL_MARK)), OF_EITHER_THREAD)
    ],
    "graph": lambda ids: [
        {"input": {"depth": 2}},
        {"input": {"depth": 3, "centerKeys": [*ids.values(), f"subject:{MARK}-user", f"subject:{SMALL_MARK}-user"]}},
        {"input": {"depth": 0, "limit": 5}},
    ],
    "server": lambda _: [{}],
}
"""How every query field is asked, given ids of one tenant. A field without a recipe fails the test below."""
TELLS_NOTHING = {"server", "changesCursor", "dream"}
"""Fields whose answer holds nothing of any tenant."""


def test_every_query_field_has_a_recipe() -> None:
    assert GRAPHQL.query_type is not None
    assert sorted(RECIPES) == sorted(GRAPHQL.query_type.fields)


async def ask(side: Side, name: str, arguments: dict[str, Any]) -> str:
    """The whole answer to one root field asked with everything it leads to, as text."""
    assert GRAPHQL.query_type is not None
    asked = GRAPHQL.query_type.fields[name]
    declared = ", ".join(f"${given}: {asked.args[given].type}" for given in arguments)
    passed = ", ".join(f"{given}: ${given}" for given in arguments)
    depth = {"search": 0, "node": 0, "nodes": 0, "context": 2}.get(name, DEPTH)
    chosen = "" if is_leaf_type(get_named_type(asked.type)) else f"{{ {selection(asked.type, depth)} }}"
    document = f"query{f'({declared})' if declared else ''} {{ {name}{f'({passed})' if passed else ''} {chosen} }}"
    return orjson.dumps(await side.api(document, **arguments)).decode()


@pytest.mark.parametrize("name", sorted(RECIPES))
async def test_no_query_field_shows_anything_of_another_tenant(sides: Sides, name: str) -> None:
    for asking, other in ((sides.small, sides.crowd), (sides.crowd, sides.small)):
        own = [await ask(asking, name, arguments) for arguments in RECIPES[name](asking.ids)]
        foreign = [await ask(asking, name, arguments) for arguments in RECIPES[name](other.ids)]

        for answer in (*own, *foreign):
            assert other.mark not in answer.replace(f'"{other.mark}"', ""), (name, answer[:500])
            assert not [known for known in other.ids.values() if known in answer], (name, answer[:500])
        assert name in TELLS_NOTHING or any(asking.mark in answer for answer in own), (name, own[0][:500])


PAGES = {"first", "after", "last", "before"}
FILTERED: ById = lambda ids: [  # noqa: E731 - a recipe among recipes
    {"filter": {"conversationId": ids["Conversation"]}},
    {"filter": {"topicIds": [ids["Topic"]]}},
    {"filter": {"entityIds": [ids["Entity"]]}},
    {"filter": {"subjectId": f"{MARK}-subject-1"}},
    {"filter": {"agentId": f"{MARK}-agent-1"}},
    {"orderBy": {"field": "IMPORTANCE"}},
]
NESTED: dict[str, ById] = {
    "Conversation.memories": FILTERED,
    "Entity.beliefs": lambda _: [{"filter": {"subjectId": f"{MARK}-user"}}, {"filter": {"keys": ["likes.tea"]}}],
    "Entity.memories": FILTERED,
    "Memory.entities": lambda _: [{"type": "TOOL"}],
    "Memory.similar": lambda _: [{"first": 200, "minScore": 0.0}],
    "Topic.community": lambda _: [{"algorithm": "LEIDEN"}],
    "Topic.memories": FILTERED,
}
"""How every field below the root that takes more than a page is asked, given ids of the other tenant."""


def test_every_field_with_arguments_has_a_recipe() -> None:
    assert GRAPHQL.query_type is not None
    taking = {
        f"{type_.name}.{name}"
        for type_ in GRAPHQL.type_map.values()
        if isinstance(type_, GraphQLObjectType)
        and type_ not in (GRAPHQL.query_type, GRAPHQL.mutation_type, GRAPHQL.subscription_type)
        for name, member in type_.fields.items()
        if member.args.keys() - PAGES and not type_.name.startswith("__")
    }

    assert taking == NESTED.keys()


@pytest.mark.parametrize("name", sorted(NESTED))
async def test_no_argument_below_the_root_reaches_into_another_tenant(sides: Sides, name: str) -> None:
    kind, _, field_name = name.partition(".")
    owner = GRAPHQL.type_map[kind]
    assert isinstance(owner, GraphQLObjectType)
    member = owner.fields[field_name]
    for arguments in NESTED[name](sides.crowd.ids):
        declared = ", ".join(f"${given}: {member.args[given].type}" for given in arguments)
        passed = ", ".join(f"{given}: ${given}" for given in arguments)
        document = (
            f"query($id: ID!, {declared}) {{ node(id: $id) {{ ... on {kind} "
            f"{{ {field_name}({passed}) {{ {selection(member.type, 1)} }} }} }} }}"
        )

        answer = orjson.dumps(await sides.small.api(document, id=sides.small.ids[kind], **arguments)).decode()

        assert MARK not in answer, (arguments, answer[:500])
        assert not [known for known in sides.crowd.ids.values() if known in answer], (arguments, answer[:500])
        # a filter that names the other tenant's things finds none of the own
        assert (SMALL_MARK in answer) is ("filter" not in arguments), (arguments, answer[:500])


async def test_counts_tell_of_the_own_tenant_alone(sides: Sides) -> None:
    counted = await sides.small.api("{ memories { totalCount } facts { totalCount } topics { totalCount } }")

    assert counted == {"memories": {"totalCount": SMALL}, "facts": {"totalCount": SMALL}, "topics": {"totalCount": 3}}


@pytest.mark.parametrize("mode", ["HYBRID", "SEMANTIC", "KEYWORD"])
async def test_a_small_tenants_search_is_complete(sides: Sides, mode: str) -> None:
    found = await sides.small.api(
        """query($mode: SearchMode, $query: String!) {
          search(query: $query, mode: $mode, first: 200, filter: {kinds: [MEMORY]}) {
            edges { semanticRank keywordRank node { ... on Memory { content } } } } }""",
        mode=mode,
        query=COMMON,
    )

    edges = found["search"]["edges"]
    assert len(edges) == SMALL
    assert all(SMALL_MARK in edge["node"]["content"] for edge in edges)
    if mode != "KEYWORD":
        assert sorted(edge["semanticRank"] for edge in edges) == list(range(1, SMALL + 1))
    if mode != "SEMANTIC":
        assert sorted(edge["keywordRank"] for edge in edges) == list(range(1, SMALL + 1))


FOREIGN: dict[str, ById] = {
    "createMemory": lambda ids: [
        {"content": "x", "conversationId": ids["Conversation"]},
        {"content": "x", "topics": [{"id": ids["Topic"]}]},
        {"content": "x", "entities": [{"id": ids["Entity"]}]},
        {"content": "x", "relatedTo": [ids["Memory"]]},
    ],
    "createMemories": lambda ids: [{"memories": [{"content": "x", "relatedTo": [ids["Memory"]]}]}],
    "updateMemory": lambda ids: [{"id": ids["Memory"], "content": "changed"}],
    "deleteMemory": by_id("Memory"),
    "relateMemories": lambda ids: [{"fromId": ids["Memory"], "toId": new_id()}],
    "createConversation": lambda _: [],
    "updateConversation": lambda ids: [{"id": ids["Conversation"], "title": "changed"}],
    "deleteConversation": lambda ids: [{"id": ids["Conversation"], "deleteMemories": True}],
    "createTopic": lambda _: [],
    "updateTopic": lambda ids: [{"id": ids["Topic"], "name": "changed"}],
    "mergeTopics": lambda ids: [{"intoId": ids["Topic"], "fromIds": [new_id()]}],
    "deleteTopic": by_id("Topic"),
    "createFact": lambda ids: [
        {"subject": "a", "predicate": "b", "object": "c", "memoryIds": [ids["Memory"]]},
        {"subject": "a", "predicate": "b", "object": "c", "aboutEntityIds": [ids["Entity"]]},
    ],
    "updateFact": lambda ids: [{"id": ids["Fact"], "subject": "changed"}],
    "deleteFact": by_id("Fact"),
    "createEntity": lambda _: [],
    "updateEntity": lambda ids: [{"id": ids["Entity"], "name": "changed"}],
    "mergeEntities": lambda ids: [{"intoId": ids["Entity"], "fromIds": [new_id()]}],
    "deleteEntity": by_id("Entity"),
    "relateEntities": lambda ids: [{"fromId": ids["Entity"], "toId": new_id()}],
    "unrelate": lambda ids: [{"fromId": ids["Memory"], "toId": ids["Memory"]}],
    "recordEvents": lambda _: [],
    "closeEpisode": lambda ids: [{"id": ids["Episode"]}, {"threadId": f"{SMALL_MARK}-thread-1"}],
    "retryEpisode": by_id("Episode"),
    "upsertBelief": lambda _: [],
    "retractBelief": by_id("Belief"),
    "createDocument": lambda _: [],
    "uploadDocument": lambda _: [],
    "linkDocument": lambda _: [],
    "deleteDocument": by_id("Document"),
    "dream": lambda ids: [{"episodeIds": [ids["Episode"]]}],
    "forgetSubject": lambda _: [],
    "detectCommunities": lambda _: [],
}
"""How every mutation is given ids; those that take no reference have no input here."""


async def mutate(side: Side, name: str, given: dict[str, Any]) -> list[dict[str, Any]]:
    type_ = f"{name[0].upper()}{name[1:]}Input"
    errors: list[dict[str, Any]] = (await side.api.mutate(name, type_, "__typename", given))["errors"]
    return errors


@pytest.mark.parametrize("name", sorted(FOREIGN))
async def test_no_mutation_reaches_into_another_tenant(sides: Sides, resources: Resources, name: str) -> None:
    before = await stored(resources.graph, sides.small.api.tenant)
    unknown = {kind: new_id() for kind in KINDS}

    for foreign, missing in zip(FOREIGN[name](sides.small.ids), FOREIGN[name](unknown), strict=True):
        refused = await mutate(sides.crowd, name, foreign)

        assert {error["code"] for error in refused} == {"NOT_FOUND"}, refused
        assert refused == await mutate(sides.crowd, name, missing)
    assert await stored(resources.graph, sides.small.api.tenant) == before


def test_every_mutation_has_a_recipe() -> None:
    assert GRAPHQL.mutation_type is not None
    assert sorted(FOREIGN) == sorted(GRAPHQL.mutation_type.fields)


async def test_tenants_named_running_and_runs_stay_apart(resources: Resources) -> None:
    async with caller(resources, "running") as first, caller(resources, "runs") as second:
        running, runs = Api(first, "running"), Api(second, "runs")
        for api in (running, runs):
            made = {"content": f"the job of {api.tenant} is running and it runs well"}
            assert not (await api.mutate("createMemory", "CreateMemoryInput", "memory { id }", made))["errors"]
        for api in (running, runs):
            for query in ("running", "runs", "run"):
                found = await api(
                    "query($query: String!) { search(query: $query, first: 200) "
                    "{ nodes { ... on Memory { content } } } }",
                    query=query,
                )

                contents = {node["content"] for node in found["search"]["nodes"]}
                assert contents == {f"the job of {api.tenant} is running and it runs well"}
