// What differs between two values, at the level of words, and of characters within words that are alike.

const WORDS = /[\p{L}\p{N}]+|\s+|[^\p{L}\p{N}\s]/gu;
const ALIKE = 0.5; // of two words' characters in common, from which they are a spelling of one another
const LONGEST = 400; // tokens or characters that are aligned; beyond that all of it is marked

// As values are compared: whatever the case and accents.
export const folded = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
const isWord = (token) => /[\p{L}\p{N}]/u.test(token);

// Of two sequences which places of each are common to both, in order (a longest common subsequence).
function common(a, b) {
  if (a.length > LONGEST || b.length > LONGEST) return [new Set(), new Set(), 0];
  const table = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      table[i][j] = a[i] === b[j] ? table[i + 1][j + 1] + 1 : Math.max(table[i + 1][j], table[i][j + 1]);
    }
  }
  const ofA = new Set(), ofB = new Set();
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    if (a[i] === b[j]) { ofA.add(i++); ofB.add(j++); }
    else if (table[i + 1][j] >= table[i][j + 1]) i++;
    else j++;
  }
  return [ofA, ofB, table[0][0]];
}

export function likeness(a, b) {
  const [x, y] = [[...folded(a)], [...folded(b)]];
  return x.length + y.length ? (2 * common(x, y)[2]) / (x.length + y.length) : 1;
}

// `text` as pieces [text, differs]: what of it is not in `other`.
export function marked(text, other) {
  if (folded(text) === folded(other)) return [[text, false]];
  const mine = text.match(WORDS) || [], theirs = (other.match(WORDS) || []);
  const [same, sameThere] = common(mine.map(folded), theirs.map(folded));
  const left = theirs.filter((token, k) => !sameThere.has(k) && isWord(token));
  const pieces = [];
  mine.forEach((token, k) => {
    if (same.has(k) || !isWord(token)) pieces.push([token, false]);
    else pieces.push(...within(token, left));
  });
  return joined(pieces);
}

// A word that the other value lacks: only the characters that differ, if a word there is much like it.
function within(word, others) {
  let best = null, most = ALIKE;
  for (const other of others) {
    const alike = likeness(word, other);
    if (alike > most) [best, most] = [other, alike];
  }
  if (best === null) return [[word, true]];
  const letters = [...word];
  const [same] = common(letters.map(folded), [...best].map(folded));
  if (same.size === letters.length) return [[word, true]]; // the other word has more; mark what stands for it
  return letters.map((letter, k) => [letter, !same.has(k)]);
}

// Neighbours made one; a space between what differs differs with it.
function joined(pieces) {
  const found = [];
  pieces.forEach(([text, itself], k) => {
    const differs = itself || (/^\s+$/.test(text) && pieces[k - 1]?.[1] && pieces[k + 1]?.[1]) || false;
    const last = found[found.length - 1];
    if (last && last[1] === differs) last[0] += text;
    else found.push([text, differs]);
  });
  return found;
}

// Of some values each beside the one of the others that is most like it; whole if there is none to compare with.
export function compared(values, others) {
  return values.map((value) => {
    if (!others.length) return [[value, false]];
    const nearest = others.reduce((best, other) => (likeness(value, other) > likeness(value, best) ? other : best));
    return marked(value, nearest);
  });
}
