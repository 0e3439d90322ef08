"""Memories over the API: written, read along their relations, changed, deleted."""

from tests.conftest import Api

CREATE = """
mutation($input: CreateMemoryInput!) {
  createMemory(input: $input) {
    memory {
      id content importance memoryType enrichment
      topics { nodes { name memories { totalCount nodes { content entities { nodes {
        name facts { nodes { subject predicate object } } } } } } } }
    }
    errors { code path }
  }
}
"""


async def test_a_memory_is_written_and_read_four_levels_deep(api: Api) -> None:
    written = await api(
        CREATE,
        input={
            "content": "Ann rolled the release back",
            "topics": [{"name": "Deployment"}],
            "entities": [{"name": "Ann", "type": "PERSON"}],
            "facts": [{"subject": "Ann", "predicate": "rolled back", "object": "the release"}],
            "importance": 0.9,
        },
    )

    memory = written["createMemory"]["memory"]
    assert written["createMemory"]["errors"] == []
    assert (memory["importance"], memory["memoryType"], memory["enrichment"]) == (0.9, "EPISODIC", "PENDING")
    assert memory["topics"]["nodes"] == [
        {
            "name": "Deployment",
            "memories": {
                "totalCount": 1,
                "nodes": [
                    {
                        "content": "Ann rolled the release back",
                        "entities": {
                            "nodes": [
                                {
                                    "name": "Ann",
                                    "facts": {
                                        "nodes": [
                                            {"subject": "Ann", "predicate": "rolled back", "object": "the release"}
                                        ]
                                    },
                                }
                            ]
                        },
                    }
                ],
            },
        }
    ]
