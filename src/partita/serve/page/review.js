// Review: one question after the other, answered with the keyboard. Each answer is recorded at once, and the next
// question is the best one after it, as `partita uncertain --ask` does.

import { ask, signedBy, tell, user } from "./api.js";
import { html, useEffect, useReducer, useRef, useState } from "./html.js";
import { useKeys } from "./keys.js";
import { Failed, Loading, Pieces, whyLink } from "./parts.js";
import { Beside } from "./beside.js";
import { Progress } from "./progress.js";
import { consequences, judgementInWords, percent, safe } from "./words.js";

const AHEAD = 20; // questions that are counted to say how many there are
const MATTERS = 0.005; // expected wrong pairs that an answer must remove for the question to be put to people
const ANSWERS = { y: "confirm", n: "separate", d: "unsure" };
const BLIND = "partita.blind";

// What is kept while one reviews; it outlives a look at another page.
const desk = { turns: [], question: null, left: 0, expected: null, first: null, news: null, error: null, busy: false, started: false };

const passed = () => desk.turns.map((turn) => `${turn.question.first},${turn.question.second}`);

export function ReviewView() {
  const [, redraw] = useReducer((n) => n + 1, 0);
  const [blind, setBlind] = useState(stored(BLIND));
  const shown = useRef(true);
  const show = () => shown.current && redraw();
  const head = useRef(null);

  async function next() {
    const answer = await ask("questions", { limit: AHEAD, passed: passed() });
    const worth = answer.questions.filter((question) => question.value >= MATTERS);
    Object.assign(desk, { question: worth[0] || null, left: worth.length, expected: answer.expected_wrong_pairs, error: null });
    if (desk.first === null) desk.first = answer.expected_wrong_pairs;
  }

  // One thing after the other: what is pressed meanwhile is not taken for an answer to what is not yet shown.
  async function work(does) {
    if (desk.busy) return;
    desk.busy = true;
    show();
    try {
      await does();
    } catch (error) {
      desk.error = error;
    }
    desk.busy = false;
    desk.started = true;
    show();
  }

  const answer = (key) => work(async () => {
    const question = desk.question;
    if (!question) return;
    try {
      const before = desk.expected;
      const body = { kind: ANSWERS[key], first: question.first, second: question.second, ...signedBy() };
      const report = await tell("judgements", body);
      desk.turns.push({ question, judgement: report.judgement, kind: report.kind, before, after: report.expected_wrong_pairs });
      desk.news = {
        title: `Judgement ${report.judgement} by ${safe(report.user)}: ${judgementInWords(report.kind, safe(report.first), safe(report.second))}.`,
        lines: consequences(report.events), before, after: report.expected_wrong_pairs,
      };
    } catch (error) {
      if (error.status !== 409 && error.status !== 422) throw error;
      desk.turns.push({ question, judgement: null });
      desk.news = { title: error.message, lines: [], failed: true };
    }
    await next();
  });
  const skip = () => work(async () => {
    if (!desk.question) return;
    desk.turns.push({ question: desk.question, judgement: null });
    desk.news = { title: "Skipped.", lines: [] };
    await next();
  });
  const undo = () => work(async () => {
    const turn = desk.turns[desk.turns.length - 1];
    if (!turn) {
      desk.news = { title: "There is nothing to go back to.", lines: [] };
      return;
    }
    if (turn.judgement !== null) {
      const before = desk.expected;
      const report = await tell("undo", { judgement: turn.judgement, ...signedBy() });
      desk.expected = report.expected_wrong_pairs;
      desk.news = { title: `Judgement ${report.undone} is undone.`, lines: consequences(report.events), before, after: report.expected_wrong_pairs };
    } else desk.news = { title: "Asked again.", lines: [] };
    desk.turns.pop();
    desk.question = turn.question;
    desk.left += 1;
  });
  const hide = () => {
    store(BLIND, !blind);
    setBlind(!blind);
  };

  useEffect(() => {
    shown.current = true;
    document.title = "Review · Partita";
    if (!desk.started || !desk.question) work(next);
    const admitted = () => work(next);
    addEventListener("partita:changed", admitted);
    return () => {
      shown.current = false;
      removeEventListener("partita:changed", admitted);
    };
  }, []);
  useEffect(() => head.current?.focus({ preventScroll: true }), [desk.question]);
  const question = desk.question;
  useKeys({
    y: () => answer("y"), n: () => answer("n"), d: () => answer("d"), s: skip, u: undo, b: undo, z: undo, x: hide,
    w: () => question && !blind && (location.hash = whyLink(question.first, question.second)),
  });

  return html`<div class="review" aria-busy=${desk.busy} data-turns=${desk.turns.length}>
    <${Progress} desk=${desk} blind=${blind} />
    ${desk.error && html`<${Failed} error=${desk.error} what="The next question" />`}
    ${!desk.started ? html`<h1 ref=${head} tabindex="-1">Review</h1><${Loading} what="Looking for the question that is most worth asking…" />`
      : question ? html`<${Question} question=${question} blind=${blind} head=${head} />`
        : !desk.error && html`<h1 ref=${head} tabindex="-1">Nothing is left to ask</h1><p>There is nothing uncertain that is worth a question. <a href="#/honesty">How sure it all is</a></p>`}
    <div class="answers" role="group" aria-label="Answer">
      <button type="button" class="same" disabled=${!question} onClick=${() => answer("y")}>Same <kbd>y</kbd></button>
      <button type="button" class="different" disabled=${!question} onClick=${() => answer("n")}>Different <kbd>n</kbd></button>
      <button type="button" disabled=${!question} onClick=${() => answer("d")}>Don’t know <kbd>d</kbd></button>
      <button type="button" disabled=${!question} onClick=${skip}>Skip <kbd>s</kbd></button>
      <button type="button" disabled=${!desk.turns.length} onClick=${undo}>Undo <kbd>u</kbd></button>
    </div>
    <${Changed} news=${desk.news} blind=${blind} />
    <footer class="review-foot">
      <label><input type="checkbox" checked=${blind} onChange=${hide} /> Blind: hide scores <kbd>x</kbd></label>
      <${Reviewer} />
      ${!blind && html`<span>A wrong pair is two fragments that are together and of two things, or apart and of one. What an answer is worth is how many fewer are expected after it.</span>`}
    </footer>
  </div>`;
}

function Question({ question, blind, head }) {
  return html`<article class="question" data-first=${question.first} data-second=${question.second}>
    <h1 ref=${head} tabindex="-1">Are these the same?</h1>
    <p class="dim question-why">${blind ? "Scores are hidden." : html`<strong class="number">${percent(question.probability)}</strong> that they are; an answer is worth
      ${" "}<span class="number">${question.value.toFixed(2)}</span> wrong pairs. ${safe(question.reason)}. <a href=${whyLink(question.first, question.second)}>Why</a>`}</p>
    <${Beside} question=${question} blind=${blind} />
  </article>`;
}

// What the last answer has changed; blindly that is not said, for it tells whether they were thought to be the same.
function Changed({ news, blind }) {
  return html`<div class=${`changed ${news?.failed ? "failed" : ""}`} role="status" aria-live="polite">${news && html`
    <p><strong>${safe(news.title)}</strong></p>
    ${!blind && news.lines.length > 0 && html`<ul>${news.lines.map((line) => html`<li><${Pieces} of=${line} /></li>`)}</ul>`}
    ${!blind && typeof news.after === "number" && typeof news.before === "number" &&
      html`<p class="dim">Wrong pairs that are expected: <span class="number">${news.before.toFixed(2)}</span> before, <span class="number">${news.after.toFixed(2)}</span> now.</p>`}`}
  </div>`;
}

// Whose answers these are.
function Reviewer() {
  const [name, setName] = useState(user());
  useEffect(() => {
    const changed = () => setName(user());
    addEventListener("partita:user", changed);
    return () => removeEventListener("partita:user", changed);
  }, []);
  return html`<span>${name ? html`Recorded as answered by <strong>${safe(name)}</strong>` : "Say your name above, and it is recorded who answered"}</span>`;
}

const stored = (name) => {
  try { return sessionStorage.getItem(name) === "true"; } catch { return false; }
};
const store = (name, value) => {
  try { sessionStorage.setItem(name, String(value)); } catch { /* it is as it was in the next tab */ }
};
