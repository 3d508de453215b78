// Elements from data. Text goes in as text nodes only, so nothing a user or an event says can
// become markup; there is no innerHTML in the console.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else {
      element.setAttribute(name, value === true ? "" : value);
    }
  }
  element.append(...children.flat().filter((child) => child !== undefined && child !== null && child !== false));
  return element;
}

/** An HTML element: `h("a", { href: "#/flow", on: { click } }, "Flow")`. Empty children are left out. */
export function h(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children);
}

/** The same for SVG. */
export function svg(tag, props = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

/** Sets text only where it differs: an unchanged node is not announced, selected text stays selected. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/**
 * Runs `work` unless it is running already. The button says it is busy but is not disabled: a
 * disabled button drops the focus, and a keyboard would start again at the top of the page.
 */
export async function once(button, work) {
  if (button.getAttribute("aria-busy") === "true") return;
  button.setAttribute("aria-busy", "true");
  try {
    await work();
  } finally {
    button.removeAttribute("aria-busy");
  }
}

/** Says a sentence to a screen reader, politely. The same sentence twice is said once. */
export function say(sentence) {
  setText(document.getElementById("said"), sentence);
}

/** Gives the focus to the page's heading: where reading begins, when what had it is gone. */
export function focusHeading() {
  const heading = document.querySelector("#main h1");
  heading?.setAttribute("tabindex", "-1");
  heading?.focus({ preventScroll: true });
}

/** Shows or hides a control; a hidden one would drop the focus. */
export function showIf(element, isShown) {
  if (!isShown && element === document.activeElement) focusHeading();
  element.hidden = !isShown;
}
