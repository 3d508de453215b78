// Numbers, durations and times as people read them. One language throughout: the console is
// written in English, so its figures are too.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const oneDigit = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "long" });
const clock = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });

/** What stands where there is no value. */
export const NOTHING = "–";

/** 578006 as "578,006"; no value as a dash. */
export function count(number) {
  return number === null || number === undefined ? NOTHING : whole.format(number);
}

/** "1 event", "12 events". */
export function counted(number, one, many = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : many}`;
}

/** The key of an event, so that one can see it and click it where it is empty. */
export function keyText(key) {
  return key === "" ? "(empty)" : key;
}

/** A rate per second: a decimal below 10, where it means something. */
export function rate(perSecond) {
  if (perSecond === null || perSecond === undefined) return NOTHING;
  return perSecond < 10 ? oneDigit.format(perSecond) : whole.format(perSecond);
}

/** Milliseconds as "0 ms", "850 ms", "3.2 s", "4 min 10 s", "2 h 5 min", "3 d 4 h". */
export function duration(ms) {
  if (ms === null || ms === undefined) return NOTHING;
  if (ms < 1000) return `${whole.format(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 10) return `${oneDigit.format(seconds)} s`;
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return pair(minutes, "min", Math.floor(seconds % 60), "s");
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return pair(hours, "h", minutes % 60, "min");
  return pair(Math.floor(hours / 24), "d", hours % 24, "h");
}

function pair(big, bigUnit, small, smallUnit) {
  return small === 0 ? `${big} ${bigUnit}` : `${big} ${bigUnit} ${small} ${smallUnit}`;
}

/** "3 seconds ago", "in 2 minutes": `at` seen from `now`, both in epoch milliseconds. */
export function ago(at, now) {
  const seconds = (at - now) / 1000;
  const size = Math.abs(seconds);
  if (size < 1) return "now";
  if (size < 60) return relative.format(Math.trunc(seconds), "second");
  if (size < 3600) return relative.format(Math.trunc(seconds / 60), "minute");
  if (size < 86_400) return relative.format(Math.trunc(seconds / 3600), "hour");
  return relative.format(Math.trunc(seconds / 86_400), "day");
}

/** "2026-11-01 12:03:05.123 UTC", for titles: one absolute form, whatever the browser's zone. */
export function absolute(at) {
  return `${new Date(at).toISOString().replace("T", " ").replace("Z", "")} UTC`;
}

/** "12:03:05" in the browser's zone. */
export function timeOfDay(at) {
  return clock.format(at);
}
