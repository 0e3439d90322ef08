"""Both bells under the same contract: what rings is heard by whom it concerns, and no ring waits or raises."""

import asyncio
from collections.abc import AsyncIterator

import orjson
import pytest
import pytest_asyncio
from tests.redis_server import RedisServer

from reverie.bus.bells import MOST_WAITING, Bell, Listener, Notice, NoticeKind, decoded
from reverie.bus.local_bell import LocalBell
from reverie.bus.redis_bell import RedisBell

CHANGES, EPISODES, WORK = NoticeKind.CHANGES, NoticeKind.EPISODES, NoticeKind.WORK


def change(tenant: str, number: int) -> Notice:
    return Notice(CHANGES, tenant, {"number": number})


async def heard(listener: Listener, count: int) -> list[Notice]:
    """That many notices, each of which must come soon."""
    async with asyncio.timeout(10):
        return [await anext(listener) for _ in range(count)]


async def nothing_more(listener: Listener) -> bool:
    try:
        async with asyncio.timeout(0.2):
            await anext(listener)
    except TimeoutError:
        return True
    return False


@pytest_asyncio.fixture(params=["local", "redis, one process", "redis, two processes"])
async def ends(request: pytest.FixtureRequest) -> AsyncIterator[tuple[Bell, Bell]]:
    """The end that rings and the end that listens."""
    if request.param == "local":
        local = LocalBell()
        yield local, local
        await local.close()
        return
    server: RedisServer = request.getfixturevalue("redis")
    ringing = RedisBell(server.url)
    listening = RedisBell(server.url) if "two" in request.param else ringing
    await asyncio.gather(ringing.wait_until_listening(), listening.wait_until_listening())
    yield ringing, listening
    await ringing.close()
    await listening.close()


async def test_what_rings_is_heard_in_order_and_once(ends: tuple[Bell, Bell], tenant: str) -> None:
    ringing, listening = ends
    notices = [change(tenant, number) for number in range(1, 301)]

    with listening.listen(CHANGES, tenant=tenant) as listener:
        for notice in notices:
            ringing.ring(notice)

        assert await heard(listener, 300) == notices
        assert await nothing_more(listener)


async def test_a_listener_hears_its_kinds_and_its_tenant_alone(ends: tuple[Bell, Bell], tenant: str) -> None:
    ringing, listening = ends
    other = f"other of {tenant}"

    with (
        listening.listen(CHANGES, tenant=tenant) as mine,
        listening.listen(WORK) as works,
        listening.listen(EPISODES, WORK, tenant=other) as others,
    ):
        ringing.ring(change(other, 1))
        ringing.ring(Notice(WORK, tenant))
        ringing.ring(Notice(EPISODES, other, {"id": "e"}))
        ringing.ring(Notice(WORK, other))
        ringing.ring(change(tenant, 2))

        assert await heard(mine, 1) == [change(tenant, 2)]
        assert await heard(works, 2) == [Notice(WORK, tenant), Notice(WORK, other)]
        assert await heard(others, 2) == [Notice(EPISODES, other, {"id": "e"}), Notice(WORK, other)]
        assert await nothing_more(mine)


async def test_several_listeners_of_one_process_hear_the_same(ends: tuple[Bell, Bell], tenant: str) -> None:
    ringing, listening = ends

    with listening.listen(CHANGES) as one, listening.listen(CHANGES, tenant=tenant) as two:
        ringing.ring(change(tenant, 1))

        assert await heard(one, 1) == await heard(two, 1) == [change(tenant, 1)]


async def test_who_listens_later_hears_what_rings_later(ends: tuple[Bell, Bell], tenant: str) -> None:
    ringing, listening = ends
    with listening.listen(CHANGES, tenant=tenant) as before:
        ringing.ring(change(tenant, 1))
        await heard(before, 1)

        with listening.listen(CHANGES, tenant=tenant) as after:
            ringing.ring(change(tenant, 2))

            assert await heard(after, 1) == [change(tenant, 2)]


async def test_who_lags_behind_loses_the_oldest(ends: tuple[Bell, Bell], tenant: str) -> None:
    ringing, listening = ends
    last = MOST_WAITING + 50

    with listening.listen(CHANGES, tenant=tenant) as slow, listening.listen(CHANGES, tenant=tenant) as quick:
        for number in range(1, last + 1):
            ringing.ring(change(tenant, number))
            if number % 100 == 0:
                await heard(quick, 100)
        await heard(quick, last % 100)

        assert await heard(slow, MOST_WAITING) == [change(tenant, number) for number in range(51, last + 1)]


async def test_a_wait_that_is_cancelled_takes_nothing_with_it(ends: tuple[Bell, Bell], tenant: str) -> None:
    ringing, listening = ends
    with listening.listen(CHANGES, tenant=tenant) as listener:
        assert await nothing_more(listener)
        ringing.ring(change(tenant, 1))

        assert await heard(listener, 1) == [change(tenant, 1)]


async def test_a_bell_without_listeners_may_ring(ends: tuple[Bell, Bell], tenant: str) -> None:
    ends[0].ring(change(tenant, 1))


def test_who_left_is_forgotten() -> None:
    bell = LocalBell()

    with bell.listen(CHANGES), bell.listen(WORK):
        assert bell.listeners == 2
    assert bell.listeners == 0


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"null",
        b"5",
        b"[]",
        b"{}",
        b"\xff",
        b'{"sender": "s", "kind": "changes", "tenant": "t"}',
        b'{"sender": "s", "kind": "changes", "tenant": "t", "body": []}',
        b'{"sender": "s", "kind": "changes", "tenant": 5, "body": {}}',
        b'{"sender": null, "kind": "changes", "tenant": "t", "body": {}}',
        b'{"sender": "s", "kind": "unheard of", "tenant": "t", "body": {}}',
    ],
)
def test_what_is_no_notice_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decoded(data)


def test_a_notice_is_json() -> None:
    notice = Notice(CHANGES, "Ümlaut & Co", {"number": 7})

    assert orjson.loads(notice.encoded("s")) == {
        "sender": "s",
        "kind": "changes",
        "tenant": "Ümlaut & Co",
        "body": {"number": 7},
    }
    assert decoded(notice.encoded("s")) == ("s", notice)


def test_what_waits_is_taken_at_once() -> None:
    bell = LocalBell()
    with bell.listen(NoticeKind.CHANGES) as listener:
        rung = [Notice(NoticeKind.CHANGES, "acme", {"number": number}) for number in range(3)]
        for notice in rung:
            bell.ring(notice)

        assert listener.take_waiting() == rung
        assert listener.take_waiting() == []
