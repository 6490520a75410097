// The page: which view is shown, what stands above all of them, help, token, and news.

import { onToken, setToken, tell, setUser, signedBy, user } from "./api.js";
import { EntitiesView } from "./entities.js";
import { EntityView, FragmentView } from "./entity.js";
import { EventsView } from "./events.js";
import { HonestyView } from "./honesty.js";
import { html, render, useEffect, useRef, useState } from "./html.js";
import { KEYS, listen, useKeys } from "./keys.js";
import { announce, Dialog, Pieces, useAnswer, useNews } from "./parts.js";
import { ReviewView } from "./review.js";
import { WhyView } from "./why.js";
import { consequences, count, safe } from "./words.js";

const STAYS = 30000; // milliseconds that news stand there
const NAV = [["", "Entities"], ["review", "Review"], ["events", "Events"], ["honesty", "Honesty"]];

// ---------------------------------------------------------------------- where we are

// The view, its ids and what is asked for, of the address's fragment. One that has a token gives it away at once.
function placeOf(hash) {
  const given = /[#&?]token=([^&]*)/.exec(hash);
  if (given) {
    setToken(decode(given[1]));
    history.replaceState(null, "", "#/");
    return placeOf("#/");
  }
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?");
  const [view, ...ids] = path.split("/").map(decode);
  return { view, ids, query: new URLSearchParams(query) };
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function usePlace() {
  const [place, setPlace] = useState(() => placeOf(location.hash));
  useEffect(() => {
    const changed = () => setPlace(placeOf(location.hash));
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return place;
}

function View({ place }) {
  const { view, ids } = place;
  const key = `${view}/${ids.join("/")}`;
  if (view === "entity" && ids[0]) return html`<${EntityView} key=${key} id=${ids[0]} query=${place.query} />`;
  if (view === "fragment" && ids[0]) return html`<${FragmentView} key=${key} id=${ids[0]} />`;
  if (view === "why") return html`<${WhyView} key=${key} first=${ids[0] || ""} second=${ids[1] || ""} />`;
  if (view === "review") return html`<${ReviewView} key="review" />`;
  if (view === "events") return html`<${EventsView} key="events" />`;
  if (view === "honesty") return html`<${HonestyView} key="honesty" />`;
  if (view === "") return html`<${EntitiesView} key="entities" query=${place.query} />`;
  return html`<h1 tabindex="-1">There is no such page</h1><p><a href="#/">Entities</a></p>`;
}

// ---------------------------------------------------------------------- the frame

function App() {
  const place = usePlace();
  const [help, setHelp] = useState(false);
  const [wanted, setWanted] = useState(false); // a token
  const [admitted, setAdmitted] = useState(0); // how often a token was given
  const main = useRef(null);
  const where = `${place.view}/${place.ids.join("/")}`;
  const first = useRef(true);

  useEffect(listen, []);
  useEffect(() => onToken(() => setWanted(true)), []);
  useEffect(() => {
    // Whoever comes to another view by keyboard or ear begins at its heading.
    if (first.current) {
      first.current = false;
      return;
    }
    scrollTo(0, 0);
    main.current.focus({ preventScroll: true });
  }, [where]);
  useEffect(() => {
    // A judgement may take away the button that had the focus.
    const changed = () => setTimeout(() => document.activeElement === document.body && main.current.focus({ preventScroll: true }), 100);
    addEventListener("partita:changed", changed);
    return () => removeEventListener("partita:changed", changed);
  }, []);
  useKeys({
    "?": () => setHelp(true),
    "/": () => search(),
  });

  const current = ["entity", "fragment", "why"].includes(place.view) ? "" : place.view;
  return html`
    <a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); main.current.focus(); }}>To the content</a>
    <header class="top">
      <a class="mark" href="#/"><img src="icon.svg" alt="" width="22" height="22" /> Partita</a>
      <nav aria-label="Views">
        ${NAV.map(([view, name]) => html`<a href=${`#/${view}`} aria-current=${view === current ? "page" : null}>${name}</a>`)}
      </nav>
      <${Extent} key=${admitted} where=${where} />
      <${Who} />
      <button class="plain key-help" type="button" aria-label="Keyboard help" title="Keyboard help (?)" onClick=${() => setHelp(true)}>?</button>
    </header>
    <main id="main" ref=${main} tabindex="-1"><${View} key=${admitted} place=${place} /></main>
    <${News} />
    ${help && html`<${Help} close=${() => setHelp(false)} />`}
    ${wanted && html`<${TokenDialog} close=${() => setWanted(false)} given=${() => { setWanted(false); setAdmitted(admitted + 1); }} />`}
  `;
}

function search() {
  const field = document.querySelector("input[type=search]");
  if (field) {
    field.focus();
    field.select();
    return;
  }
  location.hash = "#/";
  setTimeout(() => document.querySelector("input[type=search]")?.focus(), 50);
}

// How much there is.
function Extent({ where }) {
  const { answer } = useAnswer("stats", {}, where);
  if (!answer) return html`<p class="extent"></p>`;
  return html`<p class="extent"><span class="number">${count(answer.fragments)}</span> fragments
    <span class="dim"> · </span><span class="number">${count(answer.entities)}</span> entities</p>`;
}

// Whose judgements they are that are made in this tab.
function Who() {
  const [name, setName] = useState(user());
  const [open, setOpen] = useState(false);
  const [draft, setDraft] = useState(name);
  const keep = (event) => {
    event.preventDefault();
    setUser(draft.trim());
    setName(draft.trim());
    dispatchEvent(new Event("partita:user"));
    setOpen(false);
  };
  return html`<button class="plain who" type="button" title="Whose judgements these are" onClick=${() => setOpen(true)}>
      ${name ? safe(name) : "Your name"}</button>
    ${open && html`<${Dialog} title="Your name" close=${() => setOpen(false)}>
      <form onSubmit=${keep}>
        <label>It is kept with the judgements that you make, and in this tab only.
          <input type="text" value=${draft} maxlength="100" autocomplete="off" autofocus onInput=${(e) => setDraft(e.target.value)} /></label>
        <p class="buttons"><button class="main">Keep</button></p>
      </form>
    <//>`}`;
}

// What was done last, with a way back.
function News() {
  const [news, close] = useNews();
  useEffect(() => {
    const timer = setTimeout(close, STAYS); // what was done can be undone under Events as well
    return () => clearTimeout(timer);
  }, [news]);
  const undo = async () => {
    try {
      const found = await tell("undo", { judgement: news.undo, ...signedBy() });
      announce({ title: `Judgement ${found.undone} is undone.`, lines: consequences(found.events) });
      news.undone?.();
      dispatchEvent(new Event("partita:changed"));
    } catch (error) {
      announce({ title: error.message, failed: true });
    }
  };
  return html`<div class="news" role="status" aria-live="polite">
    ${news && html`<div class=${news.failed ? "news-card failed" : "news-card"}>
      <p><strong>${safe(news.title)}</strong></p>
      ${news.lines && html`<ul>${news.lines.map((line) => html`<li><${Pieces} of=${line} /></li>`)}</ul>`}
      <p class="buttons">
        ${news.undo && html`<button type="button" onClick=${undo}>Undo</button>`}
        <button class="plain" type="button" onClick=${close}>Dismiss</button>
      </p>
    </div>`}
  </div>`;
}

function Help({ close }) {
  return html`<${Dialog} title="Keyboard" close=${close}>
    <div class="help">${KEYS.map(([title, keys]) => html`<section><h3>${title}</h3>
      <dl>${keys.map(([key, does]) => html`<dt><kbd>${key}</kbd></dt><dd>${does}</dd>`)}</dl></section>`)}</div>
  <//>`;
}

function TokenDialog({ close, given }) {
  const [draft, setDraft] = useState("");
  const keep = (event) => {
    event.preventDefault();
    setToken(draft.trim());
    given();
  };
  return html`<${Dialog} title="A token is needed" close=${close}>
    <form onSubmit=${keep}>
      <label>This service was started with a token file. The token is kept in this tab’s memory only.
        <input type="password" name="token" autocomplete="off" autofocus value=${draft} onInput=${(e) => setDraft(e.target.value)} /></label>
      <p class="buttons"><button class="main">Go on</button></p>
    </form>
  <//>`;
}

const root = document.getElementById("app");
root.replaceChildren();
render(html`<${App} />`, root);
