// To mend an entity: divide it, join it with another, keep it apart from one; and to take it home.

import { part, save, signedBy, tell } from "./api.js";
import { html, useState } from "./html.js";
import { announce, Dialog, Failed, Sure, useAnswer, useRested, whyLink } from "./parts.js";
import { consequences, count, fragments, judgementInWords, listed, safe } from "./words.js";

// Record a judgement, say what came of it, and tell whoever shows what it may have changed.
export async function judge(body) {
  try {
    const report = await tell("judgements", { ...body, ...signedBy() });
    announce({
      title: `Judgement ${report.judgement} by ${safe(report.user)}: ${judgementInWords(report.kind, safe(report.first), safe(report.second))}.`,
      lines: [...consequences(report.events), ...expected(report)],
      undo: report.judgement,
    });
    dispatchEvent(new Event("partita:changed"));
    return report;
  } catch (error) {
    announce({ title: error.message, failed: true });
    return null;
  }
}

// An entity, even if a fragment has the same id.
const plainly = (id) => `entity:${id}`;

const expected = (report) =>
  typeof report.expected_wrong_pairs === "number"
    ? [[`Wrong pairs that are expected: ${report.expected_wrong_pairs.toFixed(2)} now.`]] : [];

export const splitOff = (entity, ids) => judge({ kind: "split", entity: entity.id, fragments: ids });

// ---------------------------------------------------------------------- dividing

export function MendBar({ entity, chosen, clear }) {
  const ids = [...chosen];
  if (ids.length) {
    return html`<div class="mend chosen">
      <span><strong>${count(ids.length)}</strong> of ${count(entity.fragments.length)} chosen: ${listed(ids)}</span>
      <span class="buttons">
        ${ids.length < entity.fragments.length && html`<button class="main" type="button" onClick=${() => splitOff(entity, ids)}>Split off</button>`}
        ${ids.length === 2 && html`<a class="button" href=${whyLink(ids[0], ids[1])}>Why together?</a>`}
        <button class="plain" type="button" onClick=${clear}>Clear</button>
      </span></div>`;
  }
  return entity.fragments.length > 1 ? html`<${SplitBy} entity=${entity} />` : "";
}

// Only attributes that could divide it: those of which there are several values.
function SplitBy({ entity }) {
  const names = Object.entries(entity.properties).filter(([, given]) => given.length > 1);
  const [name, setName] = useState("");
  if (!names.length) return html`<p class="mend dim">Choose fragments that are of another thing, to split them off.</p>`;
  const chosen = name || names[0][0];
  return html`<form class="mend" onSubmit=${(e) => { e.preventDefault(); judge({ kind: "split", entity: entity.id, by: chosen }); }}>
    <span class="dim">Choose fragments to split off, or</span>
    <label>split by <select value=${chosen} onChange=${(e) => setName(e.target.value)}>
      ${names.map(([one, given]) => html`<option value=${one}>${safe(one)} (${count(given.length)} values)</option>`)}</select></label>
    <button>Split</button></form>`;
}

// ---------------------------------------------------------------------- joining, keeping apart

export function Joining({ entity }) {
  const [open, setOpen] = useState(false);
  return html`<button type="button" onClick=${() => setOpen(true)}>Join or keep apart…</button>
    ${open && html`<${Dialog} title=${`${safe(entity.name) || entity.id} and another`} close=${() => setOpen(false)}>
      <${Other} entity=${entity} close=${() => setOpen(false)} /><//>`}`;
}

function Other({ entity, close }) {
  const [text, setText] = useState(safe(entity.name));
  const rested = useRested(text.trim());
  const { answer, error } = useAnswer(rested ? "entities" : null, { query: rested, limit: 12 });
  const byId = useAnswer(/^E\d+$/.test(rested) ? `entities/${part(rested)}` : null);
  const others = [byId.answer, ...(answer?.entities || [])].filter((one, k, all) =>
    one && one.id !== entity.id && all.findIndex((same) => same?.id === one.id) === k);
  const say = async (kind, other) => {
    if (await judge({ kind, first: plainly(entity.id), second: plainly(other) })) close();
  };
  return html`<label>Which other entity? <input type="text" class="wide" autofocus autocomplete="off" value=${text} onInput=${(e) => setText(e.target.value)}
      placeholder="Words, or an id such as E12" /></label>
    ${error && html`<${Failed} error=${error} what="The search" />`}
    <ul class="others">${others.map((other) => html`<li key=${other.id}>
      <div><strong class="name">${safe(other.name) || "no name"}</strong> <span class="dim id">${other.id}</span>
        <p class="dim">${fragments(other.size)} · <${Sure} p=${other.probability} n=${other.size} /> ${(other.summary || []).map((v) => html` · <span class="value">${safe(v)}</span>`)}</p></div>
      <p class="buttons"><a class="button" href=${whyLink(plainly(entity.id), plainly(other.id))} onClick=${close}>Why apart?</a>
        <button type="button" class="same" onClick=${() => say("confirm", other.id)}>The same</button>
        <button type="button" class="different" onClick=${() => say("separate", other.id)}>Different</button></p>
    </li>`)}</ul>
    ${answer && !others.length && html`<p class="dim" role="status">No other entity is found by these words.</p>`}`;
}

// ---------------------------------------------------------------------- export

export function ExportEntity({ entity }) {
  const run = async (what, format) => {
    try {
      announce(`Saved ${await save({ what, format, entity: entity.id }, `${entity.id}-${what}.${format}`)}.`);
    } catch (error) {
      announce({ title: error.message, failed: true });
    }
  };
  const kinds = [["entities", "jsonl", "The entity, JSON"], ["fragments", "csv", "Its fragments, CSV"], ["golden", "csv", "One best value each, CSV"], ["events", "jsonl", "Its history, JSON"]];
  return html`<details class="menu"><summary>Export</summary><div class="menu-body">
    ${kinds.map(([what, format, name]) => html`<button class="plain" type="button" onClick=${() => run(what, format)}>${name}</button>`)}
  </div></details>`;
}
