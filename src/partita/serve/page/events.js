// What happens, as it happens, by whichever process; and what people have judged, with a way back.

import { ask, signedBy, tell } from "./api.js";
import { html, useEffect, useRef, useState } from "./html.js";
import { follow } from "./live.js";
import { announce, EventLine, Failed, Loading } from "./parts.js";
import { consequences, count, judgementInWords, safe, when } from "./words.js";

const PAGE = 100; // events that are there at first, and that are fetched at a time
const MOST = 2000; // that are kept on the page
const KINDS = [
  ["", "everything"], ["merged split moved", "changes of mind"], ["confirmed separated cut unsure undone", "judgements"],
  ["created joined", "what came in"], ["renamed naming", "names"],
];

export function EventsView() {
  const [tab, setTab] = useState("feed");
  useEffect(() => { document.title = "Events · Partita"; }, []);
  return html`<div class="title"><h1>What happens</h1>
      <div class="tabs" role="group" aria-label="Show">
        <button type="button" aria-pressed=${tab === "feed"} onClick=${() => setTab("feed")}>Events</button>
        <button type="button" aria-pressed=${tab === "judged"} onClick=${() => setTab("judged")}>Judgements</button></div></div>
    ${tab === "feed" ? html`<${Feed} />` : html`<${Judged} />`}`;
}

// ---------------------------------------------------------------------- the feed

function Feed() {
  const [events, setEvents] = useState(null); // the latest first
  const [error, setError] = useState(null);
  const [connected, setConnected] = useState(false);
  const [kinds, setKinds] = useState("");
  const [fresh, setFresh] = useState(0); // events that came while one looked
  const waiting = useRef([]);

  useEffect(() => {
    const stop = new AbortController();
    let leave = () => {}, frame = 0;
    const flush = () => {
      frame = 0;
      const come = waiting.current.splice(0).reverse();
      setEvents((before) => [...come, ...before].slice(0, MOST));
      setFresh((n) => n + come.length);
    };
    const hear = (event) => {
      waiting.current.push({ ...event, fresh: true });
      frame = frame || setTimeout(flush, 60); // many at once are drawn at once
    };
    latest(stop.signal).then((found) => {
      setEvents([...found].reverse());
      leave = follow(found.length ? found[found.length - 1].number : 0, hear, setConnected);
      if (stop.signal.aborted) leave();
    }, (refused) => stop.signal.aborted || setError(refused));
    return () => { stop.abort(); leave(); clearTimeout(frame); };
  }, []);

  if (error) return html`<${Failed} error=${error} what="The events" />`;
  if (!events) return html`<${Loading} />`;
  const wanted = new Set(kinds.split(" "));
  const shown = kinds ? events.filter((event) => wanted.has(event.kind)) : events;
  const first = events.length ? events[events.length - 1].number : 0;
  const earlier = async () => {
    const from = Math.max(0, first - 1 - PAGE);
    const { events: found } = await ask("events", { since: from, limit: PAGE });
    setEvents([...events, ...found.filter((event) => event.number < first).reverse()]);
  };
  return html`<div class="feed-head">
      <p class=${`live ${connected ? "on" : "off"}`} role="status"><span class="live-dot" aria-hidden="true"></span>${connected ? "Live" : "Connecting…"}${fresh ? html` <span class="dim">${count(fresh)} since you came</span>` : ""}</p>
      <label class="field">Show <select value=${kinds} onChange=${(e) => setKinds(e.target.value)}>
        ${KINDS.map(([value, name]) => html`<option value=${value}>${name}</option>`)}</select></label></div>
    ${shown.length ? html`<ol class="events feed" reversed>${shown.map((event) => html`<${EventLine} key=${event.number} event=${event} fresh=${event.fresh} />`)}</ol>`
      : html`<p class="dim">Nothing of this kind among the last ${count(events.length)} events.</p>`}
    ${first > 1 && html`<p class="more"><button type="button" onClick=${earlier}>Earlier events</button></p>`}`;
}

// The last events: how many there are is asked first.
async function latest(signal) {
  const stats = await ask("stats", {}, { signal });
  const since = Math.max(0, (stats.events || 0) - PAGE);
  return (await ask("events", { since, limit: PAGE * 2 }, { signal })).events;
}

// ---------------------------------------------------------------------- judgements

function Judged() {
  const [found, setFound] = useState(null);
  const [error, setError] = useState(null);
  const load = (before) => ask("judgements", { limit: PAGE, offset: before ? before.judgements.length : "" }).then(
    (page) => setFound(before ? { ...page, judgements: [...before.judgements, ...page.judgements] } : page), setError);
  useEffect(() => {
    load(null);
    const changed = () => load(null);
    addEventListener("partita:changed", changed);
    return () => removeEventListener("partita:changed", changed);
  }, []);
  const undo = async (number) => {
    try {
      const report = await tell("undo", { judgement: number, ...signedBy() });
      announce({ title: `Judgement ${report.undone} is undone.`, lines: consequences(report.events) });
      dispatchEvent(new Event("partita:changed"));
    } catch (refused) {
      announce({ title: refused.message, failed: true });
    }
  };
  if (error) return html`<${Failed} error=${error} what="The judgements" />`;
  if (!found) return html`<${Loading} />`;
  if (!found.total) return html`<p class="dim">Nobody has judged anything yet. <a href="#/review">Review</a></p>`;
  return html`<ol class="events judged" reversed>${found.judgements.map((row) => html`<li key=${row.number} class=${row.undone_at ? "event undone" : "event weighty"}>
      <span class="event-sign number">${row.number}</span>
      <span class="event-said">${judgementInWords(row.kind, safe(row.first), safe(row.second))}
        ${row.undone_at && html`<span class="dim"> — undone by ${safe(row.undone_by)}</span>`}</span>
      <span class="event-when">${safe(row.user)} <time datetime=${row.at}>${when(row.at)}</time></span>
      ${!row.undone_at && html`<button class="plain" type="button" onClick=${() => undo(row.number)}>Undo</button>`}
    </li>`)}</ol>
    ${found.judgements.length < found.total && html`<p class="more"><button type="button" onClick=${() => load(found)}>Earlier judgements</button></p>`}`;
}
