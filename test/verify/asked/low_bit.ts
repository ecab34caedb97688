/** Matmuls of few bits: unpacked in the prologue, scaled on load, or scaled afterwards. */
import { tensor, toNumbers } from '../../../src/runtime/api/index.js'
import { linear4, linearAdded, linearInt8 } from '../../projects/asked/specs/index.js'
import { linear8 } from '../../projects/types/specs/index.js'
import { at, claim, drawn, f32, indices, type Reference, shares, sumOf } from './claims.js'
import { normal } from './gates.js'

/** Dot products of rows with rows. */
const product = (x: readonly number[], w: readonly number[], [m, n, k]: readonly [number, number, number]): number[] =>
  indices(m * n).map((i) => sumOf(indices(k).map((c) => at(x, Math.floor(i / n) * k + c) * at(w, (i % n) * k + c))))

/** Frantar et al., GPTQ (2023), section 4: four bits with a scale by group, 8 for zero. */
const fourBits: Reference = async (device) => {
  const [m, n, k, g] = [5, 13, 96, 3]
  const [x, scales] = [drawn(m * k, 1), shares(n * g, 2)]
  const bytes = indices((n * k) / 2).map((i) => (i * 83 + 7) % 256)
  const weights = { packed: tensor('u8', [n, k / 2], bytes), scales: f32([n, g], scales) }
  const model = await device.load(linear4, { plan: 'unpacked-inside', weights })
  const { y } = await model.run({ x: f32([m, k], x) })
  model.close()
  const of = (zero: number): number[] => {
    const w = indices(n * k).map((i) => {
      const byte = at(bytes, Math.floor(i / 2))
      const scale = at(scales, Math.floor(i / k) * g + Math.floor((i % k) / (k / g)))
      return ((i % 2 === 0 ? byte % 16 : Math.floor(byte / 16)) - zero) * scale
    })
    return product(x, w, [m, n, k])
  }
  return [claim('y', y, of(8), of(7), { class: 'matmul', length: k, scale: 16 })]
}

/** Dettmers et al., LLM.int8() (2022), equation 4: sums of integers, which are exact, times a scale of each row and column. */
const eightBits: Reference = async (device) => {
  const [m, n, k] = [5, 13, 80]
  const x = indices(m * k).map((i) => ((i * i * 7 + i) % 255) - 127)
  const w = indices(n * k).map((i) => ((i * i * 5 + 3 * i) % 255) - 127)
  const [row, column] = [shares(m, 1), shares(n, 2)]
  const model = await device.load(linearInt8, {
    plan: 'steps-behind',
    weights: { w: tensor('i8', [n, k], w), column: f32([n], column) },
  })
  const { y } = await model.run({ x: tensor('i8', [m, k], x), row: f32([m], row) })
  model.close()
  const of = (turned: number): number[] =>
    product(x, w, [m, n, k]).map((sum, i) => sum * at(row, Math.floor(i / n)) * at(column, ((i % n) + turned) % n))
  return [claim('y', y, of(0), of(1), { class: 'elementwise', scale: 0 })]
}

/** Micikevicius et al., FP8 Formats for Deep Learning (2022): weights of 8-bit floats, scaled on load or after the sums. */
const floatsOfEightBits: Reference = async (device) => {
  const [m, n, k] = [5, 8, 64]
  const [x, scale] = [drawn(m * k, 2), [0.5, 0.25, 2, 1, 0.125, 0.0625, 1, 4]]
  const w = tensor('f8e4m3', [n, k], drawn(n * k, 3))
  const model = await device.load(linear8, { plan: 'in-kernels', weights: { w, scale: f32([n], scale) } })
  const { before, behind } = await model.run({ x: f32([m, k], x) })
  model.close()
  const sums = product(x, Array.from(toNumbers(w)), [m, n, k])
  const exact = sums.map((sum, i) => sum * at(scale, i % n))
  const bound = { class: 'matmul', length: k, scale: 16 } as const
  return [claim('before', before, exact, sums, bound), claim('behind', behind, exact, sums, bound)]
}

/** He et al. (2016) and Hendrycks and Gimpel, GELU (2016): a residual, and a layer's matmul with its bias, activated. */
const biasGelu: Reference = async (device) => {
  const [m, n, k] = [5, 13, 80]
  const [x, w, bias, before] = [drawn(m * k, 1), drawn(n * k, 2), drawn(n, 3), drawn(m * n, 4)]
  // Sums of a few units: gelu is not linear there, and the series of the reference has converged.
  const small = w.map((each) => Math.fround(each / 64))
  const model = await device.load(linearAdded, { plan: 'epilogue', weights: { w: f32([n, k], small), bias: f32([n], bias) } })
  const { y } = await model.run({ x: f32([m, k], x), before: f32([m, n], before) })
  model.close()
  const sums = product(x, small, [m, n, k]).map((sum, i) => sum + at(bias, i % n))
  const of = (activated: (value: number) => number): number[] => sums.map((sum, i) => at(before, i) + activated(sum))
  const wrong = of((value) => Math.max(value, 0))
  return [
    claim(
      'y',
      y,
      of((value) => value * normal(value)),
      wrong,
      { class: 'matmul', length: k, scale: 4 },
    ),
  ]
}

export const lowBit = { fourBits, eightBits, floatsOfEightBits, biasGelu }
