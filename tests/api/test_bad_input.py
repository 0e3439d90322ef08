"""Bad input, row by row as the rules name it: what is answered, and that nothing was written."""

import base64
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import httpx
import orjson
import pytest
import pytest_asyncio
from tests.conftest import Api
from tests.stored import stored

from reverie.resources import Resources

CREATE = """
mutation($input: CreateMemoryInput!) {
  createMemory(input: $input) { memory { id } errors { code path message existingId } }
}
"""
MEMORIES = """
query($filter: MemoryFilter, $first: Int, $after: String, $last: Int, $before: String) {
  memories(filter: $filter, first: $first, after: $after, last: $last, before: $before) { edges { cursor } }
}
"""
TOPIC = "query($name: String!) { topic(name: $name) { id } }"
BY_ID = """
query($id: ID!) {
  node(id: $id) { id } nodes(ids: [$id]) { id } memory(id: $id) { id } conversation(id: $id) { id }
  topic(id: $id) { id } fact(id: $id) { id } entity(id: $id) { id } community(id: $id) { id }
}
"""


@pytest_asyncio.fixture(autouse=True)
async def _nothing_is_written(api: Api, resources: Resources) -> AsyncIterator[None]:
    """No test here may leave anything in its tenant, but for what it made on purpose under another's name."""
    yield
    assert await stored(resources.graph, api.tenant) == []


async def refusal(api: Api, **given: Any) -> list[tuple[str, list[str]]]:
    payload = (await api(CREATE, input={"content": "x", **given}))["createMemory"]
    assert payload["memory"] is None
    return [(error["code"], error["path"]) for error in payload["errors"]]


async def posted(api: Api, body: str | bytes) -> tuple[int, dict[str, Any]]:
    """Sends a body as it stands; the status and the one error."""
    answer = await api.client.post("/graphql", content=body, headers={"content-type": "application/json"})
    return answer.status_code, only_error(answer)


def only_error(answer: httpx.Response) -> dict[str, Any]:
    found = answer.json()
    assert not any((found.get("data") or {}).values())
    (error,) = found["errors"]
    assert error["extensions"]["requestId"] == answer.headers["x-request-id"]
    return dict(error)


def with_input(members: str) -> str:
    """A request whose input is written by hand, as no JSON library would."""
    return f'{{"query": {orjson.dumps(CREATE).decode()}, "variables": {{"input": {{"content": "x", {members}}}}}}}'


def inline(members: str) -> bytes:
    """A request with its input in the text of the query."""
    return orjson.dumps(
        {"query": f'mutation {{ createMemory(input: {{content: "x", {members}}}) {{ memory {{ id }} }} }}'}
    )


# importance 1.5; empty or blank content


async def test_importance_1_5_is_bad_input(api: Api) -> None:
    assert await refusal(api, importance=1.5) == [("BAD_INPUT", ["importance"])]


@pytest.mark.parametrize("content", ["", " ", "\n\t\u2003\u3000"], ids=["empty", "blank", "wide-blanks"])
async def test_empty_or_blank_content_is_bad_input(content: str, api: Api) -> None:
    assert await refusal(api, content=content) == [("BAD_INPUT", ["content"])]


# content over 100,000 characters, a batch over its cap


async def test_content_over_100_000_characters_is_too_large(api: Api) -> None:
    assert await refusal(api, content="é" * 100_001) == [("TOO_LARGE", ["content"])]


async def test_a_batch_over_its_cap_is_too_large(api: Api) -> None:
    payload = await api.mutate(
        "createMemories", "CreateMemoriesInput", "memories { id }", {"memories": [{"content": "x"}] * 1_001}
    )

    assert payload["memories"] is None
    assert [(error["code"], error["path"]) for error in payload["errors"]] == [("TOO_LARGE", ["memories"])]


async def test_a_list_of_201_references_is_too_large(api: Api) -> None:
    assert await refusal(api, topics=[{"name": str(number)} for number in range(201)]) == [("TOO_LARGE", ["topics"])]
    (error,) = await api.errors("query($ids: [ID!]!) { nodes(ids: $ids) { id } }", ids=["x"] * 201)
    assert (error["path"], error["message"]) == (["nodes"], "ids: has 201 members, 200 at most")


# an unknown reference; a name that another topic or entity has


async def test_an_unknown_reference_is_not_found(api: Api) -> None:
    unknown = str(uuid4())

    assert await refusal(
        api, conversationId=unknown, topics=[{"id": unknown}], entities=[{"id": unknown}], relatedTo=[unknown]
    ) == [
        ("NOT_FOUND", ["relatedTo", "0"]),
        ("NOT_FOUND", ["conversationId"]),
        ("NOT_FOUND", ["topics", "0", "id"]),
        ("NOT_FOUND", ["entities", "0", "id"]),
    ]


async def test_a_name_that_another_has_already_exists(other_api: Api) -> None:
    topic = await other_api.mutate("createTopic", "CreateTopicInput", "topic { id }", {"name": "Deployment"})
    tool = {"name": "helm", "type": "TOOL"}
    entity = await other_api.mutate("createEntity", "CreateEntityInput", "entity { id }", tool)

    again = [
        await other_api.mutate("createTopic", "CreateTopicInput", "topic { id }", {"name": "DEPLOYMENT"}),
        await other_api.mutate("createEntity", "CreateEntityInput", "entity { id }", tool),
    ]

    assert [
        (error["code"], error["path"], error["existingId"]) for payload in again for error in payload["errors"]
    ] == [
        ("ALREADY_EXISTS", ["name"], topic["topic"]["id"]),
        ("ALREADY_EXISTS", ["name"], entity["entity"]["id"]),
    ]


# a reversed range in a filter, first above the cap, a forged page cursor: nothing is read


async def refused_page(api: Api, resources: Resources, **arguments: Any) -> str:
    before = resources.graph.statements
    (error,) = await api.errors(MEMORIES, **arguments)
    assert resources.graph.statements == before, "nothing may be read"
    assert (error["path"], error["extensions"]["code"]) == (["memories"], "BAD_INPUT")
    return str(error["message"])


@pytest.mark.parametrize(("after", "before"), [("createdAfter", "createdBefore"), ("eventAfter", "eventBefore")])
async def test_a_reversed_range_in_a_filter_is_bad_input(
    after: str, before: str, api: Api, resources: Resources
) -> None:
    wanted = {after: "2026-03-01T00:00:00.001Z", before: "2026-03-01T01:00:00+01:00"}

    assert await refused_page(api, resources, filter=wanted) == f"filter.{after}: {after} is later than {before}"


@pytest.mark.parametrize("size", [201, -1, 2_147_483_647])
@pytest.mark.parametrize("name", ["first", "last"])
async def test_first_above_the_cap_is_bad_input(name: str, size: int, api: Api, resources: Resources) -> None:
    assert await refused_page(api, resources, **{name: size}) == f"{name}: must be from 0 to 200, not {size}"


async def test_a_forged_page_cursor_is_bad_input(api: Api, other_api: Api, resources: Resources) -> None:
    for _ in range(2):
        await other_api(CREATE, input={"content": "another tenant's"})
    found = await other_api("{ memories { edges { cursor } } topics { edges { cursor } } }")
    foreign = found["memories"]["edges"][0]["cursor"]
    raw = bytearray(base64.urlsafe_b64decode(foreign + "=" * (-len(foreign) % 4)))
    raw[-3] ^= 1
    changed = base64.urlsafe_b64encode(raw).decode().rstrip("=")

    for name in ("after", "before"):
        for forged in ("", "x", "é", "AAAA", changed, foreign, foreign + "=", foreign[:-1]):
            said = await refused_page(api, resources, **{name: forged})
            assert said == f"{name}: not a cursor of this connection"
        # its own tenant takes it, another connection of that tenant doesn't
        assert (await other_api(MEMORIES, **{name: foreign}))["memories"] is not None
        (error,) = await other_api.errors(f'{{ topics({name}: "{foreign}") {{ totalCount }} }}')
        assert error["message"] == f"{name}: not a cursor of this connection"


# NaN, a naive date, year 99999, an unknown enum, a lone surrogate or NUL in any string


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
@pytest.mark.parametrize("members", ['"importance": {}', '"metadata": {{"deep": [{}]}}'], ids=["number", "metadata"])
async def test_nan_and_infinities_are_refused_by_name(members: str, value: str, api: Api) -> None:
    status, error = await posted(api, with_input(members.format(value)))

    assert (status, error["extensions"]["code"]) == (400, "BAD_INPUT")
    assert error["message"].startswith("the request is not JSON")
    assert value.lstrip("-") in error["message"]


@pytest.mark.parametrize("members", ["importance: {}", "metadata: {{deep: [{}]}}"], ids=["number", "metadata"])
@pytest.mark.parametrize("value", ["1e999", "-1e999", "1.0e309"])
async def test_numbers_beyond_all_bounds_in_the_query_are_refused_by_name(value: str, members: str, api: Api) -> None:
    _, error = await posted(api, inline(members.format(value)))

    assert (error["message"], error["extensions"]["code"]) == (f"{value} is no finite number", "BAD_INPUT")
    assert error["locations"]


@pytest.mark.parametrize(
    "given",
    [
        "2026-03-01T10:00:00",
        "2026-03-01",
        "99999-01-01T00:00:00Z",
        "+99999-01-01T00:00:00Z",
        "2026-02-30T00:00:00Z",
        "2026-03-01T25:00:00Z",
        "9999-12-31T23:59:59-23:59",
        "0001-01-01T00:00:00+01:00",
        "now",
        "",
        1_772_359_200,
    ],
)
async def test_a_naive_date_and_year_99999_are_refused_by_name(given: str | int, api: Api) -> None:
    (error,) = await api.errors(CREATE, input={"content": "x", "eventTime": given})

    assert error["extensions"]["code"] == "BAD_INPUT"
    assert error["message"].startswith(f"Variable '$input' has invalid value at .eventTime: DateTime: {given!r} is not")

    literal = orjson.dumps(given).decode()
    _, error = await posted(api, inline(f"expiresAt: {literal}"))
    assert "DateTime" in error["message"]
    assert str(given) in error["message"]


async def test_an_unknown_enum_is_refused_by_name(api: Api) -> None:
    (error,) = await api.errors(CREATE, input={"content": "x", "memoryType": "RANDOM"})
    assert error["message"] == (
        "Variable '$input' has invalid value at .memoryType: Value 'RANDOM' does not exist in 'MemoryType' enum."
    )

    _, error = await posted(api, inline("memoryType: RANDOM"))
    assert error["message"] == "Value 'RANDOM' does not exist in 'MemoryType' enum."


@pytest.mark.parametrize(
    "members",
    [
        '"subjectId": "\\ud800"',
        '"subjectId": "\\udfff!"',
        '"metadata": {"deep": ["\\ud83d\\u0041"]}',
        '"metadata": {"\\ud800": 1}',
    ],
    ids=["high", "low", "in-metadata", "in-a-key"],
)
async def test_a_lone_surrogate_is_refused_by_name(members: str, api: Api) -> None:
    status, error = await posted(api, with_input(members))

    assert (status, error["extensions"]["code"]) == (400, "BAD_INPUT")
    assert error["message"].startswith("the request is not JSON")
    assert "surrogate" in error["message"]


async def test_a_lone_surrogate_in_the_query_is_refused_by_name(api: Api) -> None:
    _, error = await posted(api, inline('subjectId: "\\ud800"'))

    assert "Invalid Unicode escape sequence: '\\ud800'" in error["message"]


@pytest.mark.parametrize(
    ("members", "where"),
    [
        ('"subjectId": "a\\u0000b"', "variables.input.subjectId"),
        ('"metadata": {"deep": [{"a": "\\u0000"}]}', "variables.input.metadata.deep.0.a"),
        ('"metadata": {"deep": {"k\\u0000": 1}}', "variables.input.metadata.deep"),
        ('"topics": [{"name": "ok"}, {"name": "\\u0000"}]', "variables.input.topics.1.name"),
        ('"clientMutationKey": "\\u0000"', "variables.input.clientMutationKey"),
    ],
    ids=["string", "metadata", "key", "list", "mutation-key"],
)
async def test_nul_is_refused_by_name(members: str, where: str, api: Api) -> None:
    status, error = await posted(api, with_input(members))

    assert (status, error["extensions"]["code"]) == (400, "BAD_INPUT")
    assert error["message"] == f"{where}: holds a NUL, which no text may"


@pytest.mark.parametrize("escape", ["\\u0000", "\\u{0}", "\\u{000000}"])
@pytest.mark.parametrize("members", ['subjectId: "a{}b"', 'metadata: {{deep: ["{}"]}}'], ids=["string", "metadata"])
async def test_nul_as_an_escape_in_the_query_is_refused_by_name(members: str, escape: str, api: Api) -> None:
    _, error = await posted(api, inline(members.replace("{}", escape).replace("{{", "{").replace("}}", "}")))

    assert (error["message"], error["extensions"]["code"]) == ("holds a NUL, which no text may", "BAD_INPUT")
    assert error["locations"]


async def test_nul_in_a_default_of_a_variable_is_refused_by_name(api: Api) -> None:
    (error,) = await api.errors('query($name: String = "\\u0000") { topic(name: $name) { id } }')

    assert error["message"] == "holds a NUL, which no text may"


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"query": '{ topic(name: "\\u0000") { id } }'}, "holds a NUL, which no text may"),
        ({"query": TOPIC, "variables": '{"name": "\\u0000"}'}, "name: holds a NUL, which no text may"),
        ({"query": TOPIC, "variables": '{"name": "\\ud800"}'}, "surrogate"),
        ({"query": TOPIC, "variables": '{"name": NaN}'}, "NaN"),
        ({"query": "{ memories { totalCount } }\0"}, "U+0000"),
        ({"query": 'mutation { createTopic(input: {name: "x"}) { topic { id } } }'}, "mutations are not allowed"),
    ],
    ids=["escape", "variable", "surrogate", "NaN", "raw", "mutation"],
)
async def test_the_same_is_refused_by_get(parameters: dict[str, str], said: str, api: Api) -> None:
    answer = await api.client.get("/graphql", params=parameters, headers={"accept": "application/json"})

    assert said in only_error(answer)["message"]


# an id that is no UUID, or of another tenant


@pytest.mark.parametrize(
    "given", ["", "x", "0", "é'\")", "018f0000-0000-7000-8000", "01890000000070008000000000000000"]
)
async def test_an_id_that_is_no_uuid_leads_nowhere(given: str, api: Api) -> None:
    nowhere = await api(BY_ID, id=str(uuid4()))

    assert await api(BY_ID, id=given) == nowhere
    assert nowhere == {
        "node": None,
        "nodes": [None],
        "memory": None,
        "conversation": None,
        "topic": None,
        "fact": None,
        "entity": None,
        "community": None,
    }


async def test_an_id_of_another_tenant_leads_nowhere(api: Api, other_api: Api) -> None:
    nowhere = await api(BY_ID, id=str(uuid4()))
    made = await other_api(
        """
            mutation {
              memory: createMemory(input: {content: "x", facts: [{subject: "a", predicate: "b", object: "c"}]}) {
                memory { id facts { nodes { id } } } }
              conversation: createConversation(input: {title: "x"}) { conversation { id } }
              topic: createTopic(input: {name: "x"}) { topic { id } }
              entity: createEntity(input: {name: "x", type: TOOL}) { entity { id } }
            }
            """
    )
    ids = [
        made["memory"]["memory"]["id"],
        made["memory"]["memory"]["facts"]["nodes"][0]["id"],
        made["conversation"]["conversation"]["id"],
        made["topic"]["topic"]["id"],
        made["entity"]["entity"]["id"],
    ]

    for foreign in ids:
        assert await api(BY_ID, id=foreign) == nowhere
        assert (await other_api(BY_ID, id=foreign))["node"] == {"id": foreign}


# a second use of an idempotency key with another input


async def test_a_key_used_again_with_another_input_is_a_conflict(other_api: Api, resources: Resources) -> None:
    first = await other_api(CREATE, input={"content": "x", "clientMutationKey": "k"})
    before = await stored(resources.graph, other_api.tenant)

    second = await other_api(CREATE, input={"content": "y", "clientMutationKey": "k"})

    assert first["createMemory"]["errors"] == []
    assert second["createMemory"]["memory"] is None
    assert [(error["code"], error["path"]) for error in second["createMemory"]["errors"]] == [
        ("CONFLICT", ["clientMutationKey"])
    ]
    assert await stored(resources.graph, other_api.tenant) == before
