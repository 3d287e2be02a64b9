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

const MIN_SEEDS = 5;
const DRAWN = 5;

/** The interval of a curve of scores, or its seeds: those of few seeds are drawn unless intervals are wanted. */
function seedsOrInterval(band, seeds, intervals) {
  return band && intervals ? { band, shaded: "95% interval" } : { traces: seeds.length > 1 ? seeds : [] };
}

/** The seeds of a curve or, of many, their range. */
function seedsOrRange({ range, seeds }) {
  return range ? { band: range, shaded: "range from the lowest to the highest seed" } : { traces: seeds.length > 1 ? seeds : [] };
}

const VIEWS = {
  scores: { text: "score" },
  solved: { text: "fraction of seeds that solved it" },
  evaluation: { text: "score of the greedy policy, evaluated during training" },
  coverage: { text: "cells visited so far" },
  spread: { text: "spread of Q over θ", log: 10 },
  return_spread: { text: "spread of Z", log: 10 },
};

/** A curve of scores, with its interval or its seeds. Over episodes, the moving window is computed here. */
function scoreCurve(run, group, window, intervals) {
  const seeds = run.scores[window] ?? run.scores[group.bin].map((scores) => moving(scores, window / group.bin));
  const longest = Math.max(...seeds.map((s) => s.length));
  const xs = Array.from({ length: longest }, (_, i) => run.first + i * group.bin);
  return { label: run.label, colour: run.colour, xs, ys: columnMeans(seeds), ...seedsOrInterval(run.bands[window], seeds, intervals) };
}

function solvedCurve(run, intervals) {
  const { at, share, band, until } = run.solved;
  const held = (ys) => [...ys, ys[ys.length - 1]];
  return { label: run.label, colour: run.colour, steps: true, xs: [...at, until], ys: held(share), band: intervals && band ? band.map(held) : null, shaded: "95% interval" };
}

function otherCurve(run, view) {
  const { step, mean } = run.more[view];
  return { label: run.label, colour: run.colour, xs: mean.map((_, i) => (i + 1) * step), ys: mean, ...seedsOrRange(run.more[view]) };
}

function evaluationCurve(run) {
  const { at, mean } = run.evaluation;
  return { label: run.label, colour: run.colour, xs: at, ys: mean, marked: at.length <= 60, ...seedsOrRange(run.evaluation) };
}

const LABELLED = 3;

/** Where learning starts: one mark for all runs that start together. Of many marks, only the first has a label. */
function learningMarks(runs) {
  const at = [...new Set(runs.map((run) => run.starts).filter((x) => x !== null))].sort((a, b) => a - b);
  const who = (x) => {
    const names = runs.filter((run) => run.starts === x).map((run) => run.label);
    if (names.length === runs.length) return "";
    return names.length > 2 ? `: ${names.length} agents` : `: ${names.join("; ")}`;
  };
  if (at.length > LABELLED) return at.map((x, i) => ({ x, label: i ? "" : "learning starts, by agent" }));
  return at.map((x) => ({ x, label: `learning starts${who(x)}` }));
}

/** Learning curves and other quantities over episodes. */
function curves(key, group, title = "") {
  const views = Object.keys(VIEWS).filter((v) => v === "scores" || (v === "solved" ? group.optimum !== null : group.runs.some((r) => (v === "evaluation" ? r.evaluation : r.more[v]))));
  const again = () => drawn.again();
  const names = (v) => (v === "scores" ? group.label : VIEWS[v].text.replace("score", group.label));
  const scored = (v) => v === "scores" || v === "evaluation";
  const view = choice(`${key} view`, "Show", views.map((v) => [v, names(v)]), "scores", again);
  const window = choice(`${key} window`, "Moving window", group.windows.map((w) => [w, w === 1 ? "none" : `${fmt(w)} episodes`]), group.window, again);
  const several = group.runs.filter((run) => run.seeds.length >= MIN_SEEDS);
  const intervals = checkbox(`${key} intervals`, "95% intervals instead of seeds", several.some((run) => run.seeds.length > DRAWN), again);
  const about = el("p", { class: "muted small" });
  const keys = legend(`${key} legend`, group.runs, again);
  const note = el("p", { class: "muted small" });
  const drawn = lineChart(`Curves, ${group.title}`, () => {
    const v = view.value;
    window.hidden = v !== "scores";
    intervals.hidden = !several.length || !["scores", "solved"].includes(v);
    const runs = group.runs.filter((run) => keys.has(run.label));
    const zero = scored(v) || v === "solved" ? [] : runs.filter((run) => !run.more[v]);
    const without = v === "evaluation" ? runs.filter((run) => !run.evaluation) : [];
    note.textContent = zero.length ? `0 throughout: ${zero.map((run) => run.label).join("; ")}.`
      : without.length ? `Not evaluated during training: ${without.map((run) => run.label).join("; ")}.` : "";
    const series = v === "scores" ? runs.map((run) => scoreCurve(run, group, Number(window.value), intervals.value))
      : v === "solved" ? runs.map((run) => solvedCurve(run, intervals.value))
        : v === "evaluation" ? runs.filter((run) => run.evaluation).map(evaluationCurve)
        : runs.filter((run) => run.more[v]).map((run) => otherCurve(run, v));
    about.textContent = title + curveNote(group, series);
    return {
      x: { title: scored(v) ? group.unit : "episode", whole: true },
      y: { title: names(v), log: VIEWS[v].log, domain: v === "solved" ? [0, 1] : undefined },
      series,
      marks: [
        ...(scored(v) && group.optimum !== null ? [{ y: group.optimum, label: `optimum ${fmt(group.optimum)}` }] : []),
        ...(scored(v) || group.unit === "episode" ? learningMarks(runs) : []),
      ],
    };
  });
  return [about, title && group.runs.length === 1 ? null : keys, drawn, note, el("div", { class: "controls" }, view, window, intervals)];
}

/** A table that scrolls horizontally if it is too wide. On a phone, a stacked one is a list for each row. */
function table(name, head, rows, kind = "") {
  if (kind.endsWith("stacked")) for (const row of rows) [...row.children].forEach((cell, i) => cell.setAttribute("data-label", head[i].textContent));
  return el("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": name },
    el("table", { class: kind }, el("thead", {}, el("tr", {}, head)), el("tbody", {}, rows)));
}

function heading(text, number = true) {
  return el("th", { scope: "col", class: number ? "number" : "" }, text);
}

/** A table cell with a value and what is known about it, in one line or several. */
function valueCell(value, more = "") {
  const lines = [more].flat().filter(Boolean);
  return el("td", { class: "number" }, el("div", {}, value, lines.flatMap((line) => [el("br"), el("span", { class: "muted" }, line)])));
}

/** A table cell without a value, which the list on a phone leaves out. */
function missingCell() {
  return el("td", { class: "number muted missing" }, "–");
}

/** A table cell with an estimate [value, low, high, n, seeds]. */
function cell(estimate, format = short) {
  if (!estimate || estimate[0] === null) return missingCell();
  return valueCell(format(estimate[0]), interval(estimate, format));
}

function nameCell(run) {
  const seeds = (count) => `${count} seed${count > 1 ? "s" : ""}`;
  const notes = [
    run.unfinished ? `${seeds(run.unfinished)} unfinished, at episode ${[...new Set(run.played)].join(" to ")}` : null,
    run.errors?.length ? `${seeds(run.errors.length)} failed` : null,
    run.diverged ? `${seeds(run.diverged)} diverged; the lowest score is used from there on` : null,
  ];
  return el("th", { scope: "row" }, el("span", { class: "name" }, swatch(run.colour), run.label),
    ...notes.filter((note) => note).map((note) => el("div", { class: "muted small" }, note)));
}

/** How many seeds solved the task, with the exact interval of that count. */
function solvedCell({ solved, seeds }) {
  const limits = solved.interval && solved.interval.map((share) => `${Math.round(100 * share)}%`).join(" to ");
  return valueCell(`${solved.count} of ${seeds.length}`, [limits, lostAgain(solved)]);
}

/** On how many solved seeds the values of the network, or its greedy actions, depend on the state. */
function varyingCell({ solved }, what) {
  return solved.networks && solved.count ? valueCell(`${solved.networks[what]} of ${solved.count}`) : missingCell();
}

/** The part of the budget that mean scores are over. */
function part(group) {
  if (group.common !== null) return `first ${fmt(group.common)} ${group.unit}s`;
  return group.stopped ? "whole budget" : (group.unit === "step" ? "mean over steps" : "all episodes");
}

const STOPPED = "A seed that stopped because it had solved the task, or reached the score to stop at, keeps its score to the end of the budget";

function adjusted(comparisons) {
  return `${comparisons > 1 ? `, adjusted for ${comparisons} comparisons (Holm)` : ""}. Titles rank agents only where p is below 0.05`;
}

/** The heading of a column of p-values, which says whether they are adjusted. */
function testHeading(reference, comparisons) {
  return heading(`p against ${reference}${comparisons > 1 ? ` (Holm, ${comparisons} comparisons)` : ""}`);
}

/** What the p-values of the table are. */
function testNote({ tested, task, common, label, unit, bounded }) {
  if (!tested) return "";
  const within = common === null ? "" : ` It is about the first ${fmt(common)} ${unit}s, which all runs have.`;
  const kind = bounded ? "the melded test" : "a studentised permutation test";
  return `p compares the mean ${label} in training with that of ${tested.reference}, the reference on ${task}: ${kind}, two-sided${adjusted(tested.p.length - 1)}.${within} Of two runs, rove.difference and rove.compare give the same numbers.`;
}

/** A table cell with a p-value. */
function chanceCell(p) {
  return p === null ? missingCell() : valueCell(chance(p));
}

/** Where the settings of the runs come from. */
function settingsNote({ runs }) {
  const sources = [...new Set(runs.map((run) => run.about.source))];
  const who = (source) => runs.filter((run) => run.about.source === source).map((run) => run.label).join(", ");
  return `Settings: ${sources.map((source) => (sources.length > 1 ? `${who(source)}: ${source}` : source)).join("; ")}.`;
}

/** A table that compares the agents; `reference` is the agent that they are compared with at first. */
function comparison(key, group, reference) {
  const box = el("div");
  const several = group.runs.length > 1 && group.differences;
  const first = Math.max(0, group.runs.findIndex((run) => run.label === reference));
  const against = choice(`${key} against`, "Compare with", group.runs.map((run, i) => [i, run.label]), first, () => fill());
  const solvable = group.optimum !== null, budgets = group.common !== null, evaluated = group.runs.some((run) => run.evaluated);
  const inspected = solvable && group.runs.some((run) => run.solved.networks);
  const fill = () => {
    const j = Number(against.value);
    const head = [
      heading("agent", false), heading("seeds"), ...(budgets ? [heading(`budget, ${group.unit}s`)] : []), ...(solvable ? [heading(budgets ? "solved" : `solved within ${group.budget}`), heading("episodes to solve, median")] : []),
      ...(inspected ? [heading("of these, values vary"), heading("of these, policy varies"), heading(`${group.label}, greedy policy`)] : []),
      heading(`${group.label}, last 20 episodes`), ...(evaluated ? [heading(`${group.label}, trained policy`)] : []), heading(`${group.label}, ${part(group)}`),
      ...(group.tested ? [testHeading(group.tested.reference, group.tested.p.length - 1)] : []),
      ...(several ? [heading(`difference from ${group.runs[j].label}, ${part(group)}`)] : []),
    ];
    const [last, trained, all] = ["last", "evaluated", "all"].map((name) => formatOf(group.runs.map((run) => run[name])));
    const differing = several ? formatOf(group.differences.map((row) => row[j])) : short;
    box.replaceChildren(table(`Agents on ${group.title}`, head, group.runs.map((run, i) => el("tr", {},
      nameCell(run), valueCell(String(run.seeds.length)), budgets ? valueCell(fmt(run.budget)) : [],
      solvable ? [solvedCell(run), valueCell(fmt(run.solved.median))] : [],
      inspected ? [varyingCell(run, "values"), varyingCell(run, "policies"), run.solved.networks ? valueCell(short(run.solved.networks.greedy)) : missingCell()] : [],
      cell(run.last, last), evaluated ? policyCell(run, trained) : [], cell(run.all, all),
      group.tested ? chanceCell(group.tested.p[i]) : [],
      several ? (i === j ? missingCell() : cell(group.differences[i][j], differing)) : [])), "stacked"));
  };
  fill();
  return [el("h4", {}, several ? "Comparison" : "Numbers"), several ? el("div", { class: "controls" }, against) : null, box,
    [inspected ? "Values vary, policy varies: the number of solved seeds whose network has values, and greedy actions, that depend on the state. Greedy policy: its mean score at the end, over all seeds." : "",
      testNote(group), intervalNote(group), settingsNote(group)].map((text) => el("p", { class: "muted small" }, text))];
}

/** The score of the trained policies, and which they are. */
function policyCell(run, format) {
  if (!run.evaluated) return missingCell();
  const names = run.policies.map(([name, , count]) => (run.policies.length > 1 ? `${name} (${count})` : name)).join(", ");
  return valueCell(format(run.evaluated[0]), [interval(run.evaluated, format), names]);
}

/** What the trained policies are, and how they were chosen. */
function policyNote({ runs }) {
  const used = new Map(runs.flatMap((run) => run.policies ?? []).map(([name, what]) => [name, what]));
  if (!used.size) return "";
  const kinds = [...used].map(([name, what]) => `${name}: ${what}`).join("; ");
  return `The trained policy of a seed is the best of its candidates (${kinds}), evaluated in up to 20 episodes other than those that it was chosen by.`;
}

/** What the small numbers of the table are. */
function intervalNote(group) {
  const sizes = group.runs.map((run) => run.seeds.length);
  const kinds = group.bounded ? "Gaffke’s, which assume only the range of the score, and for differences the melded ones"
    : "Student’s, since the range of the score is not known, and for differences those of a studentised permutation test";
  return [
    group.common === null ? "" : `The budgets differ: mean scores and their differences are over the first ${fmt(group.common)} ${group.unit}s, which all runs have; the other columns are at the end of each run’s own budget.`,
    Math.max(...sizes) >= MIN_SEEDS ? `Below a number is its 95% interval over seeds: for counts the exact one (Clopper–Pearson), for means ${kinds}. Claims are judged by the same intervals.` : "",
    group.stopped ? `${STOPPED} in mean scores over it; the last 20 episodes are those that were played.` : "",
    policyNote(group),
    sizes.some((n) => n > 1 && n < MIN_SEEDS) ? "With fewer than five seeds, the values of the seeds are shown instead of an interval." : "",
    group.optimum !== null ? `Solved means ten optimal episodes in a row${group.runs.some((run) => run.solved.lost) ? ", and lost again that fewer than half of the last 20 are optimal, and of the episodes of the trained policy" : ""}; the median counts seeds that have not solved the task as censored (Kaplan–Meier).` : "",
  ].filter(Boolean).join(" ");
}

/** A note on which runs are shown, if not all are. */
function pictured(group) {
  return group.pictured ? `Shown are the first ${group.pictured} runs of the table. ` : "";
}

/** A command, or lines of code, which wrap only between words. */
function command(text) {
  const words = text.split(/([ \n])/).map((word) => (word.trim() ? el("span", {}, word) : word));
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
    group.runs.map((run) => el("details", {}, el("summary", {}, `${run.label} (${run.folder}); settings: ${run.about.source}`), configuration(run.about))));
}

/** What the curves are. */
function curveNote(group, series) {
  const sizes = [...new Set(group.runs.map((run) => run.seeds.length))].sort((a, b) => a - b);
  const seeds = `${sizes.join(" or ")} seed${sizes.join() === "1" ? "" : "s"}`;
  const kinds = [
    series.some((s) => s.band) ? `a shaded ${series.find((s) => s.band).shaded}` : null,
    series.some((s) => s.traces?.length) ? "a thin line for each seed" : null,
  ].filter(Boolean);
  const budgets = group.common === null ? "" : " The budgets differ: each curve has its own length.";
  const stopped = group.stopped ? ` ${STOPPED}.` : "";
  const flat = series.some(({ band }) => band && band[0].some((low, i) => low === band[1][i]));
  const agree = flat && !group.bounded ? " Where all seeds agree, the shaded interval has no width." : "";
  return `Each curve is the mean over ${seeds}${kinds.length ? `, with ${kinds.join(" or ")}` : ""}.${agree}${budgets}${stopped}`;
}

/** The section of a task; `drawn` if its curves are in the headline already. */
function groupSection(key, group, reference, drawn) {
  const warnings = group.runs.flatMap((run) => run.warnings.map((text) => `${run.label}, ${text}.`));
  const advice = [...new Set(group.runs.flatMap((run) => run.advice))].map((text) => `${text[0].toUpperCase()}${text.slice(1)}.`);
  return el("section", { "aria-label": group.title, id: key },
    drawn ? null : [el("h3", {}, group.title), findings(group), curves(key, group)],
    comparison(key, group, reference), visitSection(key, group), beliefSection(key, group),
    warnings.length ? el("details", { class: "warnings" }, el("summary", {}, `${warnings.length} warning${warnings.length > 1 ? "s" : ""}`), el("ul", {}, warnings.map((text) => el("li", {}, text))), advice.map((text) => el("p", { class: "small" }, text))) : null,
    about(group));
}
