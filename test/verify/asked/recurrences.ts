/** Recurrences and scans: each element depends on those before it, in sequence. */

import { cumulativeMax, spring } from '../../projects/recipes/specs/inference.js'
import {
  boundedWalk,
  carefulSum,
  channelRecurrence,
  gatedRecurrence,
  movingAverage,
} from '../../projects/workshop/specs/folds.js'
import { recurrence, segmentSums } from '../../projects/workshop/specs/monoids.js'
import { at, claim, drawn, f32, i32, indices, type Reference, rowsOf, shares, sumOf } from './claims.js'

const [m, n] = [3, 131]
const shape = [m, n]
/** 1 where something starts again. */
const starting = indices(m * n).map((i) => ((i * i) % 7 === 4 ? 1 : 0))

/** State after each step, row by row. */
function walk<S>(first: (row: number) => S, step: (state: S, i: number) => S): S[] {
  return indices(m).flatMap((row) => {
    let state = first(row)
    return indices(n).map((c) => {
      state = step(state, row * n + c)
      return state
    })
  })
}

/** Gu and Dao, Mamba (2023), equation 2a with a diagonal of one element. */
const linear: Reference = async (device) => {
  const [a, b] = [shares(m * n, 1), drawn(m * n, 2)]
  const { h } = await device.call(recurrence, { a: f32(shape, a), b: f32(shape, b) })
  const exact = walk(
    () => 0,
    (h, i) => at(a, i) * h + at(b, i),
  )
  const wrong = walk(
    () => 0,
    (h, i) => at(a, i) * (h + at(b, i)),
  )
  return [claim('h', h, exact, wrong, { class: 'reduction', length: n, scale: 8 })]
}

const gated: Reference = async (device) => {
  const [a, b, z, h0] = [shares(m * n, 1), drawn(m * n, 2), shares(m * n, 3), drawn(m, 4)]
  const { h, last } = await device.call(gatedRecurrence, {
    ...{ a: f32(shape, a), b: f32(shape, b), z: f32(shape, z), h0: f32([m], h0) },
  })
  const states = (turned: boolean): number[] =>
    walk(
      (row) => at(h0, row),
      (h, i) => {
        const [keep, made] = [turned ? 1 - at(z, i) : at(z, i), Math.tanh(at(a, i) * h + at(b, i))]
        return keep * h + (1 - keep) * made
      },
    )
  const lasts = (all: number[]): number[] => rowsOf(all, n).map((each) => at(each, n - 1))
  const bound = { class: 'reduction', length: n, scale: 2 } as const
  return [
    claim('h', h, states(false), states(true), bound),
    claim('last', last, lasts(states(false)), lasts(states(true)), bound),
  ]
}

/** Recurrences of contiguous channels with time as outer axis; results are stored with time as last axis. */
const channels: Reference = async (device) => {
  const [b, t, c] = [2, 19, 7]
  const [a, x, h0] = [shares(b * t * c, 1), drawn(b * t * c, 2), drawn(b * c, 3)]
  const { h } = await device.call(channelRecurrence, { a: f32([b, t, c], a), x: f32([b, t, c], x), h0: f32([b, c], h0) })
  const states = (first: readonly number[]): number[] =>
    indices(b * c).flatMap((row) => {
      let state = at(first, row)
      return indices(t).map((s) => {
        const i = (Math.floor(row / c) * t + s) * c + (row % c)
        state = at(a, i) * state + at(x, i)
        return state
      })
    })
  return [claim('h', h, states(h0), states(h0.map(() => 0)), { class: 'reduction', length: t, scale: 8 })]
}

/** An exponential moving average that starts again; the first element after a start is the average. */
const average: Reference = async (device) => {
  const [x, reset, lengths] = [drawn(m * n, 1), starting, [n, 0, 17]]
  const { y, seen, total } = await device.call(movingAverage, {
    ...{ x: f32(shape, x), reset: i32(shape, reset), lengths: i32([m], lengths) },
  })
  const states = (decay: number) =>
    walk(
      () => ({ mean: 0, count: 0 }),
      ({ mean, count }, i) =>
        count === 0 || at(reset, i) === 1
          ? { mean: at(x, i), count: 1 }
          : { mean: decay * mean + (1 - decay) * at(x, i), count: count + 1 },
    )
  const means = (decay: number): number[] => states(decay).map(({ mean }) => mean)
  const counts = states(0.9).map(({ count }) => count)
  const totals = rowsOf(reset, n).map((row, i) => sumOf(row.slice(0, at(lengths, i))))
  return [
    claim('y', y, means(0.9), means(0.8), { class: 'reduction', length: n, scale: 2 }),
    claim(
      'seen',
      seen,
      counts,
      walk(
        () => 0,
        (count) => count + 1,
      ),
      { class: 'exact' },
    ),
    claim('total', total, totals, rowsOf(reset, n).map(sumOf), { class: 'exact' }),
  ]
}

/** Terms of 2^24 that cancel, whose small neighbours a plain sum of float32 loses (Neumaier, 1974): right to one rounding. */
const careful: Reference = async (device) => {
  const x = indices(m * n).map((i) => (i % n === n - 1 ? 0.25 : ([2 ** 24, 0.75, -(2 ** 24), 0.5, -0.125][(i % n) % 5] ?? 0)))
  const { y } = await device.call(carefulSum, { x: f32(shape, x) })
  const plain = rowsOf(x, n).map((row) => row.reduce((a, b) => Math.fround(a + b), 0))
  return [claim('y', y, rowsOf(x, n).map(sumOf), plain, { class: 'elementwise' })]
}

/** A cumulative sum of silu(x), clamped between two bounds, times sqrt(1 + |silu(x)|). */
const bounded: Reference = async (device) => {
  const x = drawn(m * n, 5)
  const { y } = await device.call(boundedWalk, { x: f32(shape, x) })
  const silu = x.map((each) => each / (1 + Math.exp(-each)))
  const between = (most: number): number[] =>
    walk(
      () => 0,
      (sum, i) => Math.min(most, Math.max(-most, sum + at(silu, i))),
    ).map((sum, i) => sum * Math.sqrt(1 + Math.abs(at(silu, i))))
  return [claim('y', y, between(2), between(3), { class: 'reduction', length: n, scale: 4 })]
}

/** Semi-implicit Euler of x'' = force - k x - d x': the position moves by the new speed. */
const damped: Reference = async (device) => {
  const force = drawn(m * n, 1)
  const { place, energy } = await device.call(spring, { force: f32(shape, force) })
  const states = (damping: number) =>
    walk(
      () => ({ at: 0, speed: 0 }),
      ({ at: where, speed }, i) => {
        const next = speed + at(force, i) - 0.3 * where - damping * speed
        return { at: where + next, speed: next }
      },
    )
  const energies = (damping: number): number[] =>
    rowsOf(
      states(damping).map(({ speed }) => speed ** 2),
      n,
    ).map(sumOf)
  const found = (damping: number): number[] => states(damping).map((state) => state.at)
  return [
    claim('place', place, found(0.1), found(0.11), { class: 'reduction', length: n, scale: 10 }),
    claim('energy', energy, energies(0.1), energies(0.11), { class: 'reduction', length: n, scale: 100 }),
  ]
}

const tops: Reference = async (device) => {
  const x = drawn(m * n, 1)
  const { y } = await device.call(cumulativeMax, { x: f32(shape, x) })
  const exact = rowsOf(x, n).flatMap((row) => row.map((_, c) => Math.max(...row.slice(0, c + 1))))
  return [
    claim(
      'y',
      y,
      exact,
      rowsOf(x, n).flatMap((row) => row.map((_, c) => Math.max(...row.slice(0, c)))),
      { class: 'exact' },
    ),
  ]
}

const segments: Reference = async (device) => {
  const [x, starts] = [drawn(m * n, 1), starting]
  const { y } = await device.call(segmentSums, { x: f32(shape, x), segment: i32(shape, starts) })
  const exact = walk(
    () => 0,
    (sum, i) => (at(starts, i) === 1 ? 0 : sum) + at(x, i),
  )
  const wrong = walk(
    () => 0,
    (sum, i) => sum + at(x, i),
  )
  return [claim('y', y, exact, wrong, { class: 'reduction', length: n, scale: 10 })]
}

export const recurrences = { linear, gated, channels, average, careful, bounded, damped, tops, segments }
