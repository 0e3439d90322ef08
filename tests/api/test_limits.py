"""What is looked at of an operation before anything is made of it."""

from tests.conftest import Api

TWO = 'query a { __typename } mutation b { deleteMemory(input: {id: "x"}) { deletedId } }'
CREATE = """
mutation($input: CreateMemoriesInput!) {
  createMemories(input: $input) { memories { id } errors { code path message } }
}
"""
COUNT = "{ memories { totalCount } }"


async def test_of_several_operations_one_must_be_named(api: Api) -> None:
    (error,) = await api.errors(TWO)

    assert error["extensions"]["code"] == "BAD_INPUT"
    assert error["message"] == "the request has 2 operations: operationName must say which one is meant"
    answer = await api.client.post("/graphql", json={"query": TWO, "operationName": "a"})
    assert answer.json()["data"] == {"__typename": "Query"}


async def test_a_list_that_is_too_long_is_refused_before_it_is_made_into_inputs(api: Api) -> None:
    payload = (await api(CREATE, input={"memories": [{"content": "x"}] * 20_000}))["createMemories"]

    assert payload["memories"] is None
    # more were never looked at
    assert payload["errors"] == [
        {"code": "TOO_LARGE", "path": ["memories"], "message": "has 1001 members, 1000 at most"}
    ]
    assert (await api(COUNT))["memories"]["totalCount"] == 0


async def test_json_is_not_cut(api: Api) -> None:
    metadata = {"many": list(range(5_000))}
    created = await api.mutate(
        "createMemory", "CreateMemoryInput", "memory { metadata }", {"content": "x", "metadata": metadata}
    )

    assert created["memory"]["metadata"] == metadata
