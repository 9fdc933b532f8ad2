/* What all features share: elements, memory, texts and addresses.

   Every page can be read without the script: what needs it is written hidden, and shown from here.
   Plain scripts without modules and fetch, because both are refused on file://. Texts of the
   catalog are only ever set as text. */

const DEPRECATED = 1;
const IMPORTANT = 2;
const NO_AUTH = 4;
const READ_ONLY = 8;
const DESTRUCTIVE = 16;

const root = document.documentElement;
const home = root.dataset.root || "";
const mac = /mac|iphone|ipad/i.test(
  (navigator.userAgentData && navigator.userAgentData.platform) || navigator.platform || ""
);
// what localStorage refused, in private windows or on full disks: kept as long as the page is open
const memory = new Map();

function recall(name) {
  try {
    return memory.has(name) ? memory.get(name) : localStorage.getItem(`toolcatalog.${name}`);
  } catch {
    return null;
  }
}

function remember(name, value) {
  try {
    localStorage.setItem(`toolcatalog.${name}`, value);
  } catch {
    memory.set(name, value);
  }
}

/** An element with these attributes; strings among the children become text. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const each = (selector, action) => document.querySelectorAll(selector).forEach(action);
const numbers = new Intl.NumberFormat("en");
const number = (count) => numbers.format(count);
const counted = (count) => `${number(count)} ${count === 1 ? "tool" : "tools"}`;
const allTools = (query) =>
  `${home}tools/index.html${query ? `?q=${encodeURIComponent(query)}` : ""}`;
const toolPage = (slug) => `${home}tools/${encodeURIComponent(slug)}/index.html`;

let live = null;

/** Announces a text to screen readers. It is emptied first, because the same words again would not
    be read out. */
function say(text) {
  live = live || document.body.appendChild(make("p", { class: "live", role: "status" }));
  live.textContent = "";
  setTimeout(() => (live.textContent = text), 50);
}

function replaceAddress(address, push) {
  try {
    history[push ? "pushState" : "replaceState"](null, "", address);
  } catch {
    // some browsers refuse this for files: the page works, only the address stays
  }
}

function hash() {
  try {
    return decodeURIComponent(location.hash.slice(1));
  } catch {
    return ""; // a stray % in the address
  }
}

const BADGES = [
  [DEPRECATED, "warn", "deprecated"],
  [DESTRUCTIVE, "danger", "destructive"],
  [READ_ONLY, "ok", "read-only"],
  [NO_AUTH, "", "no auth"],
];

/** The badges of a tool, as the written pages have them; empty if there are none. */
function badges(flags) {
  const shown = BADGES.filter(([flag]) => flags & flag);
  if (!shown.length) return [];
  return [
    make(
      "span",
      { class: "badges" },
      ...shown.map(([, kind, text]) => make("span", { class: `badge ${kind}`.trim() }, text))
    ),
  ];
}

/** The logo of a toolkit as the written pages have it: a file, or a tile with the first letter. */
function toolkitLogo([slug, name, , file]) {
  if (file) return make("img", { class: "logo", src: home + file, alt: "", loading: "lazy" });
  const letter = [...name.toUpperCase()].find((sign) => /[\p{L}\p{N}]/u.test(sign)) || "·";
  return make("span", { class: `logo tile-${crc32(slug) % 8}`, "aria-hidden": "true" }, letter);
}

function crc32(text) {
  let sum = -1;
  for (const byte of new TextEncoder().encode(text)) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit += 1) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0);
  }
  return (sum ^ -1) >>> 0;
}

/** A name as code that breaks after `_`, `/` and `.` where a line is too short. */
function identifier(name, attributes = {}) {
  const pieces = name.split(/(?<=[_/.])(?=[^_/.])/);
  return make(
    "code",
    attributes,
    ...pieces.flatMap((piece, place) => (place ? [make("wbr"), piece] : [piece]))
  );
}
