// Page: the parked keys. Read only.

import { get } from "./api.js";
import { h, setText } from "./dom.js";
import { count, counted } from "./format.js";
import { poll } from "./poll.js";
import { alertPlace } from "./problem.js";
import { timeElement } from "./time.js";

const EVERY_MS = 2000;
const HEADS = ["Projector", "Key", "State", "Attempts", "Next attempt", "Waiting", "Parked", "Error"];
const NUMBERS = ["Attempts", "Waiting"];

const ABOUT =
  "When an event fails, its key is parked: the event is retried with growing gaps, later events of the same key wait " +
  "behind it in order, and all other keys go on. A key whose attempts are spent is dead: its events are kept, and " +
  "wait for a decision.";

export const parkedPage = { title: "Parked", show };

function show(outlet) {
  const alert = alertPlace();
  const total = h("span", { class: "as-of" });
  const rows = h("tbody", {});
  const table = h(
    "div",
    // Focusable, so that a keyboard can scroll it sideways on a narrow screen.
    { class: "scroll", tabindex: "0", role: "region", "aria-label": "Parked keys", hidden: true },
    h(
      "table",
      { class: "parked" },
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          HEADS.map((head) => h("th", { scope: "col", class: NUMBERS.includes(head) && "number" }, head)),
        ),
      ),
      rows,
    ),
  );
  const empty = h(
    "div",
    { class: "empty", hidden: true },
    h("strong", {}, "No key is parked."),
    h("p", {}, "Every event was applied, or is on its way."),
  );
  outlet.append(
    h("div", { class: "page-head" }, h("h1", {}, "Parked keys"), total),
    h("p", { class: "lead" }, ABOUT),
    alert.element,
    table,
    empty,
  );

  // Redrawn only when something changed: a selection in an error text survives the polling.
  let drawn = "";
  return poll(
    EVERY_MS,
    async (signal) => {
      const { items } = await get("/v1/admin/parked", {}, { signal });
      const now = JSON.stringify(items);
      if (now === drawn) return;
      drawn = now;
      rows.replaceChildren(...items.map(row));
      table.hidden = items.length === 0;
      empty.hidden = items.length > 0;
      setText(total, items.length > 0 ? counted(items.length, "key") : "");
    },
    alert.put,
  );
}

function row(item) {
  return h(
    "tr",
    {},
    h("td", {}, h("code", {}, item.projector)),
    h("td", {}, h("code", {}, item.key)),
    h("td", {}, h("span", { class: "state", "data-state": item.state }, h("i", { "aria-hidden": "true" }), item.state)),
    h("td", { class: "number" }, count(item.attempts)),
    h("td", {}, item.state === "dead" ? "none" : timeElement(item.next_attempt_at)),
    h("td", { class: "number" }, count(item.waiting)),
    h("td", {}, timeElement(item.parked_at)),
    h("td", { class: "error-text" }, item.error),
  );
}
