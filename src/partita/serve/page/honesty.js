// How sure it is, how far that is to be believed, and where it is most at risk.

import { html, useEffect } from "./html.js";
import { entityLink, Failed, Loading, Sure, useAnswer } from "./parts.js";
import { count, percent, safe } from "./words.js";

export function HonestyView() {
  const { answer, error } = useAnswer("honesty");
  useEffect(() => { document.title = "Honesty · Partita"; }, []);
  return html`<div class="title"><h1>How honest it is</h1></div>
    ${error ? html`<${Failed} error=${error} what="This" />` : !answer ? html`<${Loading} what="Adding up…" />` : html`
    <div class="honesty">
      <section aria-labelledby="sureness"><h2 id="sureness">How sure</h2><${Sureness} bins=${answer.sureness} /></section>
      <section aria-labelledby="calibration"><h2 id="calibration">How far that is to be believed</h2><${Curve} found=${answer.calibration} /></section>
      <section aria-labelledby="risk" class="wide"><h2 id="risk">Most at risk</h2><${Risk} rows=${answer.risk} /></section>
    </div>`}`;
}

const range = (bin) => `${Math.round(100 * bin.from)}–${Math.round(100 * bin.to)} %`;

// ---------------------------------------------------------------------- the distribution

// Most entities are sure, so the bars' lengths are square roots; the numbers stand beside them.
function Sureness({ bins }) {
  const most = Math.max(...bins.map((bin) => bin.entities), 1);
  const total = bins.reduce((sum, bin) => sum + bin.entities, 0);
  const unsure = bins.filter((bin) => bin.to <= 0.905).reduce((sum, bin) => sum + bin.entities, 0);
  const lowest = bins.findIndex((bin) => bin.entities > 0);
  const shown = bins.slice(Math.max(lowest, 0)).reverse(); // below there is nothing
  return html`<p class="dim">${total ? html`Of ${count(total)} entities ${count(unsure)} ${unsure === 1 ? "is" : "are"} less than 90 % sure. A bar four times as long stands for sixteen times as many.` : "There is nothing yet."}</p>
    <table class="sureness"><thead><tr><th scope="col">Sure</th><th scope="col"><span class="unseen">Share</span></th><th scope="col" class="right">Entities</th><th scope="col" class="right">Fragments</th></tr></thead>
    <tbody>${shown.map((bin) => html`<tr class=${bin.from >= 0.9 ? "high" : bin.from >= 0.75 ? "middle" : "low"}><th scope="row" class="number">${range(bin)}</th>
      <td class="hist"><svg class="bar" aria-hidden="true"><rect class="bar-full" width=${`${100 * Math.sqrt(bin.entities / most)}%`} height="100%" rx="2" /></svg></td>
      <td class="right number">${count(bin.entities)}</td><td class="right number dim">${count(bin.fragments)}</td></tr>`)}</tbody></table>`;
}

// ---------------------------------------------------------------------- the curve

function Curve({ found }) {
  if (!found) {
    return html`<p>There is nothing to compare with yet. Once questions have been answered, what was said of pairs is held
      against what had been expected. <a href="#/review">Review</a></p>`;
  }
  const bins = found.bins.filter((bin) => bin.pairs > 0);
  const most = Math.max(...bins.map((bin) => bin.pairs), 1);
  const x = (p) => 40 + 250 * p, y = (p) => 262 - 250 * p;
  return html`<p class="dim">Of ${count(found.n)} pairs that ${found.source === "judgements" ? "people have judged" : "are labelled"}: how probable it was that they are the same, and how many are.
      On the line it is as sure as it should be. Circles grow with the number of pairs; nine times in ten the truth is
      within the bars.</p>
    <svg class="curve" viewBox="0 0 300 300" role="img" aria-label="Calibration: the table beside it has the numbers">
      <path class="grid" d=${[0, 0.25, 0.5, 0.75, 1].map((p) => `M${x(0)} ${y(p)}H${x(1)}M${x(p)} ${y(0)}V${y(1)}`).join("")} />
      <path class="ideal" d=${`M${x(0)} ${y(0)}L${x(1)} ${y(1)}`} />
      ${bins.map((bin) => {
        const [low, high] = interval(bin);
        return html`<line class="spread" x1=${x(bin.mean)} x2=${x(bin.mean)} y1=${y(low)} y2=${y(high)} />`;
      })}
      ${bins.map((bin) => html`<circle cx=${x(bin.mean)} cy=${y(bin.true)} r=${3 + 7 * Math.sqrt(bin.pairs / most)}><title>${`${count(bin.pairs)} pairs: ${percent(bin.mean)} expected, ${percent(bin.true)} true`}</title></circle>`)}
      ${[0, 0.5, 1].map((p) => html`<text x=${x(p)} y="280" text-anchor="middle">${100 * p}</text><text x="34" y=${y(p) + 4} text-anchor="end">${100 * p}</text>`)}
      <text x=${x(0.5)} y="297" text-anchor="middle">expected, %</text>
      <text x="12" y=${y(0.5)} text-anchor="middle" transform=${`rotate(-90 12 ${y(0.5)})`}>true, %</text>
    </svg>
    <details><summary>As a table</summary><table><thead><tr><th scope="col">Expected</th><th scope="col" class="right">Pairs</th><th scope="col" class="right">Mean</th><th scope="col" class="right">True</th></tr></thead>
      <tbody>${bins.map((bin) => html`<tr><th scope="row" class="number">${range(bin)}</th><td class="right number">${count(bin.pairs)}</td><td class="right number">${percent(bin.mean)}</td><td class="right number">${percent(bin.true)}</td></tr>`)}</tbody></table></details>`;
}

// Where the true share is nine times in ten, of so few pairs (Wilson's interval).
function interval({ pairs: n, true: p }) {
  const z = 1.645, middle = p + (z * z) / (2 * n);
  const half = z * Math.sqrt((p * (1 - p)) / n + (z * z) / (4 * n * n));
  return [(middle - half) / (1 + (z * z) / n), (middle + half) / (1 + (z * z) / n)];
}

// ---------------------------------------------------------------------- risk

function Risk({ rows }) {
  if (!rows.length) return html`<p class="dim">No entity is in doubt.</p>`;
  const most = Math.max(...rows.map((row) => row.expected_wrong_pairs), 1e-9);
  return html`<p class="dim">The entities of which most pairs of fragments are expected to be wrong: together and of two things, or apart
      and of one. So one that is sure of what it has may be here for what it lacks. <a href="#/review">Review</a> asks about these first.</p>
    <table class="risk"><thead><tr><th scope="col">Entity</th><th scope="col" class="right">Fragments</th><th scope="col" class="right">Sure</th><th scope="col" class="right">Wrong pairs expected</th></tr></thead>
    <tbody>${rows.map((row) => html`<tr><th scope="row"><a class="entity-link" href=${entityLink(row.id)}><span class="name">${safe(row.name) || "no name"}</span> <span class="dim id">${row.id}</span></a></th>
      <td class="right number">${count(row.size)}<span class="narrow-only"> fragments</span></td><td class="right"><${Sure} p=${row.probability} n=${row.size} /></td>
      <td class="right"><span class="risk-bar"><svg class="bar" aria-hidden="true"><rect class="bar-full" x=${`${100 - (100 * row.expected_wrong_pairs) / most}%`} width=${`${(100 * row.expected_wrong_pairs) / most}%`} height="100%" rx="2" /></svg></span><span class="number">${row.expected_wrong_pairs.toFixed(2)}</span><span class="narrow-only"> wrong pairs</span></td></tr>`)}</tbody></table>`;
}
