// The live feed. EventSource cannot send a token, so the stream of server-sent events is read by hand, in the same way
// with and without one: it goes on after the last event that came, however often the connection breaks.

import { address, latest, send } from "./api.js";
import { useEffect } from "./html.js";

const FIRST_WAIT = 500; // milliseconds
const LONGEST_WAIT = 15000;
const TOGETHER = 250; // milliseconds in which what happens is one change

// Call `hear` with every event after `since`, or from now on if it is null, and `state` with whether the feed is
// connected; returns how to stop. A tab that nobody sees lets go of its line, for browsers have few to give, and goes on
// after the last event when it is looked at again.
export function follow(since, hear, state = () => {}) {
  let last = since, wait = FIRST_WAIT, over = false, line = null;

  async function read(signal) {
    const headers = { Accept: "text/event-stream" };
    if (last !== null) headers["Last-Event-ID"] = String(last);
    const response = await send(address("events"), { headers, signal });
    last ??= latest() || null;
    state(true);
    wait = FIRST_WAIT;
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    const take = parser((id, data) => {
      if (id !== "") last = Number(id);
      hear(JSON.parse(data));
    });
    for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) take(chunk.value);
  }

  async function keepReading() {
    while (!over) {
      await seen();
      line = new AbortController();
      try {
        if (!over) await read(line.signal);
      } catch (error) {
        if (error.status === 401 || error.status === 403) return;
      }
      if (over) return;
      state(false);
      if (!document.hidden) await new Promise((done) => setTimeout(done, wait));
      wait = Math.min(2 * wait, LONGEST_WAIT);
    }
  }

  const look = () => document.hidden && line?.abort();
  document.addEventListener("visibilitychange", look);
  keepReading();
  return () => {
    over = true;
    line?.abort();
    document.removeEventListener("visibilitychange", look);
  };
}

// Resolves when the tab is seen.
const seen = () => new Promise((done) => {
  if (!document.hidden) return done();
  const look = () => {
    if (document.hidden) return;
    document.removeEventListener("visibilitychange", look);
    done();
  };
  return document.addEventListener("visibilitychange", look);
});

// Call `changed` when something happens that `concerns` what is shown, by whichever process.
export function useChanges(concerns, changed, of) {
  useEffect(() => {
    let timer = 0;
    const hear = (event) => {
      if (timer || !concerns(event)) return;
      timer = setTimeout(() => { timer = 0; changed(); }, TOGETHER);
    };
    const leave = follow(latest() || null, hear);
    return () => { leave(); clearTimeout(timer); };
  }, of);
}

// A function that takes pieces of a stream as they come, and calls `found` with the id and data of each whole message.
export function parser(found) {
  let rest = "";
  let id = "", data = [];
  return (text) => {
    const lines = (rest + text).split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop();
    for (const line of lines) {
      if (line === "") {
        if (data.length) found(id, data.join("\n"));
        data = [];
      } else if (!line.startsWith(":")) {
        const colon = line.indexOf(":");
        const field = colon < 0 ? line : line.slice(0, colon);
        const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
        if (field === "data") data.push(value);
        if (field === "id") id = value;
      }
    }
  };
}
