// What an operator does with a rebuild that is under way: each asks first, and says what it will do.

import { post } from "./api.js";
import { confirm } from "./confirm.js";
import { h, say } from "./dom.js";
import { checkField, numberField, typedField } from "./fields.js";
import { nameOf } from "./rebuild-words.js";

/** The button of each action, in words. */
export const WORDS = { pause: "Pause…", resume: "Resume…", switch: "Switch…", cancel: "Cancel it…" };

/** Opens the dialog of `act` for a rebuild; `done(sentence)` when it is done. */
export function actDialog(act, rebuild, done) {
  return { pause, resume, switch: switchOver, cancel }[act](rebuild, done);
}

function path(rebuild, act, query = "") {
  return `/v1/admin/rebuilds/${encodeURIComponent(rebuild.projector)}/${act}${query}`;
}

function told(done, sentence) {
  return () => {
    say(sentence);
    done(sentence);
  };
}

function pause(rebuild, done) {
  return confirm({
    title: `Pause the rebuild of ${nameOf(rebuild)}?`,
    about: h(
      "p",
      {},
      "It stops where it is and keeps what it has built. Readers notice nothing. Kafka's retention does not wait: " +
        "events that go from a topic meanwhile would be missing, and the rebuild would fail and say so.",
    ),
    button: "Pause it",
    run: (_, __, key) => post(path(rebuild, "pause"), undefined, { key }),
    done: told(done, `The rebuild of ${rebuild.projector} is held up.`),
  });
}

function resume(rebuild, done) {
  const pace = numberField({
    id: "resume-pace",
    label: "Events per second",
    min: 0,
    max: 4294967295,
    help: "0 for no limit; empty for the pace it has.",
    value: rebuild.events_per_second,
  });
  const what =
    rebuild.state === "failed"
      ? "It goes on from where it is and is checked again."
      : "It goes on from where it was held up.";
  return confirm({
    title: `Resume the rebuild of ${nameOf(rebuild)}?`,
    about: h("p", {}, what),
    fields: [pace],
    wanted: () => pace.value,
    button: "Resume it",
    run(limit, _, key) {
      const query = limit === undefined ? "" : `?events_per_second=${limit}`;
      return post(path(rebuild, "resume", query), undefined, { key });
    },
    done: told(done, `The rebuild of ${rebuild.projector} goes on.`),
  });
}

function switchOver(rebuild, done) {
  const force = checkField({
    id: "switch-force",
    label: "Force it",
    help: "Whatever the check says, and without the events of its dead keys.",
  });
  const typed = typedField({ id: "switch-typed", word: rebuild.projector, what: "the projector" });
  // The word is asked for only where something may be lost.
  const dress = () => {
    typed.element.hidden = !force.value;
    typed.input.disabled = !force.value;
  };
  force.input.addEventListener("change", dress);
  dress();
  return confirm({
    title: `Give readers ${nameOf(rebuild)}?`,
    about: [
      h(
        "p",
        {},
        "It catches up and is checked again. If it is right, readers are given it in one transaction, and the old " +
          "generation is removed together with its parking lot. There is no way back.",
      ),
      rebuild.report && h("p", { class: "foresight" }, h("strong", {}, "Last check: "), rebuild.report),
    ],
    fields: [force, typed],
    wanted: () => force.value,
    button: "Switch",
    danger: true,
    run: (forced, _, key) => post(path(rebuild, "switch", forced ? "?force=true" : ""), undefined, { key }),
    done: told(done, `${rebuild.projector} is checked again, and readers are given it if it is right.`),
  });
}

function cancel(rebuild, done) {
  const lost = rebuild.in_place
    ? "What was applied stays; it does no harm. The rest is not applied."
    : "What was built so far is removed. Readers keep the generation that they have.";
  const typed = typedField({ id: "cancel-typed", word: rebuild.projector, what: "the projector" });
  return confirm({
    title: `Give up the rebuild of ${nameOf(rebuild)}?`,
    about: h("p", {}, lost),
    fields: rebuild.in_place ? [] : [typed],
    button: "Give it up",
    danger: true,
    run: (_, __, key) => post(path(rebuild, "cancel"), undefined, { key }),
    done: told(done, `The rebuild of ${rebuild.projector} is given up.`),
  });
}
