"""Facts over the API: where they were read, what they are about, and what becomes of them with their memories."""

import asyncio
from typing import Any

import pytest
from tests.conftest import Api
from tests.stored import counted

from reverie.resources import Resources

FACT = """
  id subject predicate object confidence createdAt subjectEntity { name } objectEntity { name }
  about { nodes { name } } memories { nodes { content } }
"""
READ = f"query($id: ID!) {{ fact(id: $id) {{ {FACT} }} }}"
FACTS = "{ facts { nodes { object } } }"


async def made(api: Api, subject: str, predicate: str, object_: str, **given: Any) -> dict[str, Any]:
    payload = await api.mutate(
        "createFact",
        "CreateFactInput",
        f"fact {{ {FACT} }}",
        {"subject": subject, "predicate": predicate, "object": object_, **given},
    )
    assert payload["errors"] == []
    fact: dict[str, Any] = payload["fact"]
    return fact


async def changed(api: Api, fact_id: str, **given: Any) -> dict[str, Any]:
    payload = await api.mutate("updateFact", "UpdateFactInput", f"fact {{ {FACT} }}", {"id": fact_id, **given})
    assert payload["errors"] == []
    fact: dict[str, Any] = payload["fact"]
    return fact


async def entity(api: Api, name: str, type_: str = "PERSON", **given: Any) -> str:
    payload = await api.mutate(
        "createEntity", "CreateEntityInput", "entity { id }", {"name": name, "type": type_, **given}
    )
    return str(payload["entity"]["id"])


async def memory(api: Api, content: str, **given: Any) -> str:
    payload = await api.mutate("createMemory", "CreateMemoryInput", "memory { id }", {"content": content, **given})
    return str(payload["memory"]["id"])


async def forget(api: Api, memory_id: str) -> None:
    payload = await api.mutate("deleteMemory", "DeleteMemoryInput", "deletedId", {"id": memory_id})
    assert payload["errors"] == []


def links(fact: dict[str, Any]) -> tuple[str | None, str | None, list[str]]:
    """The names of the entities that are a fact's subject, its object, and what it is about."""
    ends = [end["name"] if end else None for end in (fact["subjectEntity"], fact["objectEntity"])]
    return ends[0], ends[1], [about["name"] for about in fact["about"]["nodes"]]


async def test_a_fact_is_linked_to_what_it_names_and_where_it_was_read(api: Api) -> None:
    await entity(api, "Ann", aliases=["Annie"])
    await entity(api, "helm", "TOOL")
    platform = await entity(api, "Platform", "PROJECT")
    sources = [await memory(api, "first source"), await memory(api, "second source")]

    fact = await made(
        api,
        " ANNIE ",
        "prefers   to use",
        "Helm",
        confidence=0.5,
        memoryIds=[*sources, sources[0]],
        aboutEntityIds=[platform, platform],
    )

    assert fact == {
        "id": fact["id"],
        "subject": "ANNIE",
        "predicate": "prefers to use",
        "object": "Helm",
        "confidence": 0.5,
        "createdAt": fact["createdAt"],
        "subjectEntity": {"name": "Ann"},
        "objectEntity": {"name": "helm"},
        "about": {"nodes": [{"name": "Ann"}, {"name": "helm"}, {"name": "Platform"}]},
        "memories": {"nodes": [{"content": "second source"}, {"content": "first source"}]},
    }
    assert await api(READ, id=fact["id"]) == {"fact": fact}


async def test_a_fact_alone_is_sure_and_about_nothing(api: Api) -> None:
    fact = await made(api, "the sky", "is", "blue", confidence=None, memoryIds=None, aboutEntityIds=None)

    assert fact["confidence"] == 1.0
    assert links(fact) == (None, None, [])
    assert fact["memories"] == {"nodes": []}


async def test_the_facts_of_a_memory_are_linked_to_the_entities_it_brings(api: Api) -> None:
    await memory(
        api,
        "Ann uses helm",
        entities=[{"name": "Ann", "type": "PERSON"}, {"name": "helm", "type": "TOOL"}],
        facts=[{"subject": "ann", "predicate": "uses", "object": "HELM"}],
    )

    (fact,) = (await api(f"{{ facts {{ nodes {{ {FACT} }} }} }}"))["facts"]["nodes"]

    assert links(fact) == ("Ann", "helm", ["Ann", "helm"])
    assert fact["memories"] == {"nodes": [{"content": "Ann uses helm"}]}


async def test_a_name_that_several_entities_have_links_to_none(api: Api) -> None:
    await entity(api, "Mercury", "PROJECT")
    await entity(api, "Mercury", "PLACE")

    fact = await made(api, "mercury", "is", "Mercury")

    assert links(fact) == (None, None, [])


async def test_an_entity_that_comes_later_is_not_linked_to_what_was_said_before(api: Api) -> None:
    fact = await made(api, "Ann", "is", "here")
    await entity(api, "Ann")

    assert links((await api(READ, id=fact["id"]))["fact"]) == (None, None, [])
    assert links(await changed(api, fact["id"], confidence=0.5)) == ("Ann", None, ["Ann"])


async def test_a_change_keeps_what_is_absent_and_links_anew(api: Api) -> None:
    await entity(api, "Ann")
    await entity(api, "Bob")
    helm = await entity(api, "helm", "TOOL")
    source = await memory(api, "the source")
    before = await made(api, "Ann", "uses", "helm", memoryIds=[source], aboutEntityIds=[helm])

    after = await changed(api, before["id"], subject="Bob")

    assert after == {
        **before,
        "subject": "Bob",
        "subjectEntity": {"name": "Bob"},
        "about": {"nodes": [{"name": "Bob"}, {"name": "helm"}]},
    }
    assert await api('{ old: facts(subject: "Ann") { totalCount } new: facts(subject: "bob") { totalCount } }') == {
        "old": {"totalCount": 0},
        "new": {"totalCount": 1},
    }

    last = await changed(api, before["id"], predicate="dropped", object="the old tool", confidence=0)

    assert (last["predicate"], last["object"], last["confidence"]) == ("dropped", "the old tool", 0.0)
    # what the caller said it is about stays, though no text of it names that any more
    assert links(last) == ("Bob", None, ["Bob", "helm"])


async def test_a_deleted_fact_is_gone_and_its_memory_stays(api: Api) -> None:
    source = await memory(api, "the source")
    fact = await made(api, "Ann", "is", "here", memoryIds=[source])

    gone = await api.mutate("deleteFact", "DeleteFactInput", "deletedId", {"id": fact["id"]})

    assert gone == {"deletedId": fact["id"], "errors": []}
    assert await api(READ, id=fact["id"]) == {"fact": None}
    assert await api("query($id: ID!) { memory(id: $id) { content facts { totalCount } } }", id=source) == {
        "memory": {"content": "the source", "facts": {"totalCount": 0}}
    }
    again = await api.mutate("deleteFact", "DeleteFactInput", "deletedId", {"id": fact["id"]})
    assert [(error["code"], error["path"]) for error in again["errors"]] == [("NOT_FOUND", ["id"])]


async def test_a_memory_takes_only_the_facts_along_whose_one_source_it_was(api: Api) -> None:
    first, second = await memory(api, "first source"), await memory(api, "second source")
    await made(api, "a", "is", "of the first", memoryIds=[first])
    await made(api, "b", "is", "of both", memoryIds=[first, second])
    await made(api, "c", "is", "of none")

    await forget(api, first)

    assert await api(FACTS) == {"facts": {"nodes": [{"object": "of none"}, {"object": "of both"}]}}

    await forget(api, second)

    assert await api(FACTS) == {"facts": {"nodes": [{"object": "of none"}]}}


async def test_memories_deleted_at_once_take_the_facts_they_share_along(
    api: Api, second_server: Api, resources: Resources
) -> None:
    for _ in range(6):
        sources = [await memory(api, f"source {number}") for number in range(4)]
        await asyncio.gather(*(made(api, "it", "is", f"shared {number}", memoryIds=sources) for number in range(3)))

        # two servers, each with transactions of its own
        await asyncio.gather(
            *(forget(server, source) for server, source in zip((api, second_server) * 2, sources, strict=True))
        )

        counts = await counted(resources.graph, api.tenant)
        assert (counts["Memory"], counts["Fact"]) == (0, 0)


@pytest.mark.parametrize("held", [0, 80], ids=["few-edges", "many-edges"])
async def test_facts_written_while_their_source_goes_are_refused_or_go_with_it(
    held: int, api: Api, second_server: Api, resources: Resources
) -> None:
    for _ in range(6):
        before = [{"subject": "it", "predicate": "was", "object": str(number)} for number in range(held)]
        source = await memory(api, "the source", facts=before)
        creating = [
            api.mutate(
                "createFact",
                "CreateFactInput",
                "fact { id }",
                {"subject": "it", "predicate": "is", "object": str(number), "memoryIds": [source]},
            )
            for number in range(6)
        ]

        answers, _ = await asyncio.gather(asyncio.gather(*creating), forget(second_server, source))

        assert {error["code"] for answer in answers for error in answer["errors"]} <= {"NOT_FOUND"}
        counts = await counted(resources.graph, api.tenant)
        assert (counts["Memory"], counts["Fact"]) == (0, 0)
