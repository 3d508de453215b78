// The filter of the parked keys, as the API has it: all that is given must be met.

import { h } from "./dom.js";
import { choiceField, momentField, textField } from "./fields.js";

const STATES = [
  ["", "Every state"],
  ["dead", "Dead"],
  ["retrying", "Retrying"],
  ["redriving", "Redriving"],
];

/** `{ element, wanted, isEmpty, focus }`. `query`: what the address says. `changed()`: called when it is applied. */
export function parkedFilter(query, changed) {
  const fields = {
    state: choiceField({ id: "parked-state", label: "State", short: true, options: STATES, value: query.state }),
    projector: textField({ id: "parked-projector", label: "Projector", short: true, value: query.projector }),
    key: textField({ id: "parked-key", label: "Key", short: true, value: query.key }),
    event_type: textField({ id: "parked-type", label: "Event type", short: true, value: query.event_type }),
    error: textField({ id: "parked-error", label: "Error contains", value: query.error }),
    parked_from: momentField({ id: "parked-from", label: "Parked from", short: true, at: query.parked_from }),
    parked_before: momentField({ id: "parked-before", label: "Parked before", short: true, at: query.parked_before }),
  };
  const clear = h("button", { type: "button", class: "quiet" }, "Clear");
  const element = h(
    "form",
    { class: "fields filter", role: "search", "aria-label": "Filter parked keys" },
    Object.values(fields).map((field) => field.element),
    h("div", { class: "filter-acts" }, h("button", { type: "submit" }, "Filter"), clear),
  );
  // What is typed counts only when it is applied: a list must not run from under a hand that types.
  let wanted = read();

  function read() {
    return Object.fromEntries(Object.entries(fields).flatMap(([name, { value }]) => (value ? [[name, value]] : [])));
  }
  function apply(event) {
    event?.preventDefault();
    wanted = read();
    changed();
  }

  element.addEventListener("submit", apply);
  clear.addEventListener("click", () => {
    element.reset();
    for (const { input } of Object.values(fields)) input.value = "";
    apply();
  });
  return {
    element,
    get wanted() {
      return wanted;
    },
    get isEmpty() {
      return Object.keys(wanted).length === 0;
    },
    focus: () => fields.state.input.focus(),
  };
}
