/** Sequences of different lengths in a program under construction: their axes, and views of values as their rows. */
import { usageError } from '../../errors.js'
import { printType } from '../../ir/kernel.js'
import type { ProgramValue, RaggedAxis } from '../../ir/program.js'
import { multiplyExtents, parseExtent, printShape, sameExtent } from '../../ir/shape.js'
import { expectArguments, expectParts } from '../arguments.js'
import type { ProgramTensor } from './types.js'

/** Options of `ragged` of a program. */
export interface RaggedOptions {
  readonly batch: string
  readonly seq: string
  readonly lengths: ProgramTensor
  readonly tokens?: string
}

/** Checks the types of `ragged` at run time. @throws usage `program.config` */
export function expectRagged(program: string, callee: (...given: never[]) => unknown, options: RaggedOptions): void {
  const at = `${program}: ragged`
  expectArguments('program.config', at, callee, { axis: [options, 'record'] })
  expectParts('program.config', at, callee, ['batch', 'seq', 'lengths', 'tokens'], options)
  const { batch, seq, tokens, lengths } = options
  expectArguments('program.config', at, callee, {
    batch: [batch, 'text'],
    seq: [seq, 'text'],
    tokens: [tokens, 'text?'],
    lengths: [lengths, 'record'],
  })
}

/** @throws usage `program.ragged` for lengths that are not i32 or not of the batch's extent */
export function raggedAxis(
  program: string,
  { batch, seq, lengths, tokens = 'tokens' }: RaggedOptions,
  { name, dtype, shape }: ProgramValue,
): RaggedAxis {
  const axis = { batch: parseExtent(batch), seq: parseExtent(seq), tokens, lengths: lengths.value }
  if (dtype !== 'i32' || printShape(shape) !== printShape([axis.batch]))
    throw usageError(
      'program.ragged',
      `${program}: lengths are i32 "${batch}", ${name} is ${printType(dtype)} "${printShape(shape)}"`,
    )
  return axis
}

/** Shape of a value with one row per token; undefined if it has that shape already. @throws usage `program.ragged` */
export function rowsShape(
  program: string,
  { batch, seq }: Pick<RaggedOptions, 'batch' | 'seq'>,
  { shape, name }: ProgramValue,
): string | undefined {
  const rows = multiplyExtents([parseExtent(batch), parseExtent(seq)])
  const [first, second, ...rest] = shape
  if (first !== undefined && sameExtent(first, rows)) return undefined
  if (first === undefined || second === undefined || !sameExtent(multiplyExtents([first, second]), rows))
    throw usageError('program.ragged', `${program}: ${name} is "${printShape(shape)}", which does not begin with ${batch} ${seq}`)
  return printShape([rows, ...rest])
}
