// Why two fragments are together, or apart: a waterfall whose steps sum to the log-odds, as `partita explain` prints it.
//
// It is one table: each step with the values compared, its nats, a bar from the sum before to the sum after, and the sum.
// Whoever does not see the bars reads the same table.

import { compared } from "./differ.js";
import { html, useEffect, useState } from "./html.js";
import { useKeys } from "./keys.js";
import { judge } from "./mend.js";
import { Bar, entityLink, EventLine, Failed, Id, Loading, useAnswer, Values } from "./parts.js";
import { expit, fragments, listed, percent, safe, shortened, signed } from "./words.js";

const REST = "other clusterings"; // a step of no attribute, and of no pair
const NETWORK = "language model";
const TOP = 0.7, HIGH = 0.95; // em: bars stand beside the first line of what is compared
const BY_NETWORK =
  "The log-odds are the language model’s, with the say that records have. It does not tell what is due to which attribute: " +
  "the lines of the attributes are what records say by themselves, and its own line is what it adds to that or takes away.";

const MEANINGS = [
  ["prior", "before anything is compared: how many fragments entities usually have, and how many entities there are"],
  ["attributes mentioned", "whether they are of the same kind of thing, by which attributes each mentions at all"],
  ["an attribute", "what its values say: rare ones that agree speak for the same, those that differ for different; nothing where one is silent"],
  [REST, "the two clusterings below are the best of either kind; this is what all the others add that are held"],
  ["log-odds", "the sum, and the probability above in other words: 0 is 50 %"],
];
const OF_GROUPS = [
  ["groups", "the evidence on those whom the two are with, as one entity or as two; the bars show it"],
  ["pair", "the evidence on the two fragments alone, as if there were no others"],
];

export function WhyView({ first, second }) {
  const [again, setAgain] = useState(0);
  const whole = first && second;
  const { answer, error } = useAnswer(whole ? "explain" : null, { first, second }, again);
  useEffect(() => {
    const changed = () => setAgain((n) => n + 1);
    addEventListener("partita:changed", changed);
    return () => removeEventListener("partita:changed", changed);
  }, []);
  useEffect(() => { document.title = `${named(first)} and ${named(second)}: why? · Partita`; }, [first, second]);
  const say = (kind) => judge({ kind, first, second });
  useKeys(answer ? { y: () => say("confirm"), n: () => say("separate"), d: () => say("unsure") } : {});
  if (!whole) return html`<h1>Why?</h1><p>Choose two fragments of an entity, or two entities.</p>`;
  if (error) return html`<h1>${named(first)} and ${named(second)}</h1><${Failed} error=${error} what="Why" />`;
  if (!answer) return html`<h1>${named(first)} and ${named(second)}</h1><${Loading} what="Comparing clusterings…" />`;
  return html`<article class="why">
    <${Verdict} found=${answer} />
    <div class="actions" role="group" aria-label="Judge">
      <button type="button" class="same" onClick=${() => say("confirm")}>The same <kbd>y</kbd></button>
      <button type="button" class="different" onClick=${() => say("separate")}>Different <kbd>n</kbd></button>
      <button type="button" onClick=${() => say("unsure")}>Don’t know <kbd>d</kbd></button>
    </div>
    <${Waterfall} found=${answer} />
    ${answer.steps.some((step) => step.attribute === NETWORK) && html`<p class="note">${BY_NETWORK}</p>`}
    <${Clusterings} found=${answer} />
    ${answer.events.length > 0 && html`<section aria-labelledby="caused"><h2 id="caused">What they have caused</h2>
      <ol class="events">${answer.events.map((event) => html`<${EventLine} key=${event.number} event=${event} />`)}</ol></section>`}
  </article>`;
}

const named = (id) => safe(id.replace(/^entity:/, ""));

export const ofPair = (found) =>
  found.first_group.length === 1 && found.second_group.length === 1 &&
  [...found.clusters, ...found.alternative].every((ids) => ids.every((id) => id === found.first || id === found.second));

// ---------------------------------------------------------------------- in words

function Verdict({ found }) {
  const held = found.together ? "the same entity" : "different entities";
  const [one, other] = found.asked.map((asked, k) => ({ asked: asked.replace(/^entity:/, ""), id: k ? found.second : found.first, entity: found.entities[k] }));
  const stand = [one, other].filter(({ asked, id }) => asked !== id);
  const decided = found.judgements.length === 1
    ? `judgement ${found.judgements[0]} says so` : `judgements ${listed(found.judgements)} say so`;
  return html`<header class="entity-head">
    <p class="over"><a href="#/">Entities</a> <span class="dim">/</span> <a class="id" href=${entityLink(one.entity)}>${one.entity}</a>
      ${one.entity !== other.entity && html`, <a class="id" href=${entityLink(other.entity)}>${other.entity}</a>`}</p>
    <h1><${Named} ...${one} /> and <${Named} ...${other} /></h1>
    <p class="verdict">${found.judgements.length
      ? html`are ${held}, because ${decided}. The evidence alone: <strong>${percent(found.probability)}</strong> that they are the same.`
      : html`are held to be <strong>${held}</strong>: <strong class="number">${percent(found.probability)}</strong> that they are the same.`}
      <span class="verdict-bar"><${Bar} p=${found.probability} /></span></p>
    ${!found.judgements.length && found.together !== found.probability >= 0.5 && html`<p class="dim">The most probable clustering has them
      ${" "}${found.together ? "together" : "apart"}; all of them added up rather have them ${found.together ? "apart" : "together"}.</p>`}
    ${stand.length > 0 && html`<p class="dim">${stand.map(({ asked, id }, k) => `${k ? ", and " : ""}for ${safe(asked)} stands its surest fragment, ${safe(id)}`).join("").replace(/^f/, "F")}.</p>`}
    ${!ofPair(found) && html`<p class="dim">The probability is of groups: that of ${safe(found.first)} (${grouped(found.first_group)}) and that of
      ${" "}${safe(found.second)} (${grouped(found.second_group)}), as one entity or as two. The two fragments by themselves: ${percent(expit(found.pair_log_odds))}.</p>`}
  </header>`;
}

const Named = ({ asked, id }) => (asked === id ? html`<${Id} fragment=${id} />`
  : html`<a class="id" href=${entityLink(asked)}>${safe(asked)}</a>`);
const grouped = (ids) => (ids.length > 1 ? fragments(ids.length) : "it alone");

function Clusterings({ found }) {
  const [held, other] = [found.clusters, found.alternative].map((clusters) =>
    clusters.map((ids) => listed(ids) + (ids.length === 1 ? " alone" : " together")).join("; ") + ".");
  return html`<section aria-labelledby="compared"><h2 id="compared">What is compared</h2>
    <dl class="compared"><dt>As it is</dt><dd>${held}</dd><dt>Otherwise</dt><dd>${other}</dd></dl></section>`;
}

// ---------------------------------------------------------------------- the waterfall

function Waterfall({ found }) {
  const pair = ofPair(found);
  const sums = [0];
  for (const step of found.steps) sums.push(sums[sums.length - 1] + step.nats);
  const scale = scaleOf(sums);
  return html`<table class=${`waterfall ${pair ? "of-pair" : ""}`}>
    <caption class="unseen">Evidence in nats, step by step: above 0 for the same, below 0 for different. It sums to the log-odds.</caption>
    <thead><tr><th scope="col">Evidence</th><th scope="col" class="said-by">${safe(found.first)}</th><th scope="col" class="said-by">${safe(found.second)}</th>
      ${!pair && html`<th scope="col" class="right pair">pair</th>`}<th scope="col" class="right">${pair ? "nats" : "groups"}</th>
      <th scope="col" class="bars"><${Axis} scale=${scale} /></th><th scope="col" class="right">sum</th></tr></thead>
    <tbody>${found.steps.map((step, k) => html`<${StepLine} key=${step.attribute} step=${step} found=${found} pair=${pair} from=${sums[k]} to=${sums[k + 1]} scale=${scale} />`)}</tbody>
    <tfoot><tr><th scope="row">log-odds</th><td class="said-by"></td><td class="said-by"></td>
      ${!pair && html`<td class="right pair number dim">${signed(found.pair_log_odds)}</td>`}<td class="right"></td>
      <td class="bars"><${Steps} from=${0} to=${found.log_odds} scale=${scale} total=${true} /></td>
      <td class="right number total" data-log-odds=${found.log_odds}>${signed(found.log_odds)}</td></tr></tfoot>
  </table>
  <p class="legend">Nats: +2.2 makes 50 % into 90 %, +4.6 into 99 %. To the right speaks for the same, to the left for different.</p>
  <details class="meanings"><summary>What the lines mean</summary><dl class="compared">${[...MEANINGS, ...(pair ? [] : OF_GROUPS)].map(([term, meaning]) => html`<dt>${term}</dt><dd>${meaning}</dd>`)}</dl></details>`;
}

function StepLine({ step, found, pair, from, to, scale }) {
  const one = step.first.map(safe), other = step.second.map(safe);
  return html`<tr class=${slight(step.nats) ? "slight" : ""}>
    <th scope="row">${safe(step.attribute)}</th>
    <td class="said-by" data-of=${safe(found.first)}><${Said} said=${one} beside=${other} group=${!pair && saysMore(step.first, step.first_group)} whose=${found.first_group} /></td>
    <td class="said-by" data-of=${safe(found.second)}><${Said} said=${other} beside=${one} group=${!pair && saysMore(step.second, step.second_group)} whose=${found.second_group} /></td>
    ${!pair && html`<td class="right pair number dim">${step.attribute === REST ? "" : signed(step.pair)}</td>`}
    <td class=${`right number nats ${slight(step.nats) ? "dim" : step.nats > 0 ? "for" : "against"}`} data-nats=${step.nats}>${signed(step.nats)}</td>
    <td class="bars"><${Steps} from=${from} to=${to} scale=${scale} /></td>
    <td class="right number">${signed(to)}</td>
  </tr>`;
}

const slight = (nats) => Math.abs(nats) < 0.005; // what is written as 0.00

// What a fragment says, what differs marked; below it what most of its group say, where that is more.
function Said({ said, beside, group, whose }) {
  if (!said.length && !(group && Object.keys(group).length)) return "";
  return html`<div>${said.length > 0 && html`<${Values} pieces=${compared(said, beside)} />`}</div>
    ${group && Object.keys(group).length > 0 && html`<div class="group-says" title=${`What ${fragments(whose.length)} say`}>${Object.entries(group).map(([value, times], k) => html`${k ? html`<span class="or"> | </span>` : ""}
      <span class="value">${shortened(safe(value))}${times > 1 ? html`<span class="times"> ×${times}</span>` : ""}</span>`)}</div>`}`;
}

// What a group says, if it is something else than its fragment does, or more, or more often.
function saysMore(own, group) {
  const said = new Set(own.map(String)), names = Object.keys(group);
  return names.length === said.size && names.every((name) => said.has(name) && group[name] === 1) ? null : group;
}

// ---------------------------------------------------------------------- bars

// Where sums stand, in percent of the room, with ticks at round numbers.
function scaleOf(sums) {
  const low = Math.min(...sums, -0.5), high = Math.max(...sums, 0.5);
  const span = high - low, left = low - 0.04 * span, width = 1.08 * span;
  const rough = span / 4, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * power).find((size) => size >= rough);
  const ticks = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high; tick += step) ticks.push(Math.abs(tick) < step / 2 ? 0 : tick);
  return { x: (value) => (100 * (value - left)) / width, ticks };
}

function Axis({ scale }) {
  const zero = scale.x(0);
  return html`<span class="unseen">from the sum before to the sum after</span><svg class="axis" aria-hidden="true">
    ${zero > 22 && html`<text x=${`${zero - 1.5}%`} y="11" text-anchor="end" class="against">different</text>`}
    ${zero < 78 && html`<text x=${`${zero + 1.5}%`} y="11" class="for">same</text>`}
    ${scale.ticks.map((tick) => html`<text x=${`${scale.x(tick)}%`} y="27" text-anchor=${scale.x(tick) < 8 ? "start" : scale.x(tick) > 92 ? "end" : "middle"} class="tick">${String(tick).replace("-", "−")}</text>`)}
  </svg>`;
}

function Steps({ from, to, scale, total = false }) {
  const [low, high] = [Math.min(from, to), Math.max(from, to)];
  const kind = slight(to - from) ? "none" : to >= from ? "for" : "against";
  return html`<svg class=${total ? "step total" : "step"} aria-hidden="true">
    ${scale.ticks.map((tick) => html`<line class=${tick === 0 ? "zero" : "grid"} x1=${`${scale.x(tick)}%`} x2=${`${scale.x(tick)}%`} y1="0" y2="100%" />`)}
    <rect class=${kind} x=${`${scale.x(low)}%`} width=${`${Math.max(scale.x(high) - scale.x(low), 0.35)}%`} y=${`${TOP}em`} height=${`${HIGH}em`} rx="1.5" />
    ${!total && html`<line class="link" x1=${`${scale.x(to)}%`} x2=${`${scale.x(to)}%`} y1=${`${TOP + HIGH}em`} y2="100%" /><line class="link" x1=${`${scale.x(from)}%`} x2=${`${scale.x(from)}%`} y1="0" y2=${`${TOP}em`} />`}
  </svg>`;
}
