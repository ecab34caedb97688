/** Loops over chunks whose elements lie apart in the version for rows that are not whole (src/loop/passes/spread.ts), as CUDA source. */
import type { Access, LaneLoop, Version } from '../../loop/ir.js'
import { operandText, type Scope } from './expression.js'
import { type Printing, pairedText } from './state.js'

/** Device header of the functions that this file and the accesses of such chunks call. */
export const apartHeader = 'apart.cuh'

/** Template arguments of accesses. */
export const apartArguments = 'VEC, STEP, WHOLE'

/** Those of one access: loops in which all lanes meet have chunks without elements in whole rows, too. */
export const apartText = ({ whole }: Access, given: string): string =>
  given === apartArguments && !whole ? 'VEC, STEP, false' : given

/** Declares the distance between the elements of a chunk. */
export const apartLine = 'constexpr int STEP = WHOLE ? 1 : heddle::lanes_apart<Team>;'

/** Declares if neighbouring elements stay together in pairs. */
export function pairedLine({ lengths, aligned }: Version, scope: Scope): string {
  const even = lengths.map((length) => (length === undefined ? 'false' : `${operandText(length, scope)} % 2 == 0`))
  const tensors = aligned.map(({ tensor }) => `heddle::begins_aligned<2>(${scope.names.tensor(tensor)})`)
  return `const bool paired = ${['!WHOLE', ...new Set([...even, ...tensors])].join(' && ')};`
}

/** Test of a launcher: true if all chunks of a version are full and aligned. */
export function wholeText({ lengths, aligned }: Version, scope: Scope): string {
  const whole = lengths.map((length) => (length === undefined ? 'false' : `${operandText(length, scope)} % VEC == 0`))
  const tensors = aligned.map(({ tensor }) => `heddle::begins_aligned<VEC>(${scope.names.tensor(tensor)})`)
  return [...new Set([...whole, ...tensors])].join(' && ')
}

/** Prints the loop of a lane over its chunks. @param first name of the index of a chunk's first element @param body prints what is done with a chunk */
export function printApart(loop: LaneLoop, first: string, printing: Printing, body: () => void): void {
  const { context } = printing
  const { writer } = context
  const paired = pairedText(printing)
  const length = operandText(loop.length, context)
  const isKept = loop.walk === 'kept'
  const chunks = `heddle::chunks_apart<VEC, STEP>(${length}${paired})`
  if (isKept) writer.writeLine('HEDDLE_UNROLL')
  else if (loop.unrolled) writer.writeLine('HEDDLE_UNROLL_FEW')
  const start = loop.together ? `int round = 0; round < ${chunks}; round` : `int chunk = team.lane(); chunk < ${chunks}; chunk`
  writer.write(`for (${isKept ? 'int chunk = 0; chunk < CHUNKS; ++chunk' : `${start} += Team::lanes`})`).block(() => {
    if (isKept && loop.together) writer.writeLine(`if (chunk * Team::lanes * VEC >= ${length}) break;`)
    if (!isKept && loop.together) writer.writeLine('const int chunk = round + team.lane();')
    writer.writeLine(
      `const int ${first} = heddle::first_apart<VEC, STEP>(chunk${isKept ? ' * Team::lanes + team.lane()' : ''}${paired});`,
    )
    const left = `heddle::left_apart<STEP>(${length} - ${first}${paired})`
    // Beyond the last chunk of a very long row, the place itself may not fit 32 bits.
    writer.writeLine(`const int valid = ${loop.together && !isKept ? `chunk < ${chunks} ? ${left} : 0` : left};`)
    if (isKept && !loop.together) writer.writeLine('if (valid <= 0) break;')
    body()
  })
}
