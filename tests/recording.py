"""Events as tests record them over the API."""

from typing import Any

from tests.conftest import Api

EVENT = (
    "id eventType content text threadId userId agentId occurredAt recordedAt "
    "episode { id } conversation { id title threadId }"
)


def message(content: Any, thread: str = "t", **given: Any) -> dict[str, Any]:
    """An input for a user's message; what is given comes on top."""
    return {"eventType": "USER_MESSAGE", "content": content, "threadId": thread, **given}


async def record(api: Api, *events: dict[str, Any], selection: str = EVENT, key: str | None = None) -> Any:
    """Records events that must be taken; what is selected of each."""
    payload = await api.mutate(
        "recordEvents", "RecordEventsInput", f"events {{ {selection} }}", {"events": events, "clientMutationKey": key}
    )
    assert payload["errors"] == []
    return payload["events"]
