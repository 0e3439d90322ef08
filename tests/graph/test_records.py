"""Rows that a deletion tore while they were read: they are told from whole ones, and read again."""

import asyncio
from typing import Any

import pytest
from tests.conftest import Api

from reverie.errors import Unavailable
from reverie.graph.records import CONVERSATION, ENTITY, EPISODE, EVENT, FACT, MEMORY, TOPIC, Label, any_value, whole
from reverie.graph.store import Raced
from reverie.resources import Resources

WHOLE: list[tuple[Label, list[Any]]] = [
    (MEMORY, ["id", "text", "EPISODIC", 0.5, "subject", "agent", 10, "{}", 5, 1, 2, "DONE"]),
    (CONVERSATION, ["id", "title", "thread", 1, 2]),
    (TOPIC, ["id", "name"]),
    (FACT, ["id", "subject", "predicate", "object", 1.0, 1]),
    (ENTITY, ["id", "name", "TOOL", ["alias"]]),
    (EVENT, ["id", "USER_MESSAGE", '"text"', "text", "thread", "user", "agent", 1, 2]),
    (EPISODE, ["id", "thread", "user", "agent", "text", ["tag"], "COMPLETED", "PENDING", 1, 2, 0, "reason"]),
]
LISTED = """
query($ids: [ID!]!) {
  nodes(ids: $ids) { id ... on Memory { content createdAt } }
  memories { nodes { id content createdAt metadata related { nodes { id content } } } }
  topic(name: "Busy") { memories { nodes { id content createdAt } } }
  facts { nodes { id subject createdAt } }
  search(query: "busy", mode: KEYWORD, filter: {kinds: [MEMORY]}) { nodes { ... on Memory { id content createdAt } } }
}
"""


@pytest.mark.parametrize(("label", "row"), WHOLE, ids=[label.name for label, _ in WHOLE])
def test_a_row_without_what_it_must_have_is_torn(label: Label, row: list[Any]) -> None:
    assert label.value(row).id == "id"
    for place, column in enumerate(label.columns):
        torn = [*row[:place], None, *row[place + 1 :]]
        if column in label.optional:
            assert label.value(torn).id == "id"
        else:
            with pytest.raises(Raced):
                label.value(torn)


def test_a_row_of_no_label_is_torn() -> None:
    assert any_value([2, ["id", "name"]]).name == "name"
    with pytest.raises(Raced):
        any_value(None)


async def test_a_torn_answer_is_read_again() -> None:
    answers: list[list[Any]] = [[None, "gone"], ["id", None], ["id", "name"]]

    @whole
    async def read(label: Label) -> Any:
        return label.value(answers.pop(0))

    assert (await read(TOPIC)).name == "name"


async def test_an_answer_that_stays_torn_is_an_outage() -> None:
    @whole
    async def read() -> Any:
        return TOPIC.value([None, None])

    with pytest.raises(Unavailable):
        await read()


async def test_what_is_deleted_while_it_is_read_is_there_or_not(api: Api, resources: Resources) -> None:
    for _ in range(2):
        batch = await api.mutate(
            "createMemories",
            "CreateMemoriesInput",
            "memories { id }",
            {
                "memories": [
                    {
                        "content": f"busy {number}",
                        "topics": [{"name": "Busy"}],
                        "facts": [{"subject": "it", "predicate": "is", "object": str(number)}],
                    }
                    for number in range(40)
                ]
            },
        )
        ids = [memory["id"] for memory in batch["memories"]]

        *read, _ = await asyncio.gather(
            *(api(LISTED, ids=ids) for _ in range(12)),
            asyncio.gather(
                *(api.mutate("deleteMemory", "DeleteMemoryInput", "deletedId", {"id": gone}) for gone in ids)
            ),
        )

        for found in read:
            assert isinstance(found, dict)
            for node in [*found["nodes"], *found["memories"]["nodes"], *found["search"]["nodes"]]:
                assert node is None or (node["content"].startswith("busy") and node["createdAt"])
        assert (await api("{ memories { totalCount } facts { totalCount } }")) == {
            "memories": {"totalCount": 0},
            "facts": {"totalCount": 0},
        }
