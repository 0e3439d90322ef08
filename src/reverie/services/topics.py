"""Topics: made, renamed, merged, deleted."""

from collections.abc import Sequence

from reverie.domain.checks import Checks
from reverie.domain.topics import Topic, check_topic_name
from reverie.graph import topics
from reverie.graph.topics import Merge, NewTopic, TopicRename
from reverie.resources import Resources
from reverie.services.embedding import embed, ring
from reverie.services.writing import check_id, write, write_one


async def create_topic(resources: Resources, tenant: str, name: str, key: str | None) -> Topic:
    """Makes a topic; AlreadyExists when another has the name."""
    name = check_topic_name(name)
    vectors = await embed(resources, [name])
    new = NewTopic(name, vectors[0])
    topic = await write_one(resources, tenant, "createTopic", topics.create_topics, new, key, Topic, asked=name)
    ring(resources, vectors)
    return topic


async def update_topic(resources: Resources, tenant: str, topic_id: str, name: str, key: str | None) -> Topic:
    """Renames a topic; AlreadyExists when another has the name."""
    check_id(topic_id, "topic")
    name = check_topic_name(name)
    vectors = await embed(resources, [name])
    rename = TopicRename(topic_id, name, vectors[0])
    topic = await write_one(
        resources, tenant, "updateTopic", topics.rename_topics, rename, key, Topic, asked=(topic_id, name)
    )
    ring(resources, vectors)
    return topic


async def merge_topics(
    resources: Resources, tenant: str, into_id: str, from_ids: Sequence[str], key: str | None
) -> Topic:
    """Merges topics into one, which keeps all memories, relations and names."""
    merge = check_merge(into_id, from_ids)
    return await write_one(resources, tenant, "mergeTopics", topics.merge_topics, merge, key, Topic)


async def delete_topic(resources: Resources, tenant: str, topic_id: str, key: str | None) -> str:
    """Deletes a topic; its memories stay."""
    check_id(topic_id, "topic")
    return str((await write(resources, tenant, "deleteTopic", topics.delete_topics, topic_id, key))["deletedId"])


def check_merge(into_id: str, from_ids: Sequence[str]) -> Merge:
    """The merge; Refusals when it names too many."""
    checks = Checks()
    checks.few(from_ids, ("fromIds",))
    checks.done()
    return Merge(into_id, tuple(from_ids))
