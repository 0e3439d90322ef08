"""`context` as callers ask it: what holds, of whom, within the budget; and never taken for evidence."""

import asyncio
from typing import Any

import pytest
from tests.conftest import Api

from reverie.graph.schema import await_words
from reverie.resources import Resources
from reverie.services.embedding import embed_all

CONTEXT = """
query($input: ContextInput!) { context(input: $input) {
  text tokenCount truncated
  beliefs { score belief { id value } } episodes { score episode { id threadId } }
  memories { score memory { id content } } chunks { score chunk { id text } }
} }
"""
BELIEFS = "{ beliefs { nodes { key value } } }"


async def context(api: Api, query: str, **given: Any) -> dict[str, Any]:
    made: dict[str, Any] = (await api(CONTEXT, input={"query": query, **given}))["context"]
    return made


async def say(api: Api, thread: str, user: str, *texts: str, at: str) -> None:
    events = [
        {"eventType": "USER_MESSAGE", "content": text, "threadId": thread, "userId": user, "occurredAt": at}
        for text in texts
    ]
    await api.mutate("recordEvents", "RecordEventsInput", "events { id }", {"events": events})
    await api.mutate("closeEpisode", "CloseEpisodeInput", "episode { id }", {"threadId": thread})
    await api.mutate("dream", "DreamInput", "dream { id }", {"wait": True})


async def settled(resources: Resources) -> None:
    await await_words(resources.graph)
    await embed_all(resources)


@pytest.mark.usefixtures("worker")
async def test_the_new_belief_is_in_it_and_the_old_one_is_not(api: Api, resources: Resources) -> None:
    await say(api, "thread", "alex", "I prefer tabs for indentation", at="2026-03-01T10:00:00Z")
    await say(api, "thread", "alex", "Actually, I prefer spaces for indentation now", at="2026-03-02T10:00:00Z")
    await settled(resources)

    made = await context(api, "how should I indent code for Alex?", threadId="thread")

    assert [one["belief"]["value"] for one in made["beliefs"]] == ["spaces"]
    assert "alex preference indentation: spaces" in made["text"]
    assert "alex preference indentation: tabs" not in made["text"]
    assert made["episodes"][0]["episode"]["threadId"] == "thread"

    # and: what was handed out, told back by the user, is no evidence
    await say(api, "echo", "robin", made["text"], "I prefer tea", at="2026-03-03T10:00:00Z")
    nodes = (await api(BELIEFS))["beliefs"]["nodes"]
    assert sorted(node["value"] for node in nodes) == ["spaces", "tea"]


async def test_it_is_of_one_subject(api: Api, resources: Resources) -> None:
    for subject in ("alex", "robin"):
        given = {"subjectId": subject, "key": "likes.drink", "value": f"{subject} tea"}
        await api.mutate("upsertBelief", "UpsertBeliefInput", "belief { id }", given)
        memory = {"content": f"{subject} drinks tea at five", "subjectId": subject}
        await api.mutate("createMemory", "CreateMemoryInput", "memory { id }", memory)
        event = {"eventType": "USER_MESSAGE", "content": f"tea for {subject}", "threadId": subject, "userId": subject}
        await api.mutate("recordEvents", "RecordEventsInput", "events { id }", {"events": [event]})
        await api.mutate("closeEpisode", "CloseEpisodeInput", "episode { id }", {"threadId": subject})
    await settled(resources)

    of_all, of_alex = await asyncio.gather(context(api, "tea"), context(api, "tea", subjectId="alex"))

    for name, one in (("beliefs", "belief"), ("memories", "memory"), ("episodes", "episode")):
        assert len(of_all[name]) == 2
        assert len(of_alex[name]) == 1, (name, one)
    assert "robin" not in of_alex["text"]
    kinds = await context(api, "tea", kinds=["MEMORY"])
    assert ([len(kinds[name]) for name in ("beliefs", "episodes", "memories")]) == [0, 0, 2]


async def test_beliefs_that_are_not_sure_enough_stay_out(api: Api, resources: Resources) -> None:
    given = {"subjectId": "alex", "key": "likes.drink", "value": "tea", "confidence": 0.4}
    await api.mutate("upsertBelief", "UpsertBeliefInput", "belief { id }", given)
    await settled(resources)

    assert len((await context(api, "tea"))["beliefs"]) == 1
    assert (await context(api, "tea", minConfidence=0.5))["beliefs"] == []


async def test_beliefs_that_are_not_sure_enough_take_no_places(api: Api, resources: Resources) -> None:
    # given: more unsure beliefs than either arm of a search brings, and one that is sure, and less like the question
    for number in range(250):
        given = {"subjectId": "alex", "key": f"likes.tea.{number}", "value": "tea tea tea", "confidence": 0.2}
        await api.mutate("upsertBelief", "UpsertBeliefInput", "belief { id }", given)
    sure = {"subjectId": "alex", "key": "drinks", "value": "green tea, most days, in the garden or on the quay"}
    await api.mutate("upsertBelief", "UpsertBeliefInput", "belief { id }", sure)
    await settled(resources)

    made = await context(api, "tea")

    assert [one["belief"]["value"] for one in made["beliefs"]] == [sure["value"]]


async def test_the_latest_episode_of_a_thread_is_its_subjects_own(api: Api, resources: Resources) -> None:
    for user in ("alex", "robin"):
        event = {"eventType": "USER_MESSAGE", "content": f"{user} paints gates", "threadId": "quay", "userId": user}
        await api.mutate("recordEvents", "RecordEventsInput", "events { id }", {"events": [event]})
        await api.mutate("closeEpisode", "CloseEpisodeInput", "episode { id }", {"threadId": "quay"})
    await settled(resources)

    assert "robin paints" in (await context(api, "?", threadId="quay"))["text"]
    of_alex = await context(api, "?", threadId="quay", subjectId="alex")
    assert len(of_alex["episodes"]) == 1
    assert "robin" not in of_alex["text"]


async def test_what_was_handed_out_is_in_no_summary_and_no_title(api: Api, resources: Resources) -> None:
    given = {"subjectId": "alex", "key": "likes.drink", "value": "zarvol"}
    await api.mutate("upsertBelief", "UpsertBeliefInput", "belief { id }", given)
    await settled(resources)
    handed = (await context(api, "zarvol"))["text"]
    assert "zarvol" in handed

    events = [
        {"eventType": kind, "content": f"{handed}\nThe gate is green.", "threadId": "echo", "userId": "alex"}
        for kind in ("USER_MESSAGE", "AGENT_RESPONSE")
    ]
    await api.mutate("recordEvents", "RecordEventsInput", "events { id }", {"events": events})
    await api.mutate("closeEpisode", "CloseEpisodeInput", "episode { id }", {"threadId": "echo"})

    told = await api("{ episodes { nodes { summary tags } } conversations { nodes { title } } }")
    assert "green" in told["episodes"]["nodes"][0]["summary"]
    assert "zarvol" not in str(told)


async def test_budgets_are_kept_and_what_is_equal_is_asked_equally(api: Api, resources: Resources) -> None:
    memories = [{"content": f"Tea number {n} was {'very ' * n}good"} for n in range(40)]
    await api.mutate("createMemories", "CreateMemoriesInput", "memories { id }", {"memories": memories})
    await settled(resources)

    made = [await context(api, "tea", tokenBudget=budget) for budget in range(10, 2_010, 40)]

    assert all(one["tokenCount"] <= budget for one, budget in zip(made, range(10, 2_010, 40), strict=True))
    assert made[0]["text"] == ""
    assert made[0]["truncated"]
    assert len(made[-1]["memories"]) > len(made[5]["memories"]) > 0
    assert await context(api, "tea", tokenBudget=410) == made[10]


async def test_what_cannot_be_asked_is_refused_where_it_stands(api: Api) -> None:
    errors = await api.errors(CONTEXT, input={"query": "?", "kinds": ["TOPIC"], "tokenBudget": 0})

    assert {error["extensions"]["code"] for error in errors} == {"BAD_INPUT"}
    told = " ".join(error["message"] for error in errors)
    assert "tokenBudget" in told
    assert "TOPIC" in told
