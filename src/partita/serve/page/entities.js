// The list of entities: search as one types, sort, filter, and more of it as one scrolls.

import { ask, save } from "./api.js";
import { html, useEffect, useMemo, useRef, useState } from "./html.js";
import { useKeys } from "./keys.js";
import { announce, entityLink, Failed, Loading, Sure, useAnswer, useRested } from "./parts.js";
import { count, safe, shortened } from "./words.js";

const PAGE = 50;
const SORTS = [["size", "largest first"], ["sure", "least sure first"], ["recent", "latest first"], ["name", "by name"]];
const kept = { key: null, pages: [], top: 0, at: -1 }; // the list as it was left, for whoever comes back

export function EntitiesView({ query }) {
  const [text, setText] = useState(query.get("query") || "");
  const [sort, setSort] = useState(query.get("sort") || "size");
  const [least, setLeast] = useState(query.get("min_size") || "");
  const [where, setWhere] = useState(query.getAll("where"));
  const searched = useRested(text.trim());
  const rested = useRested(least);
  const params = useMemo(
    () => ({ query: searched, sort: searched ? "" : sort, min_size: rested > 1 ? rested : "", where }),
    [searched, sort, rested, where],
  );
  useAddress({ ...params, sort: params.sort === "size" ? "" : params.sort });
  const list = useList(params);
  const [at, setAt] = useCursor(list.entities);

  return html`
    <h1 class="unseen">Entities</h1>
    <search class="finder">
      <label class="grow"><span class="unseen">Search entities</span>
        <input type="search" placeholder="Search words, how they begin, or an id" value=${text}
          onInput=${(e) => setText(e.target.value)} onKeyDown=${(e) => e.key === "Enter" && (e.target.blur(), setAt(0))} /></label>
      <label class="field">Sort
        <select value=${searched ? "" : sort} disabled=${Boolean(searched)} onChange=${(e) => setSort(e.target.value)}>
          ${searched && html`<option value="">best match first</option>`}
          ${SORTS.map(([value, name]) => html`<option value=${value}>${name}</option>`)}
        </select></label>
      <label class="field">At least
        <input class="short" type="number" min="1" inputmode="numeric" placeholder="1" value=${least}
          onInput=${(e) => setLeast(e.target.value)} aria-label="At least so many fragments" /> <span class="dim">fragments</span></label>
      <${Filters} where=${where} setWhere=${setWhere} />
    </search>
    <div class="list-head">
      <p role="status">${counted(list, searched, where)}</p>
      ${list.entities.length > 0 && html`<${Exporting} entities=${list.entities} total=${list.total} all=${!searched && !where.length && !params.min_size} />`}
    </div>
    ${list.error && html`<${Failed} error=${list.error} what="The list" />`}
    ${list.loading && !list.entities.length && html`<${Loading} />`}
    ${list.entities.length > 0 && html`<${List} list=${list} at=${at} searched=${searched} />`}
  `;
}

function counted(list, searched, where) {
  if (list.total === null) return "";
  if (!list.total) return searched || where.length ? "Nothing found." : "No entity is so.";
  return `${count(list.total)} ${list.total === 1 ? "entity" : "entities"}${searched ? " found" : ""}`;
}

// ---------------------------------------------------------------------- what is asked for

// The address says what is shown, so that it can be kept, sent and come back to.
function useAddress(params) {
  const said = new URLSearchParams();
  for (const [name, given] of Object.entries(params)) {
    for (const value of [].concat(given)) if (value) said.append(name, value);
  }
  const hash = said.size ? `#/?${said}` : "#/";
  useEffect(() => {
    if (location.hash !== hash && /^#?\/?(\?|$)/.test(location.hash)) history.replaceState(null, "", hash);
  }, [hash]);
}

// Pages of the list, one after the other. Whatever is asked anew calls off what is still being asked.
function useList(params) {
  const key = JSON.stringify(params);
  const again = kept.key === key;
  const [pages, setPages] = useState(again ? kept.pages : []);
  const [state, setState] = useState({ loading: !again, error: null });
  const stop = useRef(null);

  const load = async (offset, before) => {
    stop.current?.abort();
    const mine = (stop.current = new AbortController());
    setState({ loading: true, error: null });
    try {
      const page = await ask("entities", { ...params, limit: PAGE, offset: offset || "" }, { signal: mine.signal });
      // Who comes back finds the list as it was left, unless it has changed meanwhile.
      const same = !offset && again && JSON.stringify(page) === JSON.stringify(kept.pages[0]);
      const now = same ? kept.pages : [...before, page];
      Object.assign(kept, { key, pages: now });
      setPages(now);
      setState({ loading: false, error: null });
    } catch (error) {
      if (!mine.signal.aborted) setState({ loading: false, error });
    }
  };
  useEffect(() => {
    const back = kept.key === key;
    if (back && kept.top) requestAnimationFrame(() => scrollTo(0, kept.top));
    if (!back) Object.assign(kept, { at: -1, top: 0 });
    load(0, []);
    return () => stop.current?.abort();
  }, [key]);
  useEffect(() => () => { kept.top = scrollY; }, []);

  const last = pages[pages.length - 1];
  return {
    ...state,
    entities: pages.flatMap((page) => page.entities),
    total: last ? last.total : null,
    more: last && last.next !== null && !state.loading ? () => load(last.next, pages) : null,
    next: last ? last.next : null,
  };
}

// The entity that j and k have come to.
function useCursor(entities) {
  const [at, setAt] = useState(kept.at);
  const go = (step) => {
    const to = Math.max(0, Math.min(entities.length - 1, kept.at + step)); // keys may come faster than `at` is drawn
    kept.at = to;
    setAt(to);
    const link = document.querySelectorAll(".entities a.entity-link")[to];
    link?.focus({ preventScroll: true });
    link?.scrollIntoView({ block: "nearest" });
  };
  const down = () => go(1), up = () => go(-1);
  useKeys({ j: down, ArrowDown: down, k: up, ArrowUp: up, Enter: () => entities[kept.at] && (location.hash = entityLink(entities[kept.at].id)) });
  return [at, (to) => { kept.at = to; go(0); }];
}

// ---------------------------------------------------------------------- filters

function Filters({ where, setWhere }) {
  const [open, setOpen] = useState(false);
  const [attribute, setAttribute] = useState("");
  const [value, setValue] = useState("");
  const { answer } = useAnswer(open ? "schema" : null);
  const names = answer ? answer.attributes.map((one) => one.name) : [];
  const add = (event) => {
    event.preventDefault();
    const chosen = attribute || names[0];
    if (!chosen || !value.trim()) return;
    setWhere([...where, `${chosen}=${value.trim()}`]);
    setValue("");
    setOpen(false);
  };
  return html`<div class="filters">
    ${where.map((said, k) => html`<span class="chip">${safe(said.replace("=", " is "))}
      <button class="plain" type="button" aria-label=${`Remove the filter ${said}`} onClick=${() => setWhere(where.filter((_, other) => other !== k))}>✕</button></span>`)}
    ${open ? html`<form class="filter" onSubmit=${add}>
        <select aria-label="Attribute" value=${attribute || names[0]} onChange=${(e) => setAttribute(e.target.value)}>
          ${names.map((name) => html`<option value=${name}>${safe(name)}</option>`)}</select>
        <label>is <input type="text" aria-label="Value" autofocus value=${value} onInput=${(e) => setValue(e.target.value)} /></label>
        <button>Filter</button>
        <button class="plain" type="button" onClick=${() => setOpen(false)}>Cancel</button>
      </form>`
      : html`<button class="plain" type="button" onClick=${() => setOpen(true)}>+ filter</button>`}
  </div>`;
}

// ---------------------------------------------------------------------- the list

function List({ list, at, searched }) {
  const end = useRef(null);
  const more = useRef(null);
  more.current = list.more;
  useEffect(() => {
    const watch = new IntersectionObserver((seen) => seen.some((one) => one.isIntersecting) && more.current?.(), { rootMargin: "600px" });
    watch.observe(end.current);
    return () => watch.disconnect();
  }, [list.next]);
  const largest = Math.max(...list.entities.map((entity) => entity.size));
  return html`<table class=${`entities ${list.loading ? "waiting" : ""}`}>
      <thead><tr><th scope="col">Entity</th><th scope="col">Says</th><th scope="col" class="right">Fragments</th><th scope="col" class="right">Sure</th></tr></thead>
      <tbody>${list.entities.map((entity, k) => html`<${Line} key=${entity.id} entity=${entity} largest=${largest} here=${k === at} searched=${searched} />`)}</tbody>
    </table>
    <p ref=${end} class="more">${list.next !== null && html`<button type="button" onClick=${() => list.more?.()}>${list.loading ? "Loading…" : "More"}</button>`}</p>`;
}

function Line({ entity, largest, here, searched }) {
  const said = searched && entity.matches?.length ? entity.matches : entity.summary || [];
  return html`<tr class=${here ? "here" : ""}>
    <th scope="row"><a class="entity-link" href=${entityLink(entity.id)}><span class="name">${safe(entity.name) || html`<span class="dim">no name</span>`}</span>
      <span class="dim id">${entity.id}</span></a></th>
    <td class="says">${said.map((value, k) => html`${k ? html`<span class="or" aria-hidden="true"> · </span>` : ""}<span class="value">${shortened(safe(value))}</span>`)}</td>
    <td class="right size"><span class="number">${count(entity.size)}</span><${Size} n=${entity.size} largest=${largest} /><span class="narrow-only"> ${entity.size === 1 ? "fragment" : "fragments"}</span></td>
    <td class="right"><${Sure} p=${entity.probability} n=${entity.size} /></td>
  </tr>`;
}

// Sizes range over orders of magnitude: a dot whose area grows with the logarithm.
function Size({ n, largest }) {
  const radius = 1.5 + 4.5 * Math.sqrt(Math.log(n) / Math.max(Math.log(largest), Math.log(8)));
  return html`<svg class="dot" width="14" height="14" aria-hidden="true" focusable="false"><circle cx="7" cy="7" r=${radius} /></svg>`;
}

// ---------------------------------------------------------------------- export

function Exporting({ entities, all, total }) {
  const [what, setWhat] = useState("entities");
  const [format, setFormat] = useState("jsonl");
  const whole = all || total === entities.length;
  const run = async () => {
    try {
      const ids = all ? [] : entities.map((entity) => entity.id);
      announce(`Saved ${await save({ what, format, entity: ids }, `${what}.${format}`)}.`);
    } catch (error) {
      announce({ title: error.message, failed: true });
    }
  };
  return html`<details class="menu"><summary>Export</summary><div class="menu-body">
    <label>What <select value=${what} onChange=${(e) => setWhat(e.target.value)}>
      <option value="entities">entities</option><option value="golden">golden records</option>
      <option value="clusters">clusters</option><option value="fragments">fragments</option></select></label>
    <label>Format <select value=${format} onChange=${(e) => setFormat(e.target.value)}><option value="jsonl">jsonl</option><option value="csv">csv</option></select></label>
    <button type="button" onClick=${run}>${all ? `All ${count(total)}` : whole ? `These ${count(total)}` : `The ${count(entities.length)} listed`}</button>
  </div></details>`;
}
