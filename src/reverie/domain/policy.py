"""Caps, defaults and lifetimes, as values that the rules are given."""

CONTENT_MOST = 100_000
"""Characters of a memory's content."""
NAME_MOST = 200
"""Characters of a name: of a topic, an entity, a relation, a thread, a subject or an agent."""
TITLE_MOST = 500
"""Characters of a conversation's title."""
PHRASE_MOST = 1_000
"""Characters of each part of a fact."""
FORM_MOST = 6_000
"""Bytes of a name, title or part of a fact in its normal form, as UTF-8: a key of a range index has 8 KB at most."""
METADATA_MOST = 100_000
"""Bytes of a memory's metadata, as JSON."""
METADATA_DEPTH = 64
"""Levels of nesting of a caller's JSON."""
KEY_MOST = 200
"""Characters of a clientMutationKey."""
BATCH_MOST = 1_000
"""Members of a batch."""
REFERENCES_MOST = 200
"""References in one list."""
PAGE_DEFAULT = 20
PAGE_MOST = 200
"""Members of a page."""
RANKING_MOST = 200
"""Hits of one ranking."""
ARM_DEPTH = 100
"""Candidates of each arm of a search."""
NAMES_ASKED = 512
"""What of a question is looked up as names: the first runs of words."""
CONTEXT_MOST = 500
"""Characters of what was said before a memory that its vector knows of: the last ones."""
QUERY_MOST = 100_000
"""Characters of a search query."""
CONTEXT_TOKENS_MOST = 100_000
"""Tokens of a context."""
RECEIPT_DAYS = 7
"""How long a clientMutationKey is remembered."""
EVENT_MOST = 100_000
"""Bytes of an event's content, as JSON."""
EPISODE_MOST = 200
"""Events of an episode."""
TAGS_MOST = 5
"""Tags of an episode, where it is closed without a model."""
SUMMARY_MOST = 3
PASSAGE_MOST = 240
"""Passages of a summary, where an episode is closed without a model, and characters of each."""
SAID_MOST = 2_000
"""Characters of an event's text that closing its episode looks at."""
READ_MOST = 40_000
"""Characters of an episode's events that its summary is chosen from, each having an equal share."""
THREAD_TITLE_MOST = 100
"""Characters of the title that a thread's conversation takes from its first user message."""
DOCUMENT_TEXT_MOST = 1_000_000
"""Characters of a document that a caller writes out."""
READABLE_MOST = 4_000_000
"""Characters of text in a document of any kind."""
URL_MOST = 2_000
"""Characters of a link."""
RESOLUTION_MOST = 100
"""The resolution of communities."""
TOPICS_MOST = 20_000
"""Topics of a tenant among which communities are found: those in the most memories."""
NEIGHBOURS_MOST = 50
"""Topics that each of them is connected to in finding communities: those it occurs with most often."""
RELATED_TOPICS_MOST = 20
"""Topics of those that it is related to in the graph."""
MAP_NODES = 500
MAP_NODES_MOST = 2_000
"""Nodes of a map."""
MAP_DEPTH_MOST = 4
"""Steps from a map's centres."""
MAP_EDGES_EACH = 10
"""Edges of a map, for each node that it may have."""
MAP_LABEL_MOST = 80
"""Characters of a label on a map."""
