// Page: the live flow.

import { get } from "./api.js";
import { h, say, setText } from "./dom.js";
import { FlowHistory } from "./flow-history.js";
import { flowPicture } from "./flow-picture.js";
import { verdict, worst } from "./flow-verdict.js";
import { count, duration, rate, timeOfDay } from "./format.js";
import { pageKeys } from "./keys.js";
import { poll } from "./poll.js";
import { alertPlace } from "./problem.js";
import { route } from "./router.js";
import { learnServerTime } from "./time.js";

const EVERY_MS = 1000;

// Outlives the page, so that the sparklines are still there after a look at the events.
const history = new FlowHistory();

const ABOUT =
  "A write commits once, as a row and an event in one transaction; everything to its right follows from the event. " +
  "Rates are taken from two answers, a second apart; lines show the last two minutes.";

export const flowPage = { title: "Flow", show };

function show(outlet) {
  const alert = alertPlace();
  const asOf = h("span", { class: "as-of" });
  const sentence = verdictLine();
  const tiles = summary();
  const picture = flowPicture();
  // An empty picture would say "nothing flows"; before the first answer nobody knows.
  const body = h("div", { hidden: true }, sentence.element, tiles.element, picture.element);
  outlet.append(
    h("div", { class: "page-head" }, h("h1", {}, "Flow"), asOf),
    alert.element,
    body,
    h("p", { class: "fine foot" }, ABOUT),
    pageKeys([]),
  );

  return poll(
    EVERY_MS,
    async (signal) => {
      const answer = await get("/v1/admin/flow", { parts: true }, { signal });
      learnServerTime(answer.at);
      const stages = history.take(answer);
      sentence.put(stages);
      tiles.put(stages);
      picture.draw(stages, answer.log, Date.parse(answer.at));
      body.hidden = false;
      setText(asOf, `As of ${timeOfDay(Date.parse(answer.at))}`);
    },
    alert.put,
  );
}

function verdictLine() {
  const text = h("strong", {});
  const more = h("span", {});
  const link = h("a", { href: route("parked"), hidden: true }, "See the parked keys");
  const words = h("span", {}, text, " ", more, " ", link);
  const element = h("p", { class: "verdict", id: "verdict" }, h("i", { "aria-hidden": "true" }), words);
  let kind = "";
  return {
    element,
    put(stages) {
      const now = verdict(stages);
      element.dataset.tone = now.tone;
      setText(text, now.text);
      setText(more, now.more);
      link.hidden = !now.parked;
      // Figures change each second; only a change of kind is worth interrupting a listener for.
      if (now.kind !== kind) say(now.text);
      kind = now.kind;
    },
  };
}

function summary() {
  const tile = (label) => {
    const figure = h("dd", {});
    return { figure, element: h("div", { class: "tile" }, h("dt", {}, label), figure) };
  };
  const committed = tile("Events committed, per second");
  const applied = tile("Events applied, per second");
  const lag = tile("Events not yet applied");
  const age = tile("Age of the oldest of them");
  return {
    element: h(
      "dl",
      { class: "tiles" },
      [committed, applied, lag, age].map((each) => each.element),
    ),
    put(stages) {
      const find = (name) => stages.find((stage) => stage.stage === name);
      const committedTo = find("outbox") ?? find("log");
      const projectors = stages.filter((stage) => stage.stage === "projector");
      const behind = worst(stages.filter((stage) => stage.stage === "projector" || stage.stage === "relay"));
      // Every projector applies every event: added up they would outrun the log. The slowest counts.
      const active = projectors.filter((stage) => stage.rate !== null && stage.state !== "unregistered");
      setText(committed.figure, rate(committedTo?.rate));
      setText(applied.figure, rate(active.length ? Math.min(...active.map((stage) => stage.rate)) : null));
      setText(lag.figure, count(projectors.length ? Math.max(...projectors.map((stage) => stage.lag)) : null));
      setText(age.figure, behind ? duration(behind.oldest_age_ms) : "none waiting");
    },
  };
}
