// Redrive: parked keys are tried again. The dialog shows the server's dry run of exactly what is asked for.

import { post } from "./api.js";
import { confirm } from "./confirm.js";
import { h, say } from "./dom.js";
import { longField, numberField } from "./fields.js";
import { count, counted, duration, keyText } from "./format.js";
import { stateMark } from "./state.js";

const PATH = "/v1/admin/parked/redrive";
const SHOWN = 8;

/** Asks about the keys that `filter` means; an empty one means every key. `done(plan)` when they are redriven. */
export function redriveDialog({ filter, done }) {
  const pace = numberField({
    id: "redrive-pace",
    label: "Events per second",
    help: "Over all the keys; empty for as fast as can be. Live events have room beside it.",
    max: 4294967295,
  });
  const reason = longField({ id: "redrive-reason", label: "Reason, for the audit", maxlength: 2000, rows: "2" });
  const which = Object.keys(filter).length > 0 ? filter : { all: true };
  const wanted = () => ({ ...which, events_per_second: pace.value });
  return confirm({
    title: title(filter),
    about: h(
      "p",
      {},
      "Each key is tried in the order of its events, the longest parked key first. A key that was dead stops at its " +
        "first new failure: it is dead again, and what came before is applied.",
    ),
    fields: [pace, reason],
    wanted,
    async preview(want, signal) {
      const plan = await post(PATH, { ...want, dry_run: true }, { signal });
      return { ...plan, element: planElement(plan) };
    },
    button: "Redrive",
    // However long it was read: what has died meanwhile was not shown.
    run: (want, { until, keys }, key) =>
      post(PATH, { ...want, shown: { until, keys }, reason: reason.value || undefined }, { key }),
    done,
  });
}

function title({ projector, key, ...rest }) {
  const isOne = projector && key !== undefined && Object.keys(rest).length === 0;
  if (isOne) return `Redrive key ${keyText(key)} of ${projector}?`;
  const isAll = !projector && key === undefined && Object.keys(rest).length === 0;
  return isAll ? "Redrive every key?" : "Redrive what the filter shows?";
}

/** What was done, as a notice. */
export function redriven(plan) {
  const text = `${counted(plan.keys, "key")} with ${counted(plan.waiting, "waiting event")} ${
    plan.keys === 1 ? "is" : "are"
  } tried again.`;
  say(text);
  const left = plan.left > 0 && ` ${counted(plan.left, "more key")} match and are left: redrive again.`;
  return h("p", { class: "notice good" }, h("strong", {}, text), left);
}

function planElement(plan) {
  const sum = `${counted(plan.keys, "key")} with ${counted(plan.waiting, "waiting event")} would be tried again.`;
  const time = plan.takes_ms > 0 ? `The last event is tried in ${duration(plan.takes_ms)}.` : "All at once.";
  const items = plan.items.slice(0, SHOWN);
  const more = plan.keys - items.length;
  return h(
    "div",
    {},
    h("p", { "data-said": true }, h("strong", {}, sum), " ", time),
    plan.left > 0 && h("p", {}, `${counted(plan.left, "more key")} match and would be left for another redrive.`),
    h(
      "ul",
      { class: "plan", "aria-label": "Keys, in the order in which they are tried" },
      items.map((item) =>
        h(
          "li",
          {},
          h("span", {}, h("code", {}, keyText(item.key)), " of ", h("code", {}, item.projector)),
          stateMark(item.state),
          h("span", { class: "fine" }, counted(item.waiting, "event")),
          h("span", { class: "fine" }, item.after_ms > 0 ? `in ${duration(item.after_ms)}` : "at once"),
        ),
      ),
    ),
    more > 0 && h("p", { class: "fine" }, `and ${count(more)} more`),
  );
}
