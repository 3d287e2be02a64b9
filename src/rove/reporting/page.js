// The page: sections built from the data.

const VERDICTS = { supported: "good", "not supported": "bad" };

/** The claims of an experiment with their verdicts, folded. */
function claims(list) {
  const kinds = [...new Set(list.map((claim) => claim.verdict))].map((v) => `${list.filter((claim) => claim.verdict === v).length} ${v}`).join(", ");
  const head = ["claim", "what was measured", "verdict", "over all claims (Holm)"];
  const last = (claim) => [el("span", { class: `verdict ${VERDICTS[claim.verdict] ?? "open"}` }, claim.verdict), claim.after_holm];
  return el("details", { class: "tested" },
    el("summary", {}, `Claims tested on these data: ${kinds}`),
    table("Claims", head.map((text) => heading(text, false)),
      list.map((claim) => el("tr", {}, [claim.text, claim.evidence, ...last(claim)].map((text) => el("td", {}, text)))), "claims"));
}

/** The maximum number of performance profiles with a shaded interval: more would hide each other. */
const SHADED = 2;

/** The comparison over all tasks: the fraction of the optimum that agents reach. */
function overall(key, source) {
  const summary = source.overall;
  const again = () => drawn.again();
  const keys = legend(`${key} legend`, summary.agents, again);
  const drawn = lineChart("Performance profiles", () => ({
    x: { title: "fraction of the optimum, τ", domain: [0, 1] },
    y: { title: "fraction of seeds above τ", domain: [0, 1] },
    series: summary.agents.filter((a) => keys.has(a.label)).map((a, i) => ({ label: a.label, colour: a.colour, steps: true, xs: summary.thresholds, ys: a.profile, band: i < SHADED ? a.band : null })),
  }));
  const means = table("All tasks", [heading("agent", false), heading("seeds"), heading("mean fraction of the optimum")],
    summary.agents.map((a) => el("tr", {}, nameCell(a), el("td", { class: "number" }, String(a.mean[3])), cell(a.mean))), "narrow stacked");
  return [el("h3", { id: key }, "All tasks together"),
    el("p", { class: "muted" }, `Mean score over the whole budget as a fraction of the optimum, on ${summary.tasks.join(", ")}. A seed’s scores are averaged over the tasks; intervals are over seeds${summary.agents.some((a) => a.band) ? `, and shaded in the figure${summary.agents.length > SHADED ? " for the first two agents that are shown: choose others in the legend" : ""}` : ""}.${summary.left_out.length ? ` Not run on all of these tasks and therefore omitted: ${summary.left_out.join("; ")}.` : ""}${severalSettings(source)}`),
    keys, drawn, means];
}

/** The errors of runs that failed, or some of whose seeds did. */
function failures({ failed, groups }) {
  const partly = groups.flatMap((group) => group.runs.filter((run) => run.errors.length).map((run) => ({ ...run, title: `${run.label} on ${group.task}` })));
  const list = [...failed, ...partly];
  if (!list.length) return null;
  return el("div", { class: "note-box failed small", role: "status" },
    el("strong", {}, `Errors in ${list.length} run${list.length > 1 ? "s" : ""}`),
    list.map((run) => [el("div", {}, `${run.title} (${run.folder}):`), el("ul", {}, run.errors.map((error) => el("li", {}, error)))]));
}

/** A part of the page. If it is the only one, its title is that of the page. */
function sourceSection(key, source, first, only) {
  const single = source.groups.length === 1 && !source.sweep;
  return el("section", { "aria-label": source.name, id: key },
    only ? null : el("h2", { class: first ? "first" : "" }, source.title),
    failures(source),
    headline(key, source),
    source.command ? command(source.command) : null,
    source.waiting ? el("p", { class: "muted" }, `${source.waiting} more run${source.waiting > 1 ? "s have" : " has"} not finished an episode yet.`) : null,
    source.claims.length ? claims(source.claims) : null,
    source.overall ? overall(`${key}-all`, source) : null,
    source.sweep ? sweepSection(`${key}-sweep`, source.sweep) : null,
    source.picture ? el("details", { class: "picture" }, el("summary", {}, `Figure of the ${source.sweep ? "sweep" : "experiment"}, as in its folder`), el("img", { src: source.picture, alt: `Figure of ${source.name}` })) : null,
    source.groups.map((group, i) => groupSection(`${key}-${i}`, group, source.reference, single)));
}

/** Links to the parts of the page, if there are several. */
function contents(data) {
  const parts = data.sources.reduce((sum, source) => sum + 1 + source.groups.length, 0);
  if (parts <= 2) return null;
  return el("nav", { "aria-label": "Contents" }, el("ul", {}, data.sources.map((source, i) => el("li", {},
    data.sources.length > 1 ? el("a", { href: `#s${i}` }, source.name) : null,
    el("ul", {}, source.overall ? el("li", {}, el("a", { href: `#s${i}-all` }, "all tasks")) : null,
      source.groups.map((group, j) => el("li", {}, el("a", { href: `#s${i}-${j}` }, group.title))))))));
}

function themeButton() {
  const root = document.documentElement;
  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
  const kept = chosen.get("theme", null);
  if (kept) root.dataset.theme = kept;
  const name = () => (dark() ? "Light" : "Dark");
  const button = el("button", { type: "button", "aria-label": "Switch between light and dark", click: () => {
    root.dataset.theme = dark() ? "light" : "dark";
    chosen.set("theme", root.dataset.theme);
    button.textContent = name();
  } }, name());
  return button;
}

/** While runs are in progress the file is updated: reload it regularly, unless paused. */
function reloading(seconds) {
  const paused = checkbox("paused", "Pause", false, () => {});
  setInterval(() => { if (!paused.value) location.reload(); }, 1000 * seconds);
  return el("div", { class: "controls" }, el("span", { class: "muted" }, `Runs are in progress; this page reloads every ${seconds} s.`), paused);
}

function main() {
  const data = JSON.parse(document.getElementById("data").textContent);
  const groups = data.sources.flatMap((source) => source.groups);
  const runs = groups.flatMap((group) => group.runs);
  const seeds = runs.reduce((sum, run) => sum + run.seeds.length, 0);
  const points = data.sources.reduce((sum, source) => sum + (source.sweep?.points.length ?? 0), 0);
  const counts = [[runs.length, "run"], [seeds, "trained seed"], [new Set(groups.map((group) => group.task)).size, "task"], [points, "sweep point"]]
    .filter(([n]) => n).map(([n, what]) => `${n} ${what}${n > 1 ? "s" : ""}`);
  const sections = data.sources.map((source, i) => sourceSection(`s${i}`, source, i === 0, data.sources.length === 1));
  document.getElementById("app").replaceChildren(
    el("header", {}, el("div", {}, el("h1", {}, data.title), el("p", { class: "muted" }, [data.folders, ...counts].join(" · "))), themeButton()),
    ...[data.follow ? reloading(data.follow) : null, contents(data)].filter(Boolean),
    el("main", { id: "content", tabindex: "-1" }, sections));
  const figures = [...document.querySelectorAll("figure")];
  const widths = figures.map((figure) => figure.measure());
  figures.forEach((figure, i) => figure.again(widths[i]));
  document.documentElement.dataset.ready = "true";
}

main();
