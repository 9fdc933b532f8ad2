// The search of the site without a browser: node search-index.cjs SCRIPT SITE < REQUEST > RESULTS.
// The request is JSON: `queries` to find tools for, or `words` with a `vocabulary`.
const fs = require("node:fs");
const path = require("node:path");

const [script, site] = process.argv.slice(2);
const names = ["readTools", "makeIndex", "addTexts", "find", "standsFor"];
const flags = "const DEPRECATED = 1, IMPORTANT = 2, NO_AUTH = 4;";
const search = new Function(
  `${flags}\n${fs.readFileSync(script, "utf8")}\nreturn { ${names.join(", ")} };`
)();

function readData(file, name) {
  let data;
  new Function(name, fs.readFileSync(path.join(site, file), "utf8"))((value) => (data = value));
  return data;
}

async function findTools(queries) {
  const texts = readData("search-words.js", "toolcatalogWords").split("\n");
  const data = readData("search-data.js", "toolcatalogData");
  const index = search.makeIndex(search.readTools(data));
  await search.addTexts(index, texts, () => {});
  return queries.map((query) => search.find(index, query, 10).tools.map((tool) => index.slugs[tool]));
}

function findWords(words, vocabulary) {
  const meant = (word) => search.standsFor(vocabulary, { word, targets: [] });
  return words.map((word) => meant(word).map(([other]) => other));
}

const { queries, words, vocabulary } = JSON.parse(fs.readFileSync(0, "utf8"));
const results = queries ? findTools(queries) : Promise.resolve(findWords(words, vocabulary));
results.then((found) => process.stdout.write(JSON.stringify(found)));
