// How far a review has come: what was answered, what is left, and how many wrong pairs are expected still.

import { html } from "./html.js";
import { count } from "./words.js";

export function Progress({ desk, blind }) {
  const answered = desk.turns.filter((turn) => turn.judgement !== null);
  const skipped = desk.turns.length - answered.length;
  const left = desk.left >= 20 ? `${desk.left} or more left` : desk.question ? `about ${count(desk.left)} left` : "none left";
  const whole = desk.turns.length + desk.left;
  return html`<header class="progress">
    <p class="progress-said"><span><strong class="number">${count(answered.length)}</strong> answered</span>
      ${skipped > 0 && html`<span>${count(skipped)} skipped</span>`}<span>${desk.started ? left : ""}</span>
      ${!blind && desk.expected !== null && html`<span class="expected"><strong class="number">${desk.expected.toFixed(2)}</strong> wrong pairs expected${desk.first !== null && answered.length > 0 ? html`, <span class="number">${desk.first.toFixed(2)}</span> at first` : ""}</span>`}</p>
    <svg class="progress-bar" role="img" aria-label=${`${desk.turns.length} of about ${whole}`}>
      <rect class="bar-room" width="100%" height="100%" rx="2" /><rect class="bar-full" width=${`${whole ? (100 * desk.turns.length) / whole : 0}%`} height="100%" rx="2" /></svg>
    ${!blind && answered.length > 1 && html`<${Fall} turns=${answered} />`}
  </header>`;
}

// Wrong pairs expected, answer by answer.
function Fall({ turns }) {
  const values = [turns[0].before, ...turns.map((turn) => turn.after)].filter((value) => typeof value === "number");
  if (values.length < 3) return "";
  const most = Math.max(...values, 1e-9), n = values.length - 1;
  const x = (k) => `${1 + (98 * k) / n}%`, y = (value) => `${95 - (88 * value) / most}%`;
  return html`<svg class="fall" role="img" aria-label=${`Wrong pairs expected fell from ${values[0].toFixed(2)} to ${values[n].toFixed(2)}`}>
    ${values.slice(1).map((value, k) => html`<line x1=${x(k)} y1=${y(values[k])} x2=${x(k + 1)} y2=${y(value)} class=${value > values[k] ? "more" : ""} />`)}
    <circle cx=${x(n)} cy=${y(values[n])} r="3" /></svg>`;
}
