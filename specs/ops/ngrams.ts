/**
 * Texts without repeated n-grams: the words that would complete an n-gram that a row's text has already, and logits without them. A text is the row's
 * text so far, including its prompt or start token.
 */
import { fold, int, maximum, minimum, op, tensor } from 'heddle'

const last = { places: tensor('i32', 'r') } as const

/**
 * For each place of a text the word there, if the words before it are the last `size - 1` of the text, so that it would complete a repetition;
 * elsewhere -1. `places` is the place of a row's last word.
 */
export const repeatedWords = op('repeated_words', {
  dims: ['r', 's'],
  inputs: { text: tensor('i32', 'r s'), ...last },
  outputs: { y: tensor('i32', 'r s') },
  attrs: { size: int(3) },
  facts: { text: { from: 0, to: 2 }, places: { index: 's' }, s: { upTo: 65 } },
  body:
    ({ text, places }, { size, s }) =>
    (r, i) => {
      const from = i - size + 1
      const to = places(r) - size + 2
      // An n-gram longer than a text's capacity never repeats.
      const walked = fold(minimum(size - 1, s), { same: int(1) }, ({ same }, j) => ({
        same: text(r, maximum(from + j, 0)) === text(r, maximum(to + j, 0)) ? same : 0,
      }))
      return { y: from >= 0 && i <= places(r) && walked.same === 1 ? text(r, i) : -1 }
    },
})

/**
 * Flags of residues: 1 for each residue of a word of the row, modulo its `s` places, up to `places`. An id below 0 is no word. Most words of a
 * vocabulary have none of these residues, and need no comparison.
 */
export const residues = op('residues', {
  dims: ['r', 's'],
  inputs: { words: tensor('i32', 'r s'), ...last },
  outputs: { y: tensor('i32', 'r s') },
  facts: { words: { from: -1, to: 1000 }, places: { index: 's' }, s: { upTo: 65 } },
  body:
    ({ words, places }, { s }) =>
    (r, h) => {
      const found = fold(minimum(places(r) + 1, s), { has: int(0) }, ({ has }, i) => ({
        has: words(r, i) >= 0 && words(r, i) % s === h ? 1 : has,
      }))
      return { y: found.has }
    },
})

/**
 * Logits without words, at -Infinity: those at the places of a row up to `places`. An id below 0 is no word. `among` has the flags of their residues.
 */
export const banWords = op('ban_words', {
  dims: ['r', 'v', 's'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { logits: tensor('T', 'r v'), words: tensor('i32', 'r s'), ...last, among: tensor('i32', 'r s') },
  outputs: { y: tensor('T', 'r v') },
  facts: { words: { index: 'v' }, places: { index: 's' }, among: { from: 0, to: 1 }, s: { upTo: 65 } },
  body:
    ({ logits, words, places, among }, { s }) =>
    (r, c) => {
      const compared = minimum(among(r, c % s) === 1 ? places(r) + 1 : 0, s)
      const found = fold(compared, { has: int(0) }, ({ has }, i) => ({ has: words(r, i) === c ? 1 : has }))
      return { y: found.has === 1 ? -Infinity : logits(r, c) }
    },
})

/** Texts with the chosen word after the last one, if there is room. */
export const recordText = op('record_text', {
  dims: ['r', 's'],
  inputs: { text: tensor('i32', 'r s'), ...last, words: tensor('i32', 'r') },
  outputs: { y: tensor('i32', 'r s') },
  updates: { y: 'text' },
  facts: { places: { index: 's' } },
  body:
    ({ text, places, words }) =>
    (r, i) => ({ y: i === places(r) + 1 ? words(r) : text(r, i) }),
})

/** Texts of beams, which continue the texts of their parents. All beams of a sequence have one length. */
export const followText = op('follow_text', {
  dims: ['r', 's'],
  inputs: { text: tensor('i32', 'r s'), ...last, words: tensor('i32', 'r'), parents: tensor('i32', 'r') },
  outputs: { y: tensor('i32', 'r s') },
  facts: { places: { index: 's' }, parents: { index: 'r' } },
  body:
    ({ text, places, words, parents }) =>
    (r, i) => ({ y: i === places(r) + 1 ? words(r) : text(parents(r), i) }),
})
