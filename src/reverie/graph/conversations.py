"""Conversations in Neo4j."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from reverie.domain.conversations import ConversationDraft, thread_title
from reverie.domain.ids import new_id
from reverie.domain.names import normal_form
from reverie.errors import AlreadyExists, Conflict, NotFound, Refusals
from reverie.graph.memories import DELETE_MEMORIES
from reverie.graph.store import Graph, Transaction
from reverie.graph.words import words_of
from reverie.graph.writes import Outcome, Write

CONVERSATION_BY_THREAD = "MATCH (c:Conversation {tenant: $t, threadId: $thread}) RETURN c.id"
CREATE_CONVERSATION = """
MERGE (c:Conversation {tenant: $t, threadId: $properties.threadId})
ON CREATE SET c:Node, c += $properties
RETURN c.id
"""


async def conversation_by_thread(graph: Graph, tenant: str, thread: str) -> str | None:
    """The id of a thread's conversation."""
    found = await graph.read(CONVERSATION_BY_THREAD, t=tenant, thread=thread)
    return None if found is None else str(found)


async def create_conversations(transaction: Transaction, writes: Sequence[Write]) -> list[Outcome]:
    """Writes conversations (drafts: ConversationDraft); outcome: `conversation`, its id."""
    outcomes: list[Outcome] = []
    for write in writes:
        draft: ConversationDraft = write.draft
        node_id = new_id()
        found = await transaction.run(
            CREATE_CONVERSATION,
            t=write.tenant,
            properties={
                "id": node_id,
                "threadId": node_id if draft.thread_id is None else draft.thread_id,
                "createdAt": write.now,
                "updatedAt": write.now,
                **titled(write.number, draft.title),
            },
        )
        outcomes.append(
            {"conversation": node_id}
            if found == node_id
            else Refusals([AlreadyExists("this thread has a conversation", ("threadId",), found)])
        )
    return outcomes


def titled(number: int, title: str) -> dict[str, Any]:
    """What a title makes of a conversation's properties; `untitled` marks one that waits for a message to name it."""
    return {
        "title": title,
        "form": normal_form(title),
        "words": words_of(number, "Conversation", title),
        "untitled": None,
        "madeByServer": None,
    }


def thread_titled(number: int, thread: str) -> dict[str, Any]:
    """As `titled`, by the thread's own name, until a message gives a better one."""
    return titled(number, thread_title(thread) or thread) | {"untitled": True, "madeByServer": True}


def message_titled(number: int, title: str) -> dict[str, Any]:
    """As `titled`, by the thread's first message."""
    return titled(number, title) | {"madeByServer": True}


TITLE_THREADS = "UNWIND $rows AS row MATCH (c:Conversation&Node {id: row[0]}) SET c += row[1]"


@dataclass(frozen=True, slots=True)
class TitleChange:
    id: str
    title: str


SET_TITLE = "MATCH (c:Conversation&Node {id: $id}) WHERE c.tenant = $t SET c += $properties RETURN c.id"


async def update_conversations(transaction: Transaction, writes: Sequence[Write]) -> list[Outcome]:
    """Gives conversations another title (drafts: TitleChange); outcome: `conversation`, its id."""
    outcomes: list[Outcome] = []
    for write in writes:
        change: TitleChange = write.draft
        found = await transaction.run(
            SET_TITLE, id=change.id, t=write.tenant, properties=titled(write.number, change.title)
        )
        outcomes.append({"conversation": found} if found is not None else _missing())
    return outcomes


@dataclass(frozen=True, slots=True)
class ConversationDeletion:
    id: str
    delete_memories: bool = False


LOCK_CONVERSATION = """
MATCH (c:Conversation&Node {id: $id}) WHERE c.tenant = $t SET c.lockedAt = $now
WITH c RETURN [(c)<-[:BELONGS_TO]-(m:Memory) | m.id]
"""
STILL_MEMBERS = """
UNWIND $ids AS i MATCH (m:Memory&Node {id: i}) SET m.lockedAt = $now
WITH m WHERE m.conversationId = $id RETURN collect(m.id)
"""
HAS_EVENTS = "MATCH (c:Conversation&Node {id: $id}) RETURN EXISTS { (c)<-[:IN_THREAD]-(:Event) }"
LEAVE_MEMORIES = """
MATCH (c:Conversation&Node {id: $id})<-[:BELONGS_TO]-(m:Memory) SET m.lockedAt = $now
WITH m WHERE m.conversationId = $id SET m.conversationId = null, m.place = null
"""
DELETE_CONVERSATION = "MATCH (c:Conversation&Node {id: $id}) DETACH DELETE c"


async def delete_conversations(transaction: Transaction, writes: Sequence[Write]) -> list[Outcome]:
    """Deletes conversations (drafts: ConversationDeletion); outcome: `deletedId` and `deletedMemories`, a number.

    One that has events stays: they are kept whatever happens.
    """
    outcomes: list[Outcome] = []
    for write in writes:
        deletion: ConversationDeletion = write.draft
        members = await transaction.run(LOCK_CONVERSATION, id=deletion.id, t=write.tenant, now=write.now)
        if members is None:
            outcomes.append(_missing())
            continue
        if await transaction.run(HAS_EVENTS, id=deletion.id):
            outcomes.append(Refusals([Conflict("this conversation has events, which are kept", ("id",))]))
            continue
        gone = 0
        if deletion.delete_memories:
            # one that went to another conversation meanwhile stays
            still = await transaction.run(STILL_MEMBERS, id=deletion.id, ids=sorted(members), now=write.now)
            rows = [[write.tenant, member] for member in still]
            gone = len(await transaction.run(DELETE_MEMORIES, rows=rows, now=write.now))
        await transaction.run(LEAVE_MEMORIES, id=deletion.id, now=write.now)
        await transaction.run(DELETE_CONVERSATION, id=deletion.id)
        outcomes.append({"deletedId": deletion.id, "deletedMemories": gone})
    return outcomes


def _missing() -> Refusals:
    return Refusals([NotFound("no conversation has this id", ("id",))])
