"""Communities over the API: found, found anew, and left by topics that go."""

import asyncio
from collections import Counter
from dataclasses import replace
from itertools import combinations, cycle
from typing import Any

import pytest
from tests.conftest import Api
from tests.meeting import meanwhile
from tests.stored import counted

from reverie.domain.clock import now_ms
from reverie.domain.communities import CommunityAlgorithm, Detection, Group
from reverie.errors import Refusals
from reverie.graph.communities import Found, begin_detection, replace_communities
from reverie.graph.enrichment import sweep_orphans
from reverie.graph.writes import Write
from reverie.resources import Resources
from reverie.services.communities import detect_communities, look_through

GROUPS = [[f"{letter} {place}" for place in range(4)] for letter in ("alpine", "boats", "cooking", "dance")]
COMMUNITIES = """
query($algorithm: CommunityAlgorithm) { communities(first: 200, algorithm: $algorithm) {
  nodes { id name size algorithm topics { nodes { name } } } } }
"""
RELATED = "query($name: String!) { topic(name: $name) { related { edges { weight node { name } } } } }"
OF_TOPIC = """
query($name: String!) { topic(name: $name) {
  leiden: community { name } louvain: community(algorithm: LOUVAIN) { name } } }
"""
LOOSE = """
MATCH (c:Community) WHERE c.tenant = $t AND c.form >= '' AND c.id >= ''
RETURN [count(c), sum(CASE WHEN NOT EXISTS { (c)<-[:BELONGS_TO]-(:Topic) } OR
  c.size <> COUNT { (c)<-[:BELONGS_TO]-() } THEN 1 ELSE 0 END)]
"""
DOUBLE = """
MATCH (x:Topic) WHERE x.tenant = $t AND x.form >= '' AND x.id >= ''
MATCH (x)-[:BELONGS_TO]->(c:Community) WITH x, c.algorithm AS algorithm, count(*) AS times WHERE times > 1
RETURN count(x)
"""


async def remember(api: Api, topics: list[list[str]], **given: Any) -> list[str]:
    """Memories, each with some topics; their ids."""
    memories = [{"content": ", ".join(some), "topics": [{"name": name} for name in some], "enrich": False, **given}
                for some in topics]  # fmt: skip
    payload = await api.mutate("createMemories", "CreateMemoriesInput", "memories { id }", {"memories": memories})
    assert payload["errors"] == []
    return [memory["id"] for memory in payload["memories"]]


async def planted(api: Api, groups: list[list[str]] = GROUPS) -> None:
    """Groups of topics whose members occur together twice, and those of two groups now and then."""
    pairs = [list(pair) for group in groups for pair in combinations(group, 2)] * 2
    await remember(api, [*pairs, *([one[0], other[0]] for one, other in combinations(groups, 2))])


async def detect(api: Api, **given: Any) -> list[dict[str, Any]]:
    payload = await api.mutate(
        "detectCommunities", "DetectCommunitiesInput", "communities { id name size topics { nodes { name } } }", given
    )
    assert payload["errors"] == []
    found: list[dict[str, Any]] = payload["communities"]
    return found


async def listed(api: Api, algorithm: str | None = None) -> dict[str, list[str]]:
    """The communities' topics by their ids."""
    nodes = (await api(COMMUNITIES, algorithm=algorithm))["communities"]["nodes"]
    return {node["id"]: [topic["name"] for topic in node["topics"]["nodes"]] for node in nodes}


@pytest.mark.parametrize("algorithm", ["LEIDEN", "LOUVAIN", "LABEL_PROPAGATION"])
async def test_planted_groups_are_found_and_named_after_their_members(api: Api, algorithm: str) -> None:
    await planted(api)

    found = await detect(api, algorithm=algorithm)

    assert sorted([topic["name"] for topic in one["topics"]["nodes"]] for one in found) == GROUPS
    assert [one["size"] for one in found] == [4] * 4
    assert all(set(one["name"].split(", ")) <= {topic["name"] for topic in one["topics"]["nodes"]} for one in found)
    assert len(await listed(api, algorithm)) == 4


async def test_without_an_input_leiden_is_run(api: Api) -> None:
    await planted(api)

    found = await api("mutation { detectCommunities { communities { algorithm } errors { code } } }")

    assert found["detectCommunities"] == {"communities": [{"algorithm": "LEIDEN"}] * 4, "errors": []}


async def test_a_tenant_without_topics_has_none(api: Api) -> None:
    assert await detect(api) == []
    await remember(api, [["alone"], ["also alone"]])
    assert await detect(api) == []


async def test_another_run_keeps_the_ids_of_what_is_as_it_was(api: Api) -> None:
    await planted(api)
    first = {one["id"] for one in await detect(api)}
    again = {one["id"] for one in await detect(api)}
    await remember(api, [["dance 0", "dance 9"], ["dance 1", "dance 9"]])
    changed = {one["id"]: one["size"] for one in await detect(api)}

    assert again == first
    assert len(first & changed.keys()) == 3
    assert sorted(changed.values()) == [4, 4, 4, 5]
    assert set(await listed(api)) == changed.keys()


async def test_each_algorithm_has_its_own(api: Api) -> None:
    await planted(api)
    await detect(api)
    await detect(api, algorithm="LOUVAIN", resolution=0.01)

    assert len(await listed(api, "LEIDEN")) == 4
    assert [len(topics) for topics in (await listed(api, "LOUVAIN")).values()] == [16]
    topic = (await api(OF_TOPIC, name="boats 1"))["topic"]
    assert "boats" in topic["leiden"]["name"]
    assert topic["louvain"] is not None


async def test_topics_are_related_by_the_memories_they_share(api: Api) -> None:
    memories = await remember(api, [["tea", "cups"]] * 3 + [["tea", "pots"]])
    await detect(api)

    async def related() -> list[tuple[str, float]]:
        edges = (await api(RELATED, name="tea"))["topic"]["related"]["edges"]
        return [(edge["node"]["name"], edge["weight"]) for edge in edges]

    assert await related() == [("cups", 3.0), ("pots", 1.0)]
    for memory in (memories[0], memories[3]):
        assert not (await api.mutate("deleteMemory", "DeleteMemoryInput", "deletedId", {"id": memory}))["errors"]
    await detect(api)
    assert await related() == [("cups", 2.0)]


async def test_expired_memories_count_no_more(api: Api) -> None:
    await remember(api, [["tea", "cups"]], expiresAt="2020-01-01T00:00:00Z")
    await remember(api, [["rain", "snow"]])

    assert [one["name"] for one in await detect(api)] == ["rain, snow"]


async def test_tenants_stay_apart(api: Api, other_api: Api) -> None:
    for caller in (api, other_api):
        await planted(caller)
    own = await detect(api)

    assert await listed(other_api) == {}
    other = await detect(other_api)
    assert not {one["id"] for one in own} & {one["id"] for one in other}
    assert set(await listed(api)) == {one["id"] for one in own}


async def test_a_community_whose_topics_go_goes_with_the_last(api: Api, resources: Resources) -> None:
    await remember(api, [["tea", "cups"]] * 2)
    (found,) = await detect(api)
    topics = (await api("{ topics { nodes { id name } } }"))["topics"]["nodes"]

    async def gone(topic_id: str) -> None:
        assert not (await api.mutate("deleteTopic", "DeleteTopicInput", "deletedId", {"id": topic_id}))["errors"]

    await gone(topics[0]["id"])
    assert (await api("query($id: ID!) { community(id: $id) { size } }", id=found["id"]))["community"] == {"size": 1}
    await gone(topics[1]["id"])
    assert await listed(api) == {}
    assert await resources.graph.read(LOOSE, t=api.tenant) == [0, 0]


async def test_a_merged_topic_leaves_its_community(api: Api, resources: Resources) -> None:
    await planted(api)
    await detect(api)
    ids = {topic["name"]: topic["id"] for topic in (await api("{ topics { nodes { id name } } }"))["topics"]["nodes"]}
    from_ids = [ids[name] for name in GROUPS[1]]
    merge = {"intoId": ids["alpine 0"], "fromIds": from_ids}
    assert not (await api.mutate("mergeTopics", "MergeTopicsInput", "topic { id }", merge))["errors"]

    assert sorted(map(len, (await listed(api)).values())) == [4, 4, 4]
    assert await resources.graph.read(LOOSE, t=api.tenant) == [3, 0]


async def test_forgetting_leaves_neither_topics_nor_communities_behind(api: Api, resources: Resources) -> None:
    await remember(api, [["tea", "cups"]] * 2, subjectId="alex")
    await detect(api)

    payload = await api.mutate("forgetSubject", "ForgetSubjectInput", "deleted { kind count }", {"subjectId": "alex"})

    assert {"kind": "TOPIC", "count": 2} in payload["deleted"]
    left = await counted(resources.graph, api.tenant)
    assert not {"Topic", "Community", "Name", "BELONGS_TO", "RELATED_TO"} & left.keys()


async def test_the_sweep_takes_topics_that_only_communities_hold(api: Api, resources: Resources) -> None:
    (memory,) = await remember(api, [["tea", "cups"]])
    await detect(api)
    assert not (await api.mutate("deleteMemory", "DeleteMemoryInput", "deletedId", {"id": memory}))["errors"]

    after = ""
    while True:
        _, after = await sweep_orphans(resources.graph, "Topic", after, 1 << 52, grace=0, limit=1000)
        if not after:
            break

    assert not {"Topic", "Community"} & (await counted(resources.graph, api.tenant)).keys()


async def test_detections_at_once_leave_one_whole_result(api: Api, resources: Resources) -> None:
    await planted(api)
    wanted = [Detection(CommunityAlgorithm.LEIDEN, 0.01), Detection()] * 3

    await asyncio.gather(*(detect_communities(resources, api.tenant, one) for one in wanted))

    assert sorted(map(len, (await listed(api)).values())) in ([16], [4, 4, 4, 4])
    assert await resources.graph.read(DOUBLE, t=api.tenant) == 0


async def test_readers_see_the_old_or_the_new_and_nothing_between(api: Api, resources: Resources) -> None:
    await planted(api)
    coarse, usual = Detection(CommunityAlgorithm.LEIDEN, 0.01), Detection()
    await detect_communities(resources, api.tenant, usual)
    seen: Counter[tuple[int, ...]] = Counter()
    done = asyncio.Event()

    async def read() -> None:
        while not done.is_set():
            nodes = (await api("{ communities(first: 200) { nodes { size } } }"))["communities"]["nodes"]
            seen[tuple(sorted(node["size"] for node in nodes))] += 1

    async with asyncio.timeout(120), asyncio.TaskGroup() as tasks:
        for _ in range(3):
            tasks.create_task(read())
        for number, wanted in enumerate(cycle((coarse, usual))):
            await detect_communities(resources, api.tenant, wanted)
            if number >= 15 and len(seen) > 1 and seen.total() >= 30:
                break
        done.set()

    assert set(seen) == {(16,), (4, 4, 4, 4)}


async def test_topics_deleted_while_communities_are_found_leave_nothing_loose(api: Api, resources: Resources) -> None:
    await planted(api)
    topics = (await api("{ topics { nodes { id } } }"))["topics"]["nodes"]

    async def delete() -> None:
        for topic in topics[:12]:
            await api.mutate("deleteTopic", "DeleteTopicInput", "deletedId", {"id": topic["id"]})

    async def find() -> None:
        for resolution in (1.0, 0.01) * 3:
            await detect_communities(resources, api.tenant, Detection(resolution=resolution))

    await asyncio.gather(delete(), find())

    _, loose = await resources.graph.read(LOOSE, t=api.tenant)
    assert loose == 0
    await detect_communities(resources, api.tenant, Detection())
    assert [len(topics) for topics in (await listed(api)).values()] == [4]


async def test_a_topic_is_deleted_while_its_new_community_is_written(api: Api, resources: Resources) -> None:
    await planted(api, GROUPS[:2])
    await detect(api)
    topics = [topic["id"] for topic in (await api("{ topics { nodes { id } } }"))["topics"]["nodes"]]
    number = await begin_detection(resources.graph, api.tenant, CommunityAlgorithm.LEIDEN)
    found = Found(Detection(), number, [Group("all", tuple(sorted(topics)))])
    job = [Write(api.tenant, 0, "detectCommunities", found, now_ms())]

    payload = await meanwhile(
        resources,
        lambda transaction: replace_communities(transaction, job),
        lambda: api.mutate("deleteTopic", "DeleteTopicInput", "deletedId", {"id": topics[0]}),
    )
    assert payload["deletedId"] == topics[0]

    assert [len(topics) for topics in (await listed(api)).values()] == [7]
    assert await resources.graph.read(LOOSE, t=api.tenant) == [1, 0]


async def test_what_takes_too_long_is_refused_and_leaves_what_was_there(api: Api, resources: Resources) -> None:
    await planted(api)
    before = await detect_communities(resources, api.tenant, Detection())

    with pytest.raises(Refusals) as refused:
        await detect_communities(replace(resources, detection_limit=0.0001), api.tenant, Detection(resolution=0.01))

    assert [refusal.path for refusal in refused.value.refusals] == [("algorithm",)]
    assert set(await listed(api)) == {one.id for one in before}


async def test_the_worker_finds_them_where_topics_changed_enough(api: Api, resources: Resources) -> None:
    often = replace(resources, communities_interval=0.0)
    await remember(api, [["tea", "cups"]] * 2)
    await look_through(often)
    assert await listed(api) == {}

    await planted(api)
    await detect_communities(resources, api.tenant, Detection(CommunityAlgorithm.LOUVAIN, 0.01))
    await remember(api, [["rain", "snow"]] * 10)
    await look_through(often)
    assert len(await listed(api, "LEIDEN")) > 4
    # by the algorithms that were asked for, as they were
    assert len(await listed(api, "LOUVAIN")) == 3
    found = await listed(api)

    await remember(api, [["wind", "sun"]])
    await look_through(often)
    assert await listed(api) == found


async def test_a_look_is_taken_by_one_worker_alone(api: Api, resources: Resources) -> None:
    await planted(api)
    await look_through(resources)
    first = await listed(api)
    await remember(api, [["rain", "snow"]] * 50)

    await look_through(resources)

    assert len(first) == 4
    assert await listed(api) == first
