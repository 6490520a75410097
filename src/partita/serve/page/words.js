// Words and numbers as the command line writes them (partita/terminal/text.py), so that nobody has to learn two sets.

const CONTROL = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;
const NAMED = { "\n": "\\n", "\t": "\\t", "\r": "\\r" };
const IDS = 8; // of an entity's fragments, in sentences
const LONGEST = 60; // characters of a value, in tables
const LINES = 12; // of what a judgement has changed

// Text without characters that change how what follows them is read: they are written out.
export function safe(value) {
  if (value === null || value === undefined) return "";
  const text = typeof value === "object" ? JSON.stringify(value) : String(value);
  return text.replace(CONTROL, (c) => NAMED[c] || "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
}

export const shortened = (text) => (text.length <= LONGEST ? text : text.slice(0, LONGEST - 1) + "…");

// A probability for people: never 0 % or 100 %, as alternatives that are far less likely have been let go.
export function percent(p) {
  if (p < 0.005) return "<1 %";
  return p >= 0.995 ? ">99 %" : `${(100 * p).toFixed(0)} %`;
}

// How sure one of n fragments is of its entity: by definition entirely, if it is alone.
export const sure = (p, n) => (n === 1 && (p <= 0 || p >= 1) ? `${(100 * p).toFixed(0)} %` : percent(p));

export function signed(nats) {
  const text = nats.toFixed(2);
  const shown = text === "-0.00" ? "0.00" : text;
  return shown.startsWith("-") ? "−" + shown.slice(1) : "+" + shown;
}

export const count = (n) => (n === null || n === undefined ? "" : n.toLocaleString("en"));
export const fragments = (n) => `${count(n)} fragment${n === 1 ? "" : "s"}`;
export const expit = (x) => 1 / (1 + Math.exp(-Math.max(x, -700)));

export function listed(ids) {
  const said = ids.map(safe);
  if (said.length < 2) return said.join("");
  if (said.length > IDS) return `${said.slice(0, IDS - 1).join(", ")} and ${count(said.length - IDS + 1)} more`;
  return `${said.slice(0, -1).join(", ")} and ${said[said.length - 1]}`;
}

export function when(at) {
  const time = new Date(at);
  if (Number.isNaN(time.getTime())) return safe(at);
  const pad = (n) => String(n).padStart(2, "0");
  return `${time.getFullYear()}-${pad(time.getMonth() + 1)}-${pad(time.getDate())} ` +
    `${pad(time.getHours())}:${pad(time.getMinutes())}:${pad(time.getSeconds())}`;
}

// ---------------------------------------------------------------------- what happened

// One event as pieces of a sentence: text, or {entity} and {fragment}, which the page makes links of.
export function eventPieces(event) {
  const entity = { entity: event.entity }, other = { entity: event.other }, fragment = { fragment: event.fragment };
  const detail = event.detail || {}, taken = event.fragments || [];
  const moved = taken.length === 1 ? { fragment: taken[0] } : listed(taken) || "a fragment";
  const said = {
    created: [entity, " created"],
    joined: [fragment, " joined ", entity],
    moved: [moved, " moved from ", other, " to ", entity],
    merged: [other, " merged into ", entity, several(taken)],
    split: [other, " split off ", entity, several(taken)],
    left: [fragment, " left ", entity],
    updated: [fragment, " of ", entity, " has a new version"],
    emptied: [entity, " has no fragments any more"],
    renamed: [entity, ` renamed from “${safe(detail.from)}” to “${safe(detail.to)}”`],
    naming: [`entities are named by ${namedBy(detail.name)}`],
    confirmed: [`judged the same: ${safe(detail.first)} and ${safe(detail.second)}`],
    separated: [`judged different: ${safe(detail.first)} and ${safe(detail.second)}`],
    cut: ["judged: " + judgementInWords("split", safe(detail.first), safe(detail.second))],
    unsure: [`judged undecidable: ${safe(detail.first)} and ${safe(detail.second)}`],
    undone: [`judgement ${detail.judgement} undone`],
  }[event.kind] || [`${event.kind} `, entity];
  return [...said, ...reason(event)].filter((piece) => piece !== "");
}

export const inWords = (pieces) =>
  pieces.map((piece) => (typeof piece === "string" ? piece : safe(piece.entity ?? piece.fragment))).join("");

const several = (ids) => (ids.length > 1 ? ` with ${count(ids.length)} fragments` : "");
const namedBy = (ways) =>
  Array.isArray(ways) ? ways.map((way) => safe([].concat(way).join(" "))).join(", else ") : "";

export function judgementInWords(kind, first, second) {
  if (kind === "split" && second.startsWith("by ")) return `${first} is several things, ${second}`;
  if (kind === "split") {
    return `${first} is several things: ${shortened(second)} ${second.includes(", ") ? "are" : "is"} of another than the rest`;
  }
  const said = { confirm: "the same", separate: "different", unsure: "undecidable" }[kind] || kind;
  return `${first} and ${second} are ${said}`;
}

function reason(event) {
  const detail = event.detail || {};
  if (["confirmed", "separated", "cut", "unsure"].includes(event.kind)) return [` (judgement ${detail.judgement})`];
  if (["joined", "left", "updated", "undone"].includes(event.kind)) return [];
  if ("judgement" in detail) return [` by judgement ${detail.judgement}`];
  if ("undone" in detail) return [` by undoing judgement ${detail.undone}`];
  const causes = { refined: "looking again", relearnt: "learning anew", judged_before: "an earlier judgement" };
  const known = Object.keys(causes).find((name) => detail[name]);
  if (known) return [` by ${causes[known]}`];
  return event.fragment ? [" by ", { fragment: event.fragment }] : [];
}

// What has changed, in a few lines: fragments that move the same way are counted.
export function consequences(events) {
  const about = events.filter((event) => event.entity !== null && event.entity !== undefined);
  const ways = new Map();
  const wayOf = (event) => `${event.from} ${event.to}`;
  for (const event of about) if (event.kind === "moved") ways.set(wayOf(event), (ways.get(wayOf(event)) || 0) + 1);
  const lines = [];
  for (const event of about) {
    const n = event.kind === "moved" ? ways.get(wayOf(event)) : 1;
    if (n === 1) lines.push(eventPieces(event));
    else if (n > 1) {
      lines.push([`${count(n)} fragments moved from `, { entity: event.from }, " to ", { entity: event.to }, ...reason(event)]);
      ways.set(wayOf(event), 0);
    }
  }
  if (lines.length <= LINES) return lines.length ? lines : [["No entity has changed."]];
  return [...lines.slice(0, LINES - 1), [`and ${count(lines.length - LINES + 1)} more changes; Events lists them`]];
}
