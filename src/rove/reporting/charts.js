// Charts: lines with intervals, heat maps, parallel coordinates.

/** A figure that fits its width and can be explored with the pointer and the arrow keys. */
function chart(name, height, draw) {
  const box = el("div", { class: "chart" });
  const tip = el("div", { class: "tip", role: "status", hidden: true });
  const figure = el("figure", {}, box);
  const again = responsive(box, (width) => {
    const tall = typeof height === "function" ? height(width) : height;
    const root = svg("svg", { viewBox: `0 0 ${width} ${tall}`, role: "group", "aria-roledescription": "chart", "aria-label": name });
    const walk = draw(root, width, tall);
    if (walk) pointed(root, tip, box, walk, name);
    box.replaceChildren(root, tip);
    tip.hidden = true;
  });
  return Object.assign(figure, { again, measure: () => box.clientWidth });
}

/** Tooltips at stops along a chart: `walk.at(k)` describes stop k; `walk.nearest` finds the stop nearest to a position. */
function pointed(root, tip, box, walk, name) {
  let stop = null;
  const show = (k) => {
    stop = k === null ? null : Math.max(0, Math.min(walk.count - 1, k));
    tip.hidden = stop === null;
    const shown = walk.at(stop);
    if (!shown) return;
    tip.replaceChildren(...shown.content);
    const zoom = root.clientWidth / root.viewBox.baseVal.width || 1;
    const room = box.clientWidth - tip.offsetWidth;
    const left = shown.x * zoom + 14;
    tip.style.left = `${Math.max(0, left > room ? shown.x * zoom - tip.offsetWidth - 14 : left)}px`;
    tip.style.top = `${Math.max(0, (shown.y ?? 8) * zoom - (shown.y ? tip.offsetHeight + 8 : 0))}px`;
  };
  root.setAttribute("tabindex", "0");
  root.setAttribute("aria-label", `${name}. Use the arrow keys to read values.`);
  root.addEventListener("pointermove", (event) => {
    const at = root.getBoundingClientRect();
    const zoom = root.viewBox.baseVal.width / at.width;
    show(walk.nearest((event.clientX - at.left) * zoom, (event.clientY - at.top) * zoom));
  });
  root.addEventListener("pointerleave", () => show(null));
  root.addEventListener("blur", () => show(null));
  root.addEventListener("keydown", (event) => {
    const far = event.shiftKey ? 10 : 1, across = walk.across ?? 1;
    const moves = { ArrowRight: across === 1 ? far : 1, ArrowLeft: across === 1 ? -far : -1, ArrowDown: across, ArrowUp: -across };
    if (across === 1) { delete moves.ArrowDown; delete moves.ArrowUp; }
    if (event.key === "Home") show(0);
    else if (event.key === "End") show(walk.count - 1);
    else if (event.key === "Escape") show(null);
    else if (event.key in moves) show(stop === null ? 0 : stop + moves[event.key]);
    else return;
    event.preventDefault();
  });
}

/** The content of a tooltip: a title and rows of labels and values. */
function reading(name, rows) {
  return [el("strong", {}, name), el("table", {}, el("tbody", {}, rows.map(([mark, label, value, more]) =>
    el("tr", {}, el("td", {}, el("span", { class: "name" }, mark, label)), el("td", {}, value), el("td", { class: "muted" }, more ?? "")))))];
}

/** A line chart. A series has label, colour, xs and ys, and optionally a band [low, high] and traces. A mark is a
 * labelled line at `y` or at `x`. With `bars`, series are bars at whole numbers side by side, and traces are dots. */
function lineChart(name, spec, height = (width) => Math.max(260, Math.min(380, width * 0.42))) {
  return chart(name, height, (root, width, tall) => {
    const { x, y, series, marks = [], bars = false } = spec();
    const all = series.flatMap((s) => [...s.ys, ...(s.band ? s.band.flat() : []), ...(s.traces ?? []).flat(), ...(s.dots ?? []).map(([, v]) => v)]);
    const shown = y.log ? all.filter((v) => v > 0) : all;
    const domain = y.domain ?? extent([...shown, ...marks.map((m) => m.y ?? null)]);
    const ends = x.domain ?? extent(series.flatMap((s) => [s.xs[0], s.xs[s.xs.length - 1]]));
    const xs = bars ? [ends[0] - 0.5, ends[1] + 0.5] : ends;
    const upright = marks.filter((mark) => mark.x !== undefined && mark.x <= xs[1]);
    const labelled = upright.filter((mark) => mark.label);
    const level = marks.filter((mark) => mark.y !== undefined);
    const below = level.length ? 1 : 0; // the lowest row of labels is that of the horizontal mark
    const top = 20 + 14 * (labelled.length + (labelled.length ? below : 0));
    const { box, sx, sy } = frame(root, width, tall, { ...x, domain: xs }, { ...y, domain: padded(domain, y) }, top);
    for (const mark of level) horizontalMark(root, box, sy(mark.y), mark.label);
    for (const mark of upright) verticalMark(root, box, sx(Math.max(mark.x, xs[0])), mark.label, below + Math.max(0, labelled.indexOf(mark)));
    const position = (s) => (v, i) => [sx(s.xs[i]), y.log && v <= 0 ? NaN : v === null ? NaN : sy(v)];
    const corners = (s, points) => (s.steps ? stepped(points) : points);
    const floor = (v) => (y.log ? Math.max(v, domain[0]) : v);
    const bands = bars ? [] : series.filter((s) => s.band);
    for (const s of bands) { // below all lines; of many, fainter ones, since they overlap
      const [low, high] = s.band.map((side) => corners(s, side.map(floor).map(position(s))));
      root.append(svg("path", { class: `band ${look(s.colour).colour}`, "fill-opacity": Math.min(1, 3 / bands.length).toFixed(2), d: `${path([...high, ...low.reverse()])}Z` }));
    }
    if (bars) drawBars(root, series, sx, sy);
    for (const s of bars ? [] : series) {
      const { colour, dash } = look(s.colour);
      if (s.dots?.length) root.append(dots(s.dots.map(([u, v]) => [sx(u), sy(v)]), colour, 0.5));
      for (const t of s.traces ?? []) root.append(svg("path", { class: `trace ${colour}`, d: path(t.map(position(s))) }));
      root.append(svg("path", { class: `line ${colour}`, "stroke-dasharray": dash, d: path(corners(s, s.ys.map(position(s)))) }));
      if (s.marked) root.append(dots(s.ys.map(position(s)), `large ${colour}`));
    }
    const longest = series.reduce((a, b) => (b.xs.length > a.xs.length ? b : a), { xs: [] }).xs;
    if (!longest.length) {
      root.append(svg("text", { x: (box.left + box.right) / 2, y: (box.top + box.bottom) / 2, "text-anchor": "middle" }, "Nothing to show: choose an agent above."));
      return null;
    }
    const cursor = svg("line", { class: "cursor", y1: box.top, y2: box.bottom, visibility: "hidden" });
    root.append(cursor);
    return {
      count: longest.length,
      nearest: (px) => nearest(longest.map(sx), px),
      at: (k) => {
        cursor.setAttribute("visibility", k === null ? "hidden" : "visible");
        if (k === null) return null;
        const at = longest[k];
        cursor.setAttribute("x1", sx(at));
        cursor.setAttribute("x2", sx(at));
        const rows = series.map((s) => [s, s.steps ? s.xs.findLastIndex((v) => v <= at) : s.xs.indexOf(at)])
          .filter(([s, i]) => i >= 0 && i < s.ys.length && s.ys[i] !== null)
          .sort(([a, i], [b, j]) => b.ys[j] - a.ys[i]).slice(0, 12)
          .map(([s, i]) => [swatch(s.colour), s.label, fmt(s.ys[i]), beside(s, i)]);
        return { x: sx(at), content: reading(`${x.title} ${x.names ? x.names[at] : fmt(at)}`, rows) };
      },
    };
  });
}

/** Bars of several series side by side, with their traces as dots. */
function drawBars(root, series, sx, sy) {
  const width = (0.8 * (sx(1) - sx(0))) / Math.max(series.length, 1);
  series.forEach((s, k) => {
    const { colour } = look(s.colour);
    const left = (at) => sx(at) + (k - series.length / 2) * width;
    s.ys.forEach((y, i) => root.append(svg("rect", { class: `bar ${colour}`, x: left(s.xs[i]).toFixed(1), y: sy(y).toFixed(1), width: Math.max(0.5, width - 0.5).toFixed(1), height: Math.max(0, sy(0) - sy(y)).toFixed(1) })));
    root.append(dots((s.traces ?? []).flatMap((t) => t.map((y, i) => [left(s.xs[i]) + width / 2, sy(y)])), colour, 0.8));
  });
}

/** What a readout says beside a value: the interval or, of few seeds, the seeds. */
function beside({ band, traces = [] }, i) {
  if (band) return `${short(band[0][i])} to ${short(band[1][i])}`;
  return traces.length > 1 && traces.length <= DRAWN ? traces.map((t) => short(t[i])).join(", ") : "";
}

function padded([low, high], y) {
  if (y.domain) return y.domain;
  if (y.log) return [low / 1.2, high * 1.2];
  const room = 0.04 * (high - low);
  return [low - (low === 0 ? 0 : room), high + room];
}

function nearest(positions, at) {
  let best = 0;
  for (let i = 1; i < positions.length; i += 1) if (Math.abs(positions[i] - at) < Math.abs(positions[best] - at)) best = i;
  return best;
}

/** A step function through points. */
function stepped(points) {
  return points.flatMap(([x, y], i) => (i ? [[x, points[i - 1][1]], [x, y]] : [[x, y]]));
}

/** The width of the title of rows, left of their labels, in pixels. */
const HEAD = 40;

/** The maximum length of slanted labels, in pixels. */
const SLANTED = 240;

/** A heat map: `cells[row][column]` is an estimate or null, `text` what a cell shows, `lines(row, column)` what its
 * tooltip lists, `domain` the range of the colours, and `marked` the row and column of a cell with a frame. */
function heatMap(name, rows, columns, cells, { lines, text = (cell) => short(cell[0]), domain = null, format = fmt, marked = null }) {
  const letters = (values) => 7 * Math.max(...values.map((v) => format(v).length));
  const longest = letters(columns.values);
  const beside = (width) => Math.min(letters(rows.values), Math.max(130, 0.3 * width));
  // Labels that do not fit side by side are slanted if there are few, and otherwise left out.
  const slanted = (width) => longest + 8 > (width - beside(width) - HEAD - 2) / columns.values.length && columns.values.length <= 12;
  const below = (width) => 44 + (slanted(width) ? Math.min(longest, SLANTED) * 0.64 : 0);
  const height = (width) => rows.values.length * Math.min(46, Math.max(30, width / 14)) + 4 + below(width);
  return chart(name, height, (root, width, tall) => {
    const bottom = tall - below(width), left = HEAD + beside(width);
    const w = (width - left - 2) / columns.values.length, h = bottom / rows.values.length;
    const [low, high] = domain ?? extent(cells.flat().filter(Boolean).map((c) => c[0]));
    cells.forEach((row, r) => row.forEach((cell, c) => {
      const share = cell ? (cell[0] - low) / (high - low || 1) : 0;
      const [x, y] = [left + c * w, bottom - (r + 1) * h];
      root.append(svg("rect", { class: cell ? "cell" : "ground", x, y, width: Math.max(1, w - 2), height: h - 2, rx: 3, "fill-opacity": cell ? (0.06 + 0.94 * share).toFixed(3) : 1 }));
      if (cell && w > 34) root.append(svg("text", { class: share > 0.55 ? "inverse" : "plain", x: x + w / 2 - 1, y: y + h / 2 + 3, "text-anchor": "middle" }, text(cell)));
      if (!cell && w > 34) root.append(svg("text", { class: "plain", x: x + w / 2 - 1, y: y + h / 2 + 3, "text-anchor": "middle" }, "–"));
    }));
    rows.values.forEach((v, r) => root.append(svg("text", { x: left - 8, y: bottom - (r + 0.5) * h + 3, "text-anchor": "end" }, clipped(format(v), Math.floor(beside(width) / 6.2)))));
    if (marked) root.append(svg("rect", { class: `frame ${look(FRESH).colour}`, x: left + marked[1] * w, y: bottom - (marked[0] + 1) * h, width: Math.max(1, w - 2), height: h - 2, rx: 3 }));
    const every = slanted(width) ? 1 : Math.ceil((longest + 8) / w);
    columns.values.forEach((v, c) => {
      if (c % every) return;
      const x = left + (c + 0.5) * w - 1, y = bottom + 16;
      if (!slanted(width)) root.append(svg("text", { x, y, "text-anchor": "middle" }, format(v)));
      else root.append(svg("text", { x, y: y - 4, "text-anchor": "end", transform: `rotate(-40 ${x} ${y - 4})` }, clipped(format(v), Math.floor(Math.min(SLANTED, x / 0.77) / 6.2), true)));
    });
    root.append(svg("text", { class: "title", x: width - 2, y: tall - 6, "text-anchor": "end" }, columns.name));
    root.append(svg("text", { class: "title", x: 12, y: 4, transform: "rotate(-90 12 4)", "text-anchor": "end" }, rows.name));
    return {
      count: rows.values.length * columns.values.length,
      across: columns.values.length,
      nearest: (px, py) => Math.min(rows.values.length - 1, Math.max(0, Math.floor(py / h))) * columns.values.length + Math.min(columns.values.length - 1, Math.max(0, Math.floor((px - left) / w))),
      at: (k) => {
        if (k === null) return null;
        const r = rows.values.length - 1 - Math.floor(k / columns.values.length), c = k % columns.values.length;
        const cell = cells[r][c];
        const listed = cell ? lines(r, c) : [[null, "no score", ""]];
        return { x: left + (c + 0.5) * w, y: bottom - (r + 1) * h, content: reading(`${rows.name} ${format(rows.values[r])}, ${columns.name} ${format(columns.values[c])}`, listed) };
      },
    };
  });
}

/** Parallel coordinates: one axis per field, then the score; better points are darker. */
function parallel(name, fields, points, best) {
  return chart(name, (width) => (width < 500 ? 300 : 360), (root, width, tall) => {
    const scored = points.filter((p) => p.score).sort((a, b) => a.score[0] - b.score[0]);
    const [low, high] = extent(scored.map((p) => p.score[0]));
    const top = 34, bottom = tall - 12, left = 34, right = width - 44;
    const xs = [...fields, null].map((_, i) => left + (i * (right - left)) / fields.length);
    const at = (field, value) => {
      const index = field.values.findIndex((v) => String(v) === String(value));
      return field.values.length > 1 ? bottom - (index / (field.values.length - 1)) * (bottom - top) : (top + bottom) / 2;
    };
    const height = scale([low, high], [bottom, top]);
    const kept = scored.slice(Math.floor(scored.length * (1 - best)));
    const rays = kept.map((p, i) => {
      const ys = [...fields.map((f, k) => at(f, p.at[k])), height(p.score[0])];
      const share = (p.score[0] - low) / (high - low || 1);
      const ray = svg("path", { class: "ray", d: path(ys.map((y, k) => [xs[k], y])), "stroke-opacity": (0.08 + 0.8 * share ** 2).toFixed(3) });
      root.append(ray);
      return { p, ray, y: ys[ys.length - 1], i };
    });
    fields.forEach((f, k) => {
      root.append(svg("line", { class: "axis", x1: xs[k], x2: xs[k], y1: top, y2: bottom }));
      root.append(svg("text", { class: "title", x: xs[k], y: 14, "text-anchor": k ? "middle" : "start", dx: k ? 0 : -20 }, f.name));
      const every = Math.ceil((f.values.length * 16) / (bottom - top));
      f.values.forEach((v, i) => { if (i % every === 0) root.append(svg("text", { class: "halo", x: xs[k] + 5, y: at(f, v) + 4 }, fmt(v))); });
    });
    root.append(svg("line", { class: "axis", x1: right, x2: right, y1: top, y2: bottom }), svg("text", { class: "title", x: right, y: 14, "text-anchor": "middle" }, "score"));
    for (const t of ticks([low, high], 5)) root.append(svg("text", { x: right + 6, y: height(t) + 4 }, fmt(t)));
    const front = svg("path", { class: "ray", "stroke-width": 3, visibility: "hidden" });
    root.append(front);
    if (!rays.length) return null;
    const order = [...rays].reverse();
    return {
      count: order.length,
      nearest: (px, py) => nearest(order.map((r) => rayAt(r, px, xs, fields, at, height)), py),
      at: (k) => {
        front.setAttribute("visibility", k === null ? "hidden" : "visible");
        if (k === null) return null;
        const { p, ray, y } = order[k];
        front.setAttribute("d", ray.getAttribute("d"));
        const rows = fields.map((f, j) => [null, f.name, fmt(p.at[j])]);
        return { x: right - 30, y: Math.max(y, 120), content: reading(`score ${fmt(p.score[0])} ${interval(p.score) && `(${interval(p.score)})`}, n = ${p.score[3]}`, rows) };
      },
    };
  });
}

/** The height of a line of parallel coordinates at a position px. */
function rayAt({ p }, px, xs, fields, at, height) {
  const ys = [...fields.map((f, k) => at(f, p.at[k])), height(p.score[0])];
  const k = Math.max(0, Math.min(xs.length - 2, xs.findLastIndex((x) => x <= px)));
  const share = Math.max(0, Math.min(1, (px - xs[k]) / (xs[k + 1] - xs[k])));
  return ys[k] + share * (ys[k + 1] - ys[k]);
}
