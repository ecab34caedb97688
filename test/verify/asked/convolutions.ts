/** Convolutions along time and pools of images. */
import { causalConvolution, maxPool } from '../../projects/asked/specs/index.js'
import { dilated } from '../../projects/recipes/specs/training.js'
import { at, claim, drawn, f32, indices, type Reference, sumOf } from './claims.js'

/** Each channel by its own taps, the first for the present. */
const causal: Reference = async (device) => {
  const [b, t, c, k] = [2, 9, 5, 4]
  const [x, weight] = [drawn(b * t * c, 1), drawn(k * c, 2)]
  const { y } = await device.call(causalConvolution, { x: f32([b, t, c], x), weight: f32([k, c], weight) })
  const sums = (tap: (j: number) => number): number[] =>
    x.map((_, i) => {
      const [time, channel] = [Math.floor(i / c) % t, i % c]
      return sumOf(indices(Math.min(k, time + 1)).map((j) => at(x, i - j * c) * at(weight, tap(j) * c + channel)))
    })
  return [
    claim(
      'y',
      y,
      sums((j) => j),
      sums((j) => k - 1 - j),
      { class: 'reduction', length: k, scale: 4 },
    ),
  ]
}

/** Van den Oord et al., WaveNet (2016): the last tap for the present, the others `step` apart. */
const apart: Reference = async (device) => {
  const [b, c, s, k, step] = [2, 3, 23, 4, 3]
  const [x, w] = [drawn(b * c * s, 1), drawn(c * k, 2)]
  const { y } = await device.call(dilated, { x: f32([b, c, s], x), w: f32([c, k], w) }, { attrs: { step } })
  const sums = (by: number): number[] =>
    x.map((_, i) => {
      const [time, channel] = [i % s, Math.floor(i / s) % c]
      const past = indices(k).filter((back) => back * by <= time)
      return sumOf(past.map((back) => at(x, i - back * by) * at(w, channel * k + k - 1 - back)))
    })
  return [claim('y', y, sums(step), sums(2), { class: 'reduction', length: k, scale: 4 })]
}

const pool: Reference = async (device) => {
  const [b, c, h, w] = [2, 3, 6, 10]
  const x = drawn(b * c * h * w, 1)
  const { y } = await device.call(maxPool, { x: f32([b, c, h, w], x) }, { dims: { p: h / 2, q: w / 2 } })
  const windows = (of: (...values: number[]) => number): number[] =>
    indices(x.length / 4).map((i) => {
      const [q, p, image] = [i % (w / 2), Math.floor(i / (w / 2)) % (h / 2), Math.floor(i / ((w / 2) * (h / 2)))]
      const corner = (image * h + 2 * p) * w + 2 * q
      return of(at(x, corner), at(x, corner + 1), at(x, corner + w), at(x, corner + w + 1))
    })
  return [
    claim(
      'y',
      y,
      windows(Math.max),
      windows((a, b) => Math.max(a, b)),
      { class: 'exact' },
    ),
  ]
}

export const convolutions = { causal, apart, pool }
