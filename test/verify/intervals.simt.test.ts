/**
 * Ops that replace an interval of an axis, in a separate project: threads visit only that interval, and the results equal those of plain JavaScript
 * for every position: before the axis, after it, empty, or beyond 32-bit counts.
 */
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Device, openDevice, tensor, toNumbers } from '../../src/runtime/api/index.js'
import {
  along,
  apart,
  between,
  exchanged,
  moved,
  outermost,
  owned,
  scaled,
  thinned,
  together,
  unlimited,
} from '../projects/intervals/specs/intervals.js'
import { heddleIn, ownProject } from './own_project.js'

let root: string
let device: Device

beforeAll(async () => {
  root = await ownProject('intervals')
  expect((await heddleIn(root, 'gen')).code).toBe(0)
  device = await openDevice('simt', { root })
})
afterAll(async () => {
  await device[Symbol.asyncDispose]()
  await rm(root, { recursive: true, force: true })
})

const textOf = (name: string): Promise<string> => readFile(join(root, 'generated', 'cuda', `${name}.cu`), 'utf8')

it('visits an interval for every form of the condition', async () => {
  const found = ['between', 'exchanged', 'unlimited', 'owned', 'outermost', 'together', 'apart', 'along', 'turned', 'backward']
  const texts = await Promise.all(found.map(textOf))
  const narrowed = found.filter((_, i) => texts[i]?.includes('heddle::Interval'))
  expect(narrowed).toEqual(['between', 'exchanged', 'unlimited', 'owned', 'outermost', 'together', 'backward'])
  // The condition of the interval is not evaluated again.
  expect(texts[0]).not.toMatch(/if \(.*\) heddle::store/)
  expect(texts[6]).toMatch(/if \(.*\) heddle::store/)
})

const [r, u, n] = [9, 7, 5]
const [firsts, lasts] = [
  [0, -3, 2, 6, 9, 3, 3, 0, 5],
  [7, 3, 5, 9, 9, 3, 2, 1, -1],
]
const floats = (...shape: number[]) =>
  tensor(
    'f32',
    shape,
    Array.from({ length: shape.reduce((a, b) => a * b) }, (_, i) => i + 1),
  )
const ints = (values: readonly number[]) => tensor('i32', [values.length], values)
/** Per element: -row - 100 if it is replaced, otherwise the old value. */
const replaced = (
  rows: number,
  places: number,
  width: number,
  inside: (r: number, u: number, n: number) => boolean,
  value = (at: number) => at,
) =>
  Array.from({ length: rows * places * width }, (_, i) => {
    const [row, place, c] = [Math.floor(i / (places * width)), Math.floor(i / width) % places, i % width]
    return inside(row, place, c) ? value(row * width + c + 1) : i + 1
  })
const [cache, x, first, last] = [() => floats(r, u, n), floats(r, n), ints(firsts), ints(lasts)]
const isBetween = (row: number, place: number) => place >= (firsts[row] ?? 0) && place < (lasts[row] ?? 0)

it('replaces the elements between two places', async () => {
  const expected = replaced(r, u, n, isBetween)
  for (const op of [between, exchanged]) {
    const { y } = await device.call(op, { cache: cache(), x, first, last })
    expect(Array.from(toNumbers(y))).toEqual(expected)
  }
  expect(expected).not.toEqual(replaced(r, u, n, (row, place) => isBetween(row, place - 1)))
})

it('supports sums of places beyond 32 bits', async () => {
  const lengths = [2147483646, 0, 1, 2147483646, 5, 2147483646, 2, 3, 2147483640]
  const from = firsts.map((each) => Math.max(each, 0))
  const { y } = await device.call(unlimited, { cache: cache(), x, first: ints(from), lengths: ints(lengths) })
  const isInside = (row: number, place: number) => place >= (from[row] ?? 0) && place - (from[row] ?? 0) < (lengths[row] ?? 0)
  expect(Array.from(toNumbers(y))).toEqual(replaced(r, u, n, isInside, (value) => value + 1))
})

it('evaluates no bound if an earlier part of the condition is false', async () => {
  const [owners, starts] = [
    [0, -1, 2, 1, -1, 0, 2, 2, 1],
    [0, 6, 3],
  ]
  const { y } = await device.call(owned, { cache: cache(), x, owners: ints(owners), first: ints(starts) })
  const startOf = (row: number) => starts[owners[row] ?? -1] ?? Number.NaN
  expect(Array.from(toNumbers(y))).toEqual(replaced(r, u, n, (row, place) => place >= startOf(row) && place <= startOf(row) + 2))
})

it('visits the outermost axis by values of inner ones', async () => {
  const keep = [0, 1, 0, 1, 0, 1, 0, 1, 0]
  const { y } = await device.call(outermost, { cache: floats(u, r, n), x, last, keep: ints(keep) }, { attrs: { from: 2 } })
  const exact = Array.from({ length: u * r * n }, (_, i) => {
    const [place, row, c] = [Math.floor(i / (r * n)), Math.floor(i / n) % r, i % n]
    const isInside = place > 2 && place < (lasts[row] ?? 0) && (c < 3 || keep[row] === 0)
    return isInside ? row * n + c + 1 : i + 1
  })
  expect(Array.from(toNumbers(y))).toEqual(exact)
})

it('replaces two caches in one interval or in two, and along neighbouring threads', async () => {
  const [keys, values] = [cache(), cache()]
  const both = await device.call(together, { keys, values, x, first })
  const isInside = (row: number, place: number) => place >= (firsts[row] ?? 0) && place < (firsts[row] ?? 0) + 2
  expect(Array.from(toNumbers(both.keysAfter))).toEqual(replaced(r, u, n, isInside))
  expect(Array.from(toNumbers(both.valuesAfter))).toEqual(replaced(r, u, n, isInside, (value) => -value))
  const two = await device.call(apart, { keys: cache(), values: cache(), x, first })
  const isBehind = (row: number, place: number) => place >= (firsts[row] ?? 0)
  expect(Array.from(toNumbers(two.keysAfter))).toEqual(replaced(r, u, n, isBehind))
  expect(Array.from(toNumbers(two.valuesAfter))).toEqual(
    replaced(
      r,
      u,
      n,
      (row, place) => !isBehind(row, place),
      (value) => -value,
    ),
  )
  const { y } = await device.call(along, { cache: floats(r, u), x: floats(r), first, last })
  expect(Array.from(toNumbers(y))).toEqual(replaced(r, u, 1, isBetween))
})

it('has as many slots as its input has places', async () => {
  const slots = await Promise.all(['between', 'owned', 'together', 'moved', 'thinned', 'backward'].map(textOf))
  const said = slots.map((text) => /slots_of\((.*)\);/.exec(text)?.[1])
  expect(said).toEqual(['{u}', '{u, static_cast<int64_t>(2) + 1}', '{u, 2}', '{u, t}', '{u}', '{slots_extent, place}'])
  const t = 4
  const lengths = [4, 0, 3, 1, 4, 2, 4, 1, 2]
  const from = firsts.map((each) => Math.max(each, 0))
  const { y } = await device.call(moved, { cache: cache(), x: floats(t, n), first: ints(from), lengths: ints(lengths) })
  const sourceOf = (row: number, place: number) => place - (from[row] ?? 0)
  const isInside = (row: number, place: number) => sourceOf(row, place) >= 0 && sourceOf(row, place) < (lengths[row] ?? 0)
  expect(Array.from(toNumbers(y))).toEqual(placed(isInside, sourceOf))
})

it('does not count places by values that only some of them read', async () => {
  // Only the last position is replaced.
  const keep = [0, 0, 0, 0, 0, 0, 1]
  const first = ints(Array.from({ length: r }, () => 0))
  const { y } = await device.call(thinned, { cache: cache(), x: floats(u, n), first, keep: ints(keep) })
  expect(Array.from(toNumbers(y))).toEqual(
    placed(
      (_, place) => place === u - 1,
      (_, place) => place,
    ),
  )
})

/** Per element: the value at the source's position if it is replaced, otherwise the old value. */
const placed = (inside: (row: number, place: number) => boolean, source: (row: number, place: number) => number) =>
  Array.from({ length: r * u * n }, (_, i) => {
    const [row, place, c] = [Math.floor(i / (u * n)), Math.floor(i / n) % u, i % n]
    return inside(row, place) ? source(row, place) * n + c + 1 : i + 1
  })

it.each([5, 40, 3000])('replaces rows of %i elements that a team computes', async (width) => {
  expect(await textOf('scaled')).toContain('heddle::Interval')
  const given = { cache: floats(r, u, width), tops: floats(r, u), x: floats(u, width), first, last }
  const { y, topsAfter } = await device.call(scaled, given)
  const exact = Array.from({ length: r * u * width }, (_, i) => {
    const [row, place, c] = [Math.floor(i / (u * width)), Math.floor(i / width) % u, i % width]
    return isBetween(row, place) ? c + 1 - width : i + 1
  })
  expect(Array.from(toNumbers(y))).toEqual(exact)
  const tops = Array.from({ length: r * u }, (_, i) => (isBetween(Math.floor(i / u), i % u) ? ((i % u) + 1) * width : i + 1))
  expect(Array.from(toNumbers(topsAfter))).toEqual(tops)
})

it('passes `heddle check`', async () => {
  const { code, out } = await heddleIn(root, 'check', '--device', 'simt')
  expect(out).toMatch(/ 0 failed/)
  expect(code).toBe(0)
})
