// A small line over the last two minutes. Redrawn in place; a gap in the samples is a gap in the line.

import { svg } from "./dom.js";
import { WINDOW_MS } from "./flow-history.js";

const WIDTH = 240;
const HEIGHT = 36;
// Samples come each second; a longer silence is drawn as one.
const SILENCE_MS = 4000;

/** A sparkline: `{ element, draw(points, now, label) }`, points as `{ at, value }`. */
export function sparkline() {
  const area = svg("path", { class: "spark-area" });
  const line = svg("path", { class: "spark-line" });
  const element = svg(
    "svg",
    // The line is stretched to the card's width; its stroke is not (CSS: non-scaling-stroke).
    { class: "spark", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" },
    area,
    line,
  );
  return {
    element,
    draw(points, now, label) {
      const runs = runsOf(points.filter((point) => point.value !== null));
      // At least 1, so that an idle stage is a line at the foot and not noise blown up.
      const top = Math.max(1, ...points.map((point) => point.value ?? 0));
      const place = ({ at, value }) => [
        WIDTH * (1 - (now - at) / WINDOW_MS),
        // The line keeps clear of both edges by its own width.
        HEIGHT - 2 - (HEIGHT - 4) * (value / top),
      ];
      line.setAttribute("d", runs.map((run) => pathOf(run.map(place))).join(""));
      area.setAttribute("d", runs.map((run) => areaOf(run.map(place))).join(""));
      element.setAttribute("aria-label", label);
    },
  };
}

function runsOf(points) {
  const runs = [];
  for (const point of points) {
    const last = runs.at(-1)?.at(-1);
    if (last && point.at - last.at <= SILENCE_MS) runs.at(-1).push(point);
    else runs.push([point]);
  }
  return runs;
}

function pathOf(places) {
  return places.map(([x, y], i) => `${i === 0 ? "M" : "L"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
}

function areaOf(places) {
  const [first] = places[0];
  const [last] = places.at(-1);
  return `${pathOf(places)}L${last.toFixed(1)} ${HEIGHT}L${first.toFixed(1)} ${HEIGHT}Z`;
}
