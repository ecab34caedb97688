/** C header of an exported program. */
import { render } from '../emit/templates.js'
import { identifier, identifiers } from './identifiers.js'
import type { Lowered } from './lowered.js'
import { layoutText, shapeText } from './text.js'

/** Names of an export in C. */
export interface CNames {
  readonly program: string
  readonly dims: readonly string[]
  readonly inputs: readonly string[]
  readonly outputs: readonly string[]
  readonly states: readonly string[]
}

/** @param program prefix of its functions and types @throws usage `export.name` */
export const namesOf = ({ name, dims, inputs, outputs, states }: Lowered, program: string = identifier(name)): CNames => ({
  program,
  dims: identifiers(dims),
  inputs: identifiers(inputs.map((input) => input.name)),
  outputs: identifiers(outputs.map((output) => output.name)),
  states: identifiers(states.map((state) => state.name)),
})

export function headerText(lowered: Lowered, names: CNames): string {
  const { program } = names
  const structure = (name: string, fields: readonly string[]): string =>
    `typedef struct ${program}_${name} {\n${fields.map((field) => `  ${field}\n`).join('')}} ${program}_${name};\n`
  const none = (fields: readonly string[], type: string): readonly string[] => (fields.length > 0 ? fields : [`${type}none;`])
  const dims = names.dims.map((dim, i) => {
    const most = lowered.most[lowered.dims[i] ?? '']
    return `int64_t ${dim};${most === undefined ? '' : ` /* at most ${shapeText([most]).slice(1, -1)} */`}`
  })
  const values = (side: 'inputs' | 'outputs', type: string): readonly string[] =>
    lowered[side].map((value, i) => `${type}${names[side][i]};${about(value)}`)
  const fixed = Object.entries(lowered.fixed).map(([dim, size]) => `${dim} = ${size}`)
  return render('export_header', {
    ...{ program, guard: `HEDDLE_PROGRAM_${program.toUpperCase()}_H` },
    ...{ name: lowered.name, plan: lowered.plan, dtype: lowered.dtype },
    fixed: fixed.length === 0 ? '' : `\n * Fixed: ${fixed.join(', ')}.`,
    dims: structure('dims', none(dims, 'int64_t ')),
    inputs: structure('inputs', none(values('inputs', 'const void* '), 'const void* ')),
    outputs: structure('outputs', none(values('outputs', 'void* '), 'void* ')),
    states: statesText(lowered, names),
  })
}

const about = (value: Lowered['inputs'][number]): string => ` /* ${value.dtype} ${shapeText(value.shape)}${layoutText(value)} */`

/** The enumeration of states, if there are any. */
function statesText({ states }: Lowered, names: CNames): string {
  if (names.states.length === 0) return ''
  const lines = names.states.map((name, i) => {
    const value = states[i]
    return `  ${names.program}_state_${name} = ${i},${value === undefined ? '' : about(value)}\n`
  })
  return `/* States by number; their elements are in the order of their layouts. */
typedef enum ${names.program}_state {
${lines.join('')}} ${names.program}_state;

`
}
