/**
 * The sum of one segment of a row. Segments follow one another, and a list of boundaries holds the index of the first element of each, and the end of
 * the last: the row pointers of a CSR matrix, the offsets of an embedding bag.
 */
import { findingError } from '../../../errors.js'
import { call, i32 } from '../../build.js'
import { monoids } from '../../monoids.js'
import { type Row, type TeamFunction, teamConstruct } from './construct.js'

/** @throws finding `evaluate.bounds` for boundaries that descend or lie outside of the row */
function segmentSumOf(length: number, from: number, to: number, value: Row): number {
  if (!(from >= 0 && from <= to && to <= length))
    throw findingError('evaluate.bounds', `a segment from ${from} to ${to} is none of a row of ${length} elements`, {
      hint: "boundaries ascend from 0 to the length of the row: facts: { offsets: { from: 0, to: 'n', order: 'ascending' } }",
    })
  return monoids.sum.evaluate(to - from, value)
}

/**
 * The sum of segment `j` of a row: `segmentSum(n, j, (s) => offsets(s), (c) => x(m, c))` adds the elements from `offsets(j)` to `offsets(j + 1)`,
 * the latter excluded. Offsets ascend from 0 to `n`, so `k` segments have `k + 1` of them; equal ones bound an empty segment, whose sum is 0.
 * Descending ones and ones outside of the row are a fault. `(m, j) => ({ y: segmentSum(...) })` sums all segments, each by threads of its
 * own: as many as suit the usual length, which is `n` divided by the extent of `j`.
 */
export const segmentSum: TeamFunction<'segmentSum', (length: number, segment: number, offsets: Row, value: Row) => number> =
  teamConstruct(
    'segmentSum',
    (length: number, segment: number, offsets: Row, value: Row): number => {
      const from = offsets(segment)
      return segmentSumOf(length, from, offsets(segment + 1), (at) => value(from + at))
    },
    {
      words: 'a segment sum',
      takes: 4,
      example: 'segmentSum(n, j, (s) => offsets(s), (c) => x(m, c))',
      read(args) {
        const length = args.integer(0, 'length')
        const segment = args.integer(1, 'segment')
        const from = args.scalar('from', args.integerOf(2, call('add', segment, i32(0))))
        const to = args.scalar('to', args.integerOf(2, call('add', segment, i32(1))))
        const value = args.elements(3, length, 'numbers', from)
        const count = args.extentOf(segment)
        const usual = count && call('idiv', call('add', length, count), call('add', count, i32(1)))
        return {
          type: value.type,
          length,
          ...(usual && { usual }),
          index: args.index,
          scalars: { from, to },
          elements: { value },
        }
      },
      evaluate: (length, { from, to }, { value }) => segmentSumOf(length, from, to, value),
      mismatch: (type, { from, to }, { value }) =>
        from !== 'i32' || to !== 'i32'
          ? 'the boundaries of a segment are integers'
          : value !== type || type === 'bool'
            ? `a segment sum is ${type}, its elements are ${value}`
            : undefined,
      print: ({ length, index, scalars: { from, to }, elements: { value } }, text) =>
        `segmentSum(${text.loop({ index, length: call('sub', to, from) })}: ${text.expr(value)}) of ${text.operand(length)}`,
      error: { of: 'value', as: 'sum' },
      work: { walks: 1, instructions: 1 },
      widest: 'block',
      header: 'segments.cuh',
      source: ({ length, scalars: { from, to }, elements: { value } }, writer) =>
        `heddle::segment_sum(team, ${writer.expr(from)}, ${writer.expr(to)}, ${writer.expr(length)}, ${writer.element(value)})`,
    },
  )
