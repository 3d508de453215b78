// Page: the parked keys, by filter, and what may be done with those that it shows. With a projector and a key, that
// key alone (parked-key.js).

import { get } from "./api.js";
import { h, say, setText } from "./dom.js";
import { count, counted, keyText } from "./format.js";
import { pageKeys } from "./keys.js";
import { listing } from "./listing.js";
import { parkedFilter } from "./parked-filter.js";
import { showKey } from "./parked-key.js";
import { redriveDialog, redriven } from "./redrive.js";
import { route, routeWith } from "./router.js";
import { stateMark } from "./state.js";
import { timeElement } from "./time.js";

const EVERY_MS = 2000;
const PAGE = 50;
const HEADS = [
  "Projector",
  "Key",
  "State",
  { number: "Attempts" },
  "Next attempt",
  { number: "Waiting" },
  "Parked",
  "Event",
  "Error",
  "Action",
];

const ABOUT =
  "When an event fails, its key is parked: the event is retried with growing gaps, later events of the same key wait " +
  "behind it in order, and all other keys go on. A key whose attempts are spent is dead: its events are kept, and " +
  "wait for a decision.";

export const parkedPage = { title: "Parked", show };

function show(outlet, [projector, key], query) {
  return projector && key !== undefined ? showKey(outlet, projector, key) : showList(outlet, query);
}

function showList(outlet, query) {
  const total = h("span", { class: "as-of" });
  const notice = h("div", { class: "notice-place" });
  const filter = parkedFilter(query, filtered);
  const list = listing({
    label: "Parked keys",
    noun: "key",
    heads: HEADS,
    key: (item) => JSON.stringify([item.projector, item.part, item.key]),
    draw: (item, current) => row(item, () => redrive(current())),
    ask: (page, signal) => get("/v1/admin/parked", { ...filter.wanted, ...page }, { signal }),
    everyMs: EVERY_MS,
    limit: PAGE,
    empty: emptiness(),
    onItems(items, pages) {
      const text = pages.isWhole ? counted(items.length, "key") : `${counted(items.length, "key")} on this page`;
      setText(total, items.length > 0 ? text : "");
      tellEmpty(list.element, filter.isEmpty);
    },
  });
  const all = h("button", { type: "button", id: "redrive", "aria-keyshortcuts": "r", on: { click: redriveAll } });

  function filtered() {
    history.replaceState(null, "", routeWith(filter.wanted, "parked"));
    name();
    list.first();
    say(filter.isEmpty ? "Every parked key" : "Filtered");
  }
  function name() {
    setText(all, filter.isEmpty ? "Redrive every key…" : "Redrive what the filter shows…");
  }
  function done(plan) {
    notice.replaceChildren(redriven(plan));
    list.again();
  }
  function redriveAll() {
    redriveDialog({ filter: filter.wanted, done });
  }
  function redrive({ projector, key }) {
    redriveDialog({ filter: { projector, key }, done });
  }

  name();
  outlet.append(
    h("div", { class: "page-head" }, h("h1", {}, "Parked keys"), total),
    h("p", { class: "lead" }, ABOUT),
    filter.element,
    h("div", { class: "acts" }, all, h("a", { href: route("audit") }, "What operators did")),
    notice,
    list.element,
    pageKeys([
      { key: "/", does: "filter", run: filter.focus },
      { key: "r", does: "redrive what is shown", run: redriveAll },
      ...list.keys,
    ]),
  );
  list.start();
  return list.stop;
}

// Nothing parked is good news; nothing found by a filter is not.
function emptiness() {
  return [
    h("strong", { "data-empty": "all" }, "No key is parked."),
    h("p", { "data-empty": "all" }, "Every event was applied, or is on its way."),
    h("strong", { "data-empty": "filter", hidden: true }, "No parked key meets the filter."),
  ];
}

function tellEmpty(element, isAll) {
  for (const line of element.querySelectorAll("[data-empty]")) line.hidden = (line.dataset.empty === "all") !== isAll;
}

function row(item, redrive) {
  const name = `key ${keyText(item.key)} of ${item.projector}`;
  return h(
    "tr",
    {},
    h("td", {}, h("code", {}, item.projector)),
    h(
      "td",
      {},
      h(
        "a",
        { href: route("parked", item.projector, item.key), "data-row": true, "data-act": "show" },
        keyText(item.key),
      ),
    ),
    h("td", {}, stateMark(item.state)),
    h("td", { class: "number" }, count(item.attempts)),
    h("td", {}, item.state === "dead" ? "none" : timeElement(item.next_attempt_at)),
    h("td", { class: "number" }, count(item.waiting)),
    h("td", {}, timeElement(item.parked_at)),
    h("td", {}, item.event_type || "not readable"),
    h("td", { class: "error-text" }, item.error),
    h(
      "td",
      {},
      h(
        "button",
        {
          type: "button",
          class: "small",
          "data-act": "redrive",
          "aria-label": `Redrive… ${name}`,
          on: { click: redrive },
        },
        "Redrive…",
      ),
    ),
  );
}
