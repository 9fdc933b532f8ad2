/* Data: scripts that call one of these global functions. */

const arrived = new Map();
const loading = new Map();
globalThis.toolcatalogData = (data) => arrived.set("search-data.js", data);
globalThis.toolcatalogWords = (texts) => arrived.set("search-words.js", texts.split("\n"));
globalThis.toolcatalogFacets = (data) => arrived.set("facets.js", data);
globalThis.toolcatalogToolkit = (slug, data) => arrived.set(`toolkits/${slug}/tools.js`, data);
globalThis.toolcatalogShard = (shard, texts) => arrived.set(`search/${shard}.js`, texts);

/** What a data script hands over. Asked for once; after a failure it may be asked for again. */
function load(path) {
  if (!loading.has(path)) loading.set(path, loadScript(path));
  return loading.get(path);
}

function loadScript(path) {
  return new Promise((resolve, reject) => {
    const script = make("script", { src: home + path });
    const end = () => {
      script.remove();
      if (arrived.has(path)) return resolve(arrived.get(path));
      loading.delete(path);
      return reject(new Error(`${path} could not be loaded`));
    };
    script.onload = end;
    script.onerror = end;
    document.head.append(script);
  });
}

const pause = () => new Promise((resolve) => setTimeout(resolve));

let tools = null;
let index = null;
let adding = null; // the words of texts, to the index

async function loadTools() {
  const data = await load("search-data.js");
  tools = tools || readTools(data);
  return tools;
}

async function loadIndex() {
  const read = await loadTools();
  index = index || makeIndex(read);
  return index;
}

/** Adds the words of the descriptions, tags and scopes to the index. They are much more data than
    the names, so they are loaded when the names are not enough. */
async function loadWords() {
  const [texts] = await Promise.all([load("search-words.js"), loadIndex()]);
  adding = adding || addTexts(index, texts, pause);
  return adding;
}
