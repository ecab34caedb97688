/** Recurrences that are not scans: each element depends on the state after the previous ones. */
import { abs, exp, fold, foldRow, int, layout, maximum, minimum, op, row, sqrt, tanh, tensor } from 'heddle'

const types = { T: ['f32', 'f16', 'bf16'] } as const

/**
 * A gated recurrent unit without matrices: `h(t) = z h(t - 1) + (1 - z) tanh(a h(t - 1) + b)`. The initial state is an input, the final one an
 * output.
 */
export const gatedRecurrence = op('gated_recurrence', {
  dims: ['m', 'n'],
  types,
  inputs: { a: tensor('T', 'm n'), b: tensor('T', 'm n'), z: tensor('T', 'm n'), h0: tensor('f32', 'm') },
  outputs: { h: tensor('T', 'm n'), last: tensor('f32', 'm') },
  facts: { a: { from: -1, to: 1 }, z: { from: 0, to: 1 } },
  body:
    ({ a, b, z, h0 }, { n }) =>
    (m) => {
      const step = ({ h }: { h: number }, t: number) => ({ h: z(m, t) * h + (1 - z(m, t)) * tanh(a(m, t) * h + b(m, t)) })
      const all = foldRow(n, { h: h0(m) }, step)
      return { h: row(n, (t) => all.h(t)), last: fold(n, { h: h0(m) }, step).h }
    },
})

/** A compensated sum (Neumaier): the rounding error of each addition is carried along. */
export const carefulSum = op('careful_sum', {
  dims: ['m', 'n'],
  types,
  inputs: { x: tensor('T', 'm n') },
  outputs: { y: tensor('f32', 'm') },
  body:
    ({ x }, { n }) =>
    (m) => {
      const { sum, lost } = fold(n, { sum: 0, lost: 0 }, (carried, c) => {
        const next = carried.sum + x(m, c)
        const isLarger = abs(carried.sum) >= abs(x(m, c))
        return { sum: next, lost: carried.lost + (isLarger ? carried.sum - next + x(m, c) : x(m, c) - next + carried.sum) }
      })
      return { y: sum + lost }
    },
})

/** A moving average that restarts on a flag, and the number of elements since the restart; `lengths` elements of each row count. */
export const movingAverage = op('moving_average', {
  dims: ['m', 'n'],
  types,
  inputs: { x: tensor('T', 'm n'), reset: tensor('i32', 'm n'), lengths: tensor('i32', 'm') },
  outputs: { y: tensor('T', 'm n'), seen: tensor('i32', 'm n'), total: tensor('i32', 'm') },
  attrs: { decay: 0.9 },
  facts: { reset: { values: [0, 0, 0, 1] }, lengths: { from: 0, to: 'n' } },
  body:
    ({ x, reset, lengths }, { n, decay }) =>
    (m) => {
      const average = foldRow(n, { mean: 0, count: int(0) }, ({ mean, count }, t) => {
        const isFirst = count === 0 || reset(m, t) !== 0
        return { mean: isFirst ? x(m, t) : decay * mean + (1 - decay) * x(m, t), count: isFirst ? 1 : count + 1 }
      })
      const resets = fold(lengths(m), { total: int(0) }, ({ total }, t) => ({ total: total + (reset(m, t) !== 0 ? 1 : 0) }))
      return { y: row(n, (t) => average.mean(t)), seen: row(n, (t) => average.count(t)), total: resets.total }
    },
})

/** A cumulative sum of silu(x), clamped between two bounds, times sqrt(1 + |silu(x)|). */
export const boundedWalk = op('bounded_walk', {
  dims: ['m', 'n'],
  types,
  inputs: { x: tensor('T', 'm n') },
  outputs: { y: tensor('T', 'm n') },
  body:
    ({ x }, { n }) =>
    (m) => {
      const v = row(n, (c) => x(m, c) / (1 + exp(-x(m, c))))
      const walk = foldRow(n, { at: 0 }, ({ at }, c) => ({ at: minimum(2, maximum(-2, at + v(c))) }))
      return { y: row(n, (c) => walk.at(c) * sqrt(1 + abs(v(c)))) }
    },
})

/** Time outside of channels in memory, time last by its index. */
export const byTime = layout('by_time', ['b', 'c', 't'], { offset: (at, of) => (at.b * of.t + at.t) * of.c + at.c })

/** `h[c] = a[t, c] h[c] + x[t, c]` per channel: the state of linear attention without matrices. The initial state is an input. */
export const channelRecurrence = op('channel_recurrence', {
  dims: ['b', 't', 'c'],
  types,
  inputs: { a: tensor('T', 'b t c'), x: tensor('T', 'b t c'), h0: tensor('f32', 'b c') },
  outputs: { h: tensor('T', 'b c t', byTime) },
  facts: { a: { from: 0, to: 1 } },
  body:
    ({ a, x, h0 }, { t }) =>
    (b, c) => {
      const all = foldRow(t, { h: h0(b, c) }, ({ h }, s) => ({ h: a(b, s, c) * h + x(b, s, c) }))
      return { h: row(t, (s) => all.h(s)) }
    },
})
