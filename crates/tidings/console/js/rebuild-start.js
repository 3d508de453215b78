// Starting a rebuild: what is to be built anew, from where, how fast. The dialog shows what the server would begin.

import { post } from "./api.js";
import { confirm } from "./confirm.js";
import { h, say } from "./dom.js";
import { checkField, choiceField, momentField, numberField } from "./fields.js";
import { absolute, count } from "./format.js";
import { nameOf } from "./rebuild-words.js";

const PATH = "/v1/admin/rebuilds";

const WAYS = [
  ["beside", "The next generation, beside the live one"],
  ["in-place", "In place: events are applied once more"],
];
const STARTS = [
  ["beginning", "The beginning of the log, or facts"],
  ["facts", "Facts"],
  ["moment", "A moment"],
  ["offset", "An offset of the outbox"],
];
const ENDS = [
  ["", "The present"],
  ["moment", "A moment"],
  ["offset", "An offset of the outbox"],
];

/** Asks for a rebuild of one of `names`; `done(rebuild)` when it is begun. */
export function startDialog({ names, done }) {
  const projector = choiceField({
    id: "rebuild-projector",
    label: "Projector",
    options: names.map((name) => [name, name]),
  });
  const way = choiceField({ id: "rebuild-way", label: "What is built", options: WAYS });
  const from = place("rebuild-from", "From", STARTS);
  const until = place("rebuild-until", "Until", ENDS);
  const pace = numberField({
    id: "rebuild-pace",
    label: "Events per second",
    help: "Or rows of facts; empty for no limit. Live events have room beside it.",
    max: 4294967295,
  });
  const hold = checkField({
    id: "rebuild-hold",
    label: "Hold it before the switch",
    help: "It is built and checked, and waits for your word before readers are given it.",
  });
  const dress = () => {
    const inPlace = way.value === "in-place";
    until.show(inPlace);
    hold.element.hidden = inPlace;
  };
  way.input.addEventListener("change", dress);
  dress();

  const wanted = () => {
    const inPlace = way.value === "in-place";
    return {
      projector: projector.value,
      from: from.value,
      until: inPlace ? until.value : undefined,
      in_place: inPlace,
      hold: !inPlace && hold.value,
      events_per_second: pace.value,
    };
  };
  return confirm({
    title: "Start a rebuild?",
    about: h(
      "p",
      {},
      "Reads and writes go on meanwhile. Whoever is killed is replaced, and the work goes on where it was.",
    ),
    fields: [projector, way, from, until, pace, hold],
    wanted,
    async preview(want, signal) {
      return { element: plan(want, await post(PATH, { ...want, dry_run: true }, { signal })) };
    },
    button: "Start",
    run: (want, _, key) => post(PATH, want, { key }),
    done,
  });
}

/** Where it begins or ends: a choice, and the field that the choice needs. */
function place(id, label, options) {
  const choice = choiceField({ id, label, options });
  const moment = momentField({ id: `${id}-moment`, label: `${label}: moment`, help: "In your browser's time zone." });
  const offset = numberField({ id: `${id}-offset`, label: `${label}: offset`, min: 0 });
  let shown = true;
  const dress = () => {
    choice.element.hidden = !shown;
    for (const [name, field] of Object.entries({ moment, offset })) {
      field.element.hidden = !shown || choice.value !== name;
      // What is hidden must not be asked to be valid.
      field.input.disabled = field.element.hidden;
      field.input.required = !field.element.hidden;
    }
  };
  choice.input.addEventListener("change", dress);
  dress();
  return {
    element: h("div", { class: "fields" }, choice.element, moment.element, offset.element),
    show(is) {
      shown = is;
      dress();
    },
    get value() {
      const given = { moment: moment.value, offset: offset.value?.toString() };
      return (choice.value in given ? given[choice.value] : choice.value) || undefined;
    },
  };
}

function plan(want, rebuild) {
  const from = spoken(want.from ?? "beginning");
  const sentence = rebuild.in_place
    ? `Events are applied once more to the live generation ${rebuild.generation} of ${rebuild.projector}, from ` +
      `${from} to ${spoken(want.until ?? "present")}. What is not newer has no effect.`
    : `Generation ${rebuild.generation} of ${rebuild.projector} would be built beside the live one, from ${from}, and ` +
      "compared with facts.";
  const end = rebuild.held
    ? "It waits for your word before readers are given it."
    : "Readers are given it at once when it is right, and the old one is removed.";
  const pace = rebuild.events_per_second
    ? `At most ${count(rebuild.events_per_second)} events or rows per second.`
    : "As fast as can be.";
  return h(
    "div",
    {},
    h("p", { "data-said": true }, h("strong", {}, sentence)),
    h("p", {}, rebuild.in_place ? pace : `${end} ${pace}`),
    rebuild.report && h("p", {}, h("strong", {}, `${rebuild.report}.`)),
  );
}

function spoken(text) {
  if (text === "beginning") return "the beginning of the log (or from facts where it no longer reaches back)";
  if (text === "present") return "the present";
  if (text === "facts") return "facts";
  return /^\d+$/.test(text) ? `offset ${count(Number(text))}` : absolute(Date.parse(text));
}

/** What was begun, as a sentence. */
export function begun(rebuild) {
  const sentence = `The rebuild of ${nameOf(rebuild)} begins within a second.`;
  say(sentence);
  return sentence;
}
