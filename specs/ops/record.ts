/** History of each step's results: history(s, r) is the result of row r in step s. The integers of step `step` join those of earlier steps. */
import { op, tensor } from 'heddle'

export const record = op('record', {
  dims: ['s', 'r', 'o'],
  inputs: { history: tensor('i32', 's r'), x: tensor('i32', 'r'), step: tensor('i32', 'o') },
  outputs: { y: tensor('i32', 's r') },
  updates: { y: 'history' },
  facts: { step: { from: -1, to: 's' }, o: 1, r: { upTo: 257 } },
  body:
    ({ history, x, step }) =>
    (s, r) => ({ y: s === step(0) ? x(r) : history(s, r) }),
})

/** History of words and of the rows they continue. */
export const recordBeams = op('record_beams', {
  dims: ['s', 'r', 'o'],
  inputs: {
    words: tensor('i32', 's r'),
    parents: tensor('i32', 's r'),
    word: tensor('i32', 'r'),
    parent: tensor('i32', 'r'),
    step: tensor('i32', 'o'),
  },
  outputs: { wordsAfter: tensor('i32', 's r'), parentsAfter: tensor('i32', 's r') },
  updates: { wordsAfter: 'words', parentsAfter: 'parents' },
  facts: { step: { from: -1, to: 's' }, o: 1, r: { upTo: 257 } },
  body:
    ({ words, parents, word, parent, step }) =>
    (s, r) => ({
      wordsAfter: s === step(0) ? word(r) : words(s, r),
      parentsAfter: s === step(0) ? parent(r) : parents(s, r),
    }),
})

/** History of floats. */
export const recordNumbers = op('record_numbers', {
  dims: ['s', 'r', 'o'],
  inputs: { history: tensor('f32', 's r'), x: tensor('f32', 'r'), step: tensor('i32', 'o') },
  outputs: { y: tensor('f32', 's r') },
  updates: { y: 'history' },
  facts: { step: { from: -1, to: 's' }, o: 1, r: { upTo: 257 } },
  body:
    ({ history, x, step }) =>
    (s, r) => ({ y: s === step(0) ? x(r) : history(s, r) }),
})
