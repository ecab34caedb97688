/**
 * RoPE tables of cosines and sines, computed on the host in float32 as in HF. Every operation rounds where HF's does: at position 100,000,
 * a difference in the last bit of an inverse frequency changes the second decimal of the angle.
 */

import type { FloatType } from '../../checkpoint/convert.js'
import { decode, encode } from '../../runtime/buffer.js'
import { type RotaryConfig, rotaryDims } from './rotary_config.js'

export interface RotaryTable {
  /** Row-major `[positions, half]`, multiplied by the attention factor if the type has one. */
  readonly cos: Float32Array
  readonly sin: Float32Array
  /** Number of rotated channel pairs: channel k pairs with channel `half + k`; channels from `2 half` on are not rotated. */
  readonly half: number
}

const { fround } = Math

/**
 * Cosines and sines of the positions 0 to `positions - 1`.
 * @param length of the longest text that will be rotated by the table, in tokens. Longrope has other angles for texts beyond the original
 * positions, so one cache must not mix the two
 * @param frequencyType type that the inverse frequencies are rounded to, as in a model that was cast as a whole
 */
export function rotaryTable(
  rotary: RotaryConfig,
  headDim: number,
  positions: number,
  length = positions,
  frequencyType: FloatType = 'f32',
): RotaryTable {
  const exact = inverseFrequencies(rotary, headDim, length)
  // HF recomputes the frequencies of longer texts, in float32 regardless of the model's type.
  const isRecomputed = rotary.type === 'longrope' && length > rotary.originalPositions
  const frequencies = isRecomputed ? exact : decode(frequencyType, encode(frequencyType, exact))
  const scale = fround('attentionFactor' in rotary ? rotary.attentionFactor : 1)
  const half = frequencies.length
  const cos = new Float32Array(positions * half)
  const sin = new Float32Array(positions * half)
  for (let position = 0, at = 0; position < positions; position++) {
    for (const frequency of frequencies) {
      const angle = fround(position * frequency)
      cos[at] = fround(Math.cos(angle)) * scale
      sin[at] = fround(Math.sin(angle)) * scale
      at++
    }
  }
  return { cos, sin, half }
}

/** Radians per position of each channel pair, in float32, for texts of at most `length` tokens. */
export function inverseFrequencies(rotary: RotaryConfig, headDim: number, length: number): Float32Array {
  const dims = rotaryDims(rotary, headDim)
  const theta = fround(rotary.theta)
  const powers = Float32Array.from({ length: dims / 2 }, (_, k) => theta ** fround((2 * k) / dims))
  switch (rotary.type) {
    case 'default':
    case 'dynamic':
      return powers.map((power) => 1 / power)
    case 'linear':
      return powers.map((power) => fround(1 / power) / fround(rotary.factor))
    case 'llama3':
      return powers.map((power) => llama3Frequency(fround(1 / power), rotary))
    case 'yarn':
      return yarnFrequencies(powers, dims, rotary)
    case 'longrope': {
      const factors = length > rotary.originalPositions ? rotary.longFactors : rotary.shortFactors
      return powers.map((power, k) => 1 / fround(fround(factors[k] ?? 1) * power))
    }
  }
}

/** Stretches long waves by the factor, leaves short ones unchanged, and interpolates between. */
function llama3Frequency(
  frequency: number,
  { factor, lowFrequencyFactor: low, highFrequencyFactor: high, originalPositions }: RotaryConfig & { readonly type: 'llama3' },
): number {
  const wavelength = fround(fround(1 / frequency) * fround(2 * Math.PI))
  const divisor = fround(factor)
  if (wavelength > fround(originalPositions / low)) return frequency / divisor
  if (wavelength < fround(originalPositions / high)) return frequency
  const turns = fround(fround(1 / wavelength) * fround(originalPositions))
  const smooth = fround(fround(turns - fround(low)) / fround(high - low))
  const stretched = fround(fround(fround(1 - smooth) * frequency) / divisor)
  return fround(stretched + fround(smooth * frequency))
}

/** Leaves channels that turn often within the original positions unchanged and stretches those that turn rarely, with a ramp between. */
function yarnFrequencies(
  powers: Float32Array,
  dims: number,
  { theta, factor, originalPositions, betaFast, betaSlow, truncate }: RotaryConfig & { readonly type: 'yarn' },
): Float32Array {
  const channelOf = (turns: number): number =>
    (dims * Math.log(originalPositions / (turns * 2 * Math.PI))) / (2 * Math.log(theta))
  const whole = (round: (value: number) => number, value: number): number => (truncate ? round(value) : value)
  const low = Math.max(whole(Math.floor, channelOf(betaFast)), 0)
  const high = Math.min(whole(Math.ceil, channelOf(betaSlow)), dims - 1)
  // Avoids a division by zero if the ramp has no width, by the same amount as HF.
  const width = fround(low === high ? high + 0.001 - low : high - low)
  return powers.map((power, k) => {
    const ramp = Math.min(Math.max(fround(fround(k - fround(low)) / width), 0), 1)
    const unchanged = fround(1 - ramp)
    const stretched = fround(1 / fround(fround(factor) * power))
    return fround(fround(stretched * fround(1 - unchanged)) + fround(fround(1 / power) * unchanged))
  })
}
