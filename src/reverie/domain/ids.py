"""Ids: UUID version 7 as text, which sort by the time they were made."""

from uuid import UUID

from uuid_utils import uuid7


def new_id() -> str:
    """A new id, later in order than every earlier one of this process."""
    return str(uuid7())


def well_formed(text: str) -> bool:
    """Whether a text is an id as Reverie writes them; any other leads nowhere."""
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False
