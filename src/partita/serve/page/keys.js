// The keyboard: one listener for the page, to which the view at hand adds its own keys.

import { useEffect } from "./html.js";

const GONE = 1200; // milliseconds in which "g" waits for its second key
let views = []; // maps from key to function, the latest added first
let went = 0;

const PLACES = { e: "#/", r: "#/review", v: "#/events", h: "#/honesty" };

export function useKeys(keys) {
  useEffect(() => {
    views = [keys, ...views];
    return () => {
      views = views.filter((other) => other !== keys);
    };
  });
}

// Whether keys are text at present: then they are nobody else's.
const writing = (target) =>
  target.closest && target.closest("input:not([type=checkbox]):not([type=radio]):not([type=range]), textarea, select, [contenteditable]");

export function listen() {
  const onKey = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (document.querySelector("dialog[open]")) return; // it has the focus, and Escape
    if (writing(event.target)) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const chord = event.timeStamp - went < GONE;
    went = 0;
    if (chord && PLACES[event.key]) {
      event.preventDefault();
      location.hash = PLACES[event.key];
      return;
    }
    if (event.key === "g") {
      went = event.timeStamp;
      return;
    }
    const found = views.find((keys) => keys[event.key]);
    if (!found) return;
    if (event.key === "Enter" && event.target.closest("a, button, summary, label")) return; // theirs
    event.preventDefault();
    found[event.key](event);
  };
  document.addEventListener("keydown", onKey);
  return () => document.removeEventListener("keydown", onKey);
}

// What the help lists.
export const KEYS = [
  ["Anywhere", [
    ["/", "search entities"], ["g e", "entities"], ["g r", "review"], ["g v", "events"], ["g h", "honesty"],
    ["?", "this help"], ["Esc", "close, or leave a field"],
  ]],
  ["Entities", [["j  k  or  ↓  ↑", "down, up"], ["Enter", "open"]]],
  ["An entity", [["←  →", "an event earlier, later, on the slider"], ["j  k", "to a fragment, down, up"], ["space", "choose it"], ["s", "split off those chosen"], ["w", "why the two chosen are together"]]],
  ["Review", [
    ["y", "yes, the same"], ["n", "no, different"], ["d", "don’t know: do not ask again"],
    ["s", "skip for now"], ["u  or  b, z", "undo the last answer"], ["x", "blind: hide or show scores"], ["w", "why"],
  ]],
];
