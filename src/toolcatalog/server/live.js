// Added to pages by `toolcatalog dev` only: loads a page again when the site has been built again, and shows what is wrong.
"use strict";
(() => {
  let seen = null;

  function overlay(problems) {
    document.getElementById("problems")?.remove();
    if (!problems.length) return;
    const box = document.createElement("section");
    box.id = "problems";
    box.setAttribute("role", "alert");
    Object.assign(box.style, {
      position: "fixed", inset: "auto 0 0 0", maxHeight: "60vh", overflow: "auto", zIndex: 9, padding: "1rem 1.25rem",
      background: "#2b1616", color: "#ffe9e4", font: "14px/1.5 ui-monospace, monospace", borderTop: "4px solid #ff7a66", whiteSpace: "pre-wrap",
    });
    box.textContent = problems.map(describe).join("\n\n");
    document.body.append(box);
  }

  function describe(problem) {
    const place = problem.path ? `${problem.path}:${problem.line}:${problem.column} ` : "";
    const lines = [`${place}${problem.rule ? `[${problem.rule}] ` : ""}${problem.message}`];
    if (problem.excerpt) lines.push(`  ${problem.line} | ${problem.excerpt}`);
    for (const what of ["expected", "help"]) if (problem[what]) lines.push(`  ${what}: ${problem[what]}`);
    return lines.join("\n");
  }

  new EventSource("/_dev/events").onmessage = (event) => {
    const news = JSON.parse(event.data);
    if (seen !== null && news.changes !== seen) location.reload();
    seen = news.changes;
    overlay(news.problems);
  };
})();
