// The posterior over training: draws of Q, and the return distribution Z, with a slider.

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

/** Z(s, ·) after one of the recorded episodes, on the same scale for all of them, with its means as dots. */
function returnsChart(name, beliefs, probe, now) {
  return chart(name, 220, (root, width, tall) => {
    const { x: domain, y, means } = beliefs.returns[probe];
    const { box, sx, sy } = frame(root, width, tall, { title: "return", domain }, { title: "density, scaled", domain: [0, 1.05], ticks: [] });
    y[now()].forEach(([first, ...heights], action) => {
      const { colour } = look(action);
      const points = [0, ...heights, 0].map((h, i) => [box.left + ((box.right - box.left) * Math.max(0, Math.min(60, first - 1 + i))) / 60, sy(h / 99)]);
      root.append(svg("path", { class: `band ${colour}`, d: `${path(points)}Z` }));
      root.append(svg("path", { class: `line ${colour}`, d: path(points) }));
      root.append(dots([[sx(means[now()][action]), box.bottom]], `large ${colour}`));
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
      ...(beliefs.returns ? [[`Z(s, a), s = ${probe}`, returnsChart(`Return distributions at ${probe}, ${run.label}`, beliefs, i, now)]] : []),
    ].map(([title, drawn]) => { drawn.prepend(el("figcaption", {}, title)); charts.push(drawn); return drawn; }));
    body.replaceChildren(...[
      el("div", { class: "controls" }, runs.length > 1 ? which : null, at), printed,
      el("div", { class: "legend" }, beliefs.actions.map((action, a) => el("span", { class: "key" }, swatch(a), action))),
      beliefs.returns ? null : el("p", { class: "muted small" }, "Z(s, a) is not drawn: the return family is custom, and the report does not import it."),
      beliefs.note ? el("p", { class: "note-box small" }, beliefs.note) : null,
      el("div", { class: "boards wide" }, rows)].filter(Boolean));
    draw();
  };
  fill();
  return [el("details", { class: "beliefs" }, el("summary", {}, "Posterior over training: what the agent believes about Q and Z"),
    el("p", { class: "muted small" }, `${pictured(group)}Only seed ${runs[0].beliefs.seed}, so there are no intervals. q(Q(s, a)): 16 draws of Q with θ ~ q(θ), and their mean. Z(s, a): the return distribution at the mean of q(θ), with its mean as a dot; all are scaled to one height and drawn at least 2% of the axis wide.`), body)];
}
