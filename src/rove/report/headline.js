// The headline of a part of the page: what it shows, in a few large numbers and one figure.

const CARDS = 4;

/** A card with the most important numbers of a run. */
function card(run, group) {
  const facts = [
    run.solved ? [`${run.solved.count} of ${run.seeds.length}`, `seed${run.seeds.length > 1 ? "s" : ""} solved it`] : null,
    [short(run.last[0]), `${group.label}, last 20 episodes${group.optimum !== null ? ` (optimum ${short(group.optimum)})` : ""}`],
    run.solved?.count && run.solved.median !== "inf" ? [short(run.solved.median), "episodes to solve it, median"] : null,
    run.solved ? null : [short(run.all[0]), `${group.label}, ${part(group)}`],
  ].filter(Boolean);
  return el("div", { class: "card" }, el("div", { class: "name" }, swatch(run.colour), run.label),
    el("dl", { class: "facts" }, facts.map(([value, what]) => el("div", {}, el("dt", {}, what), el("dd", {}, value)))));
}

/** Which agents solve which tasks: a map of the fraction of seeds. */
function solvedMap(name, groups) {
  const solvable = groups.filter((group) => group.optimum !== null);
  const labels = [...new Set(solvable.flatMap((group) => group.runs.map((run) => run.label)))];
  const find = (label, group) => group.runs.find((run) => run.label === label);
  const share = (label) => solvable.reduce((sum, group) => sum + (find(label, group)?.solved.count ?? 0), 0);
  labels.sort((a, b) => share(a) - share(b));
  const cells = labels.map((label) => solvable.map((group) => {
    const run = find(label, group);
    return run ? [run.solved.count / run.seeds.length, run] : null;
  }));
  const ratio = ({ solved, seeds }) => `${solved.count} of ${seeds.length}`;
  return heatMap(name, { name: "agent", values: labels }, { name: "task", values: solvable.map((group) => group.task) }, cells, {
    domain: [0, 1],
    format: String,
    text: ([, run]) => `${run.solved.count}/${run.seeds.length}`,
    lines: (r, c) => [[null, "seeds that solved it", ratio(cells[r][c][1])], [null, "episodes, median", fmt(cells[r][c][1].solved.median)]],
  });
}

/** A note on the agents whose settings depend on the task. */
function severalSettings({ several_settings: names }) {
  return names.length ? ` The settings of ${new Intl.ListFormat("en-GB").format(names)} depend on the task: see the configuration.` : "";
}

/** The cards and the figure of a source: curves of one task, a map of several, or those of a sweep. */
function headline(key, source) {
  const { groups, sweep } = source;
  if (sweep) return [];
  if (groups.length === 1) {
    const [group] = groups;
    return [el("div", { class: "cards" }, group.runs.slice(0, CARDS).map((run) => card(run, group))),
      curves(`${key}-0`, group, `${group.title}. `)];
  }
  if (groups.filter((group) => group.optimum !== null).length < 2) return [];
  return [el("p", { class: "muted small" }, `Seeds that solved each task (ten optimal episodes in a row); more intense colours are more seeds.${severalSettings(source)}`),
    solvedMap(`Seeds that solved each task, ${source.name}`, groups)];
}
