// An action that asks first: it says what it would do, and does what it has said, nothing else.

import { Problem, Unreachable } from "./api.js";
import { dialog } from "./dialog.js";
import { h, once, say } from "./dom.js";
import { alertPlace } from "./problem.js";

// By these the action itself was refused; others, such as a session that is over, say nothing of what was asked before.
const REFUSALS = [400, 404, 409, 422];

/**
 * Opens the dialog of an action. `about`: what it does, as elements. `fields`: of fields.js. `wanted()`: what is
 * asked for by them. `preview(wanted, signal)`: what would be done, asked from the server, and as an `element`;
 * without it nothing is shown. `button`: the verb. `run(wanted, shown, key)`: does it as the preview has shown it,
 * once for each key; what it answers goes to `done`. `danger`: it cannot be undone.
 */
export function confirm({ title, about, fields = [], wanted = () => null, preview, button, danger, run, done }) {
  const alert = alertPlace();
  const foresight = preview && foresee(preview, wanted);
  const act = h(
    "button",
    { type: "submit", class: danger ? "strong danger" : "strong", "data-act": "confirm" },
    button,
  );
  const cancel = h("button", { type: "button", "data-act": "cancel" }, "Cancel");
  const form = h(
    "form",
    { class: "dialog-form" },
    about,
    fields.map((field) => field.element),
    foresight?.element,
    alert.element,
    h("div", { class: "dialog-acts" }, act, cancel),
    h("p", { class: "fine" }, h("kbd", {}, "Esc"), " leaves everything as it is."),
  );

  let isOpen = true;
  // What was asked for and not heard to be done or refused, and its key: pressed again, it is done once all the same.
  let unheard = null;

  function keyOf(want, seen) {
    const content = JSON.stringify([want, seen, fields.map((field) => field.value)]);
    if (unheard?.content !== content) unheard = { content, key: newKey() };
    return unheard.key;
  }

  async function submit() {
    alert.put(null);
    // What has changed since it was shown is shown first: nothing is done that was not seen.
    if (foresight && !(await foresight.isSeen())) return;
    try {
      const [want, seen] = [wanted(), foresight?.shown()];
      const answer = await run(want, seen, keyOf(want, seen));
      shown.close();
      done?.(answer);
    } catch (error) {
      alert.put(error);
      if (error instanceof Problem && REFUSALS.includes(error.status)) unheard = null;
      if (error instanceof Unreachable) say("The server is not reachable.");
      // Whoever has left it meanwhile is told all the same: the request went out.
      const outcome = error instanceof Unreachable ? "Not known to be done" : "Not done";
      if (!isOpen && error.status !== 401) tell(`${outcome}: ${title}`, alert.element);
      // It would have done something else than was shown: so it is shown what, and asked again.
      if (isOpen && error instanceof Problem && [404, 409].includes(error.status)) await foresight?.again();
    }
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    once(act, submit);
  });
  form.addEventListener("change", () => foresight?.look());
  const shown = dialog({
    title,
    content: form,
    onClose() {
      isOpen = false;
      foresight?.end();
    },
  });
  cancel.addEventListener("click", shown.close);
  foresight?.look();
  return shown;
}

function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function tell(title, alert) {
  const close = h("button", { type: "button", class: "strong" }, "Close");
  const acts = h("div", { class: "dialog-acts" }, close);
  const { close: leave } = dialog({ title, content: h("div", {}, alert, acts) });
  close.addEventListener("click", leave);
}

/** The place that says what would be done. */
function foresee(preview, wanted) {
  const body = h("div", {}, h("p", { class: "loading" }, "Asking what it would do…"));
  const element = h("div", { class: "foresight", role: "group", "aria-label": "What it will do" }, body);
  const heard = h("p", { class: "heard", role: "status", "aria-live": "polite" });
  element.append(heard);
  const alert = alertPlace();
  let asked = null;
  let seen = null;
  let shown = null;
  let asking = null;
  let going = new AbortController();

  async function look() {
    const want = wanted();
    const text = JSON.stringify(want);
    if (text === asked) return asking;
    asked = text;
    seen = null;
    going.abort();
    going = new AbortController();
    asking = show(want, text, going.signal);
    return asking;
  }

  async function show(want, text, signal) {
    try {
      const answer = await preview(want, signal);
      alert.put(null);
      body.replaceChildren(answer.element);
      [seen, shown] = [text, answer];
      heard.textContent = answer.element.querySelector("[data-said]")?.textContent ?? "";
    } catch (error) {
      if (signal.aborted) return;
      asked = null;
      alert.put(error);
      body.replaceChildren(alert.element);
    }
  }

  return {
    element,
    look,
    again() {
      asked = null;
      return look();
    },
    shown: () => shown,
    end: () => going.abort(),
    async isSeen() {
      const before = seen;
      if (before !== null && before === JSON.stringify(wanted())) return true;
      await look();
      return false;
    },
  };
}
