"use strict";
// Elements, numbers, scales and axes. Data from runs is only ever inserted as text, never as HTML.

const SVG = "http://www.w3.org/2000/svg";

/** Create an HTML element. Functions become event listeners; true and false set and omit attributes. */
function el(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** Create an SVG element. */
function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name, value);
    else if (value !== false && value !== null && value !== undefined) {
      node.setAttribute(name, value === true ? "" : value);
    }
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return node;
}

/** Format a number for display. */
function fmt(value) {
  if (value === null || value === undefined) return "–";
  if (value === "inf") return "not reached";
  if (typeof value !== "number") return String(value);
  const size = Math.abs(value);
  const text = size && (size >= 1e6 || size < 1e-3)
    ? value.toExponential(1).replace(".0e", "e").replace("e+", "e")
    : String(Number(value.toPrecision(4)));
  return text.replaceAll("-", "−");
}

/** Format what is known beside the value of an estimate [value, low, high, n, seeds]: its 95% interval or, of
 * few seeds, the seeds; empty for a single one. */
function interval([, low, high, n, seeds], format = short) {
  if (seeds) return n > 1 ? seeds.map(format).join(", ") : "";
  return low === null ? "" : `${format(low)} to ${format(high)}`;
}

/** A format for all numbers of some estimates: as many decimals as show three digits of the largest, none if all are whole. */
function formatOf(estimates) {
  const values = estimates.filter(Boolean).flatMap(([value, low, high, , seeds]) => [value, low, high, ...(seeds ?? [])]).filter((x) => typeof x === "number");
  const largest = Math.max(0, ...values.map(Math.abs));
  if (values.every(Number.isInteger) || largest >= 1e6 || largest < 1e-3) return short;
  const decimals = Math.max(0, 2 - Math.floor(Math.log10(largest)));
  return (value) => (typeof value === "number" ? String(value.toFixed(decimals)).replace(/^-(0(\.0*)?)$/, "$1").replaceAll("-", "−") : short(value));
}

/** Format a number with three significant digits. */
function short(value) {
  return fmt(typeof value === "number" ? Number(value.toPrecision(3)) : value);
}

/** Format a p-value with two significant digits. */
function chance(p) {
  return p < 0.001 ? "< 0.001" : fmt(Number(p.toPrecision(2)));
}

/** Return a linear or logarithmic scale from a domain to a range of pixels. */
function scale([low, high], [from, to], log = false) {
  const f = log ? (x) => Math.log(x) : (x) => x;
  const width = f(high) - f(low) || 1;
  const at = (x) => from + ((f(x) - f(low)) / width) * (to - from);
  return Object.assign(at, { domain: [low, high], log });
}

/** About `count` round numbers within a domain; only integers if `whole`. */
function ticks([low, high], count, whole = false) {
  const raw = (high - low) / Math.max(count, 1) || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const round = power * [1, 2, 5, 10].find((k) => k * power >= raw * 0.75);
  const step = whole ? Math.max(1, round) : round;
  const values = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k += 1) {
    values.push(Number((k * step).toPrecision(12)));
  }
  return values;
}

/** About `count` powers of a base within a domain. */
function logTicks([low, high], count, base) {
  const of = (x) => Math.log(x) / Math.log(base);
  const [from, to] = [Math.ceil(of(low) - 1e-9), Math.floor(of(high) + 1e-9)];
  const step = Math.max(1, Math.ceil((to - from) / count));
  const values = [];
  for (let k = from; k <= to; k += step) values.push(base ** k);
  return values;
}

/** The minimum and the maximum; equal values are widened a little. */
function extent(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const x of values) {
    if (x === null || !Number.isFinite(x)) continue;
    if (x < low) low = x;
    if (x > high) high = x;
  }
  if (low > high) return [0, 1];
  return low === high ? [low - (Math.abs(low) || 1) * 0.05, high + (Math.abs(high) || 1) * 0.05] : [low, high];
}

/** An SVG path through points, interrupted at missing ones. */
function path(points) {
  let text = "", pen = "M";
  for (const [x, y] of points) {
    if (!Number.isFinite(x) || !Number.isFinite(y)) { pen = "M"; continue; }
    text += `${pen}${x.toFixed(1)} ${y.toFixed(1)}`;
    pen = "L";
  }
  return text;
}

/** Dots at points, drawn as one path of zero-length lines with round ends. */
function dots(points, colour, opacity = 1) {
  const d = points.map(([x, y]) => `M${x.toFixed(1)} ${y.toFixed(1)}h0`).join("");
  return svg("path", { class: `dots ${colour}`, d, "stroke-opacity": opacity });
}

/** Draw into a box whenever its width changes. Measuring forces a layout of the page, so measure all
 * boxes first if there are many to draw. */
function responsive(box, draw) {
  let width = 0;
  const again = (measured = box.clientWidth) => { width = measured; if (width) draw(width); };
  new ResizeObserver(() => {
    if (box.clientWidth !== width) requestAnimationFrame(() => again());
  }).observe(box);
  return again;
}

/** Draw axes with grid lines and titles; return the plot area and the scales. `top` is the space above. */
function frame(root, width, height, x, y, top = 10) {
  const widest = 8 + 6.6 * Math.max(...axisTicks(y, height / 50).map((t) => label(y, t).length), 1);
  const box = { left: Math.max(widest, 24) + (y.title ? 20 : 4), right: width - 10, top, bottom: height - (x.title ? 42 : 24) };
  const [sx, sy] = [scale(x.domain, [box.left, box.right], x.log), scale(y.domain, [box.bottom, box.top], y.log)];
  for (const t of axisTicks(y, (box.bottom - box.top) / 45)) {
    root.append(svg("line", { class: "grid", x1: box.left, x2: box.right, y1: sy(t), y2: sy(t) }));
    root.append(svg("text", { x: box.left - 8, y: sy(t) + 4, "text-anchor": "end" }, label(y, t)));
  }
  for (const t of axisTicks(x, (box.right - box.left) / 75)) {
    root.append(svg("line", { class: "axis", x1: sx(t), x2: sx(t), y1: box.bottom, y2: box.bottom + 4 }));
    root.append(svg("text", { x: sx(t), y: box.bottom + 18, "text-anchor": "middle" }, label(x, t)));
  }
  root.append(svg("line", { class: "axis", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }));
  if (x.title) root.append(svg("text", { class: "title", x: box.right, y: height - 4, "text-anchor": "end" }, x.title));
  if (y.title) {
    const [tx, ty] = [12, box.top];
    root.append(svg("text", { class: "title", x: tx, y: ty, transform: `rotate(-90 ${tx} ${ty})`, "text-anchor": "end" }, y.title));
  }
  return { box, sx, sy };
}

/** The width of a letter of a note, on average. */
const NOTE_LETTER = 5.8;

/** Text of at most `room` letters: its start, or its end. */
function clipped(text, room, end = false) {
  if (text.length <= room) return text;
  const kept = Math.max(0, room - 1);
  return end ? `…${text.slice(text.length - kept).trimStart()}` : `${text.slice(0, kept).trimEnd()}…`;
}

/** A labelled vertical line, such as where learning starts; `row` moves the label up. The label is beside the line, or as
 * near to it as the plot has room for. */
function verticalMark(root, box, at, text, row = 0) {
  const left = at < (box.left + box.right) / 2, y = box.top - 4 - 14 * row;
  const shown = clipped(text, Math.floor((box.right - box.left) / NOTE_LETTER)), wide = shown.length * NOTE_LETTER;
  const x = left ? Math.min(at + 4, box.right - wide) : Math.max(at - 4, box.left + wide);
  root.append(svg("line", { class: "mark", x1: at, x2: at, y1: y, y2: box.bottom }));
  root.append(svg("text", { class: "note", x, y, "text-anchor": left ? "start" : "end" }, shown));
}

/** A labelled horizontal line, such as the optimum; its label is on the right, or on the left. */
function horizontalMark(root, box, at, text, left = false) {
  root.append(svg("line", { class: "mark", x1: box.left, x2: box.right, y1: at, y2: at }));
  root.append(svg("text", { class: "note", x: left ? box.left + 4 : box.right, y: at - 5, "text-anchor": left ? "start" : "end" }, text));
}

function axisTicks(axis, count) {
  if (axis.ticks) return axis.ticks;
  if (!axis.log) return ticks(axis.domain, Math.max(2, Math.floor(count)), axis.whole);
  const powers = logTicks(axis.domain, Math.max(2, Math.floor(count)), axis.log);
  return powers.length > 1 ? powers : axis.domain;
}

function label(axis, t) {
  return axis.names ? axis.names[t] : fmt(t);
}

/** The style of a curve: ten colours, then the same colours with dashes. None is dotted, as the
    optimum is. */
const DASHES = [null, "6 3", "8 3 2 3", "12 3 2 3 2 3"];
function look(colour) {
  return { colour: `s${colour % 10}`, dash: DASHES[Math.floor(colour / 10) % DASHES.length] };
}

function swatch(colour) {
  const { colour: kind, dash } = look(colour);
  return svg("svg", { class: "swatch", viewBox: "0 0 18 10", "aria-hidden": "true" },
    svg("line", { class: kind, x1: 0, x2: 18, y1: 5, y2: 5, "stroke-width": 3, "stroke-dasharray": dash }));
}
