// Lists all tools with @composio/client, as list_tools.py does with composio-client.
// Arguments: URL KEY PAGE_SIZE TOOLS FOLDER, where FOLDER contains node_modules.

import { createHash } from 'node:crypto';
import { createRequire } from 'node:module';

const [baseURL, apiKey, size, tools, folder] = process.argv.slice(2);
const require = createRequire(`${folder}/`);
const { Composio } = require('@composio/client');
const { VERSION } = require('@composio/client/version');

const client = new Composio({ apiKey, baseURL, maxRetries: 0, timeout: 300_000 });
const limit = Number(size);
const slugs = [];
const start = performance.now();
let page = await client.tools.list({ limit });
slugs.push(...page.items.map((tool) => tool.slug));
while (page.next_cursor && slugs.length < Number(tools)) {
  page = await client.tools.list({ limit, cursor: page.next_cursor });
  slugs.push(...page.items.map((tool) => tool.slug));
}
console.log(
  JSON.stringify({
    client: `@composio/client ${VERSION}`,
    tools: slugs.length,
    seconds: (performance.now() - start) / 1000,
    digest: createHash('sha256').update(slugs.join('\n')).digest('hex'),
  }),
);
