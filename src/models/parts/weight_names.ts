/**
 * Mapping from program weights to checkpoint tensors: the tables of names that describe models, and the tensor shapes that a program
 * gives such a table.
 */
import type { Program } from '../../ir/program.js'
import { tensorOf } from '../../runtime/program_wiring.js'

/** Checkpoint tensor names, by the weight names of a graph or program. */
export type TensorNames = Readonly<Record<string, string>>

/** A linear layer's two tensors. */
export const linear = (at: string): { readonly weight: string; readonly bias: string } => ({
  weight: `${at}.weight`,
  bias: `${at}.bias`,
})

/** The same for a graph with several linear layers or norms: `queryWeight`, `queryBias`. */
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

/** Entries of a program part, usually tensor names, with qualified weight names: `layer0.queryWeight`. */
export const below = <T>(prefix: string, tensors: Readonly<Record<string, T>>): [string, T][] =>
  Object.entries(tensors).map(([weight, tensor]) => [`${prefix}.${weight}`, tensor])

/** The same for repeated parts: `layer0`, `layer1`, ... */
export const belowEach = <T>(prefix: string, count: number, of: (at: number) => Readonly<Record<string, T>>): [string, T][] =>
  Array.from({ length: count }, (_, at) => below(`${prefix}${at}`, of(at))).flat()

/** Shape of the tensor of each weight of a program, by checkpoint name. */
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
