from tests.web.test_graphiql_browser import *
async def test_probe(visit, app_url):
    await visit.open(f"{app_url}/graphiql")
    await visit.write(QUERY_EDITOR, "query Few { memories(first: 1) { nodes { content } } }")
    for _ in range(4):
        await asyncio.sleep(0.7)
        print(await visit.page.evaluate("JSON.stringify({...localStorage})"))
