// The posterior over training: draws of Q, and the return distribution Z, with a slider.

/** The x-positions of a picture of Z, which may be given by its two ends. */
function positions({ x, y }) {
  if (x.length === y.length) return x;
  return y.map((_, i) => x[0] + ((x[1] - x[0]) * i) / (y.length - 1));
}

/** q(Q(s, ·)) over training: draws as dots, means as lines, and the position of the slider. */
function drawsChart(name, beliefs, probe, now) {
  return chart(name, 220, (root, width, tall) => {
    const { values, episodes } = beliefs, k = now();
    const last = episodes[episodes.length - 1];
    const flat = values.flatMap((slot) => slot[probe].flat());
    const above = beliefs.note && Math.max(...flat) > beliefs.optimum;
    const { box, sx, sy } = frame(root, width, tall, { title: "episode", log: 2, domain: [0.8, Math.max(2, last) * 1.25] }, { title: "Q", domain: padded(extent(flat), {}) }, above ? 38 : 24);
    root.append(svg("rect", { class: "here", x: sx(episodes[k]) - 9, y: box.top, width: 18, height: box.bottom - box.top, rx: 3 }));
    if (beliefs.starts && beliefs.starts <= last) verticalMark(root, box, sx(beliefs.starts), "learning starts", above ? 1 : 0);
    if (above) horizontalMark(root, box, sy(beliefs.optimum), "optimum", true);
    values[0][probe].forEach((_, action) => {
      const { colour } = look(action);
      const at = (i) => values[i][probe][action].map((q) => [sx(episodes[i]), sy(q)]);
      root.append(dots(episodes.flatMap((_, i) => (i === k ? [] : at(i))), colour, 0.45), dots(at(k), colour));
      root.append(svg("path", { class: `line ${colour}`, d: path(values.map((slot, i) => [sx(episodes[i]), sy(mean(slot[probe][action]))])) }));
    });
    return null;
  });
}

/** Z(s, ·) after one of the recorded episodes, on the same scale for all of them. */
function returnsChart(name, beliefs, probe, now) {
  return chart(name, 220, (root, width, tall) => {
    const pictures = beliefs.returns[now()][probe];
    const domain = extent(beliefs.returns.flatMap((slot) => slot[probe].flatMap((z) => [z.x[0], z.x[z.x.length - 1]])));
    const top = Math.max(...pictures.map((z) => z.top));
    const { box, sx, sy } = frame(root, width, tall, { title: "return", domain: padded(domain, {}) }, { title: beliefs.discrete ? "probability" : "density", domain: [0, 1.05], ticks: [] });
    pictures.forEach((z, action) => {
      const { colour } = look(action);
      const points = positions(z).map((x, i) => [sx(x), sy(((z.y[i] / 999) * z.top) / top)]);
      if (beliefs.discrete) {
        root.append(svg("path", { class: `line ${colour}`, "stroke-opacity": 0.6, d: points.map(([x, y]) => path([[x, box.bottom], [x, y]])).join("") }));
        root.append(dots(points, colour));
      } else {
        root.append(svg("path", { class: `band ${colour}`, d: `${path([[points[0][0], box.bottom], ...points, [points[points.length - 1][0], box.bottom]])}Z` }));
        root.append(svg("path", { class: `line ${colour}`, d: path(points) }));
      }
    });
    return null;
  });
}

function mean(values) {
  return values.reduce((a, b) => a + b, 0) / values.length;
}

/** The section on the posterior in the probed states over training. */
function beliefSection(key, group) {
  const runs = group.runs.filter((run) => run.beliefs);
  if (!runs.length) return [];
  const body = el("div");
  const which = choice(`${key} beliefs`, "Agent", runs.map((run, i) => [i, run.label]), 0, () => fill());
  const fill = () => {
    const run = runs[Number(which.value)], { beliefs } = run;
    const words = (k) => `after episode ${fmt(beliefs.episodes[k])}`;
    const count = beliefs.episodes.length;
    const charts = [];
    const printed = el("p", { class: "print-only small" });
    const draw = () => { printed.textContent = `${run.label}, ${words(at.value)}`; charts.forEach((c) => c.again()); };
    const at = slider(`${key} snapshot`, "Training", count, count - 1, words, draw);
    const now = () => at.value;
    const rows = beliefs.probes.flatMap((probe, i) => [
      [`q(Q(s, a)), s = ${probe}`, drawsChart(`Draws of Q at ${probe}, ${run.label}`, beliefs, i, now)],
      [`Z(s, a), s = ${probe}`, returnsChart(`Return distributions at ${probe}, ${run.label}`, beliefs, i, now)],
    ].map(([title, drawn]) => { drawn.prepend(el("figcaption", {}, title)); charts.push(drawn); return drawn; }));
    body.replaceChildren(...[
      el("div", { class: "controls" }, runs.length > 1 ? which : null, at), printed,
      el("div", { class: "legend" }, beliefs.actions.map((action, a) => el("span", { class: "key" }, swatch(a), action))),
      beliefs.note ? el("p", { class: "note-box small" }, beliefs.note) : null,
      el("div", { class: "boards wide" }, rows)].filter(Boolean));
    draw();
  };
  fill();
  return [el("details", { class: "beliefs" }, el("summary", {}, "Posterior over training: what the agent believes about Q and Z"),
    el("p", { class: "muted small" }, `${pictured(group)}Only seed ${runs[0].beliefs.seed}, so there are no intervals. q(Q(s, a)): 16 draws of Q with θ ~ q(θ), and their mean. Z(s, a): the return distribution at the mean of q(θ).`), body)];
}
