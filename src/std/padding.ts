/**
 * Packing and unpacking of tokens between padded positions (sequence, position) and packed rows, where the tokens of all
 * sequences follow each other without padding: token `s` of sequence `b` is row `starts(b) + s`. A packed tensor may have
 * more rows than there are tokens, so that its extent need not be the exact count.
 */
import { maximum, op, sum, tensor } from 'heddle'

/** Packed rows to padded tokens; padded positions are zero. */
export const unpackRows = op('std.unpack_rows', {
  dims: ['t', 'b', 's', 'n'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('T', 't n'), starts: tensor('i32', 'b'), lengths: tensor('i32', 'b') },
  outputs: { y: tensor('T', 'b s n') },
  facts: { starts: { packed: 'starts', batch: 'b', rows: 't' }, lengths: { packed: 'lengths', batch: 'b', rows: 't' } },
  body:
    ({ x, starts, lengths }) =>
    (b, s, c) => ({ y: s < lengths(b) ? x(s < lengths(b) ? starts(b) + s : 0, c) : 0 }),
})

/** Padded tokens to packed rows; rows beyond the last token are zero. */
export const packRows = op('std.pack_rows', {
  dims: ['t', 'b', 's', 'n'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('T', 'b s n'), sequences: tensor('i32', 't'), positions: tensor('i32', 't') },
  outputs: { y: tensor('T', 't n') },
  facts: {
    sequences: { packed: 'sequences', batch: 'b', rows: 't', seq: 's' },
    positions: { packed: 'positions', batch: 'b', rows: 't', seq: 's' },
  },
  body:
    ({ x, sequences, positions }) =>
    (t, c) => ({ y: sequences(t) >= 0 ? x(maximum(sequences(t), 0), positions(t), c) : 0 }),
})

/**
 * Location of each packed row: its sequence, which is the number of sequences that end at or before it, and its position there;
 * -1 and 0 beyond the last token.
 */
export const locateRows = op('std.locate_rows', {
  dims: ['t', 'b'],
  inputs: { starts: tensor('i32', 'b'), lengths: tensor('i32', 'b') },
  outputs: { sequences: tensor('i32', 't'), positions: tensor('i32', 't') },
  facts: {
    starts: { packed: 'starts', batch: 'b', rows: 't' },
    lengths: { packed: 'lengths', batch: 'b', rows: 't' },
    b: { upTo: 1025 },
  },
  body:
    ({ starts, lengths }, { b }) =>
    (t) => {
      const ended = sum(b, (c) => (starts(c) + lengths(c) <= t ? 1 : 0))
      const inside = ended < b
      return { sequences: inside ? ended : -1, positions: inside ? t - starts(inside ? ended : 0) : 0 }
    },
})

/** Packed rows of integers to padded tokens; padded positions are zero. */
export const unpackIntegers = op('std.unpack_integers', {
  dims: ['t', 'b', 's', 'n'],
  inputs: { x: tensor('i32', 't n'), starts: tensor('i32', 'b'), lengths: tensor('i32', 'b') },
  outputs: { y: tensor('i32', 'b s n') },
  facts: { starts: { packed: 'starts', batch: 'b', rows: 't' }, lengths: { packed: 'lengths', batch: 'b', rows: 't' } },
  body:
    ({ x, starts, lengths }) =>
    (b, s, c) => ({ y: s < lengths(b) ? x(s < lengths(b) ? starts(b) + s : 0, c) : 0 }),
})

/** Padded tokens of integers, such as ids, to packed rows; rows beyond the last token are zero. */
export const packIntegers = op('std.pack_integers', {
  dims: ['t', 'b', 's', 'n'],
  inputs: { x: tensor('i32', 'b s n'), sequences: tensor('i32', 't'), positions: tensor('i32', 't') },
  outputs: { y: tensor('i32', 't n') },
  facts: {
    sequences: { packed: 'sequences', batch: 'b', rows: 't', seq: 's' },
    positions: { packed: 'positions', batch: 'b', rows: 't', seq: 's' },
  },
  body:
    ({ x, sequences, positions }) =>
    (t, c) => ({ y: sequences(t) >= 0 ? x(maximum(sequences(t), 0), positions(t), c) : 0 }),
})
