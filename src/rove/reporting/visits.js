// State visits: curves over a row of cells, or a board.

/** The opacity of a cell: on a square-root scale, so that rarely visited cells are visible. */
function shade(fraction) {
  return Math.max(0.06, Math.sqrt(fraction)).toFixed(2);
}

/** The axes of a board: its coordinates, the vertical one upwards, or else its rows, downwards, and columns. */
function sides({ cells: [rows, columns], sides: [up, across] }) {
  if (up) return [across, up].map(([title, low, high, count]) => {
    const whole = Number.isInteger(low + 0.5) && Number.isInteger((high - low) / count);
    const marks = whole ? ticks([low + 0.5, high - 0.5], 6, true) : [low, (low + high) / 2, high];
    return { title, whole, from: low, to: high, domain: [low, high], ticks: marks };
  });
  const axis = (title, count) => ({ title, from: -0.5, to: count - 0.5, domain: [-0.5, count - 0.5], ticks: ticks([0, count - 1], 6, true) });
  return [axis("column", columns), { ...axis("row", rows), domain: [rows - 0.5, -0.5] }];
}

/** A board of cells. */
function board(name, visits) {
  const [rows, columns] = visits.cells, upwards = visits.sides.length > 0;
  const [x, y] = sides(visits);
  const edge = (axis, k, count) => axis.from + ((axis.to - axis.from) * k) / count;
  const ratio = upwards ? 0.8 : Math.min(2, rows / columns);
  return chart(name, (width) => Math.round((width - 60) * ratio) + 52, (root, width, tall) => {
    root.classList.add("board");
    const { box, sx, sy } = frame(root, width, tall, x, y);
    root.append(svg("rect", { class: "ground", x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top }));
    const left = (column) => Math.round(sx(edge(x, column, columns))), at = (row) => Math.round(sy(edge(y, row, rows)));
    visits.mean.forEach((fraction, i) => {
      if (!fraction) return;
      const row = Math.floor(i / columns), column = i % columns;
      const top = Math.min(at(row), at(row + 1));
      root.append(svg("rect", { class: "cell", x: left(column), y: top, width: left(column + 1) - left(column), height: Math.abs(at(row + 1) - at(row)), "fill-opacity": shade(fraction) }));
    });
    const flipped = (row) => (upwards ? rows - 1 - row : row);
    const index = (at, low, high, count) => Math.max(0, Math.min(count - 1, Math.floor(((at - low) / (high - low)) * count)));
    const range = (axis, k, count) => {
      const inside = axis.whole ? 0.5 : 0;
      const ends = [edge(axis, k, count) + inside, edge(axis, k + 1, count) - inside];
      return `${axis.title} ${[...new Set(ends.map(short))].join(" to ")}`;
    };
    return {
      count: rows * columns,
      across: columns,
      nearest: (px, py) => index(py, box.top, box.bottom, rows) * columns + index(px, box.left, box.right, columns),
      at: (k) => {
        if (k === null) return null;
        const row = flipped(Math.floor(k / columns)), column = k % columns;
        const where = upwards ? `${range(x, column, columns)}, ${range(y, row, rows)}` : `row ${row}, column ${column}`;
        return {
          x: (left(column) + left(column + 1)) / 2, y: Math.min(at(row), at(row + 1)),
          content: reading(where, [[null, "fraction of episodes", fmt(visits.mean[row * columns + column]), `n = ${visits.n}`]]),
        };
      },
    };
  });
}

/** The shades of a board, with the fractions they stand for. */
function shades() {
  const steps = [0.01, 0.1, 0.25, 0.5, 1];
  return el("div", { class: "shades small muted" }, "fraction of episodes", steps.map((fraction) => el("span", {},
    svg("svg", { class: "chart", viewBox: "0 0 18 12", "aria-hidden": "true" }, svg("rect", { class: "cell", width: 18, height: 12, "fill-opacity": shade(fraction) })), fmt(fraction))));
}

/** How many cells were visited; of how many, unless they divide ranges of numbers, which need not all be reachable. */
function seen({ mean, sides }) {
  const count = mean.filter((fraction) => fraction).length;
  return `${fmt(count)}${sides.length ? "" : ` of ${fmt(mean.length)}`} cells seen`;
}

/** The maximum number of bars. */
const BARS = 64;

/** The section on state visits. */
function visitSection(key, group) {
  const runs = group.runs.filter((run) => run.visits);
  if (!runs.length) return [];
  const [{ visits: { n, cells } }] = runs;
  const caption = `${pictured(group)}Fraction of episodes in which each cell was visited, mean over ${n} seed${n > 1 ? "s" : ""}`;
  const head = (text) => [el("h4", {}, "State visits"), el("p", { class: "muted small" }, `${caption}${text}.`)];
  if (cells.length === 2) {
    return [head("; blank cells were never visited"), shades(), el("div", { class: "boards" }, runs.map((run) => {
      const drawn = board(`State visits of ${run.label}`, run.visits);
      drawn.prepend(el("figcaption", {}, el("span", { class: "name" }, swatch(run.colour), run.label), el("span", { class: "muted" }, `, ${seen(run.visits)}`)));
      return drawn;
    }))];
  }
  const bars = cells[0] * runs.length <= BARS;
  const keys = legend(`${key} visits`, runs, () => drawn.again());
  const drawn = lineChart(`State visits, ${group.title}`, () => ({
    bars,
    x: { title: "cell", whole: true },
    y: { title: "fraction of episodes", domain: [0, 1.02] },
    series: runs.filter((run) => keys.has(run.label)).map((run) => ({
      label: run.label, colour: run.colour, xs: run.visits.mean.map((_, i) => run.visits.first + i), ys: run.visits.mean, ...seedsOrRange(run.visits),
    })),
  }), 240);
  const seeds = bars ? " (bars) and each seed (dots)" : " (thick) and each seed (thin)";
  const range = bars ? " (bars)" : ", with the range from the lowest to the highest seed";
  const kinds = runs[0].visits.seeds ? (n > 1 ? seeds : "") : range;
  return [head(kinds), runs.length > 1 ? keys : null, drawn];
}
