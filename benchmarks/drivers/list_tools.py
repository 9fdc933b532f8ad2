"""List all tools with the `composio-client` that is installed.

`list_tools.py URL KEY PAGE_SIZE TOOLS` prints a line of JSON: the client, how many tools it got,
the seconds, and the SHA-256 of their slugs. It stops after TOOLS tools. Its Python is that of
the client, so it imports nothing of `benchmarks`.
"""

import hashlib
import json
import sys
import time

import composio_client
from composio_client import Composio

url, key, size, limit = sys.argv[1:]
client = Composio(base_url=url, api_key=key, max_retries=0, timeout=300)
slugs: list[str] = []
start = time.perf_counter()
page = client.tools.list(limit=int(size))
slugs += [tool.slug for tool in page.items]
while page.next_cursor and len(slugs) < int(limit):
    page = client.tools.list(limit=int(size), cursor=page.next_cursor)
    slugs += [tool.slug for tool in page.items]
result = {
    "client": f"composio-client {composio_client.__version__}",
    "tools": len(slugs),
    "seconds": time.perf_counter() - start,
    "digest": hashlib.sha256("\n".join(slugs).encode()).hexdigest(),
}
print(json.dumps(result))
