// What a person can choose: lists, boxes, sliders, legends.

/** What a person has chosen, kept while the page reloads itself. */
const chosen = {
  get(key, usual) {
    try { return JSON.parse(sessionStorage.getItem(`rove ${document.title} ${key}`)) ?? usual; } catch { return usual; }
  },
  set(key, value) {
    try { sessionStorage.setItem(`rove ${document.title} ${key}`, JSON.stringify(value)); } catch { /* not kept */ }
  },
};

/** An element whose `value` is what a person has chosen in it. */
function valued(node, get) {
  return Object.defineProperty(node, "value", { get });
}

/** A labelled choice. Options are [value, text]. */
function choice(key, label, options, usual, change) {
  const kept = String(chosen.get(key, usual));
  const value = options.some(([v]) => String(v) === kept) ? kept : String(usual);
  const select = el("select", { change: () => { chosen.set(key, select.value); change(); } },
    options.map(([v, text]) => el("option", { value: v, selected: String(v) === value }, text)));
  return valued(el("label", {}, label, select), () => select.value);
}

function checkbox(key, label, usual, change) {
  const box = el("input", { type: "checkbox", checked: chosen.get(key, usual), change: () => { chosen.set(key, box.checked); change(); } });
  return valued(el("label", {}, box, label), () => box.checked);
}

/** A slider with its value in words beside it. */
function slider(key, label, count, usual, words, change) {
  const at = Math.min(count - 1, chosen.get(key, usual));
  const told = el("output", { class: "muted" }, words(at));
  const input = el("input", {
    type: "range", min: 0, max: count - 1, step: 1, value: at, "aria-label": label, "aria-valuetext": words(at),
    input: () => {
      chosen.set(key, Number(input.value));
      told.textContent = words(Number(input.value));
      input.setAttribute("aria-valuetext", told.textContent);
      change();
    },
  });
  return valued(el("label", {}, label, input, told), () => Number(input.value));
}

/** Buttons that show and hide curves. Where there are many, the first six are shown at first. */
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
