// Controls: lists, checkboxes, sliders and legends.

/** The state of the controls, kept when the page reloads. */
const chosen = {
  get(key, initial) {
    try { return JSON.parse(sessionStorage.getItem(`rove ${location.pathname} ${key}`)) ?? initial; } catch { return initial; }
  },
  set(key, value) {
    try { sessionStorage.setItem(`rove ${location.pathname} ${key}`, JSON.stringify(value)); } catch { /* storage is not available */ }
  },
};

/** Give an element a `value` that reads the state of its control. */
function valued(node, get) {
  return Object.defineProperty(node, "value", { get });
}

/** A labelled drop-down list. Options are [value, text]. */
function choice(key, label, options, initial, change) {
  const kept = String(chosen.get(key, initial));
  const value = options.some(([v]) => String(v) === kept) ? kept : String(initial);
  const select = el("select", { change: () => { chosen.set(key, select.value); change(); } },
    options.map(([v, text]) => el("option", { value: v, selected: String(v) === value }, text)));
  return valued(el("label", {}, label, select), () => select.value);
}

function checkbox(key, label, initial, change) {
  const box = el("input", { type: "checkbox", checked: chosen.get(key, initial), change: () => { chosen.set(key, box.checked); change(); } });
  return valued(el("label", {}, box, label), () => box.checked);
}

/** A slider with a text for its value. */
function slider(key, label, count, initial, words, change) {
  const at = Math.min(count - 1, chosen.get(key, initial));
  const output = el("output", { class: "muted" }, words(at));
  const input = el("input", {
    type: "range", min: 0, max: count - 1, step: 1, value: at, "aria-label": label, "aria-valuetext": words(at),
    input: () => {
      chosen.set(key, Number(input.value));
      output.textContent = words(Number(input.value));
      input.setAttribute("aria-valuetext", output.textContent);
      change();
    },
  });
  return valued(el("label", {}, label, input, output), () => Number(input.value));
}

/** Buttons that show and hide curves. With more than eight, only the first six are shown initially. */
function legend(key, runs, change) {
  const first = runs.length > 8 ? runs.slice(0, 6) : runs;
  const shown = new Set(chosen.get(key, first.map((run) => run.label)));
  const buttons = runs.map((run) => el("button", {
    type: "button", "aria-pressed": String(shown.has(run.label)),
    click: () => put(run.label, !shown.has(run.label)),
  }, swatch(run.colour), run.label));
  const put = (label, on) => {
    if (on) shown.add(label); else shown.delete(label);
    refresh();
  };
  const refresh = () => {
    chosen.set(key, [...shown]);
    runs.forEach((run, i) => buttons[i].setAttribute("aria-pressed", String(shown.has(run.label))));
    change();
  };
  const every = (on) => { shown.clear(); if (on) runs.forEach((run) => shown.add(run.label)); refresh(); };
  const both = runs.length > 4 ? [["All", true], ["None", false]].map(([text, on]) => el("button", { type: "button", click: () => every(on) }, text)) : [];
  return Object.assign(el("div", { class: "legend", role: "group", "aria-label": "Curves to show" }, buttons, both), { has: (label) => shown.has(label) });
}
