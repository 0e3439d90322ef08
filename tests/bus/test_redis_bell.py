"""The bell over Redis when Redis fails: nobody who rings notices, and the bells come back by themselves."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
import redis.asyncio
from tests.redis_server import RedisServer

from reverie.bus.bells import Listener, Notice, NoticeKind
from reverie.bus.redis_bell import PREFIX, RedisBell

CHANGES = NoticeKind.CHANGES


@pytest_asyncio.fixture
async def ends(own_redis: RedisServer) -> AsyncIterator[tuple[RedisBell, RedisBell]]:
    """Two processes' bells, both connected."""
    bells = RedisBell(own_redis.url, answer_within=0.5), RedisBell(own_redis.url, answer_within=0.5)
    await asyncio.gather(*(bell.wait_until_listening() for bell in bells))
    yield bells
    for bell in bells:
        await bell.close()


async def rings_through(ringing: RedisBell, listener: Listener, tenant: str) -> None:
    """Rings until it is heard at the other end: single bells may be lost."""
    async with asyncio.timeout(15):
        while True:
            ringing.ring(Notice(CHANGES, tenant))
            try:
                async with asyncio.timeout(0.1):
                    await anext(listener)
            except TimeoutError:
                continue
            return


async def until(bell: RedisBell, *, listening: bool) -> None:
    async with asyncio.timeout(15):
        while bell.listening is not listening:  # noqa: ASYNC110 - it tells by itself of one direction only
            await asyncio.sleep(0.02)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


async def test_a_killed_redis_delays_nobody_and_is_found_again_when_it_is_back(
    ends: tuple[RedisBell, RedisBell], own_redis: RedisServer, tenant: str, caplog: pytest.LogCaptureFixture
) -> None:
    ringing, listening = ends
    with listening.listen(CHANGES, tenant=tenant) as there, ringing.listen(CHANGES, tenant=tenant) as here:
        own_redis.kill()
        await until(listening, listening=False)

        # when: more rings than are ever kept, while it is away
        began = time.monotonic()
        for _ in range(2_000):
            ringing.ring(Notice(CHANGES, tenant))
        assert time.monotonic() - began < 1
        # then: this process hears its own all the same
        assert (await anext(here)).tenant == tenant
        await asyncio.sleep(1)

        own_redis.start()
        await rings_through(ringing, there, tenant)
        await until(ringing, listening=True)

    said = warnings(caplog)
    assert [line for line in said if "can't be reached" in line] == said[:2]
    assert said[2:] == ["Redis is reached again"] * 2


async def test_a_redis_that_only_hangs_is_noticed_too(
    ends: tuple[RedisBell, RedisBell], own_redis: RedisServer, tenant: str
) -> None:
    ringing, listening = ends
    own_redis.stall()
    try:
        began = time.monotonic()
        ringing.ring(Notice(CHANGES, tenant))
        assert time.monotonic() - began < 0.1
        await until(listening, listening=False)
    finally:
        own_redis.go_on()

    with listening.listen(CHANGES, tenant=tenant) as there:
        await rings_through(ringing, there, tenant)


async def test_a_connection_that_is_cut_is_made_anew(
    ends: tuple[RedisBell, RedisBell], own_redis: RedisServer, tenant: str
) -> None:
    ringing, listening = ends
    async with redis.asyncio.Redis.from_url(own_redis.url) as client:
        for _ in range(3):
            await client.client_kill_filter(_type="pubsub", skipme=False)
            await client.client_kill_filter(_type="normal", skipme=True)

            with listening.listen(CHANGES, tenant=tenant) as there:
                await rings_through(ringing, there, tenant)


async def test_silence_alone_is_no_fault(ends: tuple[RedisBell, RedisBell], caplog: pytest.LogCaptureFixture) -> None:
    await asyncio.sleep(2)

    assert [bell.listening for bell in ends] == [True, True]
    assert warnings(caplog) == []


async def test_it_waits_for_a_redis_that_comes_later(
    own_redis: RedisServer, tenant: str, caplog: pytest.LogCaptureFixture
) -> None:
    own_redis.kill()
    bell = RedisBell(own_redis.url)
    try:
        bell.ring(Notice(CHANGES, tenant))
        await asyncio.sleep(0.5)
        assert len(warnings(caplog)) == 1
        own_redis.start()
        async with asyncio.timeout(15):
            await bell.wait_until_listening()
    finally:
        await bell.close()


async def test_a_wrong_password_is_told_without_showing_it(
    own_redis: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with redis.asyncio.Redis.from_url(own_redis.url) as client:
        await client.config_set("requirepass", "the-password")

    bell = RedisBell(own_redis.url.replace("redis://", "redis://:not-the-password@"))
    await asyncio.sleep(0.5)
    await bell.close()

    (line,) = warnings(caplog)
    assert "Redis can't be reached" in line
    assert "not-the-password" not in caplog.text


async def test_what_others_publish_there_is_passed_over(
    ends: tuple[RedisBell, RedisBell], own_redis: RedisServer, tenant: str
) -> None:
    ringing, listening = ends
    with listening.listen(CHANGES, tenant=tenant) as there:
        async with redis.asyncio.Redis.from_url(own_redis.url) as client:
            for data in (b"\xff", b"null", b"{}", b'{"sender": "s", "kind": "?", "tenant": "t", "body": {}}'):
                assert await client.publish(f"{PREFIX}notices", data) == 2
        await rings_through(ringing, there, tenant)

    assert listening.listening


async def test_closing_leaves_no_task_and_no_connection(own_redis: RedisServer) -> None:
    before = asyncio.all_tasks()
    for _ in range(3):
        bell = RedisBell(own_redis.url)
        await bell.wait_until_listening()
        bell.ring(Notice(CHANGES, "t"))
        await bell.close()

    assert asyncio.all_tasks() == before
    async with redis.asyncio.Redis.from_url(own_redis.url) as client:
        assert len(await client.client_list()) == 1
