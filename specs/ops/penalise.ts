/** Repetition penalty: words that a row has seen become less likely. */
import { op, tensor } from 'heddle'

/** Divides the positive logits of seen words by the row's penalty, and multiplies the others by it. */
export const penalise = op('penalise', {
  dims: ['r', 'v'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { logits: tensor('T', 'r v'), seen: tensor('i32', 'r v'), penalty: tensor('f32', 'r') },
  outputs: { y: tensor('T', 'r v') },
  facts: { seen: { from: 0, to: 1 }, penalty: { values: [1, 2, 0.5] } },
  body:
    ({ logits, seen, penalty }) =>
    (r, c) => {
      const x = logits(r, c)
      const less = x > 0 ? x / penalty(r) : x * penalty(r)
      return { y: seen(r, c) === 0 ? x : less }
    },
})

/** The flags of seen words, with each row's new word set. */
export const markSeen = op('mark_seen', {
  dims: ['r', 'v'],
  inputs: { seen: tensor('i32', 'r v'), words: tensor('i32', 'r') },
  outputs: { y: tensor('i32', 'r v') },
  facts: { seen: { from: 0, to: 1 }, words: { index: 'v' } },
  body:
    ({ seen, words }) =>
    (r, c) => ({ y: words(r) === c ? 1 : seen(r, c) }),
})

/** The flags of beams, which continue with the words of their parents. */
export const followSeen = op('follow_seen', {
  dims: ['r', 'v'],
  inputs: { seen: tensor('i32', 'r v'), words: tensor('i32', 'r'), parents: tensor('i32', 'r') },
  outputs: { y: tensor('i32', 'r v') },
  facts: { seen: { from: 0, to: 1 }, words: { index: 'v' }, parents: { index: 'r' } },
  body:
    ({ seen, words, parents }) =>
    (r, c) => ({ y: words(r) === c ? 1 : seen(parents(r), c) }),
})
