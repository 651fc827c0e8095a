"use strict";
(function () {
const model = JSON.parse(document.getElementById("model").textContent);
const byId = (id) => document.getElementById(id);

// ---------------------------------------------------------------- elements and texts

// make("p.note", "text", child...): texts become text nodes, never markup.
function make(what, ...children) {
	const [tag, ...classes] = what.split(".");
	const element = document.createElement(tag);
	if (classes.length) element.className = classes.join(" ");
	for (const child of children) {
		if (child !== null && child !== undefined && child !== "") element.append(child);
	}
	return element;
}

const known = (value) => value !== null && value !== undefined;
const digits = (value) => {
	const size = Math.abs(value);
	return value.toLocaleString("en", { maximumFractionDigits: size >= 100 || size === 0 ? 0 : size >= 10 ? 1 : 2 });
};
function scaled(value, step, names) {
	let i = 0;
	for (; Math.abs(value) >= step && i < names.length - 1; i++) value /= step;
	return digits(value) + (names[i] ? " " + names[i] : "");
}
const bytes = (value) => scaled(value, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]);
const count = (value) => (Math.abs(value) < 1e5 ? digits(value) : scaled(value, 1000, ["", "k", "M", "G"]));
const duration = (ms) => (ms >= 60000 ? digits(ms / 60000) + " min" : ms >= 1000 ? digits(ms / 1000) + " s" : digits(ms) + " ms");
const units = {
	"B": bytes, "B/s": (v) => bytes(v) + "/s", "%": (v) => digits(v) + " %", "1/s": (v) => count(v) + "/s",
	"ms/s": (v) => digits(v) + " ms/s",
};
const withUnit = (value, unit) => (known(value) ? (units[unit] || ((v) => count(v) + (unit ? " " + unit : "")))(value) : "not known");

const two = (n) => String(n).padStart(2, "0");
const day = (d) => `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())}`;
const clock = (d) => `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
const moment = (text) => (text ? ((d) => `${day(d)} ${clock(d)}`)(new Date(text)) : "");

// ---------------------------------------------------------------- the verdict

const rank = ["critical", "warning", "info", "ok"];
const advice = model.advice || [];
const toDo = advice.filter((a) => a.severity === "critical" || a.severity === "warning");
const series = model.series || { at: [] };
const checkpoints = model.checkpoints || [];
const sum = (rows, column) => rows.reduce((s, row) => (known(row[column]) ? (s ?? 0) + row[column] : s), null);
const most = (values) => values.filter(known).reduce((m, v) => (m === null || v > m ? v : m), null);

function tile(name, value, small) {
	return make("div", make("dt", name), make("dd", value, make("small", small)));
}

function verdict() {
	const worst = rank.find((severity) => advice.some((a) => a.severity === severity)) || "ok";
	const box = byId("verdict");
	box.classList.add(worst);
	box.append(make("p.headline", toDo.length === 0 ? "Nothing that needs doing."
		: toDo.length === 1 ? "One thing to change." : `${toDo.length} things to change.`));
	box.append(make("p.because", toDo.length ? toDo[0].reason : "No rule speaks with a warning for this server as it is now."));

	const dips = checkpoints.map((c) => c.dip_pct).filter(known).sort((a, b) => a - b);
	const tables = most((series.page_table_bytes || { max: [] }).max);
	const ram = model.facts?.memory?.total_bytes;
	const stalls = sum(checkpoints, "compact_stall");
	const waited = sum(checkpoints, "direct_compact_us");
	const list = make("dl.tiles");
	for (const [name, value, small] of [
		["Checkpoints", count(checkpoints.length), `${checkpoints.filter((c) => c.kind !== "timed").length} not by time`],
		["Throughput in them", dips.length ? `${digits(-dips[Math.floor(dips.length / 2)])} %` : "not known",
			dips.length ? `median; worst ${digits(-dips[dips.length - 1])} %` : "none long enough"],
		["Direct compactions in them", known(stalls) ? count(stalls) : "not known", "allocations that waited"],
		["Waited in compaction", known(waited) ? duration(waited / 1000) : "not known", known(waited) ? "all processes, in checkpoints" : "needs the probe"],
		["Page tables, at most", known(tables) ? bytes(tables) : "not known", known(tables) && ram ? `${digits(100 * tables / ram)} % of RAM` : ""],
		["Huge pages", model.facts?.postgres?.huge_pages_status ?? "not known", "for shared_buffers"],
	]) list.append(tile(name, value, small));
	box.append(list);
}

// ---------------------------------------------------------------- advice

function copyButton(text) {
	const button = make("button", "Copy");
	button.type = "button";
	button.addEventListener("click", () => {
		const done = () => { button.textContent = "Copied"; setTimeout(() => { button.textContent = "Copy"; }, 1500); };
		const select = () => {
			const selection = getSelection();
			selection.selectAllChildren(button.previousElementSibling);
			if (document.execCommand("copy")) done();
		};
		if (navigator.clipboard) navigator.clipboard.writeText(text).then(done, select); else select();
	});
	return button;
}

const plain = (value) => (typeof value === "object" && value !== null ? JSON.stringify(value) : String(value));

function evidence(of) {
	const list = make("dl.evidence");
	for (const group of ["observed", "threshold", "window"]) {
		for (const [key, value] of Object.entries(of[group] ?? {})) {
			list.append(make("dt", group === "observed" ? key : `${key} (${group})`),
				make("dd", /_bytes$/.test(key) && typeof value === "number" ? `${bytes(value)} (${value})` : plain(value)));
		}
	}
	return list.children.length ? make("details", make("summary", "Evidence"), list) : null;
}

const activation = { none: "takes effect at once", reload: "after a reload", restart: "after a restart", reboot: "after a reboot" };

function card(a) {
	const change = known(a.recommended) ? `: ${a.current ?? "not known"} → ${a.recommended}` : known(a.current) ? `: ${a.current}` : "";
	const box = make("article.card", make("h3", make("span.pill." + (rank.includes(a.severity) ? a.severity : "info"), a.severity), a.subject + change),
		make("p", a.reason));
	if (a.command) {
		const command = make("div.command", make("pre", a.command));
		command.append(copyButton(a.command));
		box.append(command);
	}
	const details = evidence(a.evidence ?? {});
	if (details) box.append(details);
	box.append(make("p.meta", [a.rule, a.confidence, known(a.recommended) ? activation[a.activation] : ""].filter(Boolean).join(" · ")));
	return box;
}

function showAdvice() {
	const list = byId("advice-list");
	const loud = advice.filter((a) => a.severity !== "ok");
	const quiet = advice.filter((a) => a.severity === "ok");
	loud.forEach((a) => list.append(card(a)));
	if (!loud.length) list.append(make("p.note", "Nothing."));
	if (quiet.length) {
		const more = make("details", make("summary", `Looked at, and not the cause (${quiet.length})`));
		quiet.forEach((a) => more.append(card(a)));
		list.append(more);
	}
}

// ---------------------------------------------------------------- tables

// columns: [title, value(row), class]; a value is text, or an element
function table(into, rows, columns, caption, none) {
	if (!rows.length) { byId(into).append(make("p.note", none)); return; }
	const head = make("tr");
	for (const [title, , kind] of columns) {
		const cell = make("th" + (kind === "n" ? ".n" : ""), title);
		cell.scope = "col";
		head.append(cell);
	}
	const body = make("tbody");
	for (const row of rows) {
		const line = make("tr");
		for (const [, value, kind, bad] of columns) {
			line.append(make("td" + (kind ? "." + kind : "") + (bad && bad(row) ? ".bad" : ""), value(row)));
		}
		body.append(line);
	}
	const whole = make("table", caption ? make("caption", caption) : null, make("thead", head), body);
	const scroll = make("div.scroll", whole);
	scroll.tabIndex = 0;
	scroll.setAttribute("role", "region");
	scroll.setAttribute("aria-label", caption || "table");
	byId(into).append(scroll);
}

const or = (value, shown) => (known(value) ? shown(value) : "–");

function showTables() {
	table("checkpoints", checkpoints.slice(0, 200), [
		["Started", (c) => moment(c.started_at), "t"],
		["Kind", (c) => (c.restartpoint ? "restartpoint" : c.kind ?? "–")],
		["Total", (c) => or(c.total_ms, duration), "n"],
		["Write", (c) => or(c.write_ms, duration), "n"],
		["Sync", (c) => or(c.sync_ms, duration), "n"],
		["Buffers", (c) => or(c.buffers_written, count), "n"],
		["WAL since", (c) => or(c.distance_bytes, bytes), "n"],
		["tps before", (c) => or(c.tps_before, count), "n"],
		["tps during", (c) => or(c.tps_during, count), "n"],
		["Change", (c) => or(c.dip_pct, (v) => digits(-v) + " %"), "n", (c) => c.dip_pct >= 10],
		["Compactions", (c) => or(c.compact_stall, count), "n", (c) => c.total_ms > 0 && c.compact_stall >= c.total_ms / 1000],
		["Reclaims", (c) => or(c.allocstall, count), "n"],
		["In compaction", (c) => or(c.direct_compact_us, (v) => duration(v / 1000)), "n"],
		["Drained pages", (c) => or(c.pcp_drained_pages, count), "n"],
	], checkpoints.length > 200 ? `The newest 200 of ${checkpoints.length}.` : `${checkpoints.length}, newest first.`, "None in this time.");

	table("changes", model.changes ?? [], [
		["When", (c) => moment(c.at), "t"], ["Who", (c) => c.who], ["What", (c) => c.subject],
		["From", (c) => c.old ?? "–"], ["Asked", (c) => c.asked ?? "–"], ["Now", (c) => c.verified ?? "–"], ["State", (c) => c.state],
		["Before and after", (c) => effect(c.effect)],
	], "", "Nothing was changed through the advisor.");

	table("trials", (model.trials ?? []).flatMap((t) => (t.results.length ? t.results : [{}]).map((r, i) => ({ ...t, ...r, first: i === 0, trial: t }))), [
		["Began", (r) => (r.first ? moment(r.started_at) : ""), "t"],
		["Trial", (r) => (r.first ? `${r.subject}: ${r.old}, then ${r.trial.value}` : "")],
		["Pairs", (r) => (r.first ? `${r.pairs_done} of ${r.trial.pairs}, ${r.state}` : "")],
		["Measure", (r) => r.measure ?? "–"],
		["Old", (r) => or(r.old_median, digits), "n"], ["New", (r) => or(r.new_median, digits), "n"],
		["Ratio", (r) => or(r.ratio, (v) => v.toFixed(3)), "n"],
		["95 % interval", (r) => (known(r.ratio_low) ? `${r.ratio_low.toFixed(3)} to ${r.ratio_high.toFixed(3)}` : "–"), "n"],
		["Verdict", (r) => r.verdict ?? "–"],
	], "", "None was made.");

	table("history", model.advice_history ?? [], [
		["When", (h) => moment(h.at), "t"], ["What", (h) => h.event], ["Severity", (h) => h.severity], ["Rule", (h) => h.rule],
		["Subject", (h) => h.subject], ["Recommended", (h) => h.recommended ?? "–"],
	], "", "Nothing is recorded for this time.");

	table("status", model.status ?? [], [
		["Part", (s) => s.component], ["State", (s) => s.state], ["Detail", (s) => s.detail ?? ""], ["What to do", (s) => s.hint ?? ""],
	], "", "");
	table("settings", model.settings ?? [], [
		["Name", (s) => s.name], ["Value", (s) => s.value], ["From", (s) => s.source + (s.pending_restart ? ", waits for a restart" : "")],
	], "", "");
	byId("facts").textContent = JSON.stringify(model.facts ?? {}, null, 2);
}

function effect(of) {
	if (!of || !of.before || !of.after) return "too few samples";
	const lines = make("div");
	for (const key of Object.keys(of.after)) {
		const [before, after] = [of.before[key], of.after[key]];
		if (typeof before === "number" && typeof after === "number" && !["seconds", "samples"].includes(key)) {
			const show = /_bytes$/.test(key) ? bytes : digits;
			lines.append(make("div", `${key}: ${show(before)} → ${show(after)}`));
		}
	}
	return lines;
}

// ---------------------------------------------------------------- charts

const noProbe = "Only the BPF probe sees this (kernel_advisor_probe), and it did not run in this time. See “What works and what is missing” below.";
const panels = [
	{ title: "Throughput", lines: [["transactions", "transactions"]] },
	{ title: "Stalls: allocations that waited", lines: [["compact_stall", "direct compactions"], ["allocstall", "direct reclaims"]] },
	{ title: "Time spent waiting in the page allocator", lines: [["direct_compact", "direct compaction, all"], ["server_compact", "of it this server"], ["direct_reclaim", "direct reclaim, all"]], none: noProbe },
	{ title: "Pages drained from per-CPU lists", lines: [["pcp_drained_pages", "measured"], ["pcp_drained_pages_estimate", "estimate from zoneinfo"]], none: noProbe },
	{ title: "Pages on per-CPU lists", lines: [["pcp_pages", "pages"]] },
	{ title: "Page tables", lines: [["page_table_bytes", "page tables"]] },
	{ title: "Free blocks of order 4 and more", lines: [["free_costly_blocks", "free blocks of 64 KiB and more"]] },
	{ title: "Memory pressure: share of the time in which tasks waited for memory", lines: [["pressure_some", "some task"], ["pressure_full", "all tasks"]] },
	{ title: "Writes", lines: [["write_bytes", "to the devices"], ["wal_bytes", "WAL"]] },
	{ title: "Page cache on its way to disk", lines: [["dirty_bytes", "dirty"], ["writeback_bytes", "writeback"]] },
	{ title: "Connections", lines: [["backends", "client backends"]] },
];

const charts = [];
let whole = [0, 1];
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const color = (i) => css(`--line${i + 1}`);
const faded = (hex) => hex + "33";

// Where checkpoints ran, behind the lines: [begin, begin of sync, end], s.
const phases = checkpoints.filter((c) => c.started_at && c.total_ms > 0).map((c) => {
	const begin = Date.parse(c.started_at) / 1000;
	return [begin, begin + (c.write_ms ?? 0) / 1000, begin + ((c.write_ms ?? 0) + (c.sync_ms ?? 0)) / 1000, begin + c.total_ms / 1000];
});

function drawPhases(u) {
	const { left, top, width, height } = u.bbox;
	u.ctx.save();
	u.ctx.beginPath();
	u.ctx.rect(left, top, width, height);
	u.ctx.clip();
	for (const [begin, sync, synced, end] of phases) {
		for (const [from, to, fill] of [[begin, sync, "--write"], [sync, synced, "--sync"], [synced, end, "--write"]]) {
			if (to <= from) continue;
			const x = u.valToPos(from, "x", true);
			u.ctx.fillStyle = css(fill);
			u.ctx.fillRect(x, top, Math.max(u.valToPos(to, "x", true) - x, devicePixelRatio), height);
		}
	}
	u.ctx.restore();
}

function axisTimes(u, splits, axis, space, step) {
	let before = "";
	return splits.map((at) => {
		const d = new Date(at * 1000);
		const date = day(d);
		const text = step >= 86400 ? date : (step >= 60 ? clock(d).slice(0, 5) : clock(d)) + (date !== before ? "\n" + date : "");
		before = date;
		return text;
	});
}

function zoom(min, max) {
	const wide = !(max - min < whole[1] - whole[0]);
	byId("whole").hidden = wide;
	charts.forEach((chart) => chart.plot.setScale("x", wide ? { min: whole[0], max: whole[1] } : { min, max }));
}

function valuesAt(chart, i) {
	return chart.lines.map(([key, label]) => {
		const line = series[key];
		const [avg, min, max] = [line.avg[i], line.min[i], line.max[i]];
		const spread = known(avg) && min !== max ? ` (${withUnit(min, line.unit)} to ${withUnit(max, line.unit)})` : "";
		return `${label}: ${withUnit(avg, line.unit)}${spread}`;
	});
}

function showTip(chart, u) {
	const i = u.cursor.idx;
	const inside = known(i) && u.cursor.left >= 0 && chart.own;
	chart.tip.hidden = !inside;
	if (!inside) return;
	chart.tip.replaceChildren(make("b", moment(series.at[i] * 1000)), ...valuesAt(chart, i).map((text) => make("div", text)));
	const box = chart.box.getBoundingClientRect();
	const over = u.over.getBoundingClientRect();
	const x = over.left - box.left + u.cursor.left;
	chart.tip.style.top = `${over.top - box.top + 8}px`;
	chart.tip.style.left = `${Math.max(4, x + 14 + chart.tip.offsetWidth > box.width ? x - 14 - chart.tip.offsetWidth : x + 14)}px`;
}

// A line, and its least and largest value with what is between them filled in.
function plotOptions(chart) {
	const lines = [{}], bands = [], data = [series.at];
	chart.lines.forEach(([key, label], i) => {
		const line = series[key];
		const edge = { scale: "y", width: 0, points: { show: false }, spanGaps: false };
		bands.push({ series: [lines.length + 1, lines.length + 2], fill: faded(color(i)) });
		lines.push({ label, scale: "y", stroke: color(i), width: 1.6, points: { show: false } }, edge, { ...edge });
		data.push(line.avg, line.max, line.min);
	});
	const unit = series[chart.lines[0][0]].unit;
	const tick = units[unit] ? (v) => withUnit(v, unit) : count; // a noun is in the title already
	const steps = /^B/.test(unit) ? { incrs: Array.from({ length: 50 }, (_, i) => 2 ** i) } : {};
	const axis = { stroke: css("--soft"), grid: { stroke: css("--line"), width: 1 }, ticks: { stroke: css("--line"), width: 1 }, font: "12px system-ui, sans-serif" };
	return [{
		width: chart.box.clientWidth - 20, height: 150, legend: { show: false }, bands, series: lines,
		scales: { x: { time: true, range: (u, min, max) => [min, max] }, y: { range: (u, min, max) => [Math.min(0, min), max > 0 ? max * 1.08 : 1] } },
		axes: [{ ...axis, values: axisTimes, space: 90, size: 44 }, { ...axis, ...steps, size: 84, values: (u, splits) => splits.map(tick) }],
		cursor: { sync: { key: "report" }, y: false, drag: { x: true, y: false, setScale: false }, points: { size: 7 },
			bind: { dblclick: () => () => { zoom(...whole); return null; } } },
		hooks: {
			drawClear: [drawPhases],
			setCursor: [(u) => showTip(chart, u)],
			setSelect: [(u) => {
				if (u.select.width > 4) zoom(u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x"));
				u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
			}],
		},
	}, data];
}

const keys = {
	ArrowLeft: (i, n) => i - n, ArrowRight: (i, n) => i + n, Home: () => 0, End: () => series.at.length - 1,
};

function onKey(chart, event) {
	const u = chart.plot;
	const { min, max } = u.scales.x;
	let i = known(u.cursor.idx) ? u.cursor.idx : series.at.findIndex((at) => at >= min);
	if (event.key === "Escape") zoom(...whole);
	else if (event.key === "+" || event.key === "-") {
		const factor = event.key === "+" ? 0.25 : 1;
		const middle = known(u.cursor.idx) ? series.at[i] : (min + max) / 2;
		zoom(Math.max(whole[0], middle - (max - min) * factor), Math.min(whole[1], middle + (max - min) * factor));
	} else if (keys[event.key]) {
		i = Math.min(series.at.length - 1, Math.max(0, keys[event.key](i, event.shiftKey ? 10 : 1)));
		chart.own = true;
		u.setCursor({ left: u.valToPos(series.at[i], "x"), top: 20 });
		byId("spoken").textContent = `${moment(series.at[i] * 1000)}. ${valuesAt(chart, i).join(". ")}`;
	} else return;
	event.preventDefault();
}

function legend(chart) {
	const box = make("div.legend");
	chart.lines.forEach(([key, label], i) => {
		const line = series[key];
		const seen = line.avg.filter(known);
		const mean = seen.reduce((s, v) => s + v, 0) / seen.length;
		const mark = make("i");
		mark.style.background = color(i);
		box.append(make("span", mark, `${label}: mean ${withUnit(mean, line.unit)}, most ${withUnit(most(line.max), line.unit)}`));
	});
	return box;
}

function draw(panel) {
	const box = make("div.chart", make("h3", panel.title));
	byId("charts").append(box);
	const lines = panel.lines.filter(([key]) => series[key]);
	if (!lines.length) {
		box.append(make("p.why", panel.none ?? "No sample of this time knows it. See “What works and what is missing” below."));
		return;
	}
	const chart = { title: panel.title, lines, box, tip: make("div.tip"), own: false };
	chart.tip.hidden = true;
	box.append(legend(chart));
	const frame = make("div.frame");
	frame.tabIndex = 0;
	frame.setAttribute("role", "group");
	frame.setAttribute("aria-label", `Chart: ${panel.title}. Arrow keys read the values.`);
	box.append(frame, chart.tip);
	chart.plot = new uPlot(...plotOptions(chart), frame);
	frame.addEventListener("keydown", (event) => onKey(chart, event));
	frame.addEventListener("mouseenter", () => { chart.own = true; });
	for (const left of ["mouseleave", "blur"]) frame.addEventListener(left, () => { chart.own = false; chart.tip.hidden = true; });
	charts.push(chart);
}

function drawAll() {
	const scale = charts.length ? charts[0].plot.scales.x : null;
	charts.forEach((chart) => chart.plot.destroy());
	charts.length = 0;
	byId("charts").replaceChildren();
	if (!series.at.length || !series.samples) {
		byId("charts").append(make("p.note", "There are no samples of this time: the ring holds fewer, or the library is not preloaded. See “What works and what is missing” below."));
		return;
	}
	whole = [series.at[0], series.at[series.at.length - 1]];
	if (whole[0] === whole[1]) whole[1]++;
	panels.forEach(draw);
	if (scale) zoom(scale.min, scale.max);
}

// ---------------------------------------------------------------- theme, print, size

const darkWanted = matchMedia("(prefers-color-scheme: dark)");
let chosen = null;
function setTheme(dark) {
	document.documentElement.dataset.theme = dark ? "dark" : "light";
	byId("theme").textContent = dark ? "Light" : "Dark";
	byId("theme").setAttribute("aria-pressed", String(dark));
	drawAll();
}
const isDark = () => chosen ?? darkWanted.matches;
byId("theme").addEventListener("click", () => { chosen = !isDark(); setTheme(chosen); });
darkWanted.addEventListener("change", () => setTheme(isDark()));
byId("print").addEventListener("click", () => print());
byId("whole").addEventListener("click", () => zoom(...whole));
addEventListener("beforeprint", () => setTheme(false));
addEventListener("afterprint", () => setTheme(isDark()));
let pending = 0;
addEventListener("resize", () => {
	clearTimeout(pending);
	pending = setTimeout(() => charts.forEach((c) => c.plot.setSize({ width: c.box.clientWidth - 20, height: 150 })), 100);
});

// ---------------------------------------------------------------- the page

const s = model.server ?? {};
byId("server").textContent = [s.cluster_name, `PostgreSQL ${s.version}`, s.in_recovery ? "standby" : "", `database ${s.database}`,
	model.facts?.kernel?.release ? `Linux ${model.facts.kernel.release}` : "",
	model.facts?.memory?.total_bytes ? `${bytes(model.facts.memory.total_bytes)} of RAM` : ""].filter(Boolean).join(" · ");
byId("range").textContent = `${moment(model.range.from)} to ${moment(model.range.to)}; ${count(series.samples ?? 0)} samples in intervals of ${duration((series.bucket_s ?? 0) * 1000)}`;
byId("footer").textContent = `pg_kernel_advisor ${s.extension ?? ""}, made ${moment(model.made_at)}. Times are those of this browser. Kernel counters are the whole machine’s. Charts: uPlot, MIT licence.`;
verdict();
showAdvice();
showTables();
setTheme(isDark());
performance.measure("report", { start: 0 }); // from the begin of the navigation
document.documentElement.dataset.ready = "yes";
window.kernelAdvisorReport = { charts, series, zoom };
})();
