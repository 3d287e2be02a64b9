// The headline of a part of the page: what it shows, in a few large numbers and one figure.

const CARDS = 8;

/** How many of the seeds that solved the task lost it again, if any did. */
function lostAgain({ lost }) {
  return lost ? `${lost} of them lost it again` : "";
}

/** What went wrong, in a line for each run that has warnings. */
function findings({ runs }) {
  const lines = runs.slice(0, CARDS).filter((run) => run.finding);
  return lines.length ? el("ul", { class: "note-box findings small" }, lines.map((run) => el("li", {}, el("strong", {}, run.label), `: ${run.finding}.`))) : null;
}

/** A card with the most important numbers of a run. */
function card(run, group) {
  const facts = [
    run.solved ? [`${run.solved.count} of ${run.seeds.length}`, `seed${run.seeds.length > 1 ? "s" : ""} solved it within ${fmt(run.budget)} ${group.unit}s${run.solved.lost ? `; ${lostAgain(run.solved)}` : ""}`] : null,
    run.evaluated ? [short(run.evaluated[0]), `${group.label} of the trained policy (${run.policies.map(([name]) => name).join(", ")}), mean over seeds`] : null,
    [short(run.last[0]), `${group.label}, last 20 episodes${group.optimum !== null ? ` (optimum ${short(group.optimum)})` : ""}`],
    run.solved?.count && run.solved.median !== "inf" ? [short(run.solved.median), "episodes to solve it, median"] : null,
    run.solved ? null : [short(run.all[0]), `${group.label}, ${part(group)}`],
  ].filter(Boolean);
  return el("div", { class: "card" }, el("div", { class: "name" }, swatch(run.colour), run.label),
    el("dl", { class: "facts" }, facts.map(([value, what]) => el("div", {}, el("dt", {}, what), el("dd", {}, value)))));
}

/** Which agents solve which tasks: a map of the fraction of seeds. */
function solvedMap(name, solvable, order) {
  const find = (label, group) => group.runs.find((run) => run.label === label);
  const labels = order.filter((label) => solvable.some((group) => find(label, group))).reverse();
  const cells = labels.map((label) => solvable.map((group) => {
    const run = find(label, group);
    return run ? [run.solved.count / run.seeds.length, run] : null;
  }));
  const ratio = ({ solved, seeds }) => `${solved.count} of ${seeds.length}`;
  return heatMap(name, { name: "agent", values: labels }, { name: "task", values: solvable.map((group) => group.task) }, cells, {
    domain: [0, 1],
    format: String,
    text: ([, run]) => `${run.solved.count}/${run.seeds.length}`,
    lines: (r, c) => [[null, "seeds that solved it", ratio(cells[r][c][1])], ...(cells[r][c][1].solved.lost ? [[null, "that lost it again", String(cells[r][c][1].solved.lost)]] : []), [null, `budget, ${solvable[c].unit}s`, fmt(cells[r][c][1].budget)], [null, "episodes, median", fmt(cells[r][c][1].solved.median)]],
  });
}

/** A note on the agents whose settings depend on the task. */
function severalSettings({ several_settings: names }) {
  return names.length ? ` The settings of ${new Intl.ListFormat("en-GB").format(names)} depend on the task: see the configuration.` : "";
}

/** The solved seeds of each agent on all tasks, and the p-values that the title rests on. */
function ranking({ ranking: rows, order }) {
  if (!rows.length) return null;
  const sorted = order.map((label) => rows.find((row) => row.label === label)).filter(Boolean);
  const reference = rows.find((row) => row.p === null).label;
  return [table("Solved seeds on all tasks", [heading("agent", false), heading("seeds that solved their task"), testHeading(reference, rows.length - 1)],
    sorted.map((row) => el("tr", {}, nameCell(row), valueCell(`${row.solved} of ${row.seeds}`), chanceCell(row.p))), "narrow stacked"),
  el("p", { class: "muted small" }, `p compares the fraction of solved seeds, averaged over the tasks, with that of ${reference}, the reference on all tasks: by Jeffreys’ posterior of each probability to solve a task, two-sided${adjusted(rows.length - 1)}.`)];
}

/** The cards and the figure of a source: curves of one task, a map of several, or those of a sweep. */
function headline(key, source) {
  const { groups, sweep } = source;
  if (sweep) return [];
  if (groups.length === 1) {
    const [group] = groups;
    const more = group.runs.length - CARDS;
    return [el("div", { class: "cards" }, group.runs.slice(0, CARDS).map((run) => card(run, group))),
      findings(group),
      more > 0 ? el("p", { class: "muted small" }, `And ${more} more, which are in the table below.`) : null,
      curves(`${key}-0`, group, `${group.title}. `)];
  }
  const solvable = groups.filter((group) => group.optimum !== null);
  if (solvable.length < 2) return [];
  const budgets = [...new Set(solvable.map((group) => group.budget))].join(" or ");
  return [el("p", { class: "muted small" }, `Seeds that solved each task (ten optimal episodes in a row) within ${budgets}; more intense colours are more seeds.${severalSettings(source)}`),
    solvedMap(`Seeds that solved each task, ${source.name}`, solvable, source.order), ranking(source)];
}
