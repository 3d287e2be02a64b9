// Sweeps: a curve for one varied field, a heat map for two, parallel coordinates for more.

/** The fields that take more than one value. */
function varied(sweep) {
  return sweep.fields.map((field, i) => ({ ...field, i })).filter((field) => field.values.length > 1);
}

/** Points that have a score, best first: by number of seeds tried, then by mean score. */
function ranked(points, kind = "score") {
  return points.filter((p) => p[kind]).sort(({ [kind]: a }, { [kind]: b }) => b[3] - a[3] || b[0] - a[0]);
}

function sweepMap(key, sweep, fields) {
  const box = el("div");
  const options = fields.map((field, i) => [i, field.name]);
  const across = choice(`${key} x`, "Across", options, 0, () => fill());
  const up = choice(`${key} y`, "Up", options, 1, () => fill());
  const kind = choice(`${key} seeds`, "Scores of", [["score", "tuning seeds"], ["confirmed", "fresh seeds (confirmed)"]], "score", () => fill());
  const confirmed = sweep.points.some((p) => p.confirmed);
  const fill = () => {
    const [x, y] = [fields[Number(across.value)], fields[Number(up.value)]];
    const is = (p, field, v) => String(p.at[field.i]) === String(v);
    const best = y.values.map((v) => x.values.map((u) => ranked(sweep.points.filter((p) => is(p, x, u) && is(p, y, v)), kind.value)[0]));
    const cells = best.map((row) => row.map((p) => (p ? p[kind.value] : null)));
    const [first] = ranked(sweep.points);
    const hidden = fields.filter((field) => field !== x && field !== y);
    const drawn = heatMap(`Score over ${x.name} and ${y.name}`, y, x, cells, {
      marked: best.flatMap((row, r) => row.map((p, c) => [p, r, c])).find(([p]) => p === first)?.slice(1),
      lines: (r, c) => [[null, "score", fmt(cells[r][c][0]), interval(cells[r][c])], [null, "seeds", String(cells[r][c][3])],
        ...hidden.map((field) => [null, field.name, fmt(best[r][c].at[field.i])])],
    });
    box.replaceChildren(drawn);
    drawn.again();
  };
  fill();
  const rest = fields.length > 2 ? " Each cell shows the best point over the fields that are not shown: among those tried on the most seeds, the one with the highest mean." : "";
  return [el("div", { class: "controls" }, fields.length > 2 ? [across, up] : null, confirmed ? kind : null), el("p", { class: "muted small" }, `Mean score; more intense colours are higher, and the best point has a frame.${rest} Point at a cell to see its ${fields.length > 2 ? "settings, " : ""}number of seeds and its 95% interval (of fewer than five seeds, the seeds).`), box];
}

function sweepCurve(sweep, field) {
  const points = [...sweep.points].filter((p) => p.score);
  const index = (p) => field.values.findIndex((v) => String(v) === String(p.at[field.i]));
  points.sort((a, b) => index(a) - index(b));
  const xs = points.map(index);
  const [best] = ranked(points);
  const fresh = best?.confirmed ? [{
    label: "fresh seeds, best point", colour: FRESH, xs: [index(best)], ys: [best.confirmed[0]], marked: true,
    band: best.confirmed[1] === null ? null : [[best.confirmed[1]], [best.confirmed[2]]], dots: (best.confirmed[4] ?? []).map((y) => [index(best), y]),
  }] : [];
  const drawn = lineChart(`Score over ${field.name}`, () => ({
    x: { title: field.name, domain: [-0.25, field.values.length - 0.75], ticks: field.values.map((_, i) => i), names: field.values.map(fmt) },
    y: { title: "score" },
    series: [{ label: "tuning seeds", colour: 0, xs, ys: points.map((p) => p.score[0]), band: points.every((p) => p.score[1] !== null) ? [1, 2].map((i) => points.map((p) => p.score[i])) : null,
      dots: points.flatMap((p, i) => (p.score[4] ?? []).map((y) => [xs[i], y])) }, ...fresh],
    marks: best ? [{ x: index(best), label: best.confirmed ? `best; ${short(best.confirmed[0])} on fresh seeds` : "best" }] : [],
  }));
  const kinds = points.every((p) => p.score[1] !== null) ? "with its 95% interval" : "with a dot for each seed";
  const more = fresh.length ? ", and that of the best point on fresh seeds (large dot)" : "";
  return [el("p", { class: "muted small" }, `The mean score on the tuning seeds, ${kinds}${more}.`), drawn];
}

/** The colour of a score on fresh seeds. */
const FRESH = 3;

const SHARES = [0.05, 0.1, 0.25, 0.5, 1];

function sweepRays(key, sweep, fields) {
  const box = el("div");
  const words = (k) => (SHARES[k] === 1 ? "all" : `the best ${100 * SHARES[k]}%`);
  const best = slider(`${key} best`, "Points shown", SHARES.length, SHARES.length - 1, words, () => fill());
  const points = sweep.points.map((p) => ({ ...p, at: fields.map((f) => p.at[f.i]) }));
  const fill = () => {
    const drawn = parallel("Parallel coordinates of the sweep", fields, points, SHARES[best.value]);
    box.replaceChildren(drawn);
    drawn.again();
  };
  fill();
  return [el("h4", {}, "All fields at once"), el("p", { class: "muted small" }, "Each line is a point; more intense lines have higher scores."), el("div", { class: "controls" }, best), box];
}

function sweepTable(sweep) {
  const best = ranked(sweep.points).slice(0, 10);
  const head = [heading("point", false), heading("tuning seeds"), heading("score"), heading("fresh seeds"), heading("confirmed")];
  return [el("h4", {}, "Best points"), table("Best points", head, best.map((p) => el("tr", {},
    el("th", { scope: "row" }, el("span", { class: "name" }, p.label)), valueCell(String(p.score[3])), cell(p.score),
    p.confirmed ? valueCell(String(p.confirmed[3])) : missingCell(), cell(p.confirmed))), "stacked"),
  el("p", { class: "muted small" }, "Points tried on the most seeds come first. Score: the mean on the tuning seeds, which the points were chosen on, and its 95% interval; of fewer than five seeds, the seeds. Confirmed: the same on fresh seeds.")];
}

function sweepSection(key, sweep) {
  const fields = varied(sweep);
  const scored = sweep.points.filter((p) => p.score).length;
  const diverged = sweep.points.filter((p) => p.diverged).length;
  return el("section", { "aria-label": "Sweep", id: key },
    el("p", { class: "muted" }, `${scored} of ${sweep.points.length} points have a score${diverged ? `; ${diverged} had a seed that diverged` : ""}.`),
    fields.length === 1 ? sweepCurve(sweep, fields[0]) : null,
    fields.length >= 2 ? sweepMap(key, sweep, fields) : null,
    fields.length >= 3 ? sweepRays(key, sweep, fields) : null,
    sweepTable(sweep),
    sweep.about ? el("details", {}, el("summary", {}, CONFIGURATION), configuration(sweep.about)) : null);
}
