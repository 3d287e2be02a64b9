// Sections of the page: comparison, state visits, posterior, and the command to run it again.

/** The mean of the last `k` values up to each one (of fewer at the start). */
function moving(values, k) {
  let sum = 0;
  return values.map((v, i) => {
    sum += v - (i >= k ? values[i - k] : 0);
    return sum / Math.min(i + 1, k);
  });
}

function columnMeans(rows) {
  const count = Math.min(...rows.map((row) => row.length));
  return Array.from({ length: count }, (_, i) => rows.reduce((sum, row) => sum + row[i], 0) / rows.length);
}

/** Whether a run has too few seeds for intervals, but more than one. */
function few(run) {
  return run.seeds.length > 1 && run.seeds.length < FEWEST;
}

const FEWEST = 5;

const VIEWS = {
  scores: { text: "score" },
  solved: { text: "fraction of seeds that solved it" },
  coverage: { text: "cells visited so far" },
  spread: { text: "spread of Q over θ", log: 10 },
  return_spread: { text: "spread of Z", log: 10 },
};

/** A curve of scores; its seeds are drawn too if asked for, or if there are too few for an interval. */
function scoreCurve(run, group, window, traces) {
  const smooth = run.scores.map((scores) => moving(scores, window / group.bin));
  const longest = Math.max(...smooth.map((s) => s.length));
  const xs = Array.from({ length: longest }, (_, i) => (i + 1) * group.bin);
  return { label: run.label, colour: run.colour, xs, ys: columnMeans(smooth), band: run.bands[window], traces: traces || few(run) ? smooth : [] };
}

function solvedCurve(run) {
  const { at, share, band, until } = run.solved;
  const ends = (ys) => [0, ...ys, ys.length ? ys[ys.length - 1] : 0];
  return { label: run.label, colour: run.colour, steps: true, xs: [0, ...at, until], ys: ends(share), band: band && band.map(ends) };
}

function otherCurve(run, view) {
  const { step, mean, band, seeds } = run.more[view];
  return { label: run.label, colour: run.colour, xs: mean.map((_, i) => (i + 1) * step), ys: mean, band, traces: traces(seeds) };
}

/** The curves of several seeds. */
function traces(seeds) {
  return seeds?.length > 1 ? seeds : [];
}

const LABELLED = 3;

/** Where learning starts: one mark for all runs that start together. Of many marks, only the first has a label. */
function learningMarks(runs) {
  const at = [...new Set(runs.map((run) => run.starts).filter((x) => x !== null))].sort((a, b) => a - b);
  const who = (x) => {
    const names = runs.filter((run) => run.starts === x).map((run) => run.label);
    if (names.length === runs.length) return "";
    return names.length > 2 ? `: ${names.length} agents` : `: ${names.join(", ")}`;
  };
  if (at.length > LABELLED) return at.map((x, i) => ({ x, label: i ? "" : "learning starts, by agent" }));
  return at.map((x) => ({ x, label: `learning starts${who(x)}` }));
}

/** Learning curves and other quantities over episodes. */
function curves(key, group) {
  const views = Object.keys(VIEWS).filter((v) => v === "scores" || (v === "solved" ? group.optimum !== null : group.runs.some((r) => r.more[v])));
  const again = () => drawn.again();
  const names = (v) => (v === "scores" ? group.label : VIEWS[v].text);
  const view = choice(`${key} view`, "Show", views.map((v) => [v, names(v)]), "scores", again);
  const window = choice(`${key} window`, "Moving window", group.windows.map((w) => [w, w === 1 ? "none" : `${fmt(w)} ${group.unit}s`]), group.window, again);
  const traces = checkbox(`${key} traces`, "Show each seed", false, again);
  const keys = legend(`${key} legend`, group.runs, again);
  const note = el("p", { class: "muted small" });
  const drawn = lineChart(`Curves, ${group.title}`, () => {
    const v = view.value;
    window.hidden = v !== "scores";
    traces.hidden = v !== "scores" || group.runs.every((run) => run.seeds.length < FEWEST);
    const runs = group.runs.filter((run) => keys.has(run.label));
    const zero = v === "scores" || v === "solved" ? [] : runs.filter((run) => !run.more[v]);
    note.textContent = zero.length ? `0 throughout: ${zero.map((run) => run.label).join("; ")}.` : "";
    const series = v === "scores" ? runs.map((run) => scoreCurve(run, group, Number(window.value), traces.value))
      : v === "solved" ? runs.map(solvedCurve) : runs.filter((run) => run.more[v]).map((run) => otherCurve(run, v));
    return {
      x: { title: v === "scores" ? group.unit : "episode", whole: true },
      y: { title: names(v), log: VIEWS[v].log, domain: v === "solved" ? [0, 1] : undefined },
      series,
      marks: [
        ...(v === "scores" && group.optimum !== null ? [{ y: group.optimum, label: `optimum ${fmt(group.optimum)}` }] : []),
        ...(v === "scores" || group.unit === "episode" ? learningMarks(runs) : []),
      ],
    };
  });
  return [keys, drawn, note, el("div", { class: "controls" }, view, window, traces)];
}

/** A table that scrolls horizontally if it is too wide. */
function table(name, head, rows, kind = "") {
  return el("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": name },
    el("table", { class: kind }, el("thead", {}, el("tr", {}, head)), el("tbody", {}, rows)));
}

function heading(text, number = true) {
  return el("th", { scope: "col", class: number ? "number" : "" }, text);
}

/** A table cell with an estimate [value, low, high, n, seeds]. */
function cell(estimate) {
  if (!estimate || estimate[0] === null) return el("td", { class: "number muted" }, "–");
  return el("td", { class: "number" }, short(estimate[0]), el("br"), el("span", { class: "muted" }, interval(estimate)));
}

function nameCell(run) {
  const seeds = (count) => `${count} seed${count > 1 ? "s" : ""}`;
  const notes = [
    run.unfinished ? `${seeds(run.unfinished)} unfinished, at episode ${run.played.join(" to ")}` : null,
    run.diverged ? `${seeds(run.diverged)} diverged; the lowest score is used from there on` : null,
  ];
  return el("th", { scope: "row" }, el("span", { class: "name" }, swatch(run.colour), run.label),
    ...notes.filter((note) => note).map((note) => el("div", { class: "muted small" }, note)));
}

/** How many seeds solved the task, with the exact interval of that count. */
function solvedCell({ solved, seeds }) {
  const limits = solved.interval && solved.interval.map((share) => `${Math.round(100 * share)}%`).join(" to ");
  return el("td", { class: "number" }, `${solved.count} of ${seeds.length}`, el("br"), el("span", { class: "muted" }, limits ?? ""));
}

/** A table that compares the agents. */
function comparison(key, group) {
  const box = el("div");
  const several = group.runs.length > 1 && group.differences;
  const against = choice(`${key} against`, "Compare with", group.runs.map((run, i) => [i, run.label]), group.runs.length - 1, () => fill());
  const solvable = group.optimum !== null;
  const fill = () => {
    const j = Number(against.value);
    const head = [
      heading("agent", false), heading("seeds"), ...(solvable ? [heading("solved"), heading("episodes to solve, median")] : []),
      heading(`${group.label}, last 20 episodes`), heading(`${group.label}, all ${group.unit}s`),
      ...(several ? [heading(`difference from ${group.runs[j].label}, all ${group.unit}s`)] : []),
    ];
    box.replaceChildren(table(`Agents on ${group.title}`, head, group.runs.map((run, i) => el("tr", {},
      nameCell(run), el("td", { class: "number" }, String(run.seeds.length)),
      solvable ? [solvedCell(run), el("td", { class: "number" }, fmt(run.solved.median))] : [],
      cell(run.last), cell(run.all),
      several ? (i === j ? el("td", { class: "number muted" }, "–") : cell(group.differences[i][j])) : []))));
  };
  fill();
  return [el("h4", {}, several ? "Comparison" : "Numbers"), several ? el("div", { class: "controls" }, against) : null, box,
    el("p", { class: "muted small" }, intervalNote(group))];
}

/** What the small numbers of the table are. */
function intervalNote(group) {
  const sizes = group.runs.map((run) => run.seeds.length);
  const kinds = group.bounded ? "Gaffke’s, which assume only the range of the score, and for differences the melded ones"
    : "Student’s, since the range of the score is not known";
  return [
    Math.max(...sizes) >= FEWEST ? `Below a number is its 95% interval over seeds: for counts the exact one (Clopper–Pearson), for means ${kinds}. Claims are judged by the same intervals.` : "",
    sizes.some((n) => n > 1 && n < FEWEST) ? "With fewer than five seeds, the values of the seeds are shown instead of an interval." : "",
    group.optimum !== null ? "Solved means ten optimal episodes in a row; the median counts seeds that have not solved the task as censored (Kaplan–Meier)." : "",
  ].filter(Boolean).join(" ");
}

/** A note on which runs are shown, if not all are. */
function pictured(group) {
  return group.pictured ? `Shown are the ${group.pictured} runs with the highest mean score. ` : "";
}

/** The section on state visits. */
function visitSection(key, group) {
  const runs = group.runs.filter((run) => run.visits);
  if (!runs.length) return [];
  const title = el("h4", {}, "State visits");
  const caption = (n) => `${pictured(group)}Fraction of episodes in which each cell was visited, mean over ${n} seed${n > 1 ? "s" : ""}`;
  if (runs[0].visits.cells.length === 2) {
    return [title, el("p", { class: "muted small" }, `${caption(runs[0].visits.n)}. More intense colours mean more visits (square-root scale); blank cells were never visited.`),
      el("div", { class: "boards" }, runs.map((run) => {
        const drawn = board(`State visits of ${run.label}`, run.visits);
        drawn.prepend(el("figcaption", {}, el("span", { class: "name" }, swatch(run.colour), run.label)));
        return drawn;
      }))];
  }
  const keys = legend(`${key} visits`, runs, () => drawn.again());
  const drawn = lineChart(`State visits, ${group.title}`, () => ({
    x: { title: "cell", whole: true },
    y: { title: "fraction of episodes", domain: [0, 1.02] },
    series: runs.filter((run) => keys.has(run.label)).map((run) => ({
      label: run.label, colour: run.colour, xs: run.visits.mean.map((_, i) => i + 1), ys: run.visits.mean, band: run.visits.band, traces: traces(run.visits.seeds),
    })),
  }), 240);
  return [title, el("p", { class: "muted small" }, `${caption(runs[0].visits.n)}${runs[0].visits.n >= FEWEST ? ", with its 95% interval" : few(runs[0]) ? " (thick) and each seed (thin)" : ""}.`), runs.length > 1 ? keys : null, drawn];
}

/** A command, which wraps only between words. */
function command(text) {
  const words = text.split(" ").flatMap((word, i) => [i ? " " : "", el("span", {}, word)]);
  return el("pre", { tabindex: "0", "aria-label": "Command to run it again" }, words);
}

function pairs(values) {
  const plain = (v) => (v !== null && typeof v === "object" ? JSON.stringify(v) : String(v));
  return el("dl", {}, Object.entries(values).filter(([, v]) => v !== null).map(([k, v]) => el("div", {}, el("dt", {}, k), el("dd", {}, plain(v)))));
}

/** Configuration, versions and the command to run it again. */
function configuration(settings) {
  const parts = ["agent", "environment", "run", "versions"];
  return el("div", { class: "inside" }, command(settings.command), parts.flatMap((part) => [el("h5", {}, part), pairs(settings[part])]));
}

const CONFIGURATION = "Configuration, versions and the command to run it again";

function about(group) {
  return el("details", {}, el("summary", {}, CONFIGURATION),
    group.runs.map((run) => el("details", {}, el("summary", {}, `${run.label} (${run.folder})`), configuration(run.about))));
}

/** What a curve is. */
function curveNote(group) {
  const sizes = [...new Set(group.runs.map((run) => run.seeds.length))];
  const seeds = `${sizes.join(" or ")} seed${sizes.join() === "1" ? "" : "s"}`;
  const kinds = [
    sizes.some((n) => n >= FEWEST) ? "a shaded 95% interval" : null,
    sizes.some((n) => n > 1 && n < FEWEST) ? `a thin line for each seed${sizes.every((n) => n < FEWEST) ? "" : " where they are fewer than five"}` : null,
  ].filter(Boolean);
  return `Each curve is the mean over ${seeds}${kinds.length ? `, with ${kinds.join(" or ")}` : ""}.`;
}

/** The section of a task; `drawn` if its curves are in the headline already. */
function groupSection(key, group, drawn) {
  const alarms = group.runs.flatMap((run) => run.alarms.map((a) => `${run.label}, ${a}, before any episode reached half of the optimum.`));
  return el("section", { "aria-label": group.title, id: key },
    drawn ? null : [el("h3", {}, group.title), el("p", { class: "muted" }, curveNote(group)), curves(key, group)],
    comparison(key, group), visitSection(key, group), beliefSection(key, group),
    alarms.length ? el("details", { class: "alarms" }, el("summary", { class: "alarm" }, `${alarms.length} seed${alarms.length > 1 ? "s" : ""} whose posterior collapsed`), el("ul", {}, alarms.map((a) => el("li", {}, a)))) : null,
    about(group));
}
