// Compiles only if the generated types have the paths, parameters and fields of the API.
import type { components, paths } from './types.d.ts';

type ToolList = paths['/api/v3/tools']['get'];
type Toolkit = components['schemas']['ToolkitDetails'];

const query: NonNullable<ToolList['parameters']['query']> = {
  toolkit_slug: 'github',
  query: 'create an issue',
  limit: 5,
  important: 'true',
  toolkit_versions: { github: '20251027_00' },
};

export function describe(page: ToolList['responses'][200]['content']['application/json']): string[] {
  const next: string | null = page.next_cursor;
  return page.items.map((tool) => `${tool.slug} ${tool.version} of ${tool.toolkit.name} ${query.limit} ${next}`);
}

export function count(toolkit: Toolkit): number {
  const url: string | null = toolkit.meta.app_url;
  return toolkit.meta.available_versions.length + toolkit.meta.tools_count + (url ?? '').length;
}

// @ts-expect-error: no tool has this field
export const wrong = (tool: components['schemas']['Tool']) => tool.nothing;
