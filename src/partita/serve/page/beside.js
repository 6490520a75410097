// Two fragments side by side, what differs marked at the level of words and characters.

import { compared, folded } from "./differ.js";
import { html } from "./html.js";
import { Id, Values } from "./parts.js";
import { fragments, safe } from "./words.js";

export function Beside({ question, blind }) {
  const one = question.first_properties, other = question.second_properties;
  const names = [...new Set([...Object.keys(one), ...Object.keys(other)])];
  return html`<table class="beside">
    <thead><tr><th class="unseen" scope="col">Attribute</th>
      <th scope="col"><${Whose} id=${question.first} entity=${question.first_entity} n=${question.first_size} blind=${blind} /></th>
      <th scope="col"><${Whose} id=${question.second} entity=${question.second_entity} n=${question.second_size} blind=${blind} /></th></tr></thead>
    <tbody>${names.map((name) => html`<${Line} key=${name} name=${name} one=${(one[name] || []).map(safe)} other=${(other[name] || []).map(safe)} />`)}</tbody>
  </table>`;
}

// Blind, a fragment is not said to be of anything.
function Whose({ id, entity, n, blind }) {
  if (blind) return html`<span class="id">${safe(id)}</span>`;
  return html`<${Id} fragment=${id} /> <span class="dim of">of <${Id} entity=${entity} />${n ? html`, ${fragments(n)}` : ""}</span>`;
}

function Line({ name, one, other }) {
  const both = one.length > 0 && other.length > 0;
  const said = new Set(one.map(folded));
  const same = both && other.some((value) => said.has(folded(value)));
  return html`<tr class=${!both ? "one-sided" : same ? "alike" : "unlike"}>
    <th scope="row">${safe(name)}</th>
    <td><${Values} pieces=${compared(one, other)} /></td>
    <td><${Values} pieces=${compared(other, one)} /></td>
  </tr>`;
}
