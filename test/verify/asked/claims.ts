/**
 * Helpers of every family of requested kernels: random values, and a claim that a result has a reference's numbers and not those of a reference
 * with one change. References are plain JavaScript in double precision, written from published definitions and not from bodies.
 */
import { expect } from 'vitest'
import type { DType } from '../../../src/ir/dtype.js'
import { type AnyTensor, type Device, type Tensor, tensor, toNumbers } from '../../../src/runtime/api/index.js'
import { compare } from '../../../src/verify/compare.js'
import { type ToleranceQuery, tolerance } from '../../../src/verify/tolerance.js'

export interface Claim {
  readonly what: string
  readonly found: Tensor<DType>
  readonly exact: readonly number[]
  /** Result of a definition with one change: a comparison that accepts it is worthless. */
  readonly wrong: readonly number[]
  readonly bound: Omit<ToleranceQuery, 'dtype'>
}

/** Runs a kernel or a graph and returns claims about its results. */
export type Reference = (device: Device) => Promise<readonly Claim[]>

/** Holds a result against its reference, and finds that it is not the changed one. */
export function hold({ what, found, exact, wrong, bound }: Claim): void {
  const within = tolerance({ dtype: found.dtype, ...bound })
  const right = compare(toNumbers(found), exact, within)
  expect(right.passed, `${what}: ${right.summary}`).toBe(true)
  expect(compare(toNumbers(found), wrong, within).passed, `${what} passes for what it is not`).toBe(false)
}

export const claim = (
  what: string,
  found: AnyTensor,
  exact: readonly number[],
  wrong: readonly number[],
  bound: Claim['bound'],
): Claim => ({ what, found: found as Tensor<DType>, exact, wrong, bound })

/** Numbers of float32 between -2 and 2, of both signs, in no order. */
export const drawn = (count: number, seed: number): number[] =>
  Array.from({ length: count }, (_, i) => Math.fround(Math.sin(seed * 3.1 + i * 1.7 + i * i * 0.003) * 2))
/** Numbers of float32 between 0 and 1. */
export const shares = (count: number, seed: number): number[] => drawn(count, seed).map((each) => Math.abs(each) / 2)
/** Whole numbers from 0 up to `below`, in no order. */
export const places = (count: number, below: number): number[] =>
  Array.from({ length: count }, (_, i) => (Math.imul(i + 1, 0x9e3779b1) >>> 12) % below)

export const f32 = (shape: readonly number[], values: readonly number[]) => tensor('f32', [...shape], [...values])
export const i32 = (shape: readonly number[], values: readonly number[]) => tensor('i32', [...shape], [...values])

export const at = (values: ArrayLike<number>, i: number): number => values[i] ?? Number.NaN
export const sumOf = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0)
export const meanOf = (values: readonly number[]): number => sumOf(values) / values.length
export const squares = (values: readonly number[]): number => sumOf(values.map((each) => each ** 2))
/** Mean of squared deviations. */
export const varianceOf = (values: readonly number[]): number =>
  squares(values.map((each) => each - meanOf(values))) / values.length
export const largestOf = (values: readonly number[]): number => values.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY)
export const indices = (count: number): number[] => Array.from({ length: count }, (_, i) => i)
export const rowsOf = (values: readonly number[], n: number): number[][] =>
  indices(values.length / n).map((m) => values.slice(m * n, (m + 1) * n))
export const columnsOf = (values: readonly number[], n: number): number[][] =>
  indices(n).map((c) => rowsOf(values, n).map((row) => at(row, c)))
