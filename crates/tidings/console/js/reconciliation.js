// Page: reconciliations. Every run, newest first; one run by its id (reconciliation-run.js).

import { get } from "./api.js";
import { h, once, say } from "./dom.js";
import { count, duration } from "./format.js";
import { pageKeys } from "./keys.js";
import { listing } from "./listing.js";
import { alertPlace } from "./problem.js";
import { projectorNames } from "./projectors.js";
import { runDialog } from "./reconciliation-acts.js";
import { showRun } from "./reconciliation-run.js";
import { repairWord, startedBy, verdictOf } from "./reconciliation-words.js";
import { route } from "./router.js";
import { stateMark } from "./state.js";
import { timeElement } from "./time.js";

const EVERY_MS = 2000;
const PAGE = 20;
const HEADS = [
  "Started",
  "State",
  "By",
  "Took",
  { number: "Differences" },
  { number: "Only behind" },
  "Repair",
  "Found",
];

const ABOUT =
  "Reconciliation compares what was committed with what follows from it: facts with the log, with projections, with " +
  "counters. What is only on its way is told apart from what differs. Every repair is an event, or a rebuild.";

export const reconciliationPage = { title: "Reconciliation", show };

function show(outlet, [id]) {
  return id ? showRun(outlet, id) : showList(outlet);
}

function showList(outlet) {
  const alert = alertPlace();
  const leaving = new AbortController();
  const list = listing({
    label: "Reconciliations, newest first",
    noun: "run",
    heads: HEADS,
    key: (run) => run.id,
    draw: row,
    ask: (page, signal) => get("/v1/admin/reconciliations", page, { signal }),
    everyMs: EVERY_MS,
    limit: PAGE,
    empty: [
      h("strong", {}, "Nothing was reconciled yet."),
      h("p", {}, "It runs on schedule, and when you ask for it."),
    ],
  });
  const start = h(
    "button",
    { type: "button", class: "strong", id: "start-run", "aria-keyshortcuts": "s" },
    "Reconcile now…",
  );
  start.addEventListener("click", () => once(start, open));

  async function open() {
    alert.put(null);
    try {
      const names = await projectorNames(leaving.signal);
      runDialog({
        names,
        done(run) {
          if (leaving.signal.aborted) return;
          say("The reconciliation runs.");
          location.hash = route("reconciliation", run.id);
        },
      });
    } catch (error) {
      if (!leaving.signal.aborted) alert.put(error);
    }
  }

  outlet.append(
    h("div", { class: "page-head" }, h("h1", {}, "Reconciliation"), start),
    h("p", { class: "lead" }, ABOUT),
    alert.element,
    list.element,
    pageKeys([{ key: "s", does: "reconcile now", run: () => start.click() }, ...list.keys]),
  );
  list.start();
  return () => {
    leaving.abort();
    list.stop();
  };
}

function row(run) {
  const { differences, lagging } = run;
  const ended = run.finished_at && Date.parse(run.finished_at) - Date.parse(run.started_at);
  return h(
    "tr",
    {},
    h(
      "td",
      {},
      h(
        "a",
        { href: route("reconciliation", run.id), "data-row": true, "data-act": "show" },
        timeElement(run.started_at),
      ),
    ),
    h("td", {}, stateMark(run.state)),
    h("td", {}, startedBy(run)),
    h("td", {}, ended === null ? "" : duration(ended)),
    h("td", { class: "number" }, count(differences)),
    h("td", { class: "number" }, count(lagging)),
    h("td", {}, repairWord(run)),
    h("td", { class: "error-text" }, run.error ?? verdictOf(run).text),
  );
}
