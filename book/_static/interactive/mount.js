// Puts a figure on the page: examples, the drawing, a sentence that says what is seen, controls.
//
// A figure is { title, examples, controls, compute, draw, say, fix?, limits? }:
//   examples   names and states; the first is the one at the start and after "Reset"
//   controls   { key, label } and for a slider min, max and step, for a choice options, for a
//              text rows; without these a box to tick
//   compute(state)        numbers; throws an InputError for what was typed wrongly
//   draw(result, width)   SVG text
//   say(result)           the sentence
//   read?(result)         what readers hear in place of the drawing; else the title
//   fix(state, key)       what a change of one control changes in others
//   limits(state)         largest values of sliders, by key
import { InputError } from "./numbers/arrays.js";

let count = 0;

function element(name, given, ...children) {
  const made = document.createElement(name);
  for (const key in given) made.setAttribute(key, given[key]);
  made.append(...children);
  return made;
}

/** Make the element of a control, with functions that read and write its value. */
function build({ key, label, min, max, step = 1, options, rows }) {
  const id = `interactive-${++count}`;
  const name = element("label", { for: id }, label);
  const made = (kind, field, read, write, output = "") => {
    const line = kind === "check" ? [field, name] : [name, output, field];
    const box = element("div", { class: `interactive-${kind}` }, ...line);
    return { key, kind, field, read, write, box };
  };
  if (options) {
    const names = options.map(([, text], i) => element("option", { value: i }, text));
    const field = element("select", { id }, ...names);
    const read = () => options[field.value][0];
    const write = (value) => (field.value = options.findIndex(([option]) => option === value));
    return made("select", field, read, write);
  }
  if (rows) {
    const field = element("textarea", { id, rows, maxlength: 400, spellcheck: "false" });
    return made("text", field, () => field.value, (value) => (field.value = value));
  }
  if (max === undefined) {
    const field = element("input", { id, type: "checkbox" });
    return made("check", field, () => field.checked, (value) => (field.checked = value));
  }
  const field = element("input", { id, type: "range", min, max, step });
  const output = element("span", { "aria-hidden": "true" }); // the slider itself says it
  const write = (value) => {
    field.value = value;
    output.textContent = String(value).replace("-", "−");
  };
  return made("range", field, () => Number(field.value), write, output);
}

export function mount(holder, figure) {
  const start = Object.values(figure.examples)[0];
  const state = { ...start };
  const controls = figure.controls.map(build);
  const div = (name, given, ...children) =>
    element("div", { class: `interactive-${name}`, ...given }, ...children);
  const buttons = div("examples", { role: "group", "aria-label": "Examples" });
  const canvas = div("drawing", { role: "img" });
  const sentence = div("says", { role: "status" });
  const panel = div("controls", {}, ...controls.map(({ box }) => box));
  const parts = [buttons, canvas, sentence, panel];
  const live = div("live", { role: "group", "aria-label": figure.title }, ...parts);
  const width = () => Math.min(Math.max(canvas.clientWidth, 260), 720);
  let [result, drawn, waiting] = [null, 0, false];

  function paint() {
    drawn = width();
    canvas.innerHTML = figure.draw(result, drawn);
    canvas.setAttribute("aria-label", figure.read?.(result) ?? figure.title);
  }

  function update() {
    waiting = false;
    const limits = figure.limits?.(state) ?? {};
    for (const { key, field, write } of controls) {
      if (key in limits) {
        field.max = limits[key];
        state[key] = Math.min(state[key], limits[key]);
      }
      write(state[key]);
    }
    let message;
    try {
      result = figure.compute(state);
      paint();
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      message = `${error.message}.`;
    }
    sentence.textContent = message ?? figure.say(result);
    for (const { kind, field } of controls) {
      if (kind === "text") field.setAttribute("aria-invalid", message !== undefined);
    }
  }

  /** Compute at most once a picture, however fast a slider moves. */
  function change(values) {
    Object.assign(state, values);
    if (!waiting) requestAnimationFrame(update);
    waiting = true;
  }

  for (const { key, field, read } of controls) {
    field.addEventListener("input", () => {
      state[key] = read();
      change(figure.fix?.(state, key));
    });
  }
  for (const [name, values] of [...Object.entries(figure.examples), ["Reset", start]]) {
    const button = element("button", { type: "button" }, name);
    button.addEventListener("click", () => change(values));
    buttons.append(button);
  }
  holder.querySelector("img").before(live);
  holder.classList.add("live");
  update();
  new ResizeObserver(() => {
    if (Math.abs(width() - drawn) > 1) paint();
  }).observe(canvas);
}
