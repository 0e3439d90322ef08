"""From events to beliefs: what a thread says is believed, superseded, and told of."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.conftest import Api

DREAM = "dream { id episodes done failed beliefsChanged finishedAt }"
BELIEFS = """
{ beliefs { nodes { key value version epistemicStatus beliefType confidence
  supersedes { version value epistemicStatus } evidence { nodes { id text } } episodes { nodes { id } } } } }
"""
MORNING = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


def said(
    text: str, *, at: datetime = MORNING, thread: str = "editor", user: str | None = "alex", **more: Any
) -> dict[str, Any]:
    return {
        "eventType": "USER_MESSAGE",
        "content": text,
        "threadId": thread,
        "userId": user,
        "occurredAt": at.isoformat(),
        **more,
    }


async def record(api: Api, *events: dict[str, Any]) -> list[dict[str, Any]]:
    payload = await api.mutate(
        "recordEvents", "RecordEventsInput", "events { id episode { id } }", {"events": list(events)}
    )
    assert payload["errors"] == []
    found: list[dict[str, Any]] = payload["events"]
    return found


async def close(api: Api, thread: str = "editor") -> dict[str, Any]:
    payload = await api.mutate(
        "closeEpisode", "CloseEpisodeInput", "episode { id consolidationStatus }", {"threadId": thread}
    )
    assert payload["errors"] == []
    episode: dict[str, Any] = payload["episode"]
    return episode


async def dream(api: Api, **given: Any) -> dict[str, Any]:
    payload = await api.mutate("dream", "DreamInput", DREAM, {"wait": True, **given})
    assert payload["errors"] == []
    found: dict[str, Any] = payload["dream"]
    return found


@pytest.mark.usefixtures("worker")
async def test_a_preference_that_changes_supersedes_and_names_its_event(api: Api) -> None:
    first, second = await record(
        api,
        said("I prefer tabs for indentation"),
        said("Actually, I prefer spaces for indentation now", at=MORNING + timedelta(days=1)),
    )
    await close(api)

    done = await dream(api)

    assert done["failed"] == 0
    assert done["finishedAt"] is not None
    (belief,) = (await api(BELIEFS))["beliefs"]["nodes"]
    assert (belief["value"], belief["version"], belief["epistemicStatus"]) == ("spaces", 2, "ACTIVE")
    assert belief["supersedes"] == {"version": 1, "value": "tabs", "epistemicStatus": "SUPERSEDED"}
    assert [event["id"] for event in belief["evidence"]["nodes"]] == [second["id"]]
    assert [episode["id"] for episode in belief["episodes"]["nodes"]] == [second["episode"]["id"]]
    log = await api("{ beliefChanges { nodes { kind episode { id } belief { value } previous { value } } } }")
    assert log["beliefChanges"]["nodes"] == [
        {"kind": "CREATED", "episode": first["episode"], "belief": {"value": "tabs"}, "previous": None},
        {
            "kind": "SUPERSEDED",
            "episode": second["episode"],
            "belief": {"value": "spaces"},
            "previous": {"value": "tabs"},
        },
    ]
    state = await api("{ server { extractor worker { running pendingEpisodes failedEpisodes lastDreamAt } } }")
    assert state["server"]["extractor"] == "rules:en"
    worker = state["server"]["worker"]
    assert (worker["running"], worker["pendingEpisodes"], worker["failedEpisodes"]) == (True, 0, 0)
    assert worker["lastDreamAt"] is not None
    learned = await api(
        "query($id: ID!) { episode(id: $id) { consolidationStatus attempts beliefs { nodes { value } } } }",
        id=second["episode"]["id"],
    )
    assert learned["episode"] == {
        "consolidationStatus": "CONSOLIDATED",
        "attempts": 1,
        "beliefs": {"nodes": [{"value": "spaces"}]},
    }


@pytest.mark.usefixtures("worker")
async def test_what_nobody_said_is_not_learned(api: Api) -> None:
    await record(
        api,
        said("I prefer tabs for indentation", user=None),
        said("Do I prefer spaces?", thread="other"),
        {"eventType": "SYSTEM_LOG", "content": {"level": 3}, "threadId": "editor", "userId": "alex"},
    )
    for thread in ("editor", "other"):
        await close(api, thread)

    done = await dream(api)

    assert done["failed"] == 0
    assert (await api(BELIEFS))["beliefs"]["nodes"] == []


async def test_without_a_worker_a_dream_is_refused(api: Api) -> None:
    payload = await api.mutate("dream", "DreamInput", DREAM, {})

    assert [error["code"] for error in payload["errors"]] == ["UNSUPPORTED"]


@pytest.mark.usefixtures("worker")
async def test_a_dream_of_episodes_that_do_not_wait_is_refused(api: Api, other_api: Api) -> None:
    (event,) = await record(api, said("I prefer tabs for indentation"))
    (foreign,) = await record(other_api, said("I prefer tabs for indentation"))
    given = {"episodeIds": [event["episode"]["id"], foreign["episode"]["id"], "nonsense"]}

    payload = await api.mutate("dream", "DreamInput", DREAM, given)

    assert [(error["code"], error["path"]) for error in payload["errors"]] == [
        ("CONFLICT", ["episodeIds", "0"]),
        ("NOT_FOUND", ["episodeIds", "1"]),
        ("NOT_FOUND", ["episodeIds", "2"]),
    ]
    assert (await dream(api))["episodes"] == 0


@pytest.mark.usefixtures("worker")
async def test_32_episodes_about_the_same_things_are_consolidated_at_once(api: Api) -> None:
    things = ("indentation", "quotes", "naming", "tests", "commits")
    events = [
        said(f"I prefer style{number} for {thing}", thread=f"thread {number}", at=MORNING + timedelta(minutes=number))
        for number in range(32)
        for thing in things
    ]
    await record(api, *events)
    await asyncio.gather(*(close(api, f"thread {number}") for number in range(32)))

    await dream(api)

    episodes = await api("{ episodes(first: 100) { nodes { consolidationStatus failure } } }")
    assert {node["consolidationStatus"] for node in episodes["episodes"]["nodes"]} == {"CONSOLIDATED"}
    beliefs = await api("{ beliefs { nodes { evidenceCount history(first: 100) { nodes { version } totalCount } } } }")
    assert len(beliefs["beliefs"]["nodes"]) == len(things)
    for node in beliefs["beliefs"]["nodes"]:
        assert sorted(version["version"] for version in node["history"]["nodes"]) == list(range(1, 33))


@pytest.mark.usefixtures("worker")
async def test_a_memory_is_enriched(api: Api) -> None:
    entity = await api.mutate(
        "createEntity", "CreateEntityInput", "entity { id }", {"name": "Harbor", "type": "PROJECT"}
    )
    created = await api.mutate(
        "createMemory",
        "CreateMemoryInput",
        "memory { id enrichment }",
        {"content": "Harbor depends on PostgreSQL. The deploy of Harbor failed on Friday."},
    )
    memory = created["memory"]
    assert memory["enrichment"] in ("PENDING", "PROCESSING")

    query = """query($id: ID!) { memory(id: $id) { enrichment entities { nodes { id name } } topics { nodes { name } }
      facts { nodes { subject predicate object } } } }"""
    for _ in range(300):
        found = (await api(query, id=memory["id"]))["memory"]
        if found["enrichment"] == "DONE":
            break
        await asyncio.sleep(0.1)

    assert entity["entity"]["id"] in [node["id"] for node in found["entities"]["nodes"]]
    assert {"subject": "Harbor", "predicate": "depends on", "object": "PostgreSQL"} in found["facts"]["nodes"]


@pytest.mark.usefixtures("worker")
async def test_a_forgotten_subject_leaves_nothing(api: Api, other_api: Api) -> None:
    for caller in (api, other_api):
        await record(
            caller,
            said("I prefer tabs for indentation"),
            {
                "eventType": "AGENT_RESPONSE",
                "content": "Noted, alex.",
                "threadId": "editor",
                "occurredAt": MORNING.isoformat(),
            },
            said("We spoke with alex", thread="shared", user="robin"),
            said("I prefer light mode for editors", thread="shared"),
        )
        await close(caller)
        await close(caller, "shared")
        await dream(caller)
        for subject in ("alex", "robin"):
            await caller.mutate(
                "createMemory",
                "CreateMemoryInput",
                "memory { id }",
                {
                    "content": f"what {subject} told",
                    "subjectId": subject,
                    "topics": [{"name": f"only {subject}"}, {"name": "both"}],
                    "facts": [{"subject": subject, "predicate": "told", "object": "something"}],
                    "enrich": False,
                },
            )
    count = """{ events { totalCount } episodes { totalCount } memories { totalCount } facts { totalCount }
      beliefs(filter: {epistemicStatuses: [ACTIVE, SUPERSEDED, CONTRADICTED, RETRACTED]}) { totalCount }
      topics { nodes { name } } conversations { nodes { threadId title } } beliefChanges { totalCount }
      search(query: "tabs indentation alex", mode: KEYWORD) { nodes { __typename } } }"""
    before = await other_api(count)

    payload = await api.mutate("forgetSubject", "ForgetSubjectInput", "deleted { kind count }", {"subjectId": "alex"})

    assert payload["errors"] == []
    assert {row["kind"]: row["count"] for row in payload["deleted"]} == {
        "EPISODE": 1,
        "EVENT": 3,
        "BELIEF": 2,
        "MEMORY": 1,
        "TOPIC": 1,
    }
    after = await api(count)
    assert after["events"]["totalCount"] == 1
    assert after["episodes"]["totalCount"] == 1
    assert after["memories"]["totalCount"] == 1
    assert after["facts"]["totalCount"] == 1
    assert after["beliefs"]["totalCount"] == 0
    assert after["beliefChanges"]["totalCount"] == 0
    assert [topic["name"] for topic in after["topics"]["nodes"]] == ["both", "only robin"]
    assert [row["threadId"] for row in after["conversations"]["nodes"]] == ["shared"]
    assert await other_api(count) == before
    again = await api.mutate("forgetSubject", "ForgetSubjectInput", "deleted { kind }", {"subjectId": "alex"})
    assert again["deleted"] == []
