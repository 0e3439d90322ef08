"""Conversations: threads that memories and events belong to."""

from dataclasses import dataclass
from datetime import datetime

from reverie.domain import policy
from reverie.domain.checks import Checks
from reverie.domain.names import display_name


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation as it stands."""

    id: str
    title: str
    thread_id: str
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class ConversationDraft:
    """A conversation as a caller wants it; without a thread its own id is its thread."""

    title: str
    thread_id: str | None = None


def check_conversation(draft: ConversationDraft) -> ConversationDraft:
    """The draft with its title trimmed; Refusals when it can't be."""
    checks = Checks()
    title = checks.name(draft.title, ("title",), policy.TITLE_MOST)
    checks.label(draft.thread_id, ("threadId",))
    checks.done()
    return ConversationDraft(title, draft.thread_id)


def thread_title(text: str) -> str | None:
    """The title that a message gives its conversation: its beginning, cut between words; None for a blank one."""
    most = policy.THREAD_TITLE_MOST
    # no more is looked at than can be shown, blanks aside
    shown = display_name(text[: 10 * most])
    if len(shown) <= most:
        return shown or None
    cut = shown[:most]
    return (cut.rpartition(" ")[0] or cut[:-1]) + "…"
