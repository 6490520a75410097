// What else it may be: the clusterings of its subproblem that are held, each with its probability.
//
// Every clustering is a strip with a cell a fragment, always in the same order, coloured by cluster; so where a colour
// changes from one strip to the next, a fragment goes elsewhere.

import { part } from "./api.js";
import { html, useState } from "./html.js";
import { Bar, Failed, Loading, useAnswer, whyLink } from "./parts.js";
import { count, fragments, listed, percent, safe } from "./words.js";

const COLOURS = 8; // that the stylesheet has: k0, k1, …
const GAP = 0.5; // cells, between clusters of the best clustering
const TOLD = 4; // changes that are told in words
const SHOWN = 6; // clusterings that are shown at once

// `choose` is told the fragments of this entity that go elsewhere in a clustering, to be split off if one likes.
export function Alternatives({ entity, again, choose }) {
  const { answer, error } = useAnswer(`entities/${part(entity.id)}/alternatives`, { limit: 10 }, again);
  return html`<section aria-labelledby="alternatives"><h2 id="alternatives">What else it may be</h2>
    ${error ? html`<${Failed} error=${error} what="The alternatives" />` : !answer ? html`<${Loading} />`
      : html`<${Clusterings} entity=${entity} answer=${answer} choose=${choose} />`}</section>`;
}

function Clusterings({ entity, answer, choose }) {
  const [all, setAll] = useState(false);
  const [best, ...others] = answer.clusterings;
  if (!best) return html`<p class="dim">Nothing is known of it.</p>`;
  if (!others.length) {
    return html`<p class="dim">Nothing else that is worth keeping: all clusterings that are held agree in these ${fragments(answer.fragments.length)}.</p>`;
  }
  const mine = new Set(entity.fragments);
  const groups = ordered(best.clusters, mine);
  const at = places(groups);
  const n = answer.fragments.length;
  const own = new Map(groups.flatMap((group, k) => group.map((id) => [id, k])));
  const told = answer.clusterings.slice(0, all ? undefined : SHOWN).map((one) => {
    const colour = colours(groups, one.clusters);
    return { one, colour, moved: [...at.keys()].filter((id) => colour.get(id) !== own.get(id)) };
  });
  return html`
    <p class="dim">${n === entity.fragments.length ? `Its ${fragments(n)}` : `${count(n)} fragments are in doubt together`}; a cell is a fragment, a colour an entity.
      ${answer.total > n ? ` ${count(answer.total - n)} more are not shown.` : ""}</p>
    <ol class="alternatives">
      ${told.map(({ one, colour, moved }, k) => html`<li>
        <div class="alternative-odds"><${Bar} p=${one.probability} /><span class="number">${percent(one.probability)}</span>
          <span class="dim">${k ? "otherwise" : "as it is"}</span></div>
        <${Strip} at=${at} colour=${colour} mine=${mine} moved=${moved} label=${`${one.clusters.length} entities of ${count(n)} fragments`} />
        <p class="alternative-said">${k ? whereTo(moved, colour, groups) : asItIs(groups)}
          ${k > 0 && html` <${Doing} moved=${moved} mine=${mine} groups=${groups} choose=${choose} />`}</p>
      </li>`)}
    </ol>
    ${told.length < answer.clusterings.length && html`<button class="plain" type="button" onClick=${() => setAll(true)}>${count(answer.clusterings.length - told.length)} more</button>`}
    ${answer.other >= 0.005 && html`<p class="dim">${percent(answer.other)} is of others, less probable each.</p>`}`;
}

// To see why, of a fragment that goes and one that stays; and to choose those that go.
function Doing({ moved, mine, groups, choose }) {
  const going = moved.filter((id) => mine.has(id));
  const one = going[0] ?? moved[0];
  const left = groups.find((group) => group.includes(one)).find((id) => !moved.includes(id));
  return html`${left && html`<a href=${whyLink(one, left)}>Why</a>`}
    ${going.length > 0 && going.length < mine.size && html` <button class="plain" type="button" onClick=${() => choose(going)}>Choose ${going.length > 1 ? "these" : "it"}</button>`}`;
}

// The clusters of the best clustering, those first that this entity is made of.
const ordered = (clusters, mine) =>
  [...clusters].sort((a, b) => b.some((id) => mine.has(id)) - a.some((id) => mine.has(id)) || b.length - a.length);

// Where each fragment stands in every strip: left edge and width, in percent.
function places(groups) {
  const n = groups.reduce((sum, group) => sum + group.length, 0) + GAP * (groups.length - 1);
  const found = new Map();
  let left = 0;
  for (const group of groups) {
    for (const id of group) found.set(id, [(100 * left++) / n, 100 / n]);
    left += GAP;
  }
  return found;
}

function Strip({ at, colour, mine, moved, label }) {
  const dense = at.size > 60;
  return html`<svg class=${dense ? "strip dense" : "strip"} role="img" aria-label=${label}>
    ${[...at].map(([id, [x, width]]) => html`<rect x=${`${x}%`} y=${mine.has(id) ? 0 : 5} width=${`${dense ? width : 0.94 * width}%`} height=${mine.has(id) ? 24 : 14}
      class=${`k${colour.get(id) % COLOURS}${colour.get(id) >= COLOURS ? " again" : ""}`} rx=${dense ? 0 : 2}><title>${safe(id)}</title></rect>`)}
    ${moved.map((id) => html`<circle cx=${`${at.get(id)[0] + at.get(id)[1] * 0.47}%`} cy="29.5" r="2" />`)}
  </svg>`;
}

// Of each fragment the colour of its cluster: that of the cluster of the best clustering that it mostly is.
function colours(groups, clusters) {
  const place = new Map(groups.flatMap((group, k) => group.map((id) => [id, k])));
  const shares = clusters.flatMap((cluster, c) => {
    const counts = new Map();
    for (const id of cluster) counts.set(place.get(id), (counts.get(place.get(id)) || 0) + 1);
    return [...counts].map(([k, n]) => [n, c, k]);
  });
  const colour = new Map(), taken = new Set();
  for (const [, c, k] of shares.sort((a, b) => b[0] - a[0])) {
    if (colour.has(c) || taken.has(k)) continue;
    colour.set(c, k);
    taken.add(k);
  }
  let fresh = groups.length;
  clusters.forEach((_, c) => colour.has(c) || colour.set(c, fresh++));
  return new Map(clusters.flatMap((cluster, c) => cluster.map((id) => [id, colour.get(c)])));
}

const asItIs = (groups) => groups.slice(0, 2).map((ids) => listed(ids) + (ids.length === 1 ? " alone" : " together")).join("; ") +
  (groups.length > 2 ? `; and ${count(groups.length - 2)} more entities.` : ".");

// Which fragments go elsewhere, and to whom: those that have another colour than in the best clustering.
function whereTo(moved, colour, groups) {
  const ways = new Map();
  for (const id of moved) ways.set(colour.get(id), [...(ways.get(colour.get(id)) || []), id]);
  const said = [...ways].map(([k, ids]) => {
    if (k >= groups.length) return `${listed(ids)} ${ids.length > 1 ? "as another" : "alone"}`;
    const others = groups[k].filter((id) => colour.get(id) === k);
    return `${listed(ids)} with ${safe(others[0])}${others.length > 1 ? ` and ${count(others.length - 1)} more` : ""}`;
  });
  return said.slice(0, TOLD).join("; ") + (said.length > TOLD ? `; and ${count(said.length - TOLD)} more changes.` : ".");
}
