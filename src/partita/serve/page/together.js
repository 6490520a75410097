// How probably any two fragments are together: a matrix on a canvas, and its doubtful pairs as a list for whoever cannot
// see or point.

import { part } from "./api.js";
import { html, useEffect, useRef, useState } from "./html.js";
import { Failed, Id, Loading, Sure, useAnswer, whyLink } from "./parts.js";
import { count, fragments, percent, safe } from "./words.js";

const LARGEST = 32; // pixels of a cell
const NAMED = 30; // fragments, up to which their ids stand at the side
const MARGIN = 84; // pixels that these have
const PAIRS = 12; // in the list, at first
const MOST = 500; // in the list at all
const UNSURE = [0.02, 0.98];

export function Together({ entity, again }) {
  const { answer, error } = useAnswer(`entities/${part(entity.id)}/together`, { limit: 400 }, again);
  return html`<section aria-labelledby="together"><h2 id="together">How probably together</h2>
    ${error ? html`<${Failed} error=${error} what="The matrix" />` : !answer ? html`<${Loading} />`
      : answer.fragments.length < 2 ? html`<p class="dim">It is one fragment, and no other is in doubt with it.</p>`
        : html`<div class="together"><${Matrix} answer=${answer} entity=${entity} /><${Doubtful} answer=${answer} /></div>`}</section>`;
}

function Matrix({ answer, entity }) {
  const canvas = useRef(null);
  const [over, setOver] = useState(null);
  const { fragments: ids, matrix } = answer;
  const mine = new Set(entity.fragments);
  const margin = ids.length <= NAMED ? MARGIN : 6;
  useEffect(() => {
    const redraw = () => canvas.current && draw(canvas.current, ids, matrix, mine, margin);
    const watch = new ResizeObserver(redraw);
    watch.observe(canvas.current.parentElement);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", redraw);
    return () => { watch.disconnect(); dark.removeEventListener("change", redraw); };
  }, [answer]);
  const find = (event) => {
    const box = canvas.current.getBoundingClientRect();
    const cell = (box.width - margin) / ids.length;
    const column = Math.floor((event.clientX - box.left - margin) / cell), row = Math.floor((event.clientY - box.top) / cell);
    const inside = row >= 0 && column >= 0 && row < ids.length && column < ids.length;
    return inside ? { row, column, x: event.clientX - box.left, y: event.clientY - box.top } : null;
  };
  const open = (event) => {
    const cell = find(event);
    if (cell && cell.row !== cell.column) location.hash = whyLink(ids[cell.row], ids[cell.column]);
  };
  return html`<div class="matrix">
    <canvas ref=${canvas} role="img" aria-label=${`How probably together: ${summary(answer)}`}
      onPointerMove=${(e) => setOver(find(e))} onPointerLeave=${() => setOver(null)} onClick=${open}></canvas>
    ${over && html`<p class="tip" style=${{ left: `${over.x}px`, top: `${over.y}px` }} aria-hidden="true">${safe(ids[over.row])}${over.row === over.column ? "" : html`, ${safe(ids[over.column])}: <strong>${percent(matrix[over.row][over.column])}</strong>`}</p>`}
    <p class="matrix-key dim"><span>0 %</span><svg class="ramp" aria-hidden="true"><rect width="100%" height="100%" /></svg><span>100 %</span>
      ${answer.total > ids.length ? html`<span> ${count(ids.length)} of ${count(answer.total)} fragments</span>` : ""}</p>
  </div>`;
}

function draw(canvas, ids, matrix, mine, margin) {
  const style = getComputedStyle(canvas);
  const width = Math.min(canvas.parentElement.clientWidth, margin + ids.length * LARGEST, 680);
  const cell = (width - margin) / ids.length, height = cell * ids.length + 1;
  const scale = devicePixelRatio || 1;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  canvas.width = width * scale;
  canvas.height = height * scale;
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  pen.fillStyle = style.getPropertyValue("--room");
  pen.fillRect(margin, 0, width - margin, height);
  pen.fillStyle = style.getPropertyValue("--sure");
  const gap = cell > 6 ? 1 : 0;
  const edge = (k) => Math.round(k * cell * scale) / scale; // whole pixels, so that nothing shines through between cells
  matrix.forEach((row, i) => row.forEach((p, j) => {
    if (p < 0.005) return;
    pen.globalAlpha = 0.06 + 0.94 * p;
    pen.fillRect(margin + edge(j), edge(i), edge(j + 1) - edge(j) - gap, edge(i + 1) - edge(i) - gap);
  }));
  pen.globalAlpha = 1;
  pen.fillStyle = style.getPropertyValue("--accent");
  ids.forEach((id, i) => mine.has(id) && pen.fillRect(margin - 4, i * cell, 3, Math.max(cell - gap, 1)));
  if (ids.length > NAMED) return;
  pen.fillStyle = style.getPropertyValue("--ink");
  pen.font = `${Math.min(12, Math.max(9, cell - 3))}px ${style.fontFamily}`;
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  ids.forEach((id, i) => pen.fillText(fitting(pen, safe(id), margin - 10), margin - 8, (i + 0.5) * cell));
}

function fitting(pen, text, room) {
  if (pen.measureText(text).width <= room) return text;
  let end = text.length;
  while (end > 1 && pen.measureText(text.slice(0, end) + "…").width > room) end--;
  return text.slice(0, end) + "…";
}

// ---------------------------------------------------------------------- in words

function doubtful(answer) {
  const found = [];
  answer.matrix.forEach((row, i) => row.forEach((p, j) => {
    if (i < j && p > UNSURE[0] && p < UNSURE[1]) found.push([p, answer.fragments[i], answer.fragments[j]]);
  }));
  return found.sort((a, b) => Math.abs(a[0] - 0.5) - Math.abs(b[0] - 0.5));
}

const summary = (answer) => `${fragments(answer.fragments.length)}, ${count(doubtful(answer).length)} pairs in doubt, listed below`;

function Doubtful({ answer }) {
  const [all, setAll] = useState(false);
  const pairs = doubtful(answer);
  if (!pairs.length) return html`<p class="dim">No pair is in doubt.</p>`;
  return html`<details class="doubtful" open=${matchMedia("(min-width: 1180px)").matches}><summary>${count(pairs.length)} ${pairs.length === 1 ? "pair" : "pairs"} in doubt</summary>
    <table><thead><tr><th scope="col">One</th><th scope="col">Other</th><th scope="col" class="right">Together</th><th></th></tr></thead>
      <tbody>${pairs.slice(0, all ? MOST : PAIRS).map(([p, a, b]) => html`<tr><td><${Id} fragment=${a} /></td><td><${Id} fragment=${b} /></td>
        <td class="right"><${Sure} p=${p} /></td><td><a href=${whyLink(a, b)}>Why</a></td></tr>`)}</tbody></table>
    ${!all && pairs.length > PAIRS && html`<button class="plain" type="button" onClick=${() => setAll(true)}>${count(Math.min(pairs.length, MOST) - PAIRS)} more, that are surer</button>`}</details>`;
}
