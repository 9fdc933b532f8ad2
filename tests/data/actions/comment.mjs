// Runs the script of .github/workflows/comment.yaml as actions/github-script does, and prints what it asked GitHub to write.
// Standard input: {script, run, repo, pulls, comments}. There is no GitHub here, so its answers are those given.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const { script, run, repo, pulls, comments } = JSON.parse(readFileSync(0, "utf8"));
const told = { asked: [], written: [], failed: [] };
const write = (kind) => async (call) => void told.written.push({ kind, ...call });
const github = {
  rest: {
    pulls: { list: async (call) => (told.asked.push(call), { data: pulls }) },
    issues: { listComments: "listComments", createComment: write("create"), updateComment: write("update") },
  },
  paginate: async (method, call) => (told.asked.push(call), method === "listComments" ? comments : []),
};
const core = { info: () => {}, setFailed: (text) => told.failed.push(text) };
const Script = Object.getPrototypeOf(async () => {}).constructor;
await new Script("github", "context", "core", "require", script)(
  github, { repo, payload: { workflow_run: run } }, core, createRequire(import.meta.url),
);
console.log(JSON.stringify(told));
