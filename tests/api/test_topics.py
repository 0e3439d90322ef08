"""Topics over the API: one node for each name, renamed, merged, deleted."""

import asyncio
from typing import Any

import pytest
from tests.conftest import Api
from tests.stored import counted

from reverie.resources import Resources

BY_NAME = "query($name: String!) { topic(name: $name) { id name memories { totalCount } } }"
OF_MEMORY = "query($id: ID!) { memory(id: $id) { topics { nodes { name } } } }"
ALL = "{ topics { nodes { name memories { totalCount } } } }"


async def made(api: Api, name: str) -> str:
    payload = await api.mutate("createTopic", "CreateTopicInput", "topic { id name }", {"name": name})
    assert payload["errors"] == []
    return str(payload["topic"]["id"])


async def renamed(api: Api, topic_id: str, name: str) -> dict[str, Any]:
    return await api.mutate("updateTopic", "UpdateTopicInput", "topic { id name }", {"id": topic_id, "name": name})


async def merged(api: Api, into_id: str, *from_ids: str) -> dict[str, Any]:
    return await api.mutate(
        "mergeTopics", "MergeTopicsInput", "topic { id name }", {"intoId": into_id, "fromIds": list(from_ids)}
    )


async def memory(api: Api, *topics: dict[str, str]) -> str:
    payload = await api.mutate(
        "createMemory", "CreateMemoryInput", "memory { id }", {"content": "a memory", "topics": list(topics)}
    )
    assert payload["errors"] == []
    return str(payload["memory"]["id"])


async def led_to(api: Api, name: str) -> str | None:
    """The id of the topic that a name leads to."""
    found = (await api(BY_NAME, name=name))["topic"]
    return found["id"] if found else None


def refusals(payload: dict[str, Any]) -> list[tuple[str, str, str | None]]:
    return [(error["code"], ".".join(error["path"]), error["existingId"]) for error in payload["errors"]]


@pytest.mark.parametrize(
    ("shown", "others"),
    [
        ("Site Reliability", ["site reliability", "  SITE\t reliability\n", "ＳＩＴＥ　reliability"]),  # noqa: RUF001 - wide letters
        ("Straße", ["STRASSE", "strasse"]),
        ("ﬁle ①", ["FILE 1"]),
        ("Çay", ["C\u0327ay", "çay"]),
        ("数据库", ["数据库"]),
    ],
)
async def test_spellings_of_one_name_are_one_topic(
    shown: str, others: list[str], api: Api, resources: Resources
) -> None:
    topic = await made(api, f"  {shown} ")

    assert (await api(BY_NAME, name=shown))["topic"]["name"] == shown
    for other in others:
        assert await led_to(api, other) == topic
        again = await api.mutate("createTopic", "CreateTopicInput", "topic { id }", {"name": other})
        assert refusals(again) == [("ALREADY_EXISTS", "name", topic)]
        await memory(api, {"name": other})
    assert (await api(BY_NAME, name=shown))["topic"]["memories"]["totalCount"] == len(others)
    counts = await counted(resources.graph, api.tenant)
    assert (counts["Topic"], counts["Name"]) == (1, 1)


async def test_near_names_are_topics_of_their_own(api: Api) -> None:
    topics = {await made(api, name) for name in ("resume", "résumé", "re-sume", "resumes", "3.1", "3.10")}

    assert len(topics) == 6


async def test_a_new_name_moves_the_topic_and_frees_the_old_one(api: Api) -> None:
    topic = await made(api, "Deployment")
    held = await memory(api, {"name": "deployment"})

    payload = await renamed(api, topic, "  Roll-out ")

    assert payload == {"topic": {"id": topic, "name": "Roll-out"}, "errors": []}
    assert await api(OF_MEMORY, id=held) == {"memory": {"topics": {"nodes": [{"name": "Roll-out"}]}}}
    assert (await led_to(api, "ROLL-OUT"), await led_to(api, "Deployment")) == (topic, None)
    assert await made(api, "Deployment") != topic


async def test_a_topic_can_take_another_spelling_of_its_own_name(api: Api, resources: Resources) -> None:
    topic = await made(api, "deployment")

    payload = await renamed(api, topic, "Deployment")

    assert payload == {"topic": {"id": topic, "name": "Deployment"}, "errors": []}
    assert await led_to(api, "deployment") == topic
    assert (await counted(resources.graph, api.tenant))["Name"] == 1


async def test_the_survivor_of_a_merge_keeps_memories_and_names(api: Api, resources: Resources) -> None:
    into, *others = [await made(api, name) for name in ("Deployment", "Roll-out", "Shipping")]
    await memory(api, {"id": into}, {"id": others[0]})
    await memory(api, {"id": others[0]}, {"id": others[1]})
    await memory(api, {"id": others[1]})

    payload = await merged(api, into, *others, others[0])

    assert payload == {"topic": {"id": into, "name": "Deployment"}, "errors": []}
    assert await api(ALL) == {"topics": {"nodes": [{"name": "Deployment", "memories": {"totalCount": 3}}]}}
    for name in ("Deployment", "ROLL-OUT", "shipping"):
        assert await led_to(api, name) == into
    await memory(api, {"name": "Shipping"})
    assert (await api(BY_NAME, name="roll-out"))["topic"]["memories"]["totalCount"] == 4
    counts = await counted(resources.graph, api.tenant)
    assert (counts["Topic"], counts["Name"], counts["HAS_TOPIC"]) == (1, 3, 4)


async def test_a_merged_name_is_taken_and_the_survivor_may_show_it(api: Api) -> None:
    into, other = await made(api, "Deployment"), await made(api, "Roll-out")
    await merged(api, into, other)

    again = await api.mutate("createTopic", "CreateTopicInput", "topic { id }", {"name": "roll-OUT"})
    shown = await renamed(api, into, "Roll-out")

    assert refusals(again) == [("ALREADY_EXISTS", "name", into)]
    assert shown == {"topic": {"id": into, "name": "Roll-out"}, "errors": []}
    assert (await led_to(api, "roll-out"), await led_to(api, "deployment")) == (into, None)


async def test_what_was_merged_is_gone_whatever_is_done_with_it(api: Api) -> None:
    into, other = await made(api, "Deployment"), await made(api, "Roll-out")
    await merged(api, into, other)

    assert (await api("query($id: ID!) { node(id: $id) { id } }", id=other))["node"] is None
    assert refusals(await merged(api, into, other)) == [("NOT_FOUND", "fromIds.0", None)]
    assert refusals(await merged(api, other, into)) == [("NOT_FOUND", "intoId", None)]
    assert refusals(await renamed(api, other, "New")) == [("NOT_FOUND", "id", None)]
    assert await led_to(api, "Roll-out") == into


async def test_merging_in_a_ring_leaves_one(api: Api, resources: Resources) -> None:
    topics = [await made(api, name) for name in ("a", "b", "c")]
    for topic in topics:
        await memory(api, {"id": topic})

    first = await merged(api, topics[0], topics[1])
    second = await merged(api, topics[2], topics[0])
    closing = await merged(api, topics[1], topics[2])

    assert (first["errors"], second["errors"]) == ([], [])
    assert refusals(closing) == [("NOT_FOUND", "intoId", None)]
    assert {await led_to(api, name) for name in "abc"} == {topics[2]}
    assert await api(ALL) == {"topics": {"nodes": [{"name": "c", "memories": {"totalCount": 3}}]}}
    assert (await counted(resources.graph, api.tenant))["Name"] == 3


async def test_merging_both_ways_at_once_leaves_one(api: Api, second_server: Api, resources: Resources) -> None:
    for round_ in range(5):
        names = [f"{round_} {letter}" for letter in "abc"]
        topics = [await made(api, name) for name in names]
        for topic in topics:
            await memory(api, {"id": topic})

        answers = await asyncio.gather(
            merged(api, topics[0], topics[1]),
            merged(second_server, topics[1], topics[0]),
            merged(api, topics[1], topics[2]),
            merged(second_server, topics[2], topics[0]),
        )

        assert {error["code"] for answer in answers for error in answer["errors"]} <= {"NOT_FOUND"}
        # every name still leads to a topic that is there, and no memory has lost its topic
        survivors = {await led_to(api, name) for name in names}
        assert None not in survivors
        found = (await api("query($ids: [ID!]!) { nodes(ids: $ids) { id } }", ids=topics))["nodes"]
        assert {node["id"] for node in found if node} == survivors
        done = [answer for answer in answers if not answer["errors"]]
        assert len(survivors) == 3 - len(done)
    counts = await counted(resources.graph, api.tenant)
    assert (counts["Name"], counts["HAS_TOPIC"], counts["Memory"]) == (15, 15, 15)


@pytest.mark.parametrize("held", [0, 80], ids=["few-edges", "many-edges"])
async def test_a_memory_written_while_its_topic_is_merged_keeps_a_topic(
    held: int, api: Api, second_server: Api, resources: Resources
) -> None:
    for round_ in range(4):
        into, other = await made(api, f"into {round_}"), await made(api, f"from {round_}")
        if held:
            await api.mutate(
                "createMemories",
                "CreateMemoriesInput",
                "memories { id }",
                {"memories": [{"content": "before", "topics": [{"id": other}]}] * held},
            )

        _, *written = await asyncio.gather(
            merged(api, into, other),
            *(memory(second_server, {"name": f"from {round_}"}) for _ in range(12)),
        )

        assert (await api(BY_NAME, name=f"from {round_}"))["topic"] == {
            "id": into,
            "name": f"into {round_}",
            "memories": {"totalCount": held + 12},
        }
        assert len(set(written)) == 12
    counts = await counted(resources.graph, api.tenant)
    assert (counts["Topic"], counts["HAS_TOPIC"]) == (4, 4 * (held + 12))


async def test_a_deleted_topic_leaves_its_memories_and_frees_its_names(api: Api, resources: Resources) -> None:
    topic, other = await made(api, "Deployment"), await made(api, "Roll-out")
    await merged(api, topic, other)
    held = await memory(api, {"id": topic})

    gone = await api.mutate("deleteTopic", "DeleteTopicInput", "deletedId", {"id": topic})

    assert gone == {"deletedId": topic, "errors": []}
    assert await api(OF_MEMORY, id=held) == {"memory": {"topics": {"nodes": []}}}
    assert (await led_to(api, "Deployment"), await led_to(api, "Roll-out")) == (None, None)
    assert (await counted(resources.graph, api.tenant))["Name"] == 0
    again = await api.mutate("deleteTopic", "DeleteTopicInput", "deletedId", {"id": topic})
    assert refusals(again) == [("NOT_FOUND", "id", None)]
    assert await made(api, "Roll-out") not in (topic, other)


async def test_of_32_that_make_one_name_at_once_one_succeeds(
    api: Api, second_server: Api, resources: Resources
) -> None:
    answers = await asyncio.gather(
        *(
            server.mutate("createTopic", "CreateTopicInput", "topic { id }", {"name": name})
            for server in (api, second_server)
            for name in ("Deployment", "DEPLOYMENT", " deployment", "deployment ") * 4
        )
    )

    (topic,) = [answer["topic"]["id"] for answer in answers if answer["topic"]]
    refused = [refusal for answer in answers for refusal in refusals(answer)]
    assert refused == [("ALREADY_EXISTS", "name", topic)] * 31
    assert await counted(resources.graph, api.tenant) == {"Node": 1, "Topic": 1, "Name": 1, "NAMES": 1}


async def test_two_topics_that_want_one_name_at_once_do_not_share_it(api: Api, second_server: Api) -> None:
    for round_ in range(5):
        first, second = await made(api, f"first {round_}"), await made(api, f"second {round_}")

        answers = await asyncio.gather(
            renamed(api, first, f"wanted {round_}"), renamed(second_server, second, f"wanted {round_}")
        )

        (winner,) = [answer["topic"]["id"] for answer in answers if answer["topic"]]
        (refusal,) = [refusal for answer in answers for refusal in refusals(answer)]
        assert refusal == ("ALREADY_EXISTS", "name", winner)
        assert await led_to(api, f"wanted {round_}") == winner
        kept, loser = (f"second {round_}", second) if winner == first else (f"first {round_}", first)
        assert await led_to(api, kept) == loser
