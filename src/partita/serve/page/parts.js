// What several views share: how a probability, a value, an event look; how an answer is waited for.

import { ask } from "./api.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "./html.js";
import { count, eventPieces, percent, safe, sure, when } from "./words.js";

// ---------------------------------------------------------------------- answers of the service

// {answer, error, loading} of a request, made again when it or `again` changes; the one before is called off.
export function useAnswer(path, params = {}, again = 0) {
  const [state, setState] = useState({ answer: null, error: null, loading: path !== null });
  const asked = path === null ? null : JSON.stringify([path, params]);
  useEffect(() => {
    if (asked === null) return undefined;
    const stop = new AbortController();
    setState((before) => ({ ...before, loading: true }));
    ask(path, params, { signal: stop.signal }).then(
      (answer) => setState({ answer, error: null, loading: false, of: asked }),
      (error) => stop.signal.aborted || setState({ answer: null, error, loading: false, of: asked }),
    );
    return () => stop.abort();
  }, [asked, again]);
  return state;
}

// A value that follows another only when that has rested.
export function useRested(value, milliseconds = 150) {
  const [rested, setRested] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setRested(value), milliseconds);
    return () => clearTimeout(timer);
  }, [value, milliseconds]);
  return rested;
}

export function Failed({ error, what = "This" }) {
  if (error.status === 401) return html`<p class="failed">A token is needed.</p>`;
  return html`<p class="failed" role="alert"><strong>${what} could not be shown.</strong> ${safe(error.message)}</p>`;
}

export const Loading = ({ what = "Loading…" }) => html`<p class="loading" role="status">${what}</p>`;

// ---------------------------------------------------------------------- news for whoever looks, or listens

const hearers = new Set();

// Say what was done, at the foot of the page and to screen readers; `undo` is a judgement that a button takes back.
export const announce = (news) => hearers.forEach((hear) => hear(typeof news === "string" ? { title: news } : news));

export function useNews() {
  const [news, setNews] = useState(null);
  useEffect(() => {
    hearers.add(setNews);
    return () => hearers.delete(setNews);
  }, []);
  return [news, () => setNews(null)];
}

// ---------------------------------------------------------------------- links

export const entityLink = (id) => `#/entity/${encodeURIComponent(id)}`;
export const whyLink = (a, b) => `#/why/${encodeURIComponent(a)}/${encodeURIComponent(b)}`;

export function Id({ entity, fragment }) {
  if (entity) return html`<a class="id" href=${entityLink(entity)}>${safe(entity)}</a>`;
  return html`<a class="id" href=${`#/fragment/${encodeURIComponent(fragment)}`}>${safe(fragment)}</a>`;
}

export const Pieces = ({ of }) =>
  of.map((piece) => (typeof piece === "string" ? safe(piece) : html`<${Id} ...${piece} />`));

// ---------------------------------------------------------------------- probabilities

// How sure something is: the words of the command line, and a bar. What is unsure has the colour of doubt.
export function Sure({ p, n = 2, label }) {
  return html`<span class=${`sure ${level(p)}`}>
    <${Bar} p=${p} /><span class="number">${label ? html`<span class="unseen">${label} </span>` : ""}${sure(p, n)}</span>
  </span>`;
}

// As it is written, so that what reads alike looks alike.
export function level(p) {
  const written = Math.round(100 * p);
  return written >= 95 ? "high" : written >= 80 ? "middle" : "low";
}

export const Bar = ({ p }) => html`<svg class="bar" aria-hidden="true" focusable="false">
  <rect class="bar-room" width="100%" height="100%" rx="2" /><rect class="bar-full" width=${`${100 * p}%`} height="100%" rx="2" />
</svg>`;

export const Probability = ({ p }) => html`<span class="number">${percent(p)}</span>`;

// ---------------------------------------------------------------------- values

// Pieces of [text, differs], those that differ marked.
export const Marked = ({ pieces }) =>
  pieces.map(([text, differs]) => (differs ? html`<mark>${safe(text)}</mark>` : safe(text)));

export function Values({ pieces }) {
  if (!pieces.length) return html`<span class="nothing" aria-label="nothing">—</span>`;
  return pieces.map((one, k) => html`${k ? html`<span class="or"> | </span>` : ""}<span class="value"><${Marked} pieces=${one} /></span>`);
}

// ---------------------------------------------------------------------- events

const SIGNS = {
  created: "+", joined: "+", moved: "→", merged: "⋈", split: "⋔", left: "−", updated: "↻", emptied: "∅", renamed: "✎",
  naming: "✎", confirmed: "=", separated: "≠", cut: "⋔", unsure: "?", undone: "↶",
};
const WEIGHTY = new Set(["merged", "split", "moved", "confirmed", "separated", "cut", "undone"]);

export function EventLine({ event, fresh = false }) {
  const kind = WEIGHTY.has(event.kind) ? "weighty" : "";
  return html`<li class=${`event ${kind} is-${event.kind} ${fresh ? "fresh" : ""}`}>
    <span class="event-sign" aria-hidden="true">${SIGNS[event.kind] || "·"}</span>
    <span class="event-said"><${Pieces} of=${eventPieces(event)} /></span>
    <span class="event-when">#<span class="number">${count(event.number)}</span> <time datetime=${event.at}>${when(event.at)}</time></span>
  </li>`;
}

// ---------------------------------------------------------------------- dialogs

// A modal dialog of the browser's own, which keeps the focus inside and gives it back.
export function Dialog({ title, close, children }) {
  const ref = useRef(null);
  useLayoutEffect(() => { // before anything is painted, so that the next key is typed into it
    ref.current.showModal();
    const first = ref.current.querySelector("[autofocus]");
    first?.focus();
    first?.select?.(); // what stands there already is a suggestion, that typing replaces
    return () => ref.current?.close();
  }, []);
  return html`<dialog ref=${ref} aria-labelledby="dialog-title" onClose=${close}
    onClick=${(event) => event.target === ref.current && close()}>
    <div class="dialog-body">
      <header class="dialog-head"><h2 id="dialog-title">${title}</h2>
        <button class="plain" type="button" aria-label="Close" onClick=${close}>✕</button></header>
      ${children}
    </div>
  </dialog>`;
}
