"""The demo's story is complete, consistent and free of slips that a reader would stumble over."""

import importlib.resources
import re
import tomllib
import unicodedata
from collections import Counter
from datetime import UTC, datetime, time, timedelta, timezone

import pytest

from reverie.demo.data import DemoEntity, DemoMemory, demo_conversations, demo_entities, demo_entity_relations
from reverie.domain.entities import EntityType
from reverie.domain.memories import MemoryType
from reverie.domain.names import normal_form
from reverie.errors import BadInput

NOW = datetime(2026, 3, 18, 6, 30, tzinfo=UTC)
CONVERSATIONS = demo_conversations(NOW)
MEMORIES = [memory for conversation in CONVERSATIONS for memory in conversation.memories]
ENTITIES = demo_entities()


def mentioned_words(memory: DemoMemory) -> str:
    names = (name for entity in ENTITIES if (entity.name, entity.type) in memory.entities for name in names_of(entity))
    return normal_form(" | ".join((memory.content, *names)))


def names_of(entity: DemoEntity) -> tuple[str, ...]:
    return (entity.name, *entity.aliases)


def test_it_is_as_large_as_a_first_look_needs() -> None:
    assert 28 <= len(CONVERSATIONS) <= 36
    assert 250 <= len(MEMORIES) <= 350
    assert 38 <= len(ENTITIES) <= 52
    assert 110 <= sum(len(memory.facts) for memory in MEMORIES) <= 140
    assert sum(bool(memory.related_to) for memory in MEMORIES) >= 30
    assert sum(memory.metadata is not None for memory in MEMORIES) >= 30


def test_titles_threads_keys_and_contents_are_unique() -> None:
    for values in (
        [conversation.thread_id for conversation in CONVERSATIONS],
        [normal_form(conversation.title) for conversation in CONVERSATIONS],
        [memory.key for memory in MEMORIES],
        [normal_form(memory.content) for memory in MEMORIES],
    ):
        assert [value for value, count in Counter(values).items() if count > 1] == []


def test_no_two_memories_begin_alike() -> None:
    openings = Counter(" ".join(memory.content.split()[:4]) for memory in MEMORIES if " " in memory.content)
    assert [opening for opening, count in openings.items() if count > 1] == []


@pytest.mark.parametrize("days_on", range(7))
def test_times_run_forward_through_working_hours_and_end_before_now(days_on: int) -> None:
    now = NOW + timedelta(days=days_on)
    conversations = demo_conversations(now)
    starts = [conversation.memories[0].at for conversation in conversations]
    assert starts == sorted(starts)
    assert timedelta(days=55) < now - starts[0] < timedelta(days=65)
    assert now - starts[-1] < timedelta(days=5)
    for conversation in conversations:
        times = [memory.at for memory in conversation.memories]
        assert times == sorted(set(times)), conversation.thread_id
        for at in times:
            assert at < now
            assert at.utcoffset() == timedelta(0)
            assert at.weekday() < 5
            assert time(7) <= at.time() <= time(17)


def test_now_counts_as_the_day_it_is_in_utc() -> None:
    late_in_osaka = datetime(2026, 3, 18, 15, 30, tzinfo=timezone(timedelta(hours=9)))
    assert demo_conversations(late_in_osaka) == CONVERSATIONS


def test_a_now_without_an_offset_is_refused() -> None:
    with pytest.raises(BadInput, match="offset") as refusal:
        demo_conversations(datetime(2026, 3, 18, 6, 30))
    assert refusal.value.path == ("now",)


def test_types_importance_and_confidence_are_what_the_api_takes() -> None:
    assert {memory.memory_type for memory in MEMORIES} == set(MemoryType)
    assert {entity.type for entity in ENTITIES} == set(EntityType)
    assert all(0 <= memory.importance <= 1 for memory in MEMORIES)
    assert len({memory.importance for memory in MEMORIES}) >= 8
    assert all(0 <= fact.confidence <= 1 for memory in MEMORIES for fact in memory.facts)
    assert all(0 <= relation.weight <= 1 for relation in demo_entity_relations())


def test_topics_are_few_and_come_again() -> None:
    uses = Counter(topic for memory in MEMORIES for topic in memory.topics)
    assert 20 <= len(uses) <= 30
    assert min(uses.values()) >= 3
    assert len({normal_form(topic) for topic in uses}) == len(uses)
    assert all(1 <= len(memory.topics) == len(set(memory.topics)) for memory in MEMORIES)


def test_no_name_belongs_to_two_entities() -> None:
    names = Counter(normal_form(name) for entity in ENTITIES for name in names_of(entity))
    assert [name for name, count in names.items() if count > 1] == []


def test_every_entity_is_mentioned() -> None:
    mentioned = {entity for memory in MEMORIES for entity in memory.entities}
    assert [entity.name for entity in ENTITIES if (entity.name, entity.type) not in mentioned] == []


def test_mentions_are_found_by_name_and_alias_and_never_inside_a_word() -> None:
    mentions = {memory.key: {name for name, _ in memory.entities} for memory in MEMORIES}
    assert mentions["people-and-tastes/yuki-async"] == {"Yuki Tanaka"}
    assert mentions["kobe-localisation/kickoff"] == {"Kenji Mori", "Kobe Cold Chain"}
    assert mentions["fast-search/lucia-gracias"] == {"Lucía Ferrer", "Puerto Sur"}
    assert mentions["webhook-fix/live"] == {"Argonaut Security"}
    assert mentions["mei-first-day/glossary"] == set()


def test_entity_relations_join_known_entities_once() -> None:
    known = {entity.name for entity in ENTITIES}
    relations = demo_entity_relations()
    assert {name for relation in relations for name in (relation.source, relation.target)} <= known
    assert all(relation.source != relation.target for relation in relations)
    triples = Counter((relation.source, relation.relation, relation.target) for relation in relations)
    assert max(triples.values()) == 1


def test_related_memories_come_earlier() -> None:
    at = {memory.key: memory.at for memory in MEMORIES}
    for position, memory in enumerate(MEMORIES):
        for key in memory.related_to:
            assert key in {earlier.key for earlier in MEMORIES[:position]}, memory.key
            assert at[key] < memory.at


def test_facts_speak_of_what_their_memory_says() -> None:
    for memory in MEMORIES:
        words = mentioned_words(memory)
        for fact in memory.facts:
            assert fact.subject.strip()
            assert fact.predicate.strip()
            assert fact.object.strip()
            assert normal_form(fact.subject) in words or normal_form(fact.object) in words, (memory.key, fact)


def test_most_facts_lead_to_an_entity() -> None:
    known = {normal_form(name) for entity in ENTITIES for name in names_of(entity)}
    facts = [fact for memory in MEMORIES for fact in memory.facts]
    subjects = [fact for fact in facts if normal_form(fact.subject) in known]
    both = [fact for fact in subjects if normal_form(fact.object) in known]
    assert len(subjects) / len(facts) >= 0.6
    assert len(both) >= 15


def test_users_and_agents_are_the_teams() -> None:
    people = {entity.aliases[0].casefold() for entity in ENTITIES if entity.type == "PERSON"}
    subjects = {memory.subject_id for memory in MEMORIES} - {None}
    plain = {unicodedata.normalize("NFD", name).encode("ascii", "ignore").decode() for name in people}
    assert len(subjects) >= 7
    assert subjects <= plain
    assert len({memory.agent_id for memory in MEMORIES}) >= 5
    assert all(memory.agent_id for memory in MEMORIES)


def test_several_languages_are_spoken() -> None:
    languages = Counter((memory.metadata or {}).get("language") for memory in MEMORIES)
    assert languages["de"] >= 5
    assert languages["ja"] >= 4
    assert languages["es"] >= 5
    kana = re.compile("[ぁ-んァ-ヶ]")
    assert all(kana.search(memory.content) for memory in MEMORIES if (memory.metadata or {}).get("language") == "ja")


def test_a_search_by_word_has_its_rare_word() -> None:
    holding = [memory.key for memory in MEMORIES if "ECONNREFUSED" in memory.content]
    assert holding == ["oncall-handover/econnrefused", "oncall-handover/runbook"]


def test_a_search_by_meaning_has_to_find_the_meaning() -> None:
    told = [memory for memory in MEMORIES if memory.key.startswith("bad-rollout/")]
    assert sum("deployment" in memory.topics for memory in told) >= 5
    assert not any(re.search(r"\bissues?\b", memory.content, re.IGNORECASE) for memory in MEMORIES)


def test_texts_are_plain() -> None:
    texts = [text for memory in MEMORIES for text in (memory.content, *memory.topics)]
    texts += [conversation.title for conversation in CONVERSATIONS]
    texts += [name for entity in ENTITIES for name in names_of(entity)]
    for text in texts:
        assert text == text.strip()
        assert unicodedata.is_normalized("NFC", text)
        assert not any(unicodedata.category(sign) in {"Cc", "Cf", "Co", "Cs"} for sign in text), text
        assert not re.search("<[a-z/]|[*]{2}|&[a-z]+;|  ", text), text
    assert all(40 <= len(memory.content) <= 400 for memory in MEMORIES if " " in memory.content)


def test_the_story_has_no_field_that_nobody_reads() -> None:
    read = {"content", "memory_type", "importance", "at", "days_later", "topics", "facts"}
    read |= {"subject_id", "related_to", "metadata"}
    story = importlib.resources.files("reverie.demo") / "story"
    weeks = [file for file in story.iterdir() if file.name.startswith("weeks-")]
    threads = [thread for file in weeks for thread in tomllib.loads(file.read_text(encoding="utf-8")).values()]
    assert len(threads) == len(CONVERSATIONS)
    for thread in threads:
        assert set(thread) == {"title", "day", "agent_id", "memories"}
        for entry in thread["memories"].values():
            assert set(entry) <= read
