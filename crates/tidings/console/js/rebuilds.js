// Page: rebuilds. The last one of each projector, with its progress; starting another.

import { get } from "./api.js";
import { h, once, say } from "./dom.js";
import { pageKeys } from "./keys.js";
import { listing } from "./listing.js";
import { alertPlace } from "./problem.js";
import { projectorNames } from "./projectors.js";
import { actDialog } from "./rebuild-acts.js";
import { rebuildCard } from "./rebuild-card.js";
import { begun, startDialog } from "./rebuild-start.js";
import { route } from "./router.js";

const EVERY_MS = 1000;

const ABOUT =
  "The next generation of a projection is built beside the one that is read, compared with facts, and given to " +
  "readers in one transaction, while reads and writes go on.";

export const rebuildsPage = { title: "Rebuilds", show };

function show(outlet) {
  const alert = alertPlace();
  const notice = h("div", { class: "notice-place" });
  const leaving = new AbortController();
  let states = new Map();
  const list = listing({
    label: "The last rebuild of each projector",
    noun: "rebuild",
    key: (rebuild) => rebuild.projector,
    draw: (rebuild, current) => rebuildCard(rebuild, (act) => actDialog(act, current(), done)),
    ask: (_, signal) => get("/v1/admin/rebuilds", {}, { signal }),
    everyMs: EVERY_MS,
    empty: [h("strong", {}, "Nothing was rebuilt yet."), h("p", {}, "A projection that is right needs none.")],
    onItems(items) {
      // Progress is for the eye; that it came to another state is worth saying.
      for (const { projector, state } of items) {
        if (states.has(projector) && states.get(projector) !== state) say(`The rebuild of ${projector} is ${state}.`);
      }
      states = new Map(items.map(({ projector, state }) => [projector, state]));
    },
  });
  const start = h(
    "button",
    { type: "button", class: "strong", id: "start-rebuild", "aria-keyshortcuts": "s" },
    "Start a rebuild…",
  );
  start.addEventListener("click", () => once(start, open));

  function done(sentence) {
    notice.replaceChildren(h("p", { class: "notice good" }, sentence));
    list.again();
  }
  async function open() {
    alert.put(null);
    try {
      const names = await projectorNames(leaving.signal);
      startDialog({ names, done: (rebuild) => done(begun(rebuild)) });
    } catch (error) {
      if (!leaving.signal.aborted) alert.put(error);
    }
  }

  outlet.append(
    h("div", { class: "page-head" }, h("h1", {}, "Rebuilds"), start),
    h("p", { class: "lead" }, ABOUT),
    h("div", { class: "acts" }, h("a", { href: route("audit") }, "What operators did")),
    alert.element,
    notice,
    list.element,
    pageKeys([{ key: "s", does: "start a rebuild", run: () => start.click() }]),
  );
  list.start();
  return () => {
    leaving.abort();
    list.stop();
  };
}
