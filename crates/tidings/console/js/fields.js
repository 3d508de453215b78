// Fields of forms: a label, the control, a line of help, tied together for whoever listens.

import { h } from "./dom.js";

function tied(control, { id, label, help, short }) {
  const helpId = help && `${id}-help`;
  if (help) control.setAttribute("aria-describedby", helpId);
  const element = h(
    "div",
    { class: short ? "field field-short" : "field" },
    h("label", { for: id }, label),
    control,
    help && h("p", { class: "fine", id: helpId }, help),
  );
  return {
    element,
    input: control,
    get value() {
      return control.value.trim();
    },
  };
}

/** A line of text, or what `type` says. Other properties go to the control. */
export function textField({ id, label, help, short, ...rest }) {
  return tied(h("input", { id, type: "text", autocomplete: "off", spellcheck: "false", ...rest }), {
    id,
    label,
    help,
    short,
  });
}

/** A whole number; `value` is undefined when empty. */
export function numberField({ min = 1, ...rest }) {
  const field = textField({ type: "number", min, step: 1, inputmode: "numeric", ...rest });
  return {
    ...field,
    get value() {
      return field.input.value === "" ? undefined : Number(field.input.value);
    },
  };
}

/** Some lines of text. */
export function longField({ id, label, help, ...rest }) {
  return tied(h("textarea", { id, rows: "3", ...rest }), { id, label, help });
}

/** A choice among `options`, pairs of value and words. */
export function choiceField({ id, label, help, short, options, value, ...rest }) {
  const made = options.map(([each, words]) => h("option", { value: each, selected: each === value }, words));
  return tied(h("select", { id, ...rest }, made), { id, label, help, short });
}

/** Yes or no. */
export function checkField({ id, label, help, checked }) {
  const input = h("input", { id, type: "checkbox", checked, "aria-describedby": help && `${id}-help` });
  const element = h(
    "div",
    { class: "field check" },
    h("label", { for: id }, input, " ", label),
    help && h("p", { class: "fine", id: `${id}-help` }, help),
  );
  return {
    element,
    input,
    get value() {
      return input.checked;
    },
  };
}

/** A moment, entered in the browser's zone; `value` is RFC 3339 in UTC, or "". `at`: the same, to begin with. */
export function momentField({ at, ...rest }) {
  const field = textField({ type: "datetime-local", step: "1", value: at && localText(at), ...rest });
  return {
    ...field,
    get value() {
      const moment = new Date(field.input.value);
      return field.input.value && !Number.isNaN(moment.getTime()) ? moment.toISOString() : "";
    },
    put(text) {
      field.input.value = text ? localText(text) : "";
    },
  };
}

function localText(text) {
  const moment = new Date(text);
  if (Number.isNaN(moment.getTime())) return "";
  return new Date(moment.getTime() - moment.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

/** A field in which a word has to be typed before what cannot be undone is done. */
export function typedField({ id, word, what }) {
  const field = textField({
    id,
    label: h("span", {}, `Type ${what} to confirm: `, h("code", {}, word)),
    autocapitalize: "off",
    required: true,
  });
  const check = () =>
    field.input.setCustomValidity(field.input.value === word ? "" : `Type ${word} as it stands here.`);
  field.input.addEventListener("input", check);
  check();
  return field;
}
