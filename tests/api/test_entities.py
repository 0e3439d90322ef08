"""Entities over the API: names by type, aliases, merges that keep every edge, relations between them."""

import asyncio
from typing import Any

import pytest
from tests.conftest import Api
from tests.stored import counted, stored

from reverie.resources import Resources

ENTITY = "id name type aliases"
BY_NAME = f"query($name: String!, $type: EntityType) {{ entity(name: $name, type: $type) {{ {ENTITY} }} }}"
WITH_EDGES = f"""
query($id: ID!) {{ entity(id: $id) {{
  {ENTITY} memories {{ nodes {{ content }} }} facts {{ nodes {{ subject object }} }}
  related {{ edges {{ node {{ name }} relation weight outgoing }} }}
}} }}
"""
FACT_LINKS = (
    "{ facts { nodes { subject subjectEntity { name } object objectEntity { name } about { nodes { name } } } } }"
)


async def made(api: Api, name: str, type_: str = "PERSON", *aliases: str) -> str:
    payload = await api.mutate(
        "createEntity",
        "CreateEntityInput",
        f"entity {{ {ENTITY} }}",
        {"name": name, "type": type_, "aliases": list(aliases)},
    )
    assert payload["errors"] == []
    return str(payload["entity"]["id"])


async def changed(api: Api, entity_id: str, **given: Any) -> dict[str, Any]:
    payload = await api.mutate(
        "updateEntity", "UpdateEntityInput", f"entity {{ {ENTITY} }}", {"id": entity_id, **given}
    )
    assert payload["errors"] == []
    entity: dict[str, Any] = payload["entity"]
    return entity


async def merged(api: Api, into_id: str, *from_ids: str) -> dict[str, Any]:
    return await api.mutate(
        "mergeEntities",
        "MergeEntitiesInput",
        f"entity {{ {ENTITY} }}",
        {"intoId": into_id, "fromIds": list(from_ids)},
    )


async def related(api: Api, from_id: str, to_id: str, relation: str, weight: float = 1.0) -> None:
    payload = await api.mutate(
        "relateEntities",
        "RelateEntitiesInput",
        "entity { id } related { id }",
        {"fromId": from_id, "toId": to_id, "relation": relation, "weight": weight},
    )
    assert payload == {"entity": {"id": from_id}, "related": {"id": to_id}, "errors": []}


async def mention(api: Api, content: str, *entities: dict[str, Any]) -> dict[str, Any]:
    return await api.mutate(
        "createMemory",
        "CreateMemoryInput",
        "memory { entities { nodes { id } } }",
        {"content": content, "entities": list(entities)},
    )


async def fact(api: Api, subject: str, object_: str, *about: str) -> None:
    await api.mutate(
        "createFact",
        "CreateFactInput",
        "fact { id }",
        {"subject": subject, "predicate": "knows", "object": object_, "aboutEntityIds": list(about)},
    )


async def led_to(api: Api, name: str, type_: str | None = None) -> str | None:
    """The id of the entity that a name leads to."""
    found = (await api(BY_NAME, name=name, type=type_))["entity"]
    return found["id"] if found else None


def refusals(payload: dict[str, Any]) -> list[tuple[str, str, str | None]]:
    return [(error["code"], ".".join(error["path"]), error["existingId"]) for error in payload["errors"]]


async def test_an_entity_has_one_name_and_further_ones(api: Api) -> None:
    payload = await api.mutate(
        "createEntity",
        "CreateEntityInput",
        f"entity {{ {ENTITY} }}",
        {"name": "  Kubernetes ", "type": "TOOL", "aliases": ["k8s", "K8S", "kube  rnetes", "KUBERNETES"]},
    )

    entity = payload["entity"]
    assert entity == {
        "id": entity["id"],
        "name": "Kubernetes",
        "type": "TOOL",
        "aliases": ["k8s", "kube rnetes"],
    }
    for name in ("kubernetes", "K8s", "KUBE RNETES"):
        assert await led_to(api, name) == entity["id"]


async def test_a_name_is_anothers_in_another_type(api: Api) -> None:
    planet, project = await made(api, "Mercury", "PLACE"), await made(api, "mercury", "PROJECT")

    assert (await led_to(api, "MERCURY", "PLACE"), await led_to(api, "MERCURY", "PROJECT")) == (planet, project)
    assert await led_to(api, "MERCURY", "TOOL") is None
    (error,) = await api.errors(BY_NAME, name="Mercury")
    assert (error["path"], error["extensions"]["code"]) == (["entity"], "BAD_INPUT")


async def test_a_reference_without_a_type_takes_the_only_match(api: Api, resources: Resources) -> None:
    tool = await made(api, "Mercury", "TOOL", "Hg")

    for name in ("MERCURY", " hg "):
        payload = await mention(api, "the only one", {"name": name})
        assert payload["memory"]["entities"]["nodes"] == [{"id": tool}]

    await made(api, "mercury", "PLACE")
    before = await stored(resources.graph, api.tenant)

    for name, trouble in (("Mercury", "2 entities have"), ("Venus", "no entity has")):
        payload = await mention(api, "which one?", {"name": name})
        assert refusals(payload) == [("BAD_INPUT", "entities.0.type", None)]
        assert trouble in payload["errors"][0]["message"]
    assert await stored(resources.graph, api.tenant) == before


async def test_a_reference_with_a_type_makes_what_is_not_there(api: Api, resources: Resources) -> None:
    tool = await made(api, "Mercury", "TOOL")

    payload = await mention(
        api,
        "two of them",
        {"name": "mercury", "type": "PLACE"},
        {"name": "MERCURY", "type": "PLACE"},
        {"name": "mercury", "type": "TOOL"},
    )

    place = await led_to(api, "mercury", "PLACE")
    assert sorted(node["id"] for node in payload["memory"]["entities"]["nodes"]) == sorted([tool, str(place)])
    assert (await counted(resources.graph, api.tenant))["Entity"] == 2


async def test_a_change_keeps_what_is_absent(api: Api) -> None:
    entity = await made(api, "Ann", "PERSON", "Annie", "A. Lee")

    assert await changed(api, entity, name="Ann Lee") == {
        "id": entity,
        "name": "Ann Lee",
        "type": "PERSON",
        "aliases": ["Annie", "A. Lee"],
    }
    assert (await led_to(api, "Ann"), await led_to(api, "annie")) == (None, entity)
    assert (await changed(api, entity, type="ORGANIZATION"))["aliases"] == ["Annie", "A. Lee"]
    assert await led_to(api, "ann lee", "PERSON") is None
    assert {await led_to(api, name, "ORGANIZATION") for name in ("ann lee", "annie", "a. lee")} == {entity}


async def test_aliases_are_replaced_as_a_whole_and_cleared_by_null(api: Api) -> None:
    entity = await made(api, "Ann", "PERSON", "Annie", "A. Lee")

    assert (await changed(api, entity, aliases=["annie", "Lee"]))["aliases"] == ["annie", "Lee"]
    assert [await led_to(api, name) for name in ("Annie", "Lee", "A. Lee")] == [entity, entity, None]
    assert (await changed(api, entity, aliases=None))["aliases"] == []
    assert [await led_to(api, name) for name in ("Annie", "Lee", "Ann")] == [None, None, entity]
    assert await made(api, "Annie") != entity


async def test_an_alias_can_become_the_name_and_the_name_an_alias(api: Api) -> None:
    entity = await made(api, "Ann", "PERSON", "Annie")

    after = await changed(api, entity, name="Annie", aliases=["Ann"])

    assert (after["name"], after["aliases"]) == ("Annie", ["Ann"])
    assert {await led_to(api, name) for name in ("ann", "annie")} == {entity}
    assert (await changed(api, entity, name="Ann"))["aliases"] == []


async def test_the_survivor_of_a_merge_keeps_every_edge_and_every_name(api: Api, resources: Resources) -> None:
    into = await made(api, "Ann", "PERSON", "Annie")
    first = await made(api, "A. Lee", "PERSON", "ANNABEL")
    second = await made(api, "Lee", "PERSON", "Annie Lee")
    helm = await made(api, "helm", "TOOL")
    await mention(api, "of into", {"id": into})
    await mention(api, "of first and into", {"id": first}, {"id": into})
    await mention(api, "of all", {"id": into}, {"id": first}, {"id": second})
    await fact(api, "A. Lee", "helm")
    await fact(api, "helm", "Annie Lee")
    await fact(api, "Lee", "A. Lee")
    await fact(api, "it", "works", first, second)
    await related(api, first, helm, "uses", 2)
    await related(api, into, helm, "uses", 1)
    await related(api, second, helm, "uses", 3)
    await related(api, helm, second, "is used by", 4)
    await related(api, first, second, "is the same as", 5)
    await related(api, into, first, "is the same as", 6)

    payload = await merged(api, into, first, second)

    survivor = {
        "id": into,
        "name": "Ann",
        "type": "PERSON",
        "aliases": ["Annie", "A. Lee", "ANNABEL", "Lee", "Annie Lee"],
    }
    assert payload == {"entity": survivor, "errors": []}
    assert (await api(WITH_EDGES, id=into))["entity"] == {
        **survivor,
        "memories": {"nodes": [{"content": "of all"}, {"content": "of first and into"}, {"content": "of into"}]},
        "facts": {
            "nodes": [
                {"subject": "A. Lee", "object": "helm"},
                {"subject": "helm", "object": "Annie Lee"},
                {"subject": "Lee", "object": "A. Lee"},
                {"subject": "it", "object": "works"},
            ]
        },
        "related": {
            "edges": [
                {"node": {"name": "helm"}, "relation": "is used by", "weight": 4.0, "outgoing": False},
                {"node": {"name": "helm"}, "relation": "uses", "weight": 3.0, "outgoing": True},
            ]
        },
    }
    ann, tool = {"name": "Ann"}, {"name": "helm"}
    assert [
        (node["subjectEntity"], node["objectEntity"], node["about"]["nodes"])
        for node in (await api(FACT_LINKS))["facts"]["nodes"]
    ] == [
        (None, None, [ann]),
        (ann, ann, [ann]),
        (tool, ann, [ann, tool]),
        (ann, tool, [ann, tool]),
    ]
    for name in ("ann", "a. lee", "annabel", "LEE", "annie lee"):
        assert await led_to(api, name) == into
    counts = await counted(resources.graph, api.tenant)
    assert (counts["Entity"], counts["MENTIONS"], counts["RELATED_TO"], counts["Name"]) == (2, 3, 2, 7)


async def test_what_the_caller_said_a_fact_is_about_outlives_merge_and_change(api: Api) -> None:
    into, other = await made(api, "Ann"), await made(api, "Annabel")
    payload = await api.mutate(
        "createFact",
        "CreateFactInput",
        "fact { id }",
        {"subject": "Ann", "predicate": "is", "object": "here", "aboutEntityIds": [other]},
    )
    await merged(api, into, other)

    after = await api.mutate(
        "updateFact",
        "UpdateFactInput",
        "fact { subjectEntity { name } about { nodes { name } } }",
        {"id": payload["fact"]["id"], "subject": "somebody"},
    )

    assert after["fact"] == {"subjectEntity": None, "about": {"nodes": [{"name": "Ann"}]}}


async def test_a_name_merged_from_another_type_outlives_later_changes(api: Api) -> None:
    person, project = await made(api, "Bob"), await made(api, "bob-cli", "PROJECT", "bobctl")
    namesake = await made(api, "bob-cli", "PERSON")
    await merged(api, person, project)

    after = await changed(api, person, name="Robert")

    assert after["aliases"] == ["bob-cli", "bobctl"]
    assert await led_to(api, "bob-cli", "PROJECT") == person
    assert await led_to(api, "bob-cli", "PERSON") == namesake
    assert (await changed(api, person, aliases=["bobctl"]))["aliases"] == ["bobctl"]
    assert await led_to(api, "bob-cli", "PROJECT") is None
    assert await led_to(api, "bobctl", "PROJECT") == person


async def test_the_next_mention_of_a_merged_name_finds_the_survivor(api: Api, resources: Resources) -> None:
    into, other = await made(api, "Ann"), await made(api, "A. Lee")
    await merged(api, into, other)

    payload = await mention(api, "again", {"name": "a. LEE", "type": "PERSON"})

    assert payload["memory"]["entities"]["nodes"] == [{"id": into}]
    assert (await counted(resources.graph, api.tenant))["Entity"] == 1
    again = await api.mutate("createEntity", "CreateEntityInput", "entity { id }", {"name": "A. Lee", "type": "PERSON"})
    assert refusals(again) == [("ALREADY_EXISTS", "name", into)]


async def test_merging_twice_or_in_a_ring_is_refused_and_harms_nothing(api: Api, resources: Resources) -> None:
    ann, bob, cid = [await made(api, name) for name in ("Ann", "Bob", "Cid")]
    assert (await merged(api, ann, bob))["errors"] == []
    assert (await merged(api, cid, ann))["errors"] == []
    before = await stored(resources.graph, api.tenant)

    assert refusals(await merged(api, ann, bob)) == [("NOT_FOUND", "intoId", None), ("NOT_FOUND", "fromIds.0", None)]
    assert refusals(await merged(api, bob, cid)) == [("NOT_FOUND", "intoId", None)]
    assert refusals(await merged(api, cid, ann)) == [("NOT_FOUND", "fromIds.0", None)]

    assert await stored(resources.graph, api.tenant) == before
    assert {await led_to(api, name) for name in ("ann", "bob", "cid")} == {cid}


async def test_merging_both_ways_at_once_leaves_one(api: Api, second_server: Api, resources: Resources) -> None:
    for round_ in range(5):
        ann, bob = await made(api, f"Ann {round_}"), await made(api, f"Bob {round_}")
        await mention(api, "both", {"id": ann}, {"id": bob})

        answers = await asyncio.gather(
            merged(api, ann, bob),
            merged(second_server, bob, ann),
            mention(second_server, "Ann", {"name": f"ann {round_}", "type": "PERSON"}),
            mention(api, "Bob", {"name": f"bob {round_}", "type": "PERSON"}),
            fact(second_server, f"ann {round_}", f"bob {round_}"),
        )

        (survivor,) = [answer["entity"] for answer in answers[:2] if answer["entity"]]
        assert {await led_to(api, f"{name} {round_}") for name in ("ann", "bob")} == {survivor["id"]}
        edges = (await api(WITH_EDGES, id=survivor["id"]))["entity"]
        assert len(edges["memories"]["nodes"]) == 3
        assert edges["facts"]["nodes"] == [{"subject": f"ann {round_}", "object": f"bob {round_}"}]
    counts = await counted(resources.graph, api.tenant)
    assert (counts["Entity"], counts["Name"], counts["MENTIONS"], counts["ABOUT"]) == (5, 10, 15, 5)


@pytest.mark.parametrize("held", [0, 80], ids=["few-edges", "many-edges"])
async def test_what_is_written_of_an_entity_while_it_is_merged_is_kept(
    held: int, api: Api, second_server: Api, resources: Resources
) -> None:
    for round_ in range(3):
        into, other = await made(api, f"into {round_}"), await made(api, f"from {round_}")
        if held:
            await api.mutate(
                "createMemories",
                "CreateMemoriesInput",
                "memories { id }",
                {"memories": [{"content": "before", "entities": [{"id": other}]}] * held},
            )

        await asyncio.gather(
            merged(api, into, other),
            *(mention(second_server, "while", {"name": f"from {round_}", "type": "PERSON"}) for _ in range(8)),
            *(fact(second_server, f"from {round_}", str(number)) for number in range(4)),
        )

        edges = (
            await api("query($id: ID!) { entity(id: $id) { memories { totalCount } facts { totalCount } } }", id=into)
        )["entity"]
        assert edges == {"memories": {"totalCount": held + 8}, "facts": {"totalCount": 4}}
    counts = await counted(resources.graph, api.tenant)
    assert (counts["MENTIONS"], counts["ABOUT"], counts["HAS_SUBJECT"]) == (3 * (held + 8), 12, 12)


async def test_a_deleted_entity_leaves_memories_and_facts_and_frees_its_names(api: Api, resources: Resources) -> None:
    entity = await made(api, "Ann", "PERSON", "Annie")
    await mention(api, "stays", {"id": entity})
    await fact(api, "Ann", "helm")

    gone = await api.mutate("deleteEntity", "DeleteEntityInput", "deletedId", {"id": entity})

    assert gone == {"deletedId": entity, "errors": []}
    assert await api("{ memories { nodes { content entities { totalCount } } } }") == {
        "memories": {"nodes": [{"content": "stays", "entities": {"totalCount": 0}}]}
    }
    assert (await api(FACT_LINKS))["facts"]["nodes"] == [
        {"subject": "Ann", "subjectEntity": None, "object": "helm", "objectEntity": None, "about": {"nodes": []}}
    ]
    assert (await counted(resources.graph, api.tenant))["Name"] == 0
    again = await api.mutate("deleteEntity", "DeleteEntityInput", "deletedId", {"id": entity})
    assert refusals(again) == [("NOT_FOUND", "id", None)]
    assert await made(api, "annie", "PERSON", "ann") != entity


async def test_entities_are_related_and_both_ends_show_it(api: Api) -> None:
    ann, helm = await made(api, "Ann"), await made(api, "helm", "TOOL")

    await related(api, ann, helm, "uses", 0.5)
    await related(api, ann, helm, " uses ", 2)

    edge = {"relation": "uses", "weight": 2.0}
    assert (await api(WITH_EDGES, id=ann))["entity"]["related"]["edges"] == [
        {"node": {"name": "helm"}, **edge, "outgoing": True}
    ]
    assert (await api(WITH_EDGES, id=helm))["entity"]["related"]["edges"] == [
        {"node": {"name": "Ann"}, **edge, "outgoing": False}
    ]
    removed = await api.mutate("unrelate", "UnrelateInput", "removed", {"fromId": helm, "toId": ann})
    assert removed == {"removed": 1, "errors": []}
    assert (await api(WITH_EDGES, id=ann))["entity"]["related"]["edges"] == []


async def test_32_that_relate_the_same_two_at_once_draw_one_edge(
    api: Api, second_server: Api, resources: Resources
) -> None:
    ann, bob = await made(api, "Ann"), await made(api, "Bob")

    await asyncio.gather(
        *(related(server, ann, bob, "knows", number) for server in (api, second_server) for number in range(16))
    )

    assert (await counted(resources.graph, api.tenant))["RELATED_TO"] == 1


async def test_names_given_and_taken_at_once_agree_with_the_aliases(
    api: Api, second_server: Api, resources: Resources
) -> None:
    for round_ in range(5):
        entity = await made(api, f"Ann {round_}")

        await asyncio.gather(
            changed(api, entity, aliases=[f"first {round_}"]),
            changed(second_server, entity, aliases=[f"second {round_}"]),
        )

        (alias,) = (await api(WITH_EDGES, id=entity))["entity"]["aliases"]
        for name in (f"first {round_}", f"second {round_}"):
            assert await led_to(api, name) == (entity if name == alias else None)
        await api.mutate("deleteEntity", "DeleteEntityInput", "deletedId", {"id": entity})
        assert await counted(resources.graph, api.tenant) == {}
