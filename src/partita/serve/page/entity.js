// One entity: what is said of it, its fragments, what else it may be, and what it was.

import { part } from "./api.js";
import { Alternatives } from "./alternatives.js";
import { html, useEffect, useState } from "./html.js";
import { useKeys } from "./keys.js";
import { useChanges } from "./live.js";
import { ExportEntity, Joining, MendBar, splitOff } from "./mend.js";
import { entityLink, Failed, Id, Loading, Sure, useAnswer, Values } from "./parts.js";
import { Past } from "./past.js";
import { Rows } from "./rows.js";
import { Together } from "./together.js";
import { count, fragments, listed, safe } from "./words.js";

const FEW = 4; // values of an attribute that are shown at once

export function EntityView({ id, query }) {
  const [moment, setMoment] = useState(query.get("as_of"));
  const [again, setAgain] = useState(0);
  const [chosen, setChosen] = useState(new Set());
  const path = `entities/${part(id)}`;
  const now = useAnswer(path, {}, again);
  const then = useAnswer(moment === null ? null : path, { as_of: moment ?? "" }, again);
  useEffect(() => {
    const changed = () => { setAgain((n) => n + 1); setChosen(new Set()); };
    addEventListener("partita:changed", changed);
    return () => removeEventListener("partita:changed", changed);
  }, []);
  const ids = [id, now.answer?.id]; // which differ if it was merged
  useChanges((event) => ids.includes(event.entity) || ids.includes(event.other), () => setAgain((n) => n + 1), ids);
  useEffect(() => {
    const hash = entityLink(id) + (moment === null ? "" : `?as_of=${moment}`);
    if (location.hash.startsWith(entityLink(id)) && location.hash !== hash) history.replaceState(null, "", hash);
  }, [id, moment]);
  const picked = [...chosen];
  useKeys({
    j: () => toFragment(1),
    k: () => toFragment(-1),
    s: () => picked.length && now.answer && splitOff(now.answer, picked),
    w: () => picked.length === 2 && (location.hash = `#/why/${picked.map(part).join("/")}`),
  });

  useEffect(() => {
    if (now.answer) document.title = `${safe(now.answer.name) || now.answer.id} · Partita`;
  }, [now.answer]);
  const choose = (ids) => {
    setChosen(new Set(ids));
    document.getElementById("rows").scrollIntoView({ block: "start" });
  };
  if (now.error && !now.answer) return html`<h1>${safe(id)}</h1><${Failed} error=${now.error} what=${safe(id)} />`;
  if (!now.answer) return html`<h1>${safe(id)}</h1><${Loading} />`;
  const entity = now.answer;
  const shown = moment !== null && then.answer ? then.answer : entity;
  return html`
    <article class="entity">
      <${Head} entity=${shown} now=${entity} moment=${moment} back=${() => setMoment(null)} />
      ${then.error && html`<${Failed} error=${then.error} what="What it was then" />`}
      ${moment === null && html`<div class="actions">
        <${Joining} entity=${entity} /><${ExportEntity} entity=${entity} />
      </div>`}
      <div class="columns">
        <section aria-labelledby="said"><h2 id="said">What is said of it</h2><${Said} entity=${shown} /></section>
        <${Past} entity=${entity} moment=${moment} setMoment=${setMoment} />
        ${moment === null && html`<${Alternatives} entity=${entity} again=${again} choose=${choose} />`}
      </div>
      <div>
        ${moment === null ? html`<section aria-labelledby="rows"><h2 id="rows">Fragments</h2>
            <${MendBar} entity=${entity} chosen=${chosen} clear=${() => setChosen(new Set())} />
            <${Rows} entity=${entity} again=${again} chosen=${chosen} setChosen=${setChosen} /></section>
          <${Together} entity=${entity} again=${again} />`
          : html`<${Then} then=${shown} now=${entity} />`}
      </div>
    </article>`;
}

// Focus the box of the next fragment, or the one before; from elsewhere the first.
function toFragment(step) {
  const boxes = [...document.querySelectorAll(".rows input[type=checkbox]")];
  const at = boxes.indexOf(document.activeElement);
  boxes[at < 0 ? 0 : Math.min(Math.max(at + step, 0), boxes.length - 1)]?.focus();
}

function Head({ entity, now, moment, back }) {
  return html`<header class="entity-head">
    <p class="over"><a href="#/">Entities</a> <span class="dim">/</span> <span class="id">${entity.id}</span></p>
    <h1>${safe(entity.name) || html`<span class="dim">no name</span>`}</h1>
    <p class="under"><span>${fragments(entity.size ?? entity.fragments.length)}</span>
      <${Sure} p=${entity.probability} n=${entity.fragments.length} /> <span class="dim">sure</span></p>
    ${now.merged_from && html`<p class="note"><span class="id">${safe(now.merged_from)}</span> was merged into it.</p>`}
    ${moment !== null && html`<p class="note then">As it was after event ${count(Number(moment))}.
      <button type="button" onClick=${back}>Back to now</button></p>`}
  </header>`;
}

// ---------------------------------------------------------------------- what is said

function Said({ entity }) {
  const n = entity.fragments.length;
  return html`<table class="said"><thead class="unseen"><tr><th>Attribute</th><th>Value</th><th>Sure</th><th>Sources</th></tr></thead>
    ${Object.entries(entity.properties).map(([name, given]) => html`<${Attribute} key=${name} name=${name} given=${given} n=${n} />`)}
  </table>`;
}

function Attribute({ name, given, n }) {
  const [all, setAll] = useState(false);
  const shown = all || given.length <= FEW + 1 ? given : given.slice(0, FEW);
  return html`<tbody>
    ${shown.map((one, k) => html`<tr class=${k ? "further" : ""}>
      ${k ? html`<td></td>` : html`<th scope="row">${safe(name)}</th>`}
      <td class="value">${safe(one.value)}</td>
      <td class="right"><${Sure} p=${one.probability} n=${n} /></td>
      <td class="sources" title=${one.sources.slice(0, 40).map(safe).join(", ")}>${listed(one.sources.length > 3 ? [...one.sources.slice(0, 2), `${count(one.sources.length - 2)} more`] : one.sources)}</td>
    </tr>`)}
    ${shown.length < given.length && html`<tr class="further"><td></td><td colspan="3"><button class="plain" type="button" onClick=${() => setAll(true)}>
      ${count(given.length - shown.length)} more values</button></td></tr>`}
  </tbody>`;
}

// What its fragments were, against what they are now.
function Then({ then, now }) {
  const [before, after] = [new Set(then.fragments), new Set(now.fragments)];
  const gone = then.fragments.filter((id) => !after.has(id)), come = now.fragments.filter((id) => !before.has(id));
  const links = (ids) => ids.map((id) => html`<li><${Id} fragment=${id} /></li>`);
  return html`<section aria-labelledby="then"><h2 id="then">Fragments then</h2>
    <ul class="ids">${then.fragments.map((id) => html`<li class=${after.has(id) ? "" : "gone"}><${Id} fragment=${id} /></li>`)}</ul>
    ${gone.length > 0 && html`<h3>Not of it any more</h3><ul class="ids">${links(gone)}</ul>`}
    ${come.length > 0 && html`<h3>Came later</h3><ul class="ids">${links(come)}</ul>`}
    ${!gone.length && !come.length && html`<p class="dim">They are the same as now.</p>`}
  </section>`;
}

// ---------------------------------------------------------------------- one fragment

export function FragmentView({ id }) {
  const { answer, error } = useAnswer(`fragments/${part(id)}`);
  if (error) return html`<h1>${safe(id)}</h1><${Failed} error=${error} what=${safe(id)} />`;
  if (!answer) return html`<h1>${safe(id)}</h1><${Loading} />`;
  const { entity } = answer;
  return html`<article class="entity"><header class="entity-head">
      <p class="over"><a href="#/">Entities</a> <span class="dim">/</span> <${Id} entity=${entity.id} /></p>
      <h1>${safe(id)}</h1>
      <p class="under">A fragment${answer.source ? html` from <strong>${safe(answer.source)}</strong>` : ""}, of <a href=${entityLink(entity.id)}>${safe(entity.name) || entity.id}</a>
        <span class="dim">(${fragments(entity.size)})</span></p></header>
    <table class="said"><tbody>${Object.entries(answer.properties).map(([name, values]) => html`<tr><th scope="row">${safe(name)}</th>
      <td><${Values} pieces=${values.map((value) => [[safe(value), false]])} /></td></tr>`)}</tbody></table>
  </article>`;
}
