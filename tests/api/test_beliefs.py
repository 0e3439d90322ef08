"""Beliefs through the API: set, retracted, read as of any time, and the log of it all."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.conftest import Api

BELIEF = """
id subjectId key value confidence beliefType epistemicStatus domain version validFrom validTo evidenceCount
supersedes { version value } supersededBy { version value }
"""
CHANGE = """
id cursor kind subjectId key statusAfter belief { version value } previous { version } rejected { version value }
confidenceBefore confidenceAfter reason episode { id }
"""


async def upsert(api: Api, value: str, **more: Any) -> dict[str, Any]:
    given = {"subjectId": "alex", "key": "editor.indentation", "value": value, **more}
    payload = await api.mutate(
        "upsertBelief", "UpsertBeliefInput", f"belief {{ {BELIEF} }} change {{ {CHANGE} }}", given
    )
    return payload


async def upserted(api: Api, value: str, **more: Any) -> dict[str, Any]:
    payload = await upsert(api, value, **more)
    assert payload["errors"] == []
    belief: dict[str, Any] = payload["belief"]
    return belief


async def retract(api: Api, belief_id: str, **more: Any) -> dict[str, Any]:
    return await api.mutate(
        "retractBelief",
        "RetractBeliefInput",
        f"belief {{ {BELIEF} }} change {{ {CHANGE} }}",
        {"id": belief_id, **more},
    )


async def history(api: Api, subject: str = "alex", key: str = "editor.indentation") -> list[dict[str, Any]]:
    every = ["ACTIVE", "SUPERSEDED", "CONTRADICTED", "RETRACTED"]
    found = await api(
        f"query($f: BeliefFilter) {{ beliefs(filter: $f, first: 200) {{ nodes {{ {BELIEF} }} totalCount }} }}",
        f={"subjectId": subject, "keys": [key], "epistemicStatuses": every},
    )
    nodes: list[dict[str, Any]] = found["beliefs"]["nodes"]
    assert found["beliefs"]["totalCount"] == len(nodes)
    return sorted(nodes, key=lambda node: node["version"])


async def log(api: Api, first: int = 200, **filter_: Any) -> list[dict[str, Any]]:
    query = (
        f"query($f: BeliefChangeFilter, $n: Int) {{ beliefChanges(filter: $f, first: $n) {{ nodes {{ {CHANGE} }} }} }}"
    )
    found = await api(query, f=filter_, n=first)
    nodes: list[dict[str, Any]] = found["beliefChanges"]["nodes"]
    return nodes


def ago(**delta: float) -> str:
    return (datetime.now(UTC) - timedelta(**delta)).isoformat()


async def test_a_belief_is_set_superseded_and_told_of(api: Api) -> None:
    tabs = await upserted(api, "tabs", beliefType="PREFERENCE", domain="settings", confidence=0.9)
    payload = await upsert(api, "spaces", beliefType="PREFERENCE", reason="said so")
    spaces, change = payload["belief"], payload["change"]

    assert (tabs["version"], tabs["epistemicStatus"], tabs["validTo"]) == (1, "ACTIVE", None)
    assert tabs["confidence"] == pytest.approx(0.9, abs=1e-6)
    assert (spaces["version"], spaces["epistemicStatus"], spaces["evidenceCount"]) == (2, "ACTIVE", 1)
    assert spaces["supersedes"] == {"version": 1, "value": "tabs"}
    assert (change["kind"], change["statusAfter"], change["reason"]) == ("SUPERSEDED", "ACTIVE", "said so")
    assert (change["belief"], change["previous"]) == ({"version": 2, "value": "spaces"}, {"version": 1})
    first, second = await history(api)
    assert (first["epistemicStatus"], first["validTo"]) == ("SUPERSEDED", second["validFrom"])
    assert first["supersededBy"] == {"version": 2, "value": "spaces"}
    assert [entry["kind"] for entry in await log(api)] == ["CREATED", "SUPERSEDED"]


async def test_the_current_one_is_found_by_subject_and_key(api: Api) -> None:
    await upserted(api, "tabs")
    await upserted(api, "spaces")
    query = "query($s: String, $k: String) { belief(subjectId: $s, key: $k) { value history { nodes { version } } } }"

    found = await api(query, s="alex", k="editor.indentation")
    none = await api(query, s="alex", k="editor.font")

    assert found["belief"] == {"value": "spaces", "history": {"nodes": [{"version": 2}, {"version": 1}]}}
    assert none["belief"] is None
    (error,) = await api.errors(query, s="alex")
    assert error["extensions"]["code"] == "BAD_INPUT"


async def test_an_equal_value_strengthens(api: Api) -> None:
    await upserted(api, "Tabs", confidence=0.5)
    payload = await upsert(api, " tabs ", confidence=0.5)

    assert payload["belief"]["version"] == 1
    assert payload["belief"]["evidenceCount"] == 2
    assert payload["belief"]["confidence"] == pytest.approx(0.625, abs=1e-6)
    assert payload["change"]["kind"] == "STRENGTHENED"
    assert payload["change"]["confidenceBefore"] == pytest.approx(0.5, abs=1e-6)
    assert payload["change"]["confidenceAfter"] == pytest.approx(0.625, abs=1e-6)


async def test_an_older_upsert_takes_its_place_in_history(api: Api) -> None:
    await upserted(api, "spaces")
    payload = await upsert(api, "tabs", validFrom=ago(days=10))

    assert payload["belief"]["epistemicStatus"] == "SUPERSEDED"
    assert payload["belief"]["supersededBy"] == {"version": 1, "value": "spaces"}
    assert (payload["change"]["kind"], payload["change"]["statusAfter"]) == ("CREATED", "SUPERSEDED")
    found = await api(
        "query($at: DateTime!) { beliefs(filter: {asOf: $at}) { nodes { value version } } }", at=ago(days=5)
    )
    assert found["beliefs"]["nodes"] == [{"value": "tabs", "version": 2}]


async def test_confidence_fades_and_is_told_as_of_then(api: Api) -> None:
    await upserted(api, "tabs", validFrom=ago(days=120), confidence=0.8)
    await upserted(api, "tabs", validFrom=ago(days=60), confidence=0.8)
    query = "query($f: BeliefFilter) { beliefs(filter: $f) { nodes { confidence } totalCount } }"

    async def confidences(**filter_: Any) -> list[float]:
        found = (await api(query, f=filter_))["beliefs"]
        assert found["totalCount"] == len(found["nodes"])
        return [node["confidence"] for node in found["nodes"]]

    second = 0.8
    assert await confidences() == [pytest.approx(second / 2, abs=1e-4)]
    assert await confidences(asOf=ago(days=60.001)) == [pytest.approx(0.4, abs=1e-4)]
    assert await confidences(asOf=ago(days=119.999)) == [pytest.approx(0.8, abs=1e-4)]
    assert await confidences(asOf=ago(days=120.001)) == []
    assert await confidences(minConfidence=second / 2 - 0.001) == [pytest.approx(second / 2, abs=1e-4)]
    assert await confidences(minConfidence=second / 2 + 0.001) == []
    assert await confidences(asOf=ago(days=60.001), minConfidence=0.39) == [pytest.approx(0.4, abs=1e-4)]
    assert await confidences(asOf=ago(days=60.001), minConfidence=0.41) == []


async def test_a_retraction_lets_the_former_hold_again_and_answers_no_as_of(api: Api) -> None:
    await upserted(api, "tabs", validFrom=ago(days=3))
    wrong = await upserted(api, "spaces", validFrom=ago(days=2))
    payload = await retract(api, wrong["id"], reason="misheard")

    assert payload["errors"] == []
    assert (payload["belief"]["epistemicStatus"], payload["change"]["kind"]) == ("RETRACTED", "RETRACTED")
    tabs, spaces = await history(api)
    assert (tabs["epistemicStatus"], tabs["validTo"], tabs["supersededBy"]) == ("ACTIVE", None, None)
    assert spaces["validTo"] == spaces["validFrom"]
    found = await api("query($at: DateTime!) { beliefs(filter: {asOf: $at}) { nodes { value } } }", at=ago(days=1))
    assert found["beliefs"]["nodes"] == [{"value": "tabs"}]
    assert [(entry["kind"], entry["reason"]) for entry in await log(api)][2:] == [
        ("RETRACTED", "misheard"),
        ("SUPERSEDED", "misheard"),
    ]
    again = await upserted(api, "spaces")
    assert (again["version"], again["epistemicStatus"]) == (3, "ACTIVE")
    (error,) = (await upsert(api, "spaces", validFrom=ago(days=1)))["errors"]
    assert (error["code"], error["path"]) == ("CONFLICT", ["validFrom"])


async def test_the_expected_version_is_compared_after_the_lock(api: Api) -> None:
    refused = await upsert(api, "tabs", expectedVersion=1)
    first = await upsert(api, "tabs", expectedVersion=0)
    second = await asyncio.gather(*(upsert(api, f"value {n}", expectedVersion=1) for n in range(8)))

    assert [error["path"] for error in refused["errors"]] == [["expectedVersion"]]
    assert first["errors"] == []
    assert sorted(len(payload["errors"]) for payload in second) == [0] + [1] * 7
    assert {error["code"] for payload in second for error in payload["errors"]} == {"CONFLICT"}
    assert [version["version"] for version in await history(api)] == [1, 2]
    stale = await retract(api, first["belief"]["id"], expectedVersion=1)
    assert [error["code"] for error in stale["errors"]] == ["CONFLICT"]


async def test_parallel_upserts_of_different_values_leave_one_active(api: Api) -> None:
    payloads = await asyncio.gather(*(upsert(api, f"value {number}") for number in range(32)))

    assert all(payload["errors"] == [] for payload in payloads)
    versions = await history(api)
    assert [version["version"] for version in versions] == list(range(1, 33))
    assert [version["epistemicStatus"] for version in versions] == ["SUPERSEDED"] * 31 + ["ACTIVE"]
    entries = await log(api)
    assert [entry["kind"] for entry in entries] == ["CREATED"] + ["SUPERSEDED"] * 31
    assert [entry["belief"]["version"] for entry in entries] == list(range(1, 33))


async def test_parallel_upserts_of_one_value_leave_one_version(api: Api) -> None:
    payloads = await asyncio.gather(*(upsert(api, "tabs") for _ in range(32)))

    assert all(payload["errors"] == [] for payload in payloads)
    (version,) = await history(api)
    assert (version["version"], version["evidenceCount"]) == (1, 32)
    assert [entry["kind"] for entry in await log(api)] == ["CREATED"] + ["STRENGTHENED"] * 31


async def test_a_key_makes_an_upsert_happen_once(api: Api) -> None:
    first = await upsert(api, "tabs", clientMutationKey="k")
    again = await upsert(api, "tabs", clientMutationKey="k")
    other = await upsert(api, "spaces", clientMutationKey="k")

    assert (again["belief"]["id"], again["change"]["id"]) == (first["belief"]["id"], first["change"]["id"])
    assert [error["code"] for error in other["errors"]] == ["CONFLICT"]
    assert len(await log(api)) == 1


async def test_the_log_is_paged_filtered_and_counted_by_its_own_cursors(api: Api) -> None:
    start = (await api("{ changesCursor }"))["changesCursor"]
    for number in range(5):
        await upserted(api, f"value {number}", subjectId=f"subject {number % 2}")
    query = """query($f: BeliefChangeFilter, $first: Int, $after: String) {
      beliefChanges(filter: $f, first: $first, after: $after) {
        totalCount edges { cursor node { cursor belief { value } } } pageInfo { hasNextPage endCursor } } }"""

    page = (await api(query, first=2, after=start))["beliefChanges"]
    rest = (await api(query, after=page["pageInfo"]["endCursor"]))["beliefChanges"]
    ones = (await api(query, f={"subjectIds": ["subject 1"]}))["beliefChanges"]

    assert [edge["node"]["belief"]["value"] for edge in page["edges"]] == ["value 0", "value 1"]
    assert page["pageInfo"]["hasNextPage"] is True
    assert all(edge["cursor"] == edge["node"]["cursor"] for edge in page["edges"])
    assert [edge["node"]["belief"]["value"] for edge in rest["edges"]] == ["value 2", "value 3", "value 4"]
    assert rest["pageInfo"]["hasNextPage"] is False
    assert ([edge["node"]["belief"]["value"] for edge in ones["edges"]], ones["totalCount"]) == (
        ["value 1", "value 3"],
        2,
    )
    end = (await api("{ changesCursor }"))["changesCursor"]
    assert end == rest["pageInfo"]["endCursor"]
    assert (await api(query, after=end))["beliefChanges"]["edges"] == []


async def test_a_cursor_of_another_log_has_expired_and_none_at_all_is_bad_input(api: Api, other_api: Api) -> None:
    await upserted(other_api, "tabs")
    foreign = (await other_api("{ changesCursor }"))["changesCursor"]
    query = "query($after: String) { beliefChanges(after: $after) { nodes { id } } }"

    (expired,) = await api.errors(query, after=foreign)
    (forged,) = await api.errors(query, after="bm9uc2Vuc2U")

    assert expired["extensions"]["code"] == "CURSOR_EXPIRED"
    assert forged["extensions"]["code"] == "BAD_INPUT"


async def test_beliefs_are_paged_both_ways(api: Api) -> None:
    for number in range(5):
        await upserted(api, f"value {number}", key=f"key.{number}")
    query = """query($first: Int, $after: String, $last: Int, $before: String) {
      beliefs(filter: {minConfidence: 0.1}, first: $first, after: $after, last: $last, before: $before) {
        nodes { key } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } }"""

    first = (await api(query, first=2))["beliefs"]
    second = (await api(query, first=2, after=first["pageInfo"]["endCursor"]))["beliefs"]
    back = (await api(query, last=2, before=second["pageInfo"]["startCursor"]))["beliefs"]

    assert [node["key"] for node in first["nodes"]] == ["key.4", "key.3"]
    assert [node["key"] for node in second["nodes"]] == ["key.2", "key.1"]
    assert back["nodes"] == first["nodes"]


async def test_a_subject_that_is_an_entity_is_linked(api: Api) -> None:
    created = await api.mutate("createEntity", "CreateEntityInput", "entity { id }", {"name": "Alex", "type": "PERSON"})
    await upserted(api, "tabs")

    found = await api(
        "{ beliefs { nodes { entity { id } audit { nodes { kind } totalCount } evidence { nodes { id } } } } }"
    )

    (node,) = found["beliefs"]["nodes"]
    assert node["entity"] == created["entity"]
    assert node["audit"] == {"nodes": [{"kind": "CREATED"}], "totalCount": 1}
    assert node["evidence"] == {"nodes": []}
    query = """query($id: ID!, $f: BeliefFilter) {
      entity(id: $id) { beliefs(filter: $f) { nodes { value confidence } totalCount } } }"""
    await upserted(api, "spaces", validFrom=ago(days=60), confidence=0.8)
    now = await api(query, id=created["entity"]["id"])
    then = await api(query, id=created["entity"]["id"], f={"asOf": ago(days=59.9), "minConfidence": 0.5})
    none = await api(query, id=created["entity"]["id"], f={"keys": ["other"]})
    assert [belief["value"] for belief in now["entity"]["beliefs"]["nodes"]] == ["tabs"]
    (was,) = then["entity"]["beliefs"]["nodes"]
    assert (was["value"], was["confidence"]) == ("spaces", pytest.approx(0.8, abs=1e-2))
    assert then["entity"]["beliefs"]["totalCount"] == 1
    assert none["entity"]["beliefs"] == {"nodes": [], "totalCount": 0}


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"key": "a b"}, ["key"]),
        ({"key": ""}, ["key"]),
        ({"value": " "}, ["value"]),
        ({"subjectId": ""}, ["subjectId"]),
        ({"confidence": 1.5}, ["confidence"]),
        ({"validFrom": "2999-01-01T00:00:00Z"}, ["validFrom"]),
        ({"domain": ""}, ["domain"]),
    ],
)
async def test_bad_input_is_refused_by_path_and_nothing_is_written(
    api: Api, given: dict[str, Any], path: list[str]
) -> None:
    payload = await upsert(api, "tabs", **given) if "value" not in given else await upsert(api, given["value"])

    assert [(error["code"], error["path"]) for error in payload["errors"]] == [("BAD_INPUT", path)]
    assert await log(api) == []


async def test_a_belief_of_another_tenant_leads_nowhere(api: Api, other_api: Api) -> None:
    foreign = await upserted(other_api, "tabs")

    payload = await retract(api, foreign["id"])

    assert [error["code"] for error in payload["errors"]] == ["NOT_FOUND"]
    assert (await api("query($i: ID!) { belief(id: $i) { id } }", i=foreign["id"]))["belief"] is None
    assert (await history(other_api))[0]["epistemicStatus"] == "ACTIVE"
