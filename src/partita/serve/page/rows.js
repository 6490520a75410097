// An entity's fragments, one a line: what most of them say is quiet, what differs is marked.

import { part, ask } from "./api.js";
import { compared, folded } from "./differ.js";
import { html, useEffect, useState } from "./html.js";
import { Failed, Id, Loading, Sure, Values } from "./parts.js";
import { count, safe } from "./words.js";

const PAGE = 100;

export function Rows({ entity, again, chosen, setChosen }) {
  const [page, setPage] = useState(null);
  const [error, setError] = useState(null);
  const load = async (before, signal) => {
    try {
      const offset = before ? before.rows.length : "";
      const found = await ask(`entities/${part(entity.id)}/rows`, { limit: PAGE, offset }, { signal });
      setPage(before ? { ...found, rows: [...before.rows, ...found.rows] } : found);
    } catch (refused) {
      if (!signal?.aborted) setError(refused);
    }
  };
  useEffect(() => {
    const stop = new AbortController();
    load(null, stop.signal);
    return () => stop.abort();
  }, [entity.id, again]);
  if (error) return html`<${Failed} error=${error} what="The fragments" />`;
  if (!page) return html`<${Loading} />`;

  const usual = commonest(page);
  const choose = (id) => {
    const next = new Set(chosen);
    if (!next.delete(id)) next.add(id);
    setChosen(next);
  };
  const sourced = page.rows.some((row) => row.source);
  const differ = page.rows.some((row) => row.differs.length);
  return html`<div class="scroll" role="region" aria-label="Fragments, one a line" tabindex="0"><table class="rows">
      <thead><tr><th scope="col" class="pin">Fragment</th><th scope="col" class="right">Sure</th>
        ${page.attributes.map((name) => html`<th scope="col">${safe(name)}</th>`)}${sourced && html`<th scope="col">Source</th>`}</tr></thead>
      <tbody>${page.rows.map((row) => html`<tr key=${row.id} class=${chosen.has(row.id) ? "chosen" : ""}>
        <th scope="row" class="pin"><label class="choose"><input type="checkbox" checked=${chosen.has(row.id)} onChange=${() => choose(row.id)}
          aria-label=${`Choose ${safe(row.id)}`} /></label><${Id} fragment=${row.id} /></th>
        <td class="right"><${Sure} p=${row.probability} n=${page.total} /></td>
        ${page.attributes.map((name) => html`<${Cell} row=${row} name=${name} usual=${usual.get(name)} />`)}
        ${sourced && html`<td class="dim">${safe(row.source)}</td>`}
      </tr>`)}</tbody></table></div>
    ${differ && html`<p class="legend"><mark>Marked</mark> is not what most of them say.</p>`}
    ${page.rows.length < page.total && html`<p class="more"><button type="button" onClick=${() => load(page)}>
      ${count(page.total - page.rows.length)} more</button></p>`}`;
}

function Cell({ row, name, usual }) {
  const said = (row.properties[name] || []).map(safe);
  const differs = row.differs.includes(name);
  if (!said.length) return html`<td></td>`;
  const pieces = differs && usual ? compared(said, [usual]) : said.map((text) => [[text, false]]);
  // What differs only as it is compared, in nothing that could be marked, is marked whole.
  const marked = !differs || pieces.some((one) => one.some(([, changed]) => changed));
  const shown = marked ? pieces : said.map((text) => [[text, true]]);
  return html`<td class=${differs ? "differs" : "usual"}>${differs && html`<span class="unseen">differs: </span>`}<${Values} pieces=${shown} /></td>`;
}

// Of each attribute the value that most fragments give it, whatever the case and accents.
function commonest(page) {
  const found = new Map();
  for (const name of page.attributes) {
    const counts = new Map();
    for (const row of page.rows) {
      for (const value of row.properties[name] || []) {
        const key = folded(safe(value));
        const [n, text] = counts.get(key) || [0, safe(value)];
        counts.set(key, [n + 1, text]);
      }
    }
    const best = [...counts.values()].sort((a, b) => b[0] - a[0])[0];
    if (best) found.set(name, best[1]);
  }
  return found;
}
