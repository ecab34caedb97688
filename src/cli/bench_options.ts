/** Shared options of the verbs that measure: shapes, and comparison with earlier times. */
import { InvalidArgumentError } from '@commander-js/extra-typings'
import type { Shape } from '../bench/result.js'
import { type Comparison, fewestSamples } from '../bench/target/baseline.js'
import { sizeText } from '../bench/target/text.js'
import { findingError, usageError } from '../errors.js'

/** Parses shapes such as `1x128,32x128`. */
export function shapesOf(text: string): Shape[] {
  return text.split(',').map((part) => {
    const match = /^([1-9]\d*)x([1-9]\d*)$/.exec(part)
    if (match === null) throw new InvalidArgumentError(`"${part}" is not a shape: expected batch x seq, such as 32x128.`)
    return { batch: Number(match[1]), seq: Number(match[2]) }
  })
}

/** Shapes as given by options: a list, or every batch with every length. */
export interface ShapeOptions {
  readonly shapes?: readonly Shape[] | undefined
  readonly batch?: readonly number[] | undefined
  readonly length?: readonly number[] | undefined
}

const [usualBatch, usualLength] = [1, 128]

/** Shapes given by options; one sequence of 128 by default. @throws usage `bench.shape` for both forms at once */
export function givenShapes({ shapes, batch, length }: ShapeOptions): readonly Shape[] {
  if (shapes !== undefined && (batch !== undefined || length !== undefined)) {
    throw usageError('bench.shape', 'shapes are given twice: by --shapes, and by --batch or --length', {
      hint: 'leave one of them out',
    })
  }
  if (shapes !== undefined) return shapes
  return (batch ?? [usualBatch]).flatMap((count) => (length ?? [usualLength]).map((seq) => ({ batch: count, seq })))
}

/** Smallest ratio of medians that counts as a difference. */
export const usualRatio = 1.05

/** Parses a ratio above 1 from the command line. */
export function ratioOf(text: string): number {
  const value = Number(text)
  if (!(value > 1)) throw new InvalidArgumentError('Expected a ratio above 1, such as 1.05.')
  return value
}

export interface BaselineOptions {
  readonly baseline?: string | undefined
  readonly repeats: number
  readonly ratio?: number | undefined
}

/** @throws usage `bench.repeats` for too few times to compare with a baseline */
export function expectSamples({ baseline, repeats }: BaselineOptions): void {
  if (baseline === undefined || repeats >= fewestSamples) return
  throw usageError('bench.repeats', `${repeats} times are too few to show a difference from ${baseline}`, {
    hint: `--repeats ${fewestSamples} or more`,
  })
}

/** @throws finding `bench.slower` naming what became slower */
export function expectNotSlower(comparisons: readonly Comparison[] | undefined, { baseline, ratio }: BaselineOptions): void {
  const slower = comparisons?.filter(({ verdict }) => verdict === 'slower') ?? []
  if (slower.length === 0) return
  const which = slower.map(({ plan, dims }) => `${plan} ${sizeText(dims)}`).join('; ')
  throw findingError('bench.slower', `slower than ${baseline}: ${which}`, {
    hint: `more than ${ratio ?? usualRatio} times the median, and not by chance`,
  })
}
