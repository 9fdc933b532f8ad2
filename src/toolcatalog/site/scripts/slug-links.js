/* Slugs in descriptions become links, if the catalog has such a tool. */

const SLUG = /\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b/g;
const LINKED_TEXTS = ".lead, .params p:not(.param):not(.limits), .notice";

function slugsIn(text) {
  return text.match(SLUG) || [];
}

/** The texts with slugs, outside of links. */
function textsWithSlugs() {
  const texts = [];
  each(LINKED_TEXTS, (element) => {
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      if (slugsIn(walker.currentNode.data).length && !walker.currentNode.parentElement.closest("a"))
        texts.push(walker.currentNode);
    }
  });
  return texts;
}

function linkSlugsIn(text, slugs) {
  const pieces = [];
  let end = 0;
  for (const match of text.data.matchAll(SLUG)) {
    if (!slugs.has(match[0])) continue;
    pieces.push(
      text.data.slice(end, match.index),
      make("a", { href: toolPage(match[0]) }, identifier(match[0]))
    );
    end = match.index + match[0].length;
  }
  if (!pieces.length) return;
  const code = text.parentElement;
  const whole = code.localName === "code" && code.textContent === text.data;
  (whole ? code : text).replaceWith(...pieces, text.data.slice(end));
}

/** Links the slugs of this toolkit; those of others once the data of the search is here. */
async function linkSlugs(ofToolkit, current) {
  const texts = textsWithSlugs();
  const slugs = new Set(ofToolkit);
  const others = texts.flatMap((text) => slugsIn(text.data)).filter((slug) => !slugs.has(slug));
  if (others.length) (await loadTools()).slugs.forEach((slug) => slugs.add(slug));
  slugs.delete(current);
  for (const text of texts) linkSlugsIn(text, slugs);
}
