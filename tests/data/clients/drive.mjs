// Drives @composio/client: the second argument is the folder of node_modules that has it. What drive.py says of requests and answers holds here too; `strict` means nothing, for this client has no models.

import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const TIMEOUT = 20_000; // milliseconds
const [, , baseURL, folder] = process.argv;
const { APIError, Composio } = await import(folder);
const { name, version } = JSON.parse(readFileSync(new URL(`node_modules/${folder}/package.json`, import.meta.url)));
const clients = new Map();

function client(key) {
  // No retries: they would hide a fault.
  if (!clients.has(key)) clients.set(key, new Composio({ apiKey: key, baseURL, maxRetries: 0, timeout: TIMEOUT }));
  return clients.get(key);
}

// `list` takes all query parameters as its arguments, and query parameters among the options would replace them.
const OPERATIONS = {
  tool: (client, { tool_slug, ...args }, { query, ...options }) => client.tools.retrieve(tool_slug, { ...args, ...query }, options),
  tools: (client, args, { query, ...options }) => client.tools.list({ ...args, ...query }, options),
  slugs: (client, _, options) => client.tools.retrieveEnum(options),
  toolkit: (client, { slug, ...args }, { query, ...options }) => client.toolkits.retrieve(slug, { ...args, ...query }, options),
  toolkits: (client, args, { query, ...options }) => client.toolkits.list({ ...args, ...query }, options),
  categories: (client, args, { query, ...options }) => client.toolkits.retrieveCategories({ ...options, query: { ...args, ...query } }),
  session: (client, { session_id, ...args }, { query = {}, ...options }) =>
    client.toolRouter.session.tools(session_id, args, Object.keys(query).length ? { ...options, query } : options),
  call: (client, { method, path }, options) => client[method](path, options),
};

async function answer({ op, args, options: { key = null, headers, query, raw } }) {
  const options = Object.fromEntries(Object.entries({ headers, query }).filter(([, value]) => value !== undefined));
  try {
    const called = OPERATIONS[op](client(key), args, options);
    if (!raw) return { result: await called };
    const { data, response } = await called.withResponse();
    return { result: data, url: response.url, headers: Object.fromEntries(response.headers) };
  } catch (error) {
    const about =
      error instanceof APIError
        ? { status: error.status, body: error.error, request_id: error.headers?.get('x-request-id') }
        : { status: null, body: String(error), request_id: null };
    return { error: error.constructor.name, ...about };
  }
}

const say = (value) => process.stdout.write(JSON.stringify(value) + '\n');

say({ client: `${name} ${version}` });
for await (const line of createInterface({ input: process.stdin })) say(await answer(JSON.parse(line)));
