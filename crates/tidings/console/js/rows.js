// Rows that are drawn from one answer after the other. What did not change stays the same element, so that focus,
// an open <details>, a selection and a click that has begun survive the polling.

// Set by the reader or by once(), not by what is drawn.
const OWN = new Set(["open", "aria-busy"]);

/**
 * `{ put(items) }` over `parent`. `key(item)` names a row. `draw(item, current)` makes its element; what its
 * listeners need, they take from `current()`, since the element may outlive the item it was drawn from. A control
 * that is drawn sometimes only, or must keep the focus, has a `data-act` that is its own within the row.
 */
export function keyedRows(parent, { key, draw }) {
  let known = new Map();
  return {
    put(items) {
      const focused = parent.contains(document.activeElement) ? document.activeElement : null;
      const home = focused && [...known.values()].find((row) => row.element.contains(focused));
      const rows = new Map();
      for (const item of items) rows.set(key(item), drawn(known.get(key(item)), item, draw));
      for (const [name, row] of known) if (!rows.has(name)) row.element.remove();
      let place = parent.firstElementChild;
      for (const { element } of rows.values()) {
        if (element === place) place = place.nextElementSibling;
        else parent.insertBefore(element, place);
      }
      known = rows;
      if (focused && document.activeElement !== focused) refocus(parent, home, focused);
    },
  };
}

function drawn(row, item, draw) {
  const text = JSON.stringify(item);
  if (row?.text === text) return row;
  if (!row) {
    const fresh = { text, item };
    fresh.element = draw(item, () => fresh.item);
    return fresh;
  }
  row.text = text;
  row.item = item;
  row.element = morph(
    row.element,
    draw(item, () => row.item),
  );
  return row;
}

// A row may have gone with the control in it: then the list keeps the focus, not the top of the page.
function refocus(parent, row, focused) {
  const act = focused.dataset.act;
  const same = act && row?.element.isConnected && row.element.querySelector(`[data-act="${act}"]`);
  (same || parent.closest("[tabindex]"))?.focus();
}

/** Makes `old` look like `fresh` with as few changes as can be; answers the node that stands there now. */
function morph(old, fresh) {
  if (old.isEqualNode(fresh)) return old;
  if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName || old.dataset?.act !== fresh.dataset?.act) {
    old.replaceWith(fresh);
    return fresh;
  }
  if (old.nodeType === Node.TEXT_NODE) {
    old.data = fresh.data;
    return old;
  }
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && !OWN.has(name)) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (!OWN.has(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  const [before, after] = [[...old.childNodes], [...fresh.childNodes]];
  after.forEach((child, i) => (before[i] ? morph(before[i], child) : old.append(child)));
  for (const child of before.slice(after.length)) child.remove();
  return old;
}
