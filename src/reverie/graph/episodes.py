"""Episodes in Neo4j: how they grow and close, are sent back after a failure, and are swept when nothing more comes.

Whoever changes which events an episode has holds the lock of its thread's conversation, then that of the episode; the
status alone changes under the episode's lock.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reverie.domain import policy
from reverie.domain.context import without_context
from reverie.domain.episodes import (
    ConsolidationStatus,
    Episode,
    EpisodeClosing,
    EpisodeFilter,
    EpisodeOutcome,
    Run,
    Said,
    close,
)
from reverie.domain.events import EventType
from reverie.errors import Conflict, NotFound, Refusals
from reverie.graph.filters import Where, episode_where
from reverie.graph.records import EPISODE, whole
from reverie.graph.store import Graph, Raced, Transaction
from reverie.graph.words import words_of
from reverie.graph.writes import Outcome, Write

Thread = tuple[str, str]
"""Tenant and thread."""

LOCK_RUNS = """
UNWIND $rows AS row
MATCH (e:Episode {tenant: row[0], threadId: row[1]}) USING INDEX e:Episode(tenant, threadId, consolidationStatus)
WHERE e.consolidationStatus IN ['OPEN', 'PENDING']
  AND CASE e.consolidationStatus WHEN 'OPEN' THEN true ELSE e.startedAt <= row[3] AND e.spanEnd >= row[2] END
WITH e ORDER BY e.id SET e.lockedAt = $now
RETURN collect(e.id)
"""
READ_RUNS = """
UNWIND $ids AS i MATCH (e:Episode&Node {id: i}) WHERE e.consolidationStatus IN ['OPEN', 'PENDING']
RETURN collect([[e.tenant, e.threadId], e.id, e.startedAt, e.spanEnd, e.size, e.consolidationStatus, e.recordedAt,
                coalesce(e.ended, false), e.userIds, e.agentIds])
"""
CREATE_EPISODES = """
UNWIND $rows AS row MATCH (c:Conversation&Node {id: row.conversation})
CREATE (e:Episode:Node) SET e = row.properties
CREATE (e)-[:IN_THREAD]->(c)
RETURN count(*)
"""
CLOSE_EPISODES = """
UNWIND $rows AS row MATCH (e:Episode&Node {id: row[0]}) SET e += row[1]
FOREACH (_ IN CASE WHEN e.summary IS NULL THEN [] ELSE [1] END | SET e:Unembedded)
"""
SET_EPISODES = "UNWIND $rows AS row MATCH (e:Episode&Node {id: row[0]}) SET e += row[1]"
READ_SAID = """
UNWIND $ids AS i MATCH (e:Episode&Node {id: i})
RETURN collect([i, e.spanEnd, e.givenOutcome, COLLECT { MATCH (t:Tenant {name: e.tenant}) RETURN t.number }[0],
                [(e)<-[:PART_OF]-(v:Event) | [v.occurredAt, v.id, v.eventType, left(v.text, $most)]]])
"""


async def lock_runs(
    transaction: Transaction, spans: Mapping[Thread, tuple[int, int]], idle_gap: int, now: int
) -> dict[Thread, list[Run]]:
    """Locks and reads the episodes of threads, whose conversations are locked, that new events can change.

    `spans` are the first and last time of each thread's new events, in milliseconds.
    """
    rows = [[*thread, first - idle_gap, last + idle_gap] for thread, (first, last) in sorted(spans.items())]
    ids = await transaction.run(LOCK_RUNS, rows=rows, now=now)
    found: dict[Thread, list[Run]] = {thread: [] for thread in spans}
    # read after the lock: the worker may have taken one meanwhile
    for (tenant, thread), *run in await transaction.run(READ_RUNS, ids=ids) if ids else []:
        found[(tenant, thread)].append(_run(run))
    return found


def _run(row: list[Any]) -> Run:
    key, started_at, span_end, size, status, recorded_at, ended, users, agents = row
    state = ConsolidationStatus(status)
    return Run(key, started_at, span_end, size, state, recorded_at, ended, tuple(users), tuple(agents))


async def create_runs(
    transaction: Transaction, created: Mapping[Thread, Sequence[Run]], conversations: Mapping[Thread, str]
) -> None:
    """Writes new episodes, each into its thread's conversation."""
    rows = [
        {
            "conversation": conversations[thread],
            "properties": {"id": run.id, "tenant": thread[0], "threadId": thread[1], "tags": [], "attempts": 0}
            | _properties(run),
        }
        for thread, runs in created.items()
        for run in runs
    ]
    if rows and await transaction.run(CREATE_EPISODES, rows=rows) != len(rows):
        raise Raced


async def grow_runs(transaction: Transaction, grown: Iterable[Run]) -> None:
    """Writes what new events changed of episodes."""
    await _set(transaction, {run.id: _properties(run) for run in grown})


def _properties(run: Run) -> dict[str, Any]:
    return {
        "startedAt": run.started_at,
        "spanEnd": run.span_end,
        "size": run.size,
        "consolidationStatus": run.status.value,
        "recordedAt": run.recorded_at,
        "userIds": list(run.user_ids),
        "agentIds": list(run.agent_ids),
        "userId": run.user_id,
        "agentId": run.agent_id,
    }


async def _set(transaction: Transaction, properties: Mapping[str, dict[str, Any]]) -> None:
    if properties:
        await transaction.run(SET_EPISODES, rows=[list(item) for item in properties.items()])


async def write_closings(transaction: Transaction, ids: Sequence[str]) -> None:
    """Makes episodes PENDING, with what their events, all written by now, make of summary, tags and outcome."""
    if not ids:
        return
    found = await transaction.run(READ_SAID, ids=list(ids), most=policy.SAID_MOST)
    # a large import takes its time, which others' requests needn't wait for
    closed = await asyncio.to_thread(_closings, found)
    await transaction.run(CLOSE_EPISODES, rows=[list(item) for item in closed.items()])


def _closings(found: Sequence[list[Any]]) -> dict[str, dict[str, Any]]:
    return {key: _closed(end, given, number, said) for key, end, given, number, said in found}


def summarised(number: int, summary: str | None) -> dict[str, Any]:
    """What a summary makes of an episode's properties; its vector is to be made."""
    words = None if summary is None else words_of(number, "Episode", summary)
    return {"summary": summary, "words": words, "embedding": None}


def _closed(end: int, given: str | None, number: int, said: Iterable[list[Any]]) -> dict[str, Any]:
    events = [Said(at, key, EventType(event_type), without_context(text)) for at, key, event_type, text in said]
    closing = close(events, None if given is None else EpisodeOutcome(given))
    return {
        "consolidationStatus": ConsolidationStatus.PENDING.value,
        "endedAt": end,
        **summarised(number, closing.summary),
        "tags": list(closing.tags),
        "outcome": closing.outcome.value,
    }


LATEST_OF_THREAD = f"""
MATCH (e:Episode {{tenant: $t, threadId: $thread}}) WHERE e.summary IS NOT NULL AND ($user IS NULL OR e.userId = $user)
WITH e ORDER BY e.startedAt DESC, e.id DESC LIMIT 1 RETURN {EPISODE.row("e")}
"""


@whole
async def latest_of_thread(graph: Graph, tenant: str, thread: str, user: str | None) -> Episode | None:
    """A thread's latest episode that has a summary, of this user where one is given; None where there is none."""
    row = await graph.read(LATEST_OF_THREAD, t=tenant, thread=thread, user=user)
    return None if row is None else EPISODE.value(row)


# ---------------------------------------------------------------- by request

LOCK_THREAD = "MATCH (c:Conversation {tenant: $t, threadId: $thread}) SET c.lockedAt = $now"
OPEN_EPISODE = """
MATCH (e:Episode {tenant: $t, threadId: $thread, consolidationStatus: 'OPEN'})
RETURN e.id ORDER BY e.startedAt DESC, e.id DESC LIMIT 1
"""
LOCK_EPISODE = """
MATCH (e:Episode&Node {id: $id}) WHERE e.tenant = $t SET e.lockedAt = $now
WITH e RETURN [e.consolidationStatus, e.outcome]
"""
_GROWING = (ConsolidationStatus.OPEN, ConsolidationStatus.PENDING)


async def close_episodes(transaction: Transaction, writes: Sequence[Write]) -> list[Outcome]:
    """Closes episodes (drafts: EpisodeClosing) one after the other; outcome: `episode`, its id.

    What is PENDING already takes the outcome that is given, and ends there too; what the worker has taken up since is
    left as it is, and another outcome for it refused.
    """
    return [await _close_episode(transaction, write) for write in writes]


async def _close_episode(transaction: Transaction, write: Write) -> Outcome:
    closing: EpisodeClosing = write.draft
    wanted = closing.id
    if wanted is None:
        thread = {"t": write.tenant, "thread": closing.thread_id}
        await transaction.run(LOCK_THREAD, **thread, now=write.now)
        wanted = await transaction.run(OPEN_EPISODE, **thread)
        if wanted is None:
            return Refusals([NotFound("this thread has no open episode", ("threadId",))])
    found = await transaction.run(LOCK_EPISODE, id=wanted, t=write.tenant, now=write.now)
    if found is None:
        return _missing()
    status, outcome = found
    if status in _GROWING:
        given = {} if closing.outcome is None else {"givenOutcome": closing.outcome.value}
        await _set(transaction, {wanted: {"ended": True, **given}})
        await write_closings(transaction, [wanted])
    elif closing.outcome not in (None, outcome):
        return Refusals([Conflict(f"this episode is {status}: its outcome stays {outcome}", ("outcome",))])
    return {"episode": wanted}


async def retry_episodes(transaction: Transaction, writes: Sequence[Write]) -> list[Outcome]:
    """Sends failed episodes (drafts: ids) back to PENDING; outcome: `episode`, its id."""
    return [await _retry_episode(transaction, write) for write in writes]


async def _retry_episode(transaction: Transaction, write: Write) -> Outcome:
    found = await transaction.run(LOCK_EPISODE, id=write.draft, t=write.tenant, now=write.now)
    if found is None:
        return _missing()
    status, _ = found
    if status != ConsolidationStatus.FAILED:
        return Refusals([Conflict(f"this episode is {status}: only a FAILED one can be retried", ("id",))])
    again = {"consolidationStatus": ConsolidationStatus.PENDING.value, "failure": None}
    await _set(transaction, {write.draft: again})
    return {"episode": write.draft}


def _missing() -> Refusals:
    return Refusals([NotFound("no episode has this id", ("id",))])


# ---------------------------------------------------------------- by the worker

IDLE_EPISODES = """
MATCH (e:Episode) WHERE e.consolidationStatus = 'OPEN' AND e.startedAt IS NOT NULL AND e.recordedAt < $before
WITH e LIMIT $limit RETURN collect(e.id)
"""
LOCK_EPISODES = "UNWIND $ids AS i MATCH (e:Episode&Node {id: i}) SET e.lockedAt = $now"
STILL_IDLE = """
UNWIND $ids AS i MATCH (e:Episode&Node {id: i}) WHERE e.consolidationStatus = 'OPEN' AND e.recordedAt < $before
RETURN collect([e.tenant, i])
"""


async def sweep_idle(graph: Graph, now: int, idle_gap: int, limit: int) -> list[tuple[str, str]]:
    """Closes OPEN episodes whose last event was recorded longer than the gap ago; the tenant and id of each.

    At most `limit` of them: where as many were closed, there may be more. Times in milliseconds.
    """
    before = now - idle_gap
    idle = sorted(await graph.read(IDLE_EPISODES, before=before, limit=limit))

    async def close_idle(transaction: Transaction) -> list[tuple[str, str]]:
        await transaction.run(LOCK_EPISODES, ids=idle, now=now)
        still = await transaction.run(STILL_IDLE, ids=idle, before=before)
        await write_closings(transaction, [episode for _, episode in still])
        return [(tenant, episode) for tenant, episode in still]

    return await graph.transact(close_idle) if idle else []


def unfinished_statement(where: Where) -> str:
    """At most `$limit` of the tenant's episodes that aren't consolidated and pass a filter, oldest first."""
    predicates = " AND ".join(
        (
            "x.tenant = $t",
            "x.consolidationStatus IN ['OPEN', 'PENDING', 'PROCESSING', 'FAILED']",
            "x.startedAt IS NOT NULL",
            *where.predicates,
        )
    )
    return (
        f"MATCH (x:Episode) WHERE {predicates} WITH x ORDER BY x.startedAt, x.id LIMIT $limit "
        f"RETURN collect({EPISODE.row('x')})"
    )


@whole
async def unfinished(graph: Graph, tenant: str, wanted: EpisodeFilter, limit: int) -> list[Episode]:
    """Episodes that aren't consolidated and pass a filter, oldest first."""
    where = episode_where(wanted)
    rows = await graph.read(unfinished_statement(where), t=tenant, limit=limit, **where.values())
    return [EPISODE.value(row) for row in rows]
