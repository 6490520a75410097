// The live feed. EventSource cannot send a token, so the stream of server-sent events is read by hand, in the same way
// with and without one: it goes on after the last event that came, however often the connection breaks.

import { address, send } from "./api.js";

const FIRST_WAIT = 500; // milliseconds
const LONGEST_WAIT = 15000;

// Call `hear` with every event after `since`, and `state` with whether the feed is connected; returns how to stop.
export function follow(since, hear, state = () => {}) {
  const stop = new AbortController();
  let last = since;
  let wait = FIRST_WAIT;

  async function read() {
    const headers = { Accept: "text/event-stream" };
    if (last !== null) headers["Last-Event-ID"] = String(last);
    const response = await send(address("events"), { headers, signal: stop.signal });
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
    while (!stop.signal.aborted) {
      try {
        await read();
      } catch (error) {
        if (stop.signal.aborted || error.status === 401 || error.status === 403) return;
      }
      state(false);
      await new Promise((done) => setTimeout(done, wait));
      wait = Math.min(2 * wait, LONGEST_WAIT);
    }
  }

  keepReading();
  return () => stop.abort();
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
