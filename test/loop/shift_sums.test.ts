/** Maxima with the sums of exponentials shifted by them, in one pass: their loops compute what the body does, and planted faults are found. */
import { describe, expect, it } from 'vitest'
import { evaluateKernel, type HostTensor } from '../../src/ir/evaluate.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { evaluateMapped } from '../../src/loop/evaluate_mapped.js'
import { type Accumulate, eachLoop, type Loop, mapLoops } from '../../src/loop/ir.js'
import { eachPass } from '../../src/loop/kernel_loops.js'
import { loopPasses } from '../../src/loop/pipeline.js'
import { mapKernel, schedulePasses } from '../../src/schedule/map.js'
import { scheduledLaunch } from '../../src/schedule/mapped.js'
import { inOnePass } from '../../src/schedule/rows/one_pass.js'
import { reordered } from '../../src/verify/tolerance.js'
import { read } from '../frontend/refuse.js'

const op = (rest: string): Kernel => {
  const [kernel] = read(`import { exp, max, min, op, row, sum, tensor } from 'heddle'
export const average = op('average', { dims: ['b', 'k'], inputs: { s: tensor('f32', 'b k')${rest.includes('p(b') ? ", p: tensor('f32', 'b k')" : ''} }, ${rest} })`).kernels
  return kernel ?? expect.fail('the spec is refused')
}
/** A softmax at a temperature, and the mean and mean square of other elements by its weights. */
const average =
  op(`outputs: { y: tensor('f32', 'b'), z: tensor('f32', 'b'), w: tensor('f32', 'b k') }, body: ({ s, p }, { k }) => (b) => {
  const scaled = row(k, (c) => s(b, c) * 0.25)
  const top = max(k, scaled)
  const e = row(k, (c) => exp((scaled(c) - top) * 2))
  const total = sum(k, (c) => e(c))
  const mean = sum(k, (c) => (e(c) * p(b, c)) / 3)
  return { y: mean / total, z: top + total, w: row(k, (c) => e(c) / total) } }`)

const mapped = (kernel: Kernel) => mapKernel({ kernel, types: {}, dims: {} })

/** The first output of the loops that differs from that of the body. */
function difference(
  kernel: Kernel,
  s: readonly number[],
  [b, k]: readonly [number, number],
  passes = loopPasses,
): string | undefined {
  const filled = (value: (i: number) => number): HostTensor => ({
    data: Float64Array.from({ length: b * k }, (_, i) => value(i)),
    shape: [b, k],
  })
  const tensors = { s: filled((i) => s[i % s.length] ?? 0), p: filled((i) => ((i * 7) % 11) - 4) }
  const dims = { b, k }
  const wanted = evaluateKernel(kernel, tensors, dims)
  const isNear = (got: number, want: number): boolean =>
    Object.is(got, want) || Math.abs(got - want) <= reordered * (1 + Math.abs(want))
  for (const { walk, outputs } of evaluateMapped(mapped(kernel), { tensors, dims }, passes))
    for (const [name, { data }] of Object.entries(wanted)) {
      const at = data.findIndex((value, i) => !isNear(outputs[name]?.data[i] ?? 0, value))
      if (at >= 0) return `${walk}: ${name}[${at}] is ${outputs[name]?.data[at]}, not ${data[at]}`
    }
  return undefined
}

const rising = Array.from({ length: 97 }, (_, i) => i / 4 - 9)
const mixed = Array.from({ length: 89 }, (_, i) => ((i * 37) % 53) / 3 - 7)
const [low, high] = [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY]

describe('loops compute what the body does', () => {
  it.each<[string, readonly number[]]>([
    ['of rising elements', rising],
    ['of falling elements', rising.toReversed()],
    ['of mixed elements', mixed],
    ['that begin with -infinity', [...Array.from({ length: 40 }, () => low), 3, low, 5]],
    ['of -infinity alone', [low]],
    ['with infinity', [1, low, high, 2, 7]],
    ['with NaN', [1, 2, low, Number.NaN, 3]],
    ['that are equal', [2]],
  ])('%s', (_, s) => {
    for (const sizes of [
      [1, 1],
      [3, 5],
      [2, 37],
      [3, 64],
      [1, 131],
      [2, 0],
    ] as const)
      expect(difference(average, s, sizes), `${sizes}`).toBeUndefined()
  })
})

describe('joined', () => {
  const walks = (kernel: Kernel): readonly string[] => {
    const found: string[] = []
    for (const each of [mapped(kernel), scheduledLaunch(mapped(kernel)), ...(mapped(kernel).split?.before ?? [])])
      eachPass(each, (walk, pass, loops) => {
        if (pass === 'shifting sums') eachLoop(loops, ({ kind }) => kind === 'rescale' && found.push(walk))
      })
    return found
  }

  it('are the walks that read rows again, and those of the grid', () => expect(walks(average)).toEqual(['reread', 'parts']))

  const one = "outputs: { y: tensor('f32', 'b') }"
  it.each([
    [
      'a maximum of other elements',
      `${one}, body: ({ s, p }, { k }) => (b) => { const t = max(k, (c) => p(b, c)); return { y: sum(k, (c) => exp(s(b, c) - t)) } }`,
    ],
    [
      'a minimum',
      `${one}, body: ({ s }, { k }) => (b) => { const t = min(k, (c) => s(b, c)); return { y: sum(k, (c) => exp(s(b, c) - t)) } }`,
    ],
    [
      'a negative factor',
      `${one}, body: ({ s }, { k }) => (b) => { const t = max(k, (c) => s(b, c)); return { y: sum(k, (c) => exp((s(b, c) - t) * -1)) } }`,
    ],
    [
      'a factor of each element',
      `${one}, body: ({ s, p }, { k }) => (b) => { const t = max(k, (c) => s(b, c)); return { y: sum(k, (c) => exp((s(b, c) - t) * p(b, c))) } }`,
    ],
    [
      'terms that are left out',
      `${one}, body: ({ s, p }, { k }) => (b) => { const t = max(k, (c) => s(b, c)); return { y: sum(k, (c) => p(b, c) > 0 ? exp(s(b, c) - t) : 0) } }`,
    ],
    [
      'squares',
      `${one}, body: ({ s }, { k }) => (b) => { const t = max(k, (c) => s(b, c)); return { y: sum(k, (c) => (s(b, c) - t) ** 2) } }`,
    ],
    [
      'two exponentials',
      `${one}, body: ({ s }, { k }) => (b) => { const t = max(k, (c) => s(b, c)); return { y: sum(k, (c) => exp(s(b, c) - t) * exp(s(b, c) - t)) } }`,
    ],
  ])('are not: %s', (_, rest) => expect(inOnePass(op(rest))).toBeUndefined())

  it('are two sums with one maximum, and the sum of a second maximum', () => {
    const two = op(`${one}, body: ({ s, p }, { k }) => (b) => {
      const t = max(k, (c) => s(b, c))
      const u = max(k, (c) => p(b, c))
      return { y: sum(k, (c) => exp(s(b, c) - t)) / sum(k, (c) => exp(p(b, c) - u)) } }`)
    const merges = (kernel: Kernel): readonly number[] =>
      (inOnePass(kernel)?.body ?? []).flatMap((st) => (st.kind === 'merge' ? [st.names.length] : []))
    expect([merges(average), merges(two)]).toEqual([[3], [2, 2]])
    for (const sizes of [
      [2, 37],
      [3, 5],
    ] as const)
      expect(difference(two, mixed, sizes)).toBeUndefined()
  })
})

describe('a planted fault is found', () => {
  const shifted = (f: (loop: Loop) => readonly Loop[]): typeof loopPasses => ({
    ...loopPasses,
    shiftSums: (...given) => mapLoops(loopPasses.shiftSums(...given), f),
  })
  const isPart = (loop: Loop, part: string): loop is Accumulate => loop.kind === 'accumulate' && loop.part === part

  it('by the verifier: sums that are not scaled, or scaled after their terms', () => {
    const run = (passes: typeof loopPasses) => () => difference(average, rising, [2, 37], passes)
    expect(run(shifted((loop) => (loop.kind === 'rescale' ? [] : [loop])))).toThrow('in the order maximum, sums, combine')
    expect(run(shifted((loop) => (loop.kind === 'rescale' ? [loop, loop] : [loop])))).toThrow(
      'in the order maximum, rescale, rescale, sums, combine',
    )
    expect(run(shifted((loop) => (isPart(loop, 'maximum') ? [] : [loop])))).toThrow('in the order rescale, sums, combine')
    expect(run(shifted((loop) => (isPart(loop, 'sums') ? [{ ...loop, part: 'maximum' }] : [loop])))).toThrow(
      'in the order maximum, rescale, maximum, combine',
    )
    expect(run(shifted((loop) => (loop.kind === 'combine' && loop.across === 'lane' ? [] : [loop])))).toThrow(
      '0 times across lanes',
    )
  })

  it('by the evaluation: a weight left out, a maximum of other elements', () => {
    const unweighted = shifted((loop) =>
      isPart(loop, 'sums') ? [{ ...loop, values: loop.values.map(() => loop.values[0] ?? expect.fail('no term')) }] : [loop],
    )
    expect(difference(average, rising, [2, 37], unweighted)).toMatch(/^(parts|reread|single): y\[0\]/)
  })

  const monoid = (change: (kernel: Kernel) => Kernel) => {
    const faulty = {
      ...schedulePasses,
      inOnePass: (kernel: Kernel) => {
        const made = inOnePass(kernel)
        return made && change(made)
      },
    }
    return mapKernel({ kernel: average, types: {}, dims: {} }, undefined, undefined, faulty)
  }
  const merged = (kernel: Kernel, change: 'scaled' | 'combine'): Kernel => ({
    ...kernel,
    body: kernel.body.map((st) => {
      if (st.kind !== 'merge' || st.monoid.shift === undefined) return st
      const { shift, left, combine } = st.monoid
      const own = left.slice(1).map((name) => ({ kind: 'local', type: 'f32', name }) as const)
      const sums = own.map((e) => e)
      return {
        ...st,
        monoid:
          change === 'scaled'
            ? { ...st.monoid, shift: { ...shift, scaled: sums } }
            : { ...st.monoid, combine: [...combine.slice(0, 1), ...sums] },
      }
    }),
  })

  it.each(['scaled', 'combine'] as const)('by the evaluation: %s sums of the first part alone', (change) => {
    const dims = { b: 2, k: 37 }
    const tensor = (value: (i: number) => number): HostTensor => ({
      data: Float64Array.from({ length: 74 }, (_, i) => value(i)),
      shape: [2, 37],
    })
    const tensors = { s: tensor((i) => rising[i % 37] ?? 0), p: tensor((i) => (i % 5) - 1) }
    const wanted = evaluateKernel(average, tensors, dims)
    const found = evaluateMapped(
      monoid((kernel) => merged(kernel, change)),
      { tensors, dims },
    )
    const joined = found.filter(({ walk }) => walk === 'reread' || walk === 'single' || walk === 'parts')
    expect(joined.length).toBeGreaterThan(0)
    for (const { outputs } of joined)
      expect(Math.abs((outputs.z?.data[0] ?? 0) - (wanted.z?.data[0] ?? 0))).toBeGreaterThan(reordered)
  })
})
