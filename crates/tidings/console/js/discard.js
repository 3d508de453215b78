// Discard: one waiting event is given up for good, with a reason, and the rest of its key goes on.

import { post } from "./api.js";
import { confirm } from "./confirm.js";
import { h, say } from "./dom.js";
import { longField, typedField } from "./fields.js";
import { count, keyText } from "./format.js";

/** Asks about one event that waits under `key` for `projector`. `item`: of the list of events; `isHead`: it failed. */
export function discardDialog({ projector, key, item, isHead, done }) {
  const reason = longField({
    id: "discard-reason",
    label: "Reason, for the audit",
    required: true,
    maxlength: 2000,
    help: "The audit keeps it with the whole event.",
  });
  const typed = typedField({ id: "discard-typed", word: keyText(key), what: "the key" });
  const which = item.event_id ? { event_id: item.event_id } : { part: item.part, offset: item.offset };
  return confirm({
    title: "Discard this event?",
    about: [about(projector, key, item, isHead)],
    fields: [reason, typed],
    wanted: () => ({ projector, key, ...which, reason: reason.value }),
    button: "Discard the event",
    danger: true,
    run: (want, _, request) => post("/v1/admin/parked/discard", want, { key: request }),
    done,
  });
}

function about(projector, key, item, isHead) {
  const what = item.event_type || "Something that is no event";
  return h(
    "div",
    { class: "foresight" },
    h("p", {}, h("strong", {}, what), ` at ${item.part}, offset ${count(item.offset)}`),
    item.event_id && h("p", {}, h("code", {}, item.event_id)),
    h(
      "p",
      {},
      `${projector} does not apply it then: what it would have changed is missing from the projection, unless later `,
      "events make up for it. A rebuild from the log would apply it after all, or fail at it. Run ",
      h("code", {}, "tidings verify"),
      " afterwards.",
    ),
    h(
      "p",
      {},
      isHead
        ? `It is the one that failed: the next event of key ${keyText(key)} is tried at once, with fresh attempts.`
        : `It waits behind another one: key ${keyText(key)} stays parked.`,
    ),
  );
}

/** What was done, as a notice. */
export function discarded({ was_head, freed }) {
  const then = freed
    ? " Nothing waits under the key any more: it is free."
    : was_head
      ? " The next event is tried."
      : "";
  say(`The event is discarded.${then}`);
  return h("p", { class: "notice good" }, h("strong", {}, "The event is discarded."), then);
}
