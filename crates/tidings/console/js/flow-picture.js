// The path of a write as one picture: request, facts + outbox, log, projectors, projections. Distributed,
// the relay stands with the topics that it fills. Boxes are made once and then only their figures change, so
// focus, selection and animation stay.

import { h, setText } from "./dom.js";
import { NOTHING, count, counted, duration, rate } from "./format.js";
import { LATE_MS, sum, word } from "./flow-history.js";
import { flowParts } from "./flow-parts.js";
import { sparkline } from "./spark.js";

// What a reader sees of a projection; a projector that is not listed shows its name alone.
const PROJECTIONS = { relation: "follower lists, counters" };

/** The picture: `{ element, draw(stages, log, now) }`. */
export function flowPicture() {
  const request = node("Request", "HTTP, under /v1");
  const requestRate = bigRate("commands");
  request.body.append(requestRate.element);
  const facts = node("Facts + outbox", "one transaction", wire());
  const log = node("Log", "in commit order", wire());
  const projectors = h("ol", { class: "branches" });
  const element = h(
    "ol",
    { class: "path", "aria-label": "The path of a write" },
    h("li", { class: "step step-request" }, request.element),
    h("li", { class: "step step-facts" }, facts.element),
    h("li", { class: "step step-log" }, log.element),
    h("li", { class: "step step-branches" }, projectors),
  );
  const meters = new Map();
  const meter = (stage, make) => {
    const id = `${stage.stage}/${stage.name}`;
    if (!meters.has(id)) meters.set(id, make(stage));
    return meters.get(id);
  };

  return {
    element,
    draw(stages, logEnds, now) {
      const relayed = stages.some((stage) => stage.stage === "relay");
      const ledgers = stages.filter((stage) => stage.stage === "facts");
      const commands = ledgers.some((stage) => stage.rate !== null) ? sum(ledgers, "rate") : null;
      requestRate.put(commands);
      facts.wire.put(commands);
      for (const stage of stages) {
        if (stage.stage === "facts") meter(stage, () => factsMeter(stage, facts.body)).draw(stage, now);
        if (stage.stage === "outbox") meter(stage, () => logMeter(stage, facts.body)).draw(stage, now, logEnds);
        if (stage.stage === "relay") {
          log.rename("Relay + log", "from the database's log to Kafka");
          meter(stage, () => relayMeter(stage, log.body)).draw(stage, now);
          log.wire.put(stage.rate);
        }
        if (stage.stage === "log" && relayed) meter(stage, () => topicMeter(stage, log.body)).draw(stage, now);
        if (stage.stage === "log" && !relayed) {
          meter(stage, () => logMeter(stage, log.body)).draw(stage, now, logEnds);
          log.wire.put(stage.rate);
        }
        if (stage.stage === "projector") meter(stage, () => branch(stage, projectors)).draw(stage, now);
      }
    },
  };
}

// `lead`: the wire that leads to this box; the first box has none.
function node(title, subtitle, lead) {
  const body = h("div", { class: "node-body" });
  const [name, about] = [h("h2", {}, title), h("p", {}, subtitle)];
  const head = h("div", { class: "node-head" }, name, about);
  const rename = (newTitle, newSubtitle) => {
    setText(name, newTitle);
    setText(about, newSubtitle);
  };
  return { element: h("section", { class: "node" }, lead?.element, head, body), body, wire: lead, rename };
}

function bigRate(unit) {
  const figure = h("b", {}, NOTHING);
  return {
    element: h("p", { class: "rate" }, figure, h("span", {}, ` ${unit}/s`)),
    put: (value) => setText(figure, rate(value)),
  };
}

// The moving dashes say "something flows"; how much is said by the figures.
function wire() {
  const element = h("span", { class: "wire", "aria-hidden": "true" });
  return { element, put: (perSecond) => element.classList.toggle("flowing", perSecond > 0) };
}

/** Rows of a stage's figures: `{ element, put(name, text, tone) }`. */
function figures(names) {
  const cells = new Map();
  const rows = Object.entries(names).map(([name, label]) => {
    const cell = h("dd", { "data-metric": name }, NOTHING);
    cells.set(name, cell);
    return h("div", {}, h("dt", {}, label), cell);
  });
  return {
    element: h("dl", { class: "figures" }, rows),
    put(name, text, tone = "") {
      setText(cells.get(name), text);
      cells.get(name).dataset.tone = tone;
    },
  };
}

function stateMark() {
  const text = h("span", {}, "");
  const element = h("span", { class: "state" }, h("i", { "aria-hidden": "true" }), text);
  return {
    element,
    put(stage) {
      element.dataset.state = stage.state;
      element.title = stage.detail ?? "";
      setText(text, word(stage.state));
    },
  };
}

/** What every metered stage has: name, state, rate, sparkline, figures. */
function stageMeter(stage, unit, names) {
  const state = stateMark();
  const big = bigRate(unit);
  const spark = sparkline();
  const table = figures(names);
  const element = h(
    "div",
    { class: "meter", "data-stage": stage.stage, "data-name": stage.name },
    h("p", { class: "meter-name" }, h("code", {}, stage.name), state.element),
    big.element,
    spark.element,
    table.element,
  );
  return {
    element,
    put: table.put,
    draw(now, current) {
      state.put(current);
      big.put(current.rate);
      const points = current.series.map((sample) => ({ at: sample.at, value: sample.rate }));
      const top = Math.max(0, ...points.map((point) => point.value ?? 0));
      spark.draw(points, now, `${unit} per second over the last two minutes, at most ${rate(top)}`);
    },
  };
}

function factsMeter(stage, place) {
  const meter = stageMeter(stage, "commands", { total: "Total" });
  place.append(meter.element);
  return {
    draw(current, now) {
      meter.draw(now, current);
      meter.put("total", count(current.total));
    },
  };
}

function logMeter(stage, place) {
  const meter = stageMeter(stage, "events", { total: "Total", head: "Head", earliest: "Earliest" });
  place.append(meter.element);
  return {
    draw(current, now, ends) {
      meter.draw(now, current);
      meter.put("total", count(current.total));
      meter.put("head", count(ends.head));
      meter.put("earliest", count(ends.earliest));
    },
  };
}

function relayMeter(stage, place) {
  const meter = stageMeter(stage, "events", { total: "Total", lag: "Not yet relayed", oldest: "Oldest of them" });
  place.append(meter.element);
  return {
    draw(current, now) {
      meter.draw(now, current);
      meter.put("total", count(current.total));
      meter.put("lag", count(current.lag), current.oldest_age_ms > LATE_MS ? "warn" : "");
      meter.put("oldest", current.lag > 0 ? duration(current.oldest_age_ms) : NOTHING);
    },
  };
}

// Offsets of a topic: the ends of the relay's transactions are counted as well.
function topicMeter(stage, place) {
  const meter = stageMeter(stage, "offsets", { end: "End" });
  place.append(meter.element);
  return {
    draw(current, now) {
      meter.draw(now, current);
      meter.put("end", count(current.position));
    },
  };
}

// A projector and what it maintains: one branch of the path.
function branch(stage, place) {
  const meter = stageMeter(stage, "events", {
    total: "Total",
    lag: "Lag",
    oldest: "Oldest not applied",
    parked: "Keys being retried",
    dead: "Dead keys",
  });
  const projector = node("Projector", "position and effects, one transaction", wire());
  const parts = flowParts(stage.name);
  projector.body.append(meter.element, parts.element);
  const projection = node("Projection", PROJECTIONS[stage.name] ?? stage.name, wire());
  const shown = figures({ position: "Shows up to", behind: "Behind" });
  const lagLine = sparkline();
  projection.body.append(h("p", { class: "spark-title" }, "Lag, in events"), lagLine.element, shown.element);
  place.append(h("li", { class: "branch" }, projector.element, projection.element));
  return {
    draw(current, now) {
      meter.draw(now, current);
      meter.put("total", count(current.total));
      const late = current.oldest_age_ms > LATE_MS ? "warn" : "";
      meter.put("lag", count(current.lag), late);
      meter.put("oldest", current.lag > 0 ? duration(current.oldest_age_ms) : NOTHING);
      meter.put("parked", count(current.parked_keys), current.parked_keys > 0 ? "warn" : "");
      meter.put("dead", count(current.dead_keys), current.dead_keys > 0 ? "bad" : "");
      parts.put(current.parts ?? []);
      shown.put("position", count(current.position));
      shown.put(
        "behind",
        current.lag > 0 ? duration(current.oldest_age_ms) : "up to date",
        current.lag > 0 ? late : "good",
      );
      const lags = current.series.map((sample) => ({ at: sample.at, value: sample.lag }));
      lagLine.draw(
        lags,
        now,
        `Lag over the last two minutes, at most ${counted(Math.max(...lags.map((point) => point.value)), "event")}`,
      );
      for (const each of [projector, projection]) each.wire.put(current.rate);
    },
  };
}
