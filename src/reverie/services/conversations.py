"""Conversations: made, renamed, deleted."""

from reverie.domain.conversations import Conversation, ConversationDraft, check_conversation
from reverie.graph import conversations
from reverie.graph.conversations import ConversationDeletion, TitleChange
from reverie.resources import Resources
from reverie.services.writing import check_id, write, write_one


async def create_conversation(
    resources: Resources, tenant: str, draft: ConversationDraft, key: str | None
) -> Conversation:
    """Makes a conversation; AlreadyExists when its thread has one."""
    draft = check_conversation(draft)
    writer = conversations.create_conversations
    return await write_one(resources, tenant, "createConversation", writer, draft, key, Conversation)


async def update_conversation(
    resources: Resources, tenant: str, conversation_id: str, title: str, key: str | None
) -> Conversation:
    """Gives a conversation another title."""
    check_id(conversation_id, "conversation")
    change = TitleChange(conversation_id, check_conversation(ConversationDraft(title)).title)
    writer = conversations.update_conversations
    return await write_one(resources, tenant, "updateConversation", writer, change, key, Conversation)


async def delete_conversation(
    resources: Resources, tenant: str, conversation_id: str, *, delete_memories: bool, key: str | None
) -> tuple[str, int]:
    """Deletes a conversation, with its memories where asked; its id and how many memories went."""
    check_id(conversation_id, "conversation")
    deletion = ConversationDeletion(conversation_id, delete_memories)
    done = await write(resources, tenant, "deleteConversation", conversations.delete_conversations, deletion, key)
    return str(done["deletedId"]), int(done["deletedMemories"])
