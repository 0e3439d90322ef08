"""Conversations over the API: made, renamed, deleted with and without their memories."""

import asyncio
from typing import Any

from tests.conftest import Api
from tests.stored import counted

from reverie.resources import Resources

CONVERSATION = "id title threadId createdAt updatedAt memories { totalCount }"
READ = f"query($id: ID!) {{ conversation(id: $id) {{ {CONVERSATION} }} }}"
BY_THREAD = "query($threadId: String!) { conversation(threadId: $threadId) { id } }"
OF_CONVERSATION = "query($id: ID!) { memories(filter: {conversationId: $id}) { nodes { content } } }"
MEMORIES = "{ memories { nodes { content conversation { id } } } }"


async def made(api: Api, title: str = "Standup", **given: Any) -> dict[str, Any]:
    payload = await api.mutate(
        "createConversation",
        "CreateConversationInput",
        f"conversation {{ {CONVERSATION} }}",
        {"title": title, **given},
    )
    assert payload["errors"] == []
    conversation: dict[str, Any] = payload["conversation"]
    return conversation


async def add(api: Api, conversation_id: str | None, content: str = "Ann is here") -> dict[str, Any]:
    return await api.mutate(
        "createMemory",
        "CreateMemoryInput",
        "memory { id createdAt }",
        {"content": content, "conversationId": conversation_id},
    )


async def deleted(api: Api, conversation_id: str, **given: Any) -> dict[str, Any]:
    return await api.mutate(
        "deleteConversation",
        "DeleteConversationInput",
        "deletedId deletedMemories",
        {"id": conversation_id, **given},
    )


async def read(api: Api, conversation_id: str) -> dict[str, Any] | None:
    found: dict[str, Any] | None = (await api(READ, id=conversation_id))["conversation"]
    return found


async def test_a_conversation_without_a_thread_is_its_own(api: Api) -> None:
    conversation = await made(api, "  Daily   standup ")

    assert conversation == {
        "id": conversation["id"],
        "title": "Daily standup",
        "threadId": conversation["id"],
        "createdAt": conversation["updatedAt"],
        "updatedAt": conversation["createdAt"],
        "memories": {"totalCount": 0},
    }
    assert await api(BY_THREAD, threadId=conversation["id"]) == {"conversation": {"id": conversation["id"]}}


async def test_a_thread_is_kept_to_the_letter_and_has_one_conversation(api: Api, other_api: Api) -> None:
    first = await made(api, threadId=" Slack/C42:1 ")
    second = await made(api, threadId=" slack/c42:1 ")
    elsewhere = await made(other_api, threadId=" Slack/C42:1 ")

    assert (first["threadId"], second["threadId"]) == (" Slack/C42:1 ", " slack/c42:1 ")
    assert len({first["id"], second["id"], elsewhere["id"]}) == 3
    assert await api(BY_THREAD, threadId=" Slack/C42:1 ") == {"conversation": {"id": first["id"]}}


async def test_of_32_that_open_one_thread_at_once_one_makes_the_conversation(api: Api, resources: Resources) -> None:
    answers = await asyncio.gather(
        *(
            api.mutate(
                "createConversation",
                "CreateConversationInput",
                "conversation { id }",
                {"title": f"by {number}", "threadId": "standup"},
            )
            for number in range(32)
        )
    )

    (conversation,) = [answer["conversation"]["id"] for answer in answers if answer["conversation"]]
    refused = [error for answer in answers for error in answer["errors"]]
    assert [(error["code"], error["path"], error["existingId"]) for error in refused] == [
        ("ALREADY_EXISTS", ["threadId"], conversation)
    ] * 31
    assert (await counted(resources.graph, api.tenant))["Conversation"] == 1


async def test_its_time_is_that_of_the_last_memory_added(api: Api) -> None:
    conversation = await made(api)
    await asyncio.sleep(0.002)
    first = await add(api, conversation["id"])
    await asyncio.sleep(0.002)
    other = (await add(api, None))["memory"]

    after_first = await read(api, conversation["id"])
    moved = await api.mutate(
        "updateMemory",
        "UpdateMemoryInput",
        "memory { updatedAt }",
        {"id": other["id"], "conversationId": conversation["id"]},
    )
    after_second = await read(api, conversation["id"])

    assert after_first == {
        **conversation,
        "updatedAt": first["memory"]["createdAt"],
        "memories": {"totalCount": 1},
    }
    assert after_second == {
        **conversation,
        "updatedAt": moved["memory"]["updatedAt"],
        "memories": {"totalCount": 2},
    }


async def test_another_title_is_all_that_changes(api: Api) -> None:
    conversation = await made(api, threadId="t")

    payload = await api.mutate(
        "updateConversation",
        "UpdateConversationInput",
        f"conversation {{ {CONVERSATION} }}",
        {"id": conversation["id"], "title": " Retro "},
    )

    assert payload == {"conversation": {**conversation, "title": "Retro"}, "errors": []}
    assert await read(api, conversation["id"]) == {**conversation, "title": "Retro"}
    found = await api(
        '{ old: conversations(titleContains: "stand") { totalCount } '
        'new: conversations(titleContains: "RETRO") { totalCount } }'
    )
    assert found == {"old": {"totalCount": 0}, "new": {"totalCount": 1}}


async def test_deleted_without_its_memories_it_leaves_them_on_their_own(api: Api) -> None:
    conversation = await made(api, threadId="t")
    await add(api, conversation["id"], "stays")
    await add(api, None, "never in it")

    assert await deleted(api, conversation["id"]) == {
        "deletedId": conversation["id"],
        "deletedMemories": 0,
        "errors": [],
    }

    assert await read(api, conversation["id"]) is None
    assert await api(BY_THREAD, threadId="t") == {"conversation": None}
    assert await api(MEMORIES) == {
        "memories": {
            "nodes": [
                {"content": "never in it", "conversation": None},
                {"content": "stays", "conversation": None},
            ]
        }
    }
    assert await api(OF_CONVERSATION, id=conversation["id"]) == {"memories": {"nodes": []}}
    again = await deleted(api, conversation["id"])
    assert [(error["code"], error["path"]) for error in again["errors"]] == [("NOT_FOUND", ["id"])]


async def test_deleted_with_its_memories_it_takes_them_and_their_facts_along(api: Api, resources: Resources) -> None:
    conversation = await made(api)
    fact = {"subject": "Ann", "predicate": "is", "object": "here"}
    for content in ("one", "two"):
        await api.mutate(
            "createMemory",
            "CreateMemoryInput",
            "memory { id }",
            {"content": content, "conversationId": conversation["id"], "facts": [fact]},
        )
    await add(api, None, "never in it")

    assert await deleted(api, conversation["id"], deleteMemories=True) == {
        "deletedId": conversation["id"],
        "deletedMemories": 2,
        "errors": [],
    }

    assert await api(MEMORIES) == {"memories": {"nodes": [{"content": "never in it", "conversation": None}]}}
    counts = await counted(resources.graph, api.tenant)
    assert (counts["Memory"], counts["Fact"], counts["Conversation"]) == (1, 0, 0)


async def test_a_deleted_threads_conversation_can_be_made_again(api: Api) -> None:
    first = await made(api, threadId="t")
    await deleted(api, first["id"])

    second = await made(api, threadId="t")

    assert second["id"] != first["id"]
    assert await api(BY_THREAD, threadId="t") == {"conversation": {"id": second["id"]}}


async def test_a_memory_added_while_its_conversation_goes_is_in_it_or_refused(api: Api, resources: Resources) -> None:
    for round_ in range(6):
        conversation = await made(api)
        # given: memories that arrive before, with and after the deletion
        adding = [asyncio.create_task(add(api, conversation["id"], f"{round_}.{number}")) for number in range(8)]
        await asyncio.sleep(0.003 * round_)

        gone = await deleted(api, conversation["id"], deleteMemories=True)
        answers = await asyncio.gather(*adding)

        refused = [error for answer in answers for error in answer["errors"]]
        assert {(error["code"], *error["path"]) for error in refused} <= {
            ("NOT_FOUND", "conversationId"),
            ("NOT_FOUND",),
        }
        written = [error for error in refused if error["path"] == []]
        assert gone["deletedMemories"] == 8 - len(refused) + len(written)
        assert (await counted(resources.graph, api.tenant)) == {}
