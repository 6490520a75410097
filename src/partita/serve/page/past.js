// What became of an entity, event by event: how many fragments it had, and what it was at any moment.

import { html, useState } from "./html.js";
import { EventLine } from "./parts.js";
import { count, eventPieces, fragments, inWords } from "./words.js";

const SHOWN = 6; // events that are listed at once, the latest first
const MOST = 400; // steps that are drawn

export function Past({ entity, moment, setMoment }) {
  const [all, setAll] = useState(false);
  const events = entity.events || [];
  if (!events.length) return "";
  const sizes = sizesOf(entity.id, events);
  const last = events.length - 1, ends = endsOf(events);
  const latest = moment === null ? last : events.findLastIndex((event) => event.number <= Number(moment));
  const step = Math.max(0, latest < 0 ? 0 : ends.findIndex((end) => end >= latest)), at = ends[step];
  const go = (to) => setMoment(to >= ends.length - 1 ? null : String(events[ends[to]].number));
  const listed = all ? [...events].reverse() : events.slice(-SHOWN).reverse();
  return html`<section aria-labelledby="past" class="past"><h2 id="past">What became of it</h2>
    <${Chart} sizes=${sizes} events=${events} at=${at} />
    ${ends.length > 1 && html`<label class="slider"><span class="unseen">As of event</span>
      <input type="range" min="0" max=${ends.length - 1} value=${step} onInput=${(e) => go(Number(e.target.value))}
        aria-valuetext=${`after event ${events[at].number}: ${inWords(eventPieces(events[at]))}`} /></label>
      <p class="slider-said">#<span class="number">${count(events[at].number)}</span> ${inWords(eventPieces(events[at]))} <span class="dim">— ${fragments(sizes[at])}</span></p>`}
    <ol class="events" reversed>${listed.map((event) => html`<${EventLine} key=${event.number} event=${event} />`)}</ol>
    ${listed.length < events.length && html`<button class="plain" type="button" onClick=${() => setAll(true)}>${count(events.length - listed.length)} earlier events</button>`}
  </section>`;
}

// Where each change ends: what one cause has done to it is several events, but happened at once.
function endsOf(events) {
  const cause = ({ at, fragment, detail = {} }) => {
    const { judgement, undone, refined, relearnt, judged_before: before } = detail;
    return JSON.stringify([at, fragment, judgement, undone, refined, relearnt, before]);
  };
  const causes = events.map(cause);
  return causes.flatMap((one, k) => (one === causes[k + 1] ? [] : [k]));
}

// How many fragments it had after each event.
export function sizesOf(id, events) {
  let n = 0;
  return events.map((event) => {
    const moved = (event.fragments || []).length;
    if (event.to === id) n += moved;
    if (event.from === id) n -= moved;
    return n;
  });
}

// Steps, with a mark where it was merged or split: a change of mind.
function Chart({ sizes, events, at }) {
  const every = Math.ceil(sizes.length / MOST);
  const kept = sizes.map((size, k) => [size, k]).filter(([, k]) => k % every === 0 || k === sizes.length - 1);
  const most = Math.max(...sizes, 1), n = Math.max(sizes.length - 1, 1);
  const x = (k) => `${1 + (98 * k) / n}%`, y = (size) => `${90 - (78 * size) / most}%`;
  const lines = kept.slice(1).flatMap(([size, k], i) => {
    const [before, from] = kept[i];
    return [
      html`<line x1=${x(from)} x2=${x(k)} y1=${y(before)} y2=${y(before)} />`,
      before === size ? "" : html`<line x1=${x(k)} x2=${x(k)} y1=${y(before)} y2=${y(size)} class=${size < before ? "less" : ""} />`,
    ];
  });
  const minds = events.flatMap((event, k) => (["merged", "split"].includes(event.kind) ? [[event, k]] : [])).slice(-MOST);
  return html`<svg class="chart" role="img" aria-label=${`From ${fragments(sizes[0])} to ${fragments(sizes[sizes.length - 1])} in ${count(events.length)} events`}>
    <line class="ground" x1="0" x2="100%" y1="90%" y2="90%" />${lines}
    ${minds.map(([event, k]) => html`<circle class=${event.kind} cx=${x(k)} cy=${y(sizes[k])} r="4"><title>${inWords(eventPieces(event))}</title></circle>`)}
    <line class="here" x1=${x(at)} x2=${x(at)} y1="0" y2="100%" />
    <circle class="here" cx=${x(at)} cy=${y(sizes[at])} r="3.5" />
  </svg>`;
}
