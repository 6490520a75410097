// The one place that knows where Preact comes from. Everything on the page is made by `html`, so whatever comes from
// data is a text node: nothing here ever sets innerHTML.

export {
  html, render, useState, useEffect, useLayoutEffect, useRef, useMemo, useReducer,
} from "./vendor/htm-preact-standalone.mjs";
