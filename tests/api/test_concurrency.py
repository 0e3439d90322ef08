"""Writers that meet: one node for a name, nothing lost, nothing doubled, no error, on one server and on two."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from tests.conftest import Api
from tests.stored import counted

from reverie.resources import Resources

NAMED: dict[str, Any] = {"topics": [{"name": "Deployment"}], "entities": [{"name": "Ann", "type": "PERSON"}]}


@pytest.fixture(params=["one-server", "two-servers"])
def servers(request: pytest.FixtureRequest, api: Api, second_server: Api) -> Sequence[Api]:
    """The servers that requests go to by turns, 32 at a time."""
    return [api, api] * 16 if request.param == "one-server" else [api, second_server] * 16


async def create(api: Api, content: str, **given: Any) -> str:
    payload = await api.mutate("createMemory", "CreateMemoryInput", "memory { id }", {"content": content, **given})
    assert payload["errors"] == []
    return str(payload["memory"]["id"])


async def delete(api: Api, memory_id: str) -> None:
    payload = await api.mutate("deleteMemory", "DeleteMemoryInput", "deletedId", {"id": memory_id})
    assert payload == {"deletedId": memory_id, "errors": []}


async def create_batch(api: Api, size: int, **given: Any) -> list[str]:
    payload = await api.mutate(
        "createMemories",
        "CreateMemoriesInput",
        "memories { id }",
        {"memories": [{"content": f"{number} of {size}", **given} for number in range(size)]},
    )
    assert payload["errors"] == []
    return [memory["id"] for memory in payload["memories"]]


async def test_32_that_name_a_new_topic_and_entity_at_once_make_one_of_each(
    servers: Sequence[Api], resources: Resources
) -> None:
    spellings = ("Deployment", "deployment", "DEPLOYMENT ", " Deployment")

    ids = await asyncio.gather(
        *(
            create(
                server,
                f"memory {number}",
                topics=[{"name": spellings[number % 4]}],
                entities=[{"name": spellings[number % 4], "type": "TOOL"}],
                facts=[{"subject": "deployment", "predicate": "took", "object": f"{number} minutes"}],
            )
            for number, server in enumerate(servers)
        )
    )

    assert len(set(ids)) == 32
    counts = await counted(resources.graph, servers[0].tenant)
    assert (counts["Topic"], counts["Entity"], counts["Name"], counts["Memory"]) == (1, 1, 2, 32)
    assert (counts["HAS_TOPIC"], counts["MENTIONS"], counts["HAS_SUBJECT"], counts["ABOUT"]) == (32, 32, 32, 32)


async def test_the_same_with_32_deletes_beside_them_for_20_rounds(servers: Sequence[Api], resources: Resources) -> None:
    present: list[str] = []
    for round_ in range(20):
        # the topic itself is new in every fourth round
        if present and round_ % 4 == 0:
            topic = (await servers[0]('{ topic(name: "Deployment") { id } }'))["topic"]
            await servers[0].mutate("deleteTopic", "DeleteTopicInput", "deletedId", topic)

        *created, _ = await asyncio.gather(
            *(create(server, f"{round_}.{number}", **NAMED) for number, server in enumerate(servers)),
            asyncio.gather(*(delete(server, gone) for server, gone in zip(reversed(servers), present, strict=False))),
        )

        present = [memory_id for memory_id in created if isinstance(memory_id, str)]
        counts = await counted(resources.graph, servers[0].tenant)
        assert (counts["Topic"], counts["Entity"], counts["Name"]) == (1, 1, 2)
        assert (counts["Memory"], counts["HAS_TOPIC"], counts["MENTIONS"]) == (32, 32, 32)


async def test_the_same_key_32_times_at_once_writes_one_memory(servers: Sequence[Api], resources: Resources) -> None:
    answers = await asyncio.gather(
        *(
            server.mutate(
                "createMemory",
                "CreateMemoryInput",
                "memory { id content createdAt topics { nodes { id } } }",
                {"content": "once", "clientMutationKey": "k", **NAMED},
            )
            for server in servers
        )
    )

    assert answers == [answers[0]] * 32
    assert answers[0]["errors"] == []
    counts = await counted(resources.graph, servers[0].tenant)
    assert (counts["Memory"], counts["Receipt"], counts["Topic"]) == (1, 1, 1)


async def test_of_different_inputs_with_one_key_at_once_one_is_written(
    servers: Sequence[Api], resources: Resources
) -> None:
    answers = await asyncio.gather(
        *(
            server.mutate(
                "createMemory",
                "CreateMemoryInput",
                "memory { id content }",
                {"content": f"memory {number % 4}", "clientMutationKey": "k"},
            )
            for number, server in enumerate(servers)
        )
    )

    written = [answer["memory"] for answer in answers if answer["memory"]]
    refused = [error for answer in answers for error in answer["errors"]]
    assert written == [written[0]] * 8
    assert [(error["code"], error["path"]) for error in refused] == [("CONFLICT", ["clientMutationKey"])] * 24
    assert (await counted(resources.graph, servers[0].tenant))["Memory"] == 1


async def test_a_refused_call_beside_it_does_not_take_the_key(servers: Sequence[Api], resources: Resources) -> None:
    missing = {"conversationId": "01890000-0000-7000-8000-00000000abcd"}

    answers = await asyncio.gather(
        *(
            server.mutate(
                "createMemory",
                "CreateMemoryInput",
                "memory { id }",
                {"content": "x", "clientMutationKey": "k", **(missing if number % 2 == 0 else {})},
            )
            for number, server in enumerate(servers)
        )
    )

    codes = [[error["code"] for error in answer["errors"]] for answer in answers]
    assert codes[1::2] == [[]] * 16
    assert all(code in (["NOT_FOUND"], ["CONFLICT"]) for code in codes[::2])
    assert len({answer["memory"]["id"] for answer in answers[1::2]}) == 1
    assert (await counted(resources.graph, servers[0].tenant))["Memory"] == 1


async def test_batches_and_single_writes_that_meet_share_their_names(
    servers: Sequence[Api], resources: Resources
) -> None:
    batches = [(servers[0], 200), (servers[1], 60), (servers[0], 60), (servers[1], 10), (servers[0], 3)]

    await asyncio.gather(
        *(create(server, "single", **NAMED) for server in servers[:16]),
        *(create_batch(server, size, **NAMED) for server, size in batches),
        *(create(server, "single", **NAMED) for server in servers[16:]),
    )

    counts = await counted(resources.graph, servers[0].tenant)
    assert (counts["Topic"], counts["Entity"], counts["Memory"]) == (1, 1, 32 + 333)
    assert (counts["HAS_TOPIC"], counts["MENTIONS"]) == (365, 365)


async def test_a_batch_whose_topic_goes_meanwhile_is_written_whole_or_not_at_all(
    servers: Sequence[Api], resources: Resources
) -> None:
    api = servers[0]
    for _ in range(6):
        topic = (await api.mutate("createTopic", "CreateTopicInput", "topic { id }", {"name": "Short-lived"}))["topic"]
        memories: list[dict[str, Any]] = [{"content": str(number)} for number in range(20)]
        memories[10]["topics"] = [{"id": topic["id"]}]

        answers = await asyncio.gather(
            servers[1].mutate("createMemories", "CreateMemoriesInput", "memories { id }", {"memories": memories}),
            api.mutate("deleteTopic", "DeleteTopicInput", "deletedId", topic),
        )

        batch = answers[0]
        refused = [(error["code"], error["path"]) for error in batch["errors"]]
        assert refused in ([], [("NOT_FOUND", ["memories", "10", "topics", "0", "id"])])
        written = (await counted(resources.graph, api.tenant))["Memory"]
        assert written == (0 if refused else 20)
        await asyncio.gather(*(delete(api, memory["id"]) for memory in batch["memories"] or []))


async def test_of_those_that_delete_one_memory_at_once_one_did(servers: Sequence[Api]) -> None:
    memory_id = await create(servers[0], "to be deleted")

    answers = await asyncio.gather(
        *(server.mutate("deleteMemory", "DeleteMemoryInput", "deletedId", {"id": memory_id}) for server in servers)
    )

    assert [answer["deletedId"] for answer in answers if not answer["errors"]] == [memory_id]
    refused = [(error["code"], error["path"]) for answer in answers for error in answer["errors"]]
    assert refused == [("NOT_FOUND", ["id"])] * 31


async def test_changes_of_one_memory_at_once_are_all_made(servers: Sequence[Api], resources: Resources) -> None:
    memory_id = await create(servers[0], "before")
    changes: list[dict[str, Any]] = [
        {"content": "after"},
        {"importance": 0.25},
        {"metadata": {"a": 1}},
        {"memoryType": "SEMANTIC"},
        *({"addTopics": [{"name": f"topic {number}"}]} for number in range(14)),
        *({"addEntities": [{"name": f"tool {number}", "type": "TOOL"}]} for number in range(14)),
    ]

    answers = await asyncio.gather(
        *(
            server.mutate("updateMemory", "UpdateMemoryInput", "memory { id }", {"id": memory_id, **change})
            for server, change in zip(servers, changes, strict=True)
        )
    )

    assert answers == [{"memory": {"id": memory_id}, "errors": []}] * 32
    found = await servers[0](
        """
        query($id: ID!) {
          memory(id: $id) { content importance metadata memoryType topics { totalCount } entities { totalCount } }
        }
        """,
        id=memory_id,
    )
    assert found["memory"] == {
        "content": "after",
        "importance": 0.25,
        "metadata": {"a": 1},
        "memoryType": "SEMANTIC",
        "topics": {"totalCount": 14},
        "entities": {"totalCount": 14},
    }


async def test_memories_that_relate_to_each_other_at_once_are_all_related(
    servers: Sequence[Api], resources: Resources
) -> None:
    ids = [await create(servers[0], str(number)) for number in range(5)]
    pairs = [(a, b) for a in ids for b in ids if a != b]

    answers = await asyncio.gather(
        *(
            server.mutate("relateMemories", "RelateMemoriesInput", "memory { id }", {"fromId": a, "toId": b})
            for server, (a, b) in zip(servers, pairs, strict=False)
        )
    )

    assert answers == [{"memory": {"id": a}, "errors": []} for a, _ in pairs]
    assert (await counted(resources.graph, servers[0].tenant))["RELATED_TO"] == 20


async def test_names_that_move_while_they_are_used_are_never_lost(servers: Sequence[Api], resources: Resources) -> None:
    api = servers[0]
    for round_ in range(5):
        topic = (await api.mutate("createTopic", "CreateTopicInput", "topic { id }", {"name": f"Old {round_}"}))[
            "topic"
        ]

        await asyncio.gather(
            servers[1].mutate("updateTopic", "UpdateTopicInput", "topic { id }", {**topic, "name": f"New {round_}"}),
            *(create(server, "used", topics=[{"name": f"old {round_}"}]) for server in servers[:12]),
        )

        found = await api(
            "query($old: String!, $new: String!) {"
            " old: topic(name: $old) { memories { totalCount } } new: topic(name: $new) { memories { totalCount } } }",
            old=f"old {round_}",
            new=f"new {round_}",
        )
        before = found["new"]["memories"]["totalCount"]
        after = found["old"]["memories"]["totalCount"] if found["old"] else 0
        assert before + after == 12
    assert (await counted(resources.graph, api.tenant))["HAS_TOPIC"] == 60
