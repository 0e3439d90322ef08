"""Search and similar memories over the API: what a hit tells, pages, modes, and what is refused."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from tests.conftest import Api, caller
from tests.openai_server import Fault, OpenAIServer

from reverie.resources import Resources

SEARCH = """
query($query: String!, $mode: SearchMode, $filter: SearchFilter, $first: Int, $after: String) {
  search(query: $query, mode: $mode, filter: $filter, first: $first, after: $after) {
    edges {
      cursor score semanticRank semanticScore keywordRank keywordScore highlights
      node {
        __typename
        ... on Memory { id content topics { nodes { name } } }
        ... on Fact { id subject subjectEntity { name } }
        ... on Entity { id name aliases }
        ... on Topic { id name memories { totalCount } }
        ... on Conversation { id title }
      }
    }
    nodes { ... on Node { id } }
    pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
  }
}
"""
KINDS = ("Memory", "Fact", "Entity", "Topic", "Conversation")


@dataclass
class World:
    """A tenant with a lighthouse of every kind."""

    api: Api
    resources: Resources
    ids: dict[str, str]

    async def find(self, query: str = "lighthouse", **given: Any) -> dict[str, Any]:
        found: dict[str, Any] = (await self.api(SEARCH, query=query, **given))["search"]
        return found


@pytest_asyncio.fixture(scope="module")
async def world(resources: Resources) -> AsyncIterator[World]:
    tenant = f"lights-{uuid4().hex[:12]}"
    async with caller(resources, tenant) as client:
        api = Api(client, tenant)
        made = {}
        for noun, given in (
            ("entity", {"name": "Pharos", "type": "PLACE", "aliases": ["The Lighthouse"]}),
            ("topic", {"name": "lighthouse keeping"}),
            ("conversation", {"title": "On lighthouses"}),
            (
                "memory",
                {
                    "content": "Nobody answered. The lighthouse was dark! We waited.",
                    "topics": [{"name": "lighthouse keeping"}],
                },
            ),
            ("fact", {"subject": "The Lighthouse", "predicate": "guides", "object": "ships"}),
        ):
            kind = noun.capitalize()
            payload = await api.mutate(f"create{kind}", f"Create{kind}Input", f"{noun} {{ id }}", given)
            assert payload["errors"] == []
            made[kind] = payload[noun]["id"]
        yield World(api, resources, made)


async def test_a_hit_tells_what_it_is_and_how_it_was_found(world: World) -> None:
    found = await world.find()

    edges = {edge["node"]["__typename"]: edge for edge in found["edges"]}
    assert {kind: edge["node"]["id"] for kind, edge in edges.items()} == world.ids
    assert [node["id"] for node in found["nodes"]] == [edge["node"]["id"] for edge in found["edges"]]
    assert edges["Memory"]["node"]["topics"] == {"nodes": [{"name": "lighthouse keeping"}]}
    assert edges["Fact"]["node"]["subjectEntity"] == {"name": "Pharos"}
    assert edges["Topic"]["node"]["memories"] == {"totalCount": 1}
    assert {kind: edge["highlights"] for kind, edge in edges.items()} == {
        "Memory": ["The lighthouse was dark!"],
        "Fact": ["The Lighthouse guides ships"],
        "Entity": ["The Lighthouse"],
        "Topic": ["lighthouse keeping"],
        "Conversation": ["On lighthouses"],
    }
    for kind, edge in edges.items():
        by_meaning = kind in ("Memory", "Topic")
        assert edge["keywordRank"] in range(1, 6)
        assert edge["keywordScore"] > 0
        assert (edge["semanticRank"] in (1, 2)) is by_meaning
        assert (0 <= (edge["semanticScore"] or -1) <= 1) is by_meaning
        ranks = [rank for rank in (edge["semanticRank"], edge["keywordRank"]) if rank]
        assert edge["score"] == pytest.approx(sum(1 / (10 + rank) for rank in ranks))
    assert sorted(edge["keywordRank"] for edge in found["edges"]) == [1, 2, 3, 4, 5]


async def test_a_hit_by_meaning_alone_has_no_highlights(world: World) -> None:
    found = await world.find("beacon", filter={"kinds": ["MEMORY"]})

    (edge,) = found["edges"]
    assert (edge["keywordRank"], edge["keywordScore"], edge["highlights"]) == (None, None, [])
    assert (edge["semanticRank"], edge["node"]["id"]) == (1, world.ids["Memory"])


async def test_pages_follow_each_other(world: World) -> None:
    whole = await world.find()
    assert whole["pageInfo"] == {
        "hasNextPage": False,
        "hasPreviousPage": False,
        "startCursor": whole["edges"][0]["cursor"],
        "endCursor": whole["edges"][-1]["cursor"],
    }

    first = await world.find(first=2)
    second = await world.find(first=2, after=first["pageInfo"]["endCursor"])
    third = await world.find(first=2, after=second["pageInfo"]["endCursor"])

    assert [*first["edges"], *second["edges"], *third["edges"]] == whole["edges"]
    flags = [(page["pageInfo"]["hasPreviousPage"], page["pageInfo"]["hasNextPage"]) for page in (first, second, third)]
    assert flags == [(False, True), (True, True), (True, False)]
    nothing = await world.find(first=0)
    assert (nothing["edges"], nothing["pageInfo"]["hasNextPage"]) == ([], True)
    assert (nothing["pageInfo"]["startCursor"], nothing["pageInfo"]["endCursor"]) == (None, None)


async def test_ten_hits_unless_asked(api: Api) -> None:
    memories = [{"content": f"lighthouse {place}"} for place in range(11)]
    await api(
        "mutation($input: CreateMemoriesInput!) { createMemories(input: $input) { errors { code } } }",
        input={"memories": memories},
    )

    found = await api('{ search(query: "lighthouse") { nodes { __typename } pageInfo { hasNextPage } } }')

    assert found["search"] == {"nodes": [{"__typename": "Memory"}] * 10, "pageInfo": {"hasNextPage": True}}


async def test_null_is_the_default(world: World) -> None:
    assert await world.find(mode=None, filter=None, first=None, after=None) == await world.find(
        mode="HYBRID", filter={}, first=10
    )


@pytest.mark.parametrize("kind", KINDS)
async def test_one_kind(world: World, kind: str) -> None:
    found = await world.find(filter={"kinds": [kind.upper()]})

    assert [edge["node"]["__typename"] for edge in found["edges"]] == [kind]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"first": -1}, "first: must be from 0 to 200, not -1"),
        ({"first": 201}, "first: must be from 0 to 200, not 201"),
        ({"after": "nonsense"}, "after: not a cursor of this connection"),
        ({"filter": {"minImportance": 2}}, "filter.minImportance: must be from 0 to 1, not 2.0"),
        (
            {"filter": {"createdAfter": "2026-01-02T00:00:00Z", "createdBefore": "2026-01-01T00:00:00Z"}},
            "filter.createdAfter: createdAfter is later than createdBefore",
        ),
        ({"filter": {"topicIds": ["x"] * 201}}, "filter.topicIds: has 201 members, 200 at most"),
        ({"query": "x" * 100_001}, "query: has 100001 characters, 100000 at most"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_what_can_not_be_is_refused_and_nothing_is_read(
    world: World, given: dict[str, Any], message: str
) -> None:
    before = world.resources.graph.statements

    errors = await world.api.errors(SEARCH, **{"query": "lighthouse", **given})

    assert [(error["extensions"]["code"], error["message"]) for error in errors] == [("BAD_INPUT", message)]
    assert errors[0]["path"] == ["search"]
    assert world.resources.graph.statements == before


async def test_meaning_without_an_embedder_is_bad_input(world: World) -> None:
    # UNSUPPORTED is a code of payloads; a request has fewer codes, and to it a mode this server lacks is a bad argument
    async with caller(replace(world.resources, embedder=None), world.api.tenant) as client:
        wordy = World(Api(client, world.api.tenant), world.resources, world.ids)

        errors = await wordy.api.errors(SEARCH, query="lighthouse", mode="SEMANTIC")
        hybrid = await wordy.find()
        similar = await wordy.api("query($id: ID!) { memory(id: $id) { similar { score } } }", id=world.ids["Memory"])
        server = await wordy.api("{ server { embedder embeddingDimensions } }")

    assert [(error["extensions"]["code"], error["message"]) for error in errors] == [
        ("BAD_INPUT", "mode: SEMANTIC needs an embedder, and this server has none")
    ]
    assert {edge["semanticRank"] for edge in hybrid["edges"]} == {None}
    assert len(hybrid["edges"]) == 5
    # its vector is stored, and needs no embedder
    assert similar == {"memory": {"similar": []}}
    assert server == {"server": {"embedder": None, "embeddingDimensions": None}}


async def test_while_the_embedder_is_down_words_are_found(world: World, openai_server: OpenAIServer) -> None:
    healthy = openai_server.fault_for
    openai_server.fault_for = lambda _: Fault(status=503, headers={"x-should-retry": "false"}, body={"error": {}})
    try:
        query = f"lighthouse {uuid4().hex}"
        hybrid = await world.find(query)
        errors = await world.api.errors(SEARCH, query=query, mode="SEMANTIC")
    finally:
        openai_server.fault_for = healthy

    assert {edge["node"]["id"] for edge in hybrid["edges"]} == set(world.ids.values())
    assert {edge["semanticRank"] for edge in hybrid["edges"]} == {None}
    assert [error["extensions"]["code"] for error in errors] == ["UNAVAILABLE"]


# ---------------------------------------------------------------- similar memories

SIMILAR = """
query($id: ID!, $first: Int, $minScore: Float) {
  memory(id: $id) { embedding similar(first: $first, minScore: $minScore) { score memory { id embedding } } }
}
"""


@pytest_asyncio.fixture(scope="module")
async def alike(resources: Resources) -> AsyncIterator[tuple[Api, list[str]]]:
    """Memories that share more or fewer words, which is how near the tests' embedder finds them."""
    tenant = f"alike-{uuid4().hex[:12]}"
    texts = [
        "red green blue gold",
        "red green blue",
        "red green",
        "red",
        "quite other words",
        "red green blue gold grey",
    ]
    async with caller(resources, tenant) as client:
        api = Api(client, tenant)
        made = await api(
            "mutation($input: CreateMemoriesInput!) { createMemories(input: $input) { memories { id } } }",
            input={"memories": [{"content": text} for text in texts]},
        )
        yield api, [memory["id"] for memory in made["createMemories"]["memories"]]


def cosine(one: list[float], other: list[float]) -> float:
    """Of unit vectors."""
    return sum(a * b for a, b in zip(one, other, strict=True))


async def test_the_nearest_come_first_with_their_score(alike: tuple[Api, list[str]]) -> None:
    api, ids = alike

    memory = (await api(SIMILAR, id=ids[0]))["memory"]

    scores = [near["score"] for near in memory["similar"]]
    assert scores == sorted(scores, reverse=True)
    assert [near["memory"]["id"] for near in memory["similar"]][:4] == [ids[5], ids[1], ids[2], ids[3]]
    assert {near["memory"]["id"] for near in memory["similar"]} == set(ids[1:])
    for near in memory["similar"]:
        expected = (1 + cosine(memory["embedding"], near["memory"]["embedding"])) / 2
        assert near["score"] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("first", [0, 1, 2, 200])
async def test_so_many_of_the_nearest(alike: tuple[Api, list[str]], first: int) -> None:
    api, ids = alike

    every = (await api(SIMILAR, id=ids[0], first=200))["memory"]["similar"]
    some = (await api(SIMILAR, id=ids[0], first=first))["memory"]["similar"]

    assert some == every[:first]


async def test_only_those_near_enough(alike: tuple[Api, list[str]]) -> None:
    api, ids = alike
    every = (await api(SIMILAR, id=ids[0]))["memory"]["similar"]

    for place, near in enumerate(every):
        found = (await api(SIMILAR, id=ids[0], minScore=near["score"]))["memory"]["similar"]
        assert found == every[: place + 1]
    assert (await api(SIMILAR, id=ids[0], minScore=1))["memory"]["similar"] == []
    assert (await api(SIMILAR, id=ids[0], minScore=0))["memory"]["similar"] == every


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"first": -1}, "first: must be from 0 to 200, not -1"),
        ({"first": 201}, "first: must be from 0 to 200, not 201"),
        ({"minScore": -0.1}, "minScore: must be from 0 to 1, not -0.1"),
        ({"minScore": 1.5}, "minScore: must be from 0 to 1, not 1.5"),
    ],
    ids=str,
)
async def test_a_number_or_score_that_can_not_be_is_refused(
    alike: tuple[Api, list[str]], given: dict[str, Any], message: str
) -> None:
    api, ids = alike

    errors = await api.errors(SIMILAR, id=ids[0], **given)

    assert [(error["extensions"]["code"], error["message"]) for error in errors] == [("BAD_INPUT", message)]
    assert errors[0]["path"] == ["memory", "similar"]


async def test_without_a_vector_nothing_is_said_of_likeness(resources: Resources, tenant: str) -> None:
    async with caller(replace(resources, embedder=None), tenant) as client:
        api = Api(client, tenant)
        made = await api.mutate("createMemory", "CreateMemoryInput", "memory { id }", {"content": "plain"})

        memory = (await api(SIMILAR, id=made["memory"]["id"]))["memory"]

    assert memory == {"embedding": None, "similar": None}
