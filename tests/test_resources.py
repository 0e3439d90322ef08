"""What a process opens: a store that is set up once by whoever is first, and the embedder that it is used with."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio
from tests.openai_server import OpenAIServer
from tests.redis_server import RedisServer

from reverie.bus.bells import Notice, NoticeKind
from reverie.bus.local_bell import LocalBell
from reverie.bus.redis_bell import RedisBell
from reverie.domain.embedding import Choice
from reverie.domain.memories import MemoryDraft
from reverie.domain.search import SearchMode
from reverie.domain.text import ANALYSIS_VERSION
from reverie.errors import ConfigurationError, StoreError, Unsupported
from reverie.graph.schema import SCHEMA_VERSION, forget_embedder, record_embedder, set_up
from reverie.graph.store import Graph, open_graph
from reverie.local import LocalNeo4j
from reverie.resources import Resources, make_bell, make_embedder, open_resources
from reverie.services.embedding import reembed
from reverie.services.memories import create_memory
from reverie.services.search import search
from reverie.settings import Settings

OPENAI = "openai:text-embedding-3-small"
LOCAL = "local:multilingual-e5-small-q4"


@asynccontextmanager
async def graph_of(neo4j: LocalNeo4j) -> AsyncIterator[Graph]:
    async with open_graph(neo4j.uri, neo4j.username, neo4j.password, None, time_limit=300) as graph:
        yield graph


@pytest_asyncio.fixture
async def graph(blank_neo4j: LocalNeo4j) -> AsyncIterator[Graph]:
    """A store in which nothing was set up."""
    async with graph_of(blank_neo4j) as opened:
        yield opened


def settings_of(neo4j: LocalNeo4j, openai_server: OpenAIServer | None = None, **more: str) -> Settings:
    """Settings for a Neo4j, with a key for OpenAI where a server is given."""
    environ = {"NEO4J_URI": neo4j.uri, "NEO4J_PASSWORD": neo4j.password, "REVERIE_NEO4J_TIMEOUT": "300"}
    if openai_server is not None:
        environ |= {"OPENAI_API_KEY": openai_server.api_key, "OPENAI_BASE_URL": openai_server.base_url}
    return Settings.read({**environ, "REVERIE_EMBEDDING_DIMENSIONS": "32", "REVERIE_EMBEDDING_TIMEOUT": "60", **more})


async def schema_of(graph: Graph) -> dict[str, Any]:
    """Every constraint and index by name, with what it is on and how it is made."""
    listed = "SHOW INDEXES YIELD name, type, state, labelsOrTypes, properties, options"
    options = "CASE WHEN type IN ['VECTOR', 'FULLTEXT'] THEN options.indexConfig ELSE null END"
    shown = await graph.execute(
        f"{listed} WHERE type <> 'LOOKUP' RETURN collect([name, type, state, labelsOrTypes, properties, {options}])"
    )
    constraints = await graph.execute("SHOW CONSTRAINTS YIELD name, type RETURN collect([name, type, null])")
    return {name: rest for name, *rest in (*constraints, *shown)}


async def vectors_of(graph: Graph) -> list[list[float] | None]:
    rows = await graph.read("MATCH (n:Memory|Topic) WITH n ORDER BY n.id RETURN collect([n.embedding])")
    return [vector for (vector,) in rows]


# --- the schema


async def test_eight_at_once_set_an_empty_store_up_once(blank_neo4j: LocalNeo4j, graph: Graph) -> None:
    async def one() -> Any:
        async with graph_of(blank_neo4j) as own:
            return await set_up(own, analysis=ANALYSIS_VERSION)

    records = await asyncio.gather(*(one() for _ in range(8)))

    assert {(record.version, record.analysis) for record in records} == {(SCHEMA_VERSION, ANALYSIS_VERSION)}
    assert await graph.read("MATCH (s:Store) RETURN count(s)") == 1
    schema = await schema_of(graph)
    assert {"node_id", "name_key", "tenant_name", "words", "memory_createdat", "store_name"} <= set(schema)
    assert {state for _, state, *_ in schema.values() if state is not None} == {"ONLINE"}


async def test_setting_up_again_changes_nothing_and_costs_one_read(graph: Graph) -> None:
    first = await set_up(graph, analysis=ANALYSIS_VERSION)
    schema = await schema_of(graph)
    sent = graph.statements

    assert await set_up(graph, analysis=ANALYSIS_VERSION) == first
    assert graph.statements == sent + 1
    assert await schema_of(graph) == schema


async def test_a_set_up_that_was_interrupted_is_finished_by_the_next(graph: Graph) -> None:
    for seconds in (0.02, 0.2, 0.6):
        interrupted = asyncio.create_task(set_up(graph, analysis=ANALYSIS_VERSION))
        await asyncio.wait([interrupted], timeout=seconds)
        interrupted.cancel()
        await asyncio.wait([interrupted])

    record = await set_up(graph, analysis=ANALYSIS_VERSION)

    assert record.version == SCHEMA_VERSION
    assert {"node_id", "words", "community_form"} <= set(await schema_of(graph))


async def test_what_is_left_of_a_constraint_that_was_cut_off_is_no_hindrance(graph: Graph) -> None:
    # given: an index under the name of a constraint, as Neo4j leaves one when the making is cut off in its middle
    await graph.execute("CREATE RANGE INDEX tenant_name FOR (n:Tenant) ON (n.name)")

    await set_up(graph, analysis=ANALYSIS_VERSION)

    assert (await schema_of(graph))["tenant_name"][0] == "RANGE"
    assert await graph.execute("SHOW CONSTRAINTS YIELD name WHERE name = 'tenant_name' RETURN count(name)") == 1


async def test_an_older_store_is_brought_forward_with_what_is_in_it(graph: Graph) -> None:
    # given: a store of an older version, which lacked an index, and has data and an embedder
    await set_up(graph, analysis=ANALYSIS_VERSION)
    await record_embedder(graph, OPENAI, 32)
    complete = await schema_of(graph)
    await graph.execute("MATCH (s:Store) SET s.version = $older", older=SCHEMA_VERSION - 1)
    await graph.execute("CREATE (:Memory:Node {id: 'kept', tenant: 't', content: 'still here'})")
    await graph.execute("DROP INDEX memory_subject")

    record = await set_up(graph, analysis=ANALYSIS_VERSION)

    assert (record.version, record.embedder, record.dimensions) == (SCHEMA_VERSION, OPENAI, 32)
    assert await schema_of(graph) == complete
    assert await graph.read("MATCH (n:Memory {id: 'kept'}) RETURN n.content") == "still here"


async def test_a_newer_store_is_refused_and_left_alone(blank_neo4j: LocalNeo4j, graph: Graph) -> None:
    await set_up(graph, analysis=ANALYSIS_VERSION)
    await graph.execute("MATCH (s:Store) SET s.version = $newer", newer=SCHEMA_VERSION + 1)
    await graph.execute("DROP INDEX memory_subject")
    before = await schema_of(graph)

    with pytest.raises(StoreError, match=rf"newer Reverie \(schema {SCHEMA_VERSION + 1}, this one knows"):
        async with open_resources(settings_of(blank_neo4j, REVERIE_EMBEDDER="none")):
            pass

    assert await schema_of(graph) == before
    assert await graph.read("MATCH (s:Store) RETURN s.version") == SCHEMA_VERSION + 1


async def test_a_server_that_refuses_the_set_up_is_told_of(graph: Graph) -> None:
    # given: data that no constraint of ours can hold over
    await graph.execute("UNWIND [1, 2] AS i CREATE (:Node {id: 'twice'})")

    with pytest.raises(StoreError, match=r"Neo4j refuses to set the store up: .*twice"):
        await set_up(graph, analysis=ANALYSIS_VERSION)


# --- the embedder's record


async def test_of_eight_that_record_an_embedder_at_once_one_is_first(blank_neo4j: LocalNeo4j, graph: Graph) -> None:
    await set_up(graph, analysis=ANALYSIS_VERSION)

    async def one(number: int) -> Any:
        async with graph_of(blank_neo4j) as own:
            return await record_embedder(own, f"openai:model-{number}", 8 + number)

    records = await asyncio.gather(*(one(number) for number in range(8)))

    (record,) = set(records)
    assert record.embedder == f"openai:model-{(record.dimensions or 0) - 8}"
    schema = await schema_of(graph)
    for name in ("memory_embedding", "topic_embedding"):
        config = schema[name][-1]
        assert config["vector.dimensions"] == record.dimensions
        assert config["vector.quantization.type"] == "NONE"


async def test_auto_chooses_once_and_a_key_that_appears_changes_nothing(
    blank_neo4j: LocalNeo4j, graph: Graph, openai_server: OpenAIServer
) -> None:
    # given: an empty store and no key
    async with open_resources(settings_of(blank_neo4j)) as resources:
        assert (embedder_of(resources), resources.embedder_note) == (LOCAL, None)
        await create_memory(resources, "t", MemoryDraft(content="the harbour freezes in March"), None)
    calls = len(openai_server.calls)

    # when: a key appears
    async with open_resources(settings_of(blank_neo4j, openai_server)) as resources:
        assert embedder_of(resources) == LOCAL
        await create_memory(resources, "t", MemoryDraft(content="the ferry is late"), None)
    # then: nothing was sent, and all vectors are of one kind
    assert len(openai_server.calls) == calls
    assert [len(vector or ()) for vector in await vectors_of(graph)] == [384, 384]

    # and: wanting it is refused with the command that does it
    with pytest.raises(ConfigurationError, match=f"made by {LOCAL} .*REVERIE_EMBEDDER=openai.*`reverie reembed`"):
        async with open_resources(settings_of(blank_neo4j, openai_server, REVERIE_EMBEDDER="openai")):
            pass
    assert len(openai_server.calls) == calls


async def test_with_a_key_auto_chooses_openai_and_other_dimensions_or_models_are_refused(
    blank_neo4j: LocalNeo4j, openai_server: OpenAIServer
) -> None:
    async with open_resources(settings_of(blank_neo4j, openai_server)) as resources:
        assert embedder_of(resources) == OPENAI

    for change in (
        {"REVERIE_EMBEDDING_DIMENSIONS": "64"},
        {"REVERIE_EMBEDDING_MODEL": "text-embedding-3-large"},
        {"REVERIE_EMBEDDER": "local"},
    ):
        with pytest.raises(ConfigurationError, match=r"text-embedding-3-small \(32 dimensions\).*`reverie reembed`"):
            async with open_resources(settings_of(blank_neo4j, openai_server, **change)):
                pass
    # and: without the key, search is by word and says so
    async with open_resources(settings_of(blank_neo4j)) as resources:
        assert resources.embedder is None
        assert "OPENAI_API_KEY is not set" in (resources.embedder_note or "")


async def test_without_an_embedder_search_is_by_word_until_reembed(
    blank_neo4j: LocalNeo4j, graph: Graph, openai_server: OpenAIServer
) -> None:
    async with open_resources(settings_of(blank_neo4j, openai_server, REVERIE_EMBEDDER="none")) as resources:
        await create_memory(resources, "t", MemoryDraft(content="a secret of the harbour"), None)
        found = await search(resources, "t", "harbour")
        assert [hit.node.content for hit in found.edges] == ["a secret of the harbour"]
        assert [hit.ranked.semantic_rank for hit in found.edges] == [None]
        with pytest.raises(Unsupported, match="needs an embedder"):
            await search(resources, "t", "harbour", mode=SearchMode.SEMANTIC)
    calls = len(openai_server.calls)

    # when: it is left to auto, and there is a key
    async with open_resources(settings_of(blank_neo4j, openai_server)) as resources:
        # then: what was written without an embedder is sent nowhere
        assert resources.embedder is None
        assert "`reverie reembed`" in (resources.embedder_note or "")
    with pytest.raises(ConfigurationError, match=r"filled without an embedder.*`reverie reembed`"):
        async with open_resources(settings_of(blank_neo4j, openai_server, REVERIE_EMBEDDER="openai")):
            pass
    assert len(openai_server.calls) == calls
    assert await vectors_of(graph) == [None]


async def test_a_reembedding_that_stops_at_any_step_is_healed_by_the_next(
    blank_neo4j: LocalNeo4j, graph: Graph, openai_server: OpenAIServer
) -> None:
    async with open_resources(settings_of(blank_neo4j, openai_server)) as resources:
        assert resources.embedder is not None
        for number in range(3):
            await create_memory(resources, "t", MemoryDraft(content=f"harbour note {number}"), None)

        # given: one that ended after the former embedder was forgotten
        await forget_embedder(graph)
    async with open_resources(settings_of(blank_neo4j, openai_server)) as resources:
        # then: nothing is chosen in passing, beside vectors of another kind
        assert resources.embedder is None
        assert len((await search(resources, "t", "harbour")).edges) == 3

    # when: it is started again
    settings = settings_of(blank_neo4j, openai_server, REVERIE_EMBEDDING_DIMENSIONS="48")
    async with open_resources(settings_of(blank_neo4j, openai_server, REVERIE_EMBEDDER="none")) as resources:
        embedder = make_embedder(settings, Choice("openai"))
        assert embedder is not None
        seen: list[tuple[int, int]] = []
        assert await reembed(resources, embedder, lambda done, total: seen.append((done, total))) == 3
        await embedder.close()
    assert seen[0] == (0, 3)
    assert seen[-1] == (3, 3)
    assert [len(vector or ()) for vector in await vectors_of(graph)] == [48, 48, 48]
    async with open_resources(settings) as resources:
        found = await search(resources, "t", "harbour note 1", mode=SearchMode.SEMANTIC)
        assert found.edges[0].node.content == "harbour note 1"


async def test_the_bell_is_that_of_redis_where_one_is_named(
    neo4j: LocalNeo4j, openai_server: OpenAIServer, redis: RedisServer, tenant: str
) -> None:
    alone = settings_of(neo4j, openai_server, REVERIE_EMBEDDER="none")
    shared = settings_of(neo4j, openai_server, REVERIE_EMBEDDER="none", REDIS_URL=redis.url)
    async with open_resources(alone) as one, open_resources(shared) as two, open_resources(shared) as three:
        assert isinstance(one.bell, LocalBell)
        for shared_bell in (two.bell, three.bell):
            assert isinstance(shared_bell, RedisBell)
            await shared_bell.wait_until_listening()
        with three.bell.listen(NoticeKind.WORK, tenant=tenant) as heard:
            one.bell.ring(Notice(NoticeKind.WORK, tenant, {"by": "one"}))
            two.bell.ring(Notice(NoticeKind.WORK, tenant))

            async with asyncio.timeout(10):
                assert await anext(heard) == Notice(NoticeKind.WORK, tenant)


@pytest.mark.parametrize(
    "address", ["redis://127.0.0.1:port", "redis://127.0.0.1?db=first", "redis://:port/a@127.0.0.1"]
)
def test_an_address_that_no_redis_can_have_is_refused(address: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^REDIS_URL: (?!.*port)"):
        make_bell(Settings.read({"REDIS_URL": address}))


def embedder_of(resources: Resources) -> str | None:
    return None if resources.embedder is None else resources.embedder.name
