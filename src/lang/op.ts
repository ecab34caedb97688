/** Declaration of ops: a typed signature and a body that runs as plain TypeScript and compiles to a kernel. */
import type { DType } from '../ir/dtype.js'
import { expectArguments, expectParts } from './arguments.js'
import { keepFacts } from './dim_facts.js'
import type { Body, Op, OpConfig, Tensors, TypeChoices } from './types.js'

/** Known keys, including `name`, for copies of another op: `op('other', { ...op, attrs })`. */
const parts = ['name', 'dims', 'types', 'inputs', 'outputs', 'updates', 'attrs', 'facts', 'accuracy', 'body']

/**
 * Declares an op. `name` is snake_case and unique in the project. The body receives accessors for the inputs and the
 * extents and attributes by name, and returns a function of the row indices that returns every output: a `row` over the
 * output's last dimension, or a number when the row indices name all of its dimensions.
 * @throws usage `op.config` for a part that is missing or of the wrong kind
 */
export function op<
  const D extends string,
  const I extends Tensors,
  const O extends Tensors,
  const T extends TypeChoices = Record<never, readonly DType[]>,
  const A extends Readonly<Record<string, number>> = Record<never, number>,
>(name: string, config: OpConfig<D, T, I, O, A>): Op<I, O, A, T> {
  expectArguments('op.config', 'op', op, { name: [name, 'text'] })
  expectArguments('op.config', `op ${name}`, op, { config: [config, 'record'] })
  expectParts('op.config', `op ${name}`, op, parts, config)
  expectArguments('op.config', `op ${name}`, op, {
    dims: [config.dims, 'texts'],
    types: [config.types, 'listsByName?'],
    inputs: [config.inputs, 'tensors'],
    outputs: [config.outputs, 'tensors'],
    updates: [config.updates, 'textsByName?'],
    attrs: [config.attrs, 'record?'],
    accuracy: [config.accuracy, 'accuracy?'],
    body: [config.body, 'function'],
  })
  keepFacts(config.body, config.facts)
  return {
    name,
    dims: config.dims,
    types: config.types ?? ({} as T),
    inputs: config.inputs,
    outputs: config.outputs,
    updates: (config.updates ?? {}) as Readonly<Record<string, string>>,
    attrs: config.attrs ?? ({} as A),
    ...(config.accuracy === undefined ? {} : { accuracy: config.accuracy }),
    body: config.body as unknown as Body<string, Tensors, Tensors, Readonly<Record<string, number>>>,
  }
}
