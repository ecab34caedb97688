/**
 * Which tensor of a checkpoint is which weight of a program: tables of names that models are written as, and the shapes that a program gives
 * the tensors of such a table.
 */
import type { Program } from '../../ir/program.js'
import { tensorOf } from '../../runtime/program_wiring.js'

/** Tensors of a checkpoint by a graph's, or a program's, names of weights. */
export type TensorNames = Readonly<Record<string, string>>

/** A linear layer's two tensors. */
export const linear = (at: string): { readonly weight: string; readonly bias: string } => ({
  weight: `${at}.weight`,
  bias: `${at}.bias`,
})

/** The same as the weights of a graph that has several linear layers or norms: `queryWeight`, `queryBias`. */
export const linearAs = (weight: string, at: string): TensorNames => ({
  [`${weight}Weight`]: `${at}.weight`,
  [`${weight}Bias`]: `${at}.bias`,
})

/** A norm's two tensors. */
export const norm = (at: string): { readonly gamma: string; readonly beta: string } => ({
  gamma: `${at}.weight`,
  beta: `${at}.bias`,
})

export const normAs = (weight: string, at: string): TensorNames => ({
  [`${weight}Gamma`]: `${at}.weight`,
  [`${weight}Beta`]: `${at}.bias`,
})

/** What a part of a program has for its weights, names as a rule: `layer0.queryWeight`. */
export const below = <T>(prefix: string, tensors: Readonly<Record<string, T>>): [string, T][] =>
  Object.entries(tensors).map(([weight, tensor]) => [`${prefix}.${weight}`, tensor])

/** The same of its repeated parts: `layer0`, `layer1`, ... */
export const belowEach = <T>(prefix: string, count: number, of: (at: number) => Readonly<Record<string, T>>): [string, T][] =>
  Array.from({ length: count }, (_, at) => below(`${prefix}${at}`, of(at))).flat()

/** The shape of each tensor that a program has for a weight, by the checkpoint's name. */
export const shapesOf = (
  { weights }: Program,
  names: TensorNames,
  sizes: Readonly<Record<string, number>>,
): Record<string, readonly number[]> =>
  Object.fromEntries(
    Object.entries(weights).map(([weight, value]) => [
      names[weight] ?? weight,
      tensorOf(value, weight, sizes, { T: 'f32' }).shape,
    ]),
  )
