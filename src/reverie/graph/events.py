"""Events in Neo4j: recorded many at a time, each once, into the episodes of their threads."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reverie.domain import policy
from reverie.domain.clock import to_ms
from reverie.domain.context import without_context
from reverie.domain.conversations import thread_title
from reverie.domain.episodes import Arrival, ConsolidationStatus, Run, segment
from reverie.domain.events import EventBatch, EventDraft, EventType, content_text, readable
from reverie.domain.ids import new_id
from reverie.graph.conversations import TITLE_THREADS, message_titled, thread_titled
from reverie.graph.episodes import Thread, create_runs, grow_runs, lock_runs, write_closings
from reverie.graph.store import Raced, Transaction
from reverie.graph.writes import Outcome, Write

SENT_BEFORE = """
UNWIND $rows AS k MATCH (v:Event {tenant: k[0], clientEventId: k[1]})
RETURN collect([k, v.id])
"""
LOCK_THREADS = """
UNWIND $rows AS row
MERGE (c:Conversation {tenant: row.tenant, threadId: row.threadId})
ON CREATE SET c:Node, c += row.properties
SET c.lockedAt = $now
SET c.updatedAt = CASE WHEN c.updatedAt < $now THEN $now ELSE c.updatedAt END
RETURN collect([[c.tenant, c.threadId], c.id, coalesce(c.untitled, false)])
"""
CREATE_EVENTS = """
UNWIND $rows AS row
MATCH (c:Conversation&Node {id: row.conversation}) MATCH (e:Episode&Node {id: row.episode})
CREATE (v:Event:Node) SET v = row.properties
CREATE (v)-[:PART_OF]->(e) CREATE (v)-[:IN_THREAD]->(c)
RETURN count(*)
"""


@dataclass(slots=True, eq=False)
class _New:
    """An event to write: its text, when it occurred, and its id, which is made under its thread's lock."""

    write: Write
    draft: EventDraft
    at: int
    text: str
    id: str = ""

    @property
    def thread(self) -> Thread:
        return self.write.tenant, self.draft.thread_id

    def properties(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "tenant": self.write.tenant,
            "eventType": self.draft.event_type.value,
            "content": content_text(self.draft.content),
            "text": self.text,
            "threadId": self.draft.thread_id,
            "userId": self.draft.user_id,
            "agentId": self.draft.agent_id,
            "occurredAt": self.at,
            "recordedAt": self.write.now,
            "clientEventId": self.draft.client_event_id,
        }


async def record_events(transaction: Transaction, writes: Sequence[Write]) -> list[Outcome]:
    """Records the batches of all writes (drafts: EventBatch).

    Outcome: `events`, their ids, of a re-sent one its first; `opened` and `pending`, the ids of the episodes that were
    opened by them, and of those that are over by them.
    """
    answers = await _placed(transaction, writes)
    new = list(dict.fromkeys(event for events in answers for event in events if isinstance(event, _New)))
    opened, pending = await _record(transaction, new) if new else ({}, {})
    outcomes: list[Outcome] = []
    for events in answers:
        threads = dict.fromkeys(event.thread for event in events if isinstance(event, _New))
        outcomes.append(
            {
                "events": [event.id if isinstance(event, _New) else event for event in events],
                "opened": [episode for thread in threads for episode in opened[thread]],
                "pending": [episode for thread in threads for episode in pending[thread]],
            }
        )
    return outcomes


async def _placed(transaction: Transaction, writes: Sequence[Write]) -> list[list[_New | str]]:
    """For each write its events in order: one to write, or the id of one that was sent before."""
    keys = sorted({key for write in writes for draft in write.draft.drafts if (key := _sent_as(write, draft))})
    sent: dict[tuple[str, str], _New | str] = {}
    if keys:
        sent = {(tenant, key): known for (tenant, key), known in await transaction.run(SENT_BEFORE, rows=_rows(keys))}
    answers: list[list[_New | str]] = []
    for write in writes:
        batch: EventBatch = write.draft
        answers.append([])
        for draft in batch.drafts:
            at = write.now if draft.occurred_at is None else to_ms(draft.occurred_at)
            event: _New | str = _New(write, draft, at, readable(draft.content))
            if key := _sent_as(write, draft):
                event = sent.setdefault(key, event)
            answers[-1].append(event)
    return answers


def _sent_as(write: Write, draft: EventDraft) -> tuple[str, str] | None:
    return None if draft.client_event_id is None else (write.tenant, draft.client_event_id)


def _rows(keys: Sequence[tuple[str, str]]) -> list[list[str]]:
    return [list(key) for key in keys]


async def _record(
    transaction: Transaction, new: Sequence[_New]
) -> tuple[dict[Thread, list[str]], dict[Thread, list[str]]]:
    """Writes events into the episodes of their threads; the episodes opened by them and those over by them, by thread.

    One that was opened and is over is among the latter alone.
    """
    now = max(event.write.now for event in new)
    idle_gap = new[0].write.draft.idle_gap
    threads: dict[Thread, list[_New]] = {}
    for event in new:
        threads.setdefault(event.thread, []).append(event)
    conversations = await _lock_threads(transaction, threads, now)
    for event in new:
        event.id = new_id()
    spans = {
        thread: (min(event.at for event in events), max(event.at for event in events))
        for thread, events in threads.items()
    }
    episodes: dict[str, str] = {}
    created: dict[Thread, list[Run]] = {}
    grown: list[Run] = []
    opened: dict[Thread, list[str]] = {}
    over: dict[Thread, list[str]] = {}
    closing: list[str] = []
    for thread, runs in (await lock_runs(transaction, spans, idle_gap, now)).items():
        before = {run.id: run for run in runs}
        after, members = segment(
            (Arrival(event.id, event.at, event.draft.user_id, event.draft.agent_id) for event in threads[thread]),
            runs,
            idle_gap=idle_gap,
            most=policy.EPISODE_MOST,
            now=now,
            make_id=new_id,
        )
        episodes.update(members)
        changed = [run for run in after.values() if before.get(run.id) != run]
        created[thread] = [run for run in changed if run.id not in before]
        opened[thread] = [run.id for run in created[thread] if run.status is ConsolidationStatus.OPEN]
        grown.extend(run for run in changed if run.id in before)
        closed = [run.id for run in changed if run.status is ConsolidationStatus.PENDING]
        closing.extend(closed)
        over[thread] = [key for key in closed if key not in before or before[key].status is ConsolidationStatus.OPEN]
    await create_runs(transaction, created, conversations)
    await grow_runs(transaction, grown)
    rows = [
        {
            "conversation": conversations[event.thread],
            "episode": episodes[event.id],
            "properties": event.properties(),
        }
        for event in new
    ]
    if await transaction.run(CREATE_EVENTS, rows=rows) != len(rows):
        raise Raced
    await write_closings(transaction, closing)
    return opened, over


async def _lock_threads(
    transaction: Transaction, threads: Mapping[Thread, Sequence[_New]], now: int
) -> dict[Thread, str]:
    """Locks the conversations of threads, in a sorted order, and makes those that aren't there; their ids.

    One that waits for its first user message has its title from it.
    """
    titles = {thread: next(_titles(events), None) for thread, events in threads.items()}
    rows = []
    for thread in sorted(threads):
        title, number = titles[thread], threads[thread][0].write.number
        properties = thread_titled(number, thread[1]) if title is None else message_titled(number, title)
        properties |= {"id": new_id(), "createdAt": now, "updatedAt": now}
        rows.append({"tenant": thread[0], "threadId": thread[1], "properties": properties})
    conversations: dict[Thread, str] = {}
    named: list[list[Any]] = []
    for (tenant, name), conversation, untitled in await transaction.run(LOCK_THREADS, rows=rows, now=now):
        thread = (tenant, name)
        conversations[thread] = conversation
        if untitled and (title := titles.get(thread)):
            named.append([conversation, message_titled(threads[thread][0].write.number, title)])
    if conversations.keys() != threads.keys():
        # one was deleted while its lock was waited for
        raise Raced
    if named:
        await transaction.run(TITLE_THREADS, rows=named)
    return conversations


def _titles(events: Sequence[_New]) -> Iterator[str]:
    """What a thread's user messages would title it, in the order in which they occurred."""
    for event in sorted(events, key=lambda event: event.at):
        if event.draft.event_type is EventType.USER_MESSAGE and (title := thread_title(without_context(event.text))):
            yield title
