/** A plan that a search found, as a TypeScript module that a person reads and edits: an ordinary plan, with a reason at each group. */
import type { PlanDecl } from '../lang/plan.js'
import type { Reason } from './chosen.js'

export interface PlanSource {
  readonly plan: PlanDecl
  /** Name of the exported function. */
  readonly exported: string
  /** Comment at its head: device, type, shapes, count of groups. */
  readonly head: readonly string[]
  readonly reasons: readonly Reason[]
  readonly shapes: readonly string[]
  /** Import of the graph's declaration, for the type of its nodes; undefined if it is exported under no name. */
  readonly graph: { readonly name: string; readonly from: string } | undefined
}

const quoted = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`

const keyText = (key: string): string => (/^[A-Za-z_$][\w$]*$/.test(key) ? key : quoted(key))

const listText = (names: readonly string[]): string => `[${names.map(quoted).join(', ')}]`

/** Microseconds with at most two decimals. */
const short = (value: number): string => (Number.isFinite(value) ? String(Number(value.toFixed(2))) : '?')

const over = (values: readonly number[]): string => values.map(short).join(' / ')

/** One line per group: its time, that of its nodes, and the next best. */
function reasonText({ own, apart, instead, margin }: Reason): string {
  const other = instead.length === 0 ? 'another form' : instead.map((nodes) => nodes.join('+')).join(', ')
  const worse = margin
    .map((each) => (Number.isFinite(each) ? `${each < 0 ? '-' : '+'}${short(Math.abs(each))}` : 'none'))
    .join(' / ')
  const next = margin.every((each) => !Number.isFinite(each)) ? 'no other way' : `next best ${other}: ${worse} us`
  return `${over(own)} us; apart ${over(apart)} us; ${next}`
}

/** Source of a module. Deterministic: the same plan, reasons and head give the same text. */
export function planSource({ plan, exported, head, reasons, shapes, graph }: PlanSource): string {
  const { packed, stacked = [], groups, library = [], byRows = [] } = plan
  const reasonsOf = (nodes: readonly string[]): readonly string[] =>
    reasons.flatMap((reason) => (reason.nodes.join() === nodes.join() ? [reasonText(reason)] : []))
  const groupLines = groups.flatMap(({ kernel, occurrences }) => {
    const [only, ...others] = occurrences
    const single = only !== undefined && others.length === 0
    const comments = occurrences.flatMap((nodes) =>
      reasonsOf(nodes).map((text) => `      // ${single ? '' : `${nodes[0]}: `}${text}`),
    )
    const value = single ? listText(only) : `[${occurrences.map(listText).join(', ')}]`
    return [...comments, `      ${keyText(kernel)}: ${value},`]
  })
  const type = graph === undefined ? 'GraphDecl' : `typeof ${graph.name}`
  const imports = graph === undefined ? ['GraphDecl', 'PlanDecl'] : ['PlanDecl']
  return `${[
    '/**',
    ...[...head, ...(shapes.length > 1 ? [`Times are given for ${shapes.join(' / ')}.`] : [])].map((line) => ` * ${line}`),
    ' */',
    `import { ${imports.map((name) => `type ${name}`).join(', ')}, plan } from 'heddle'`,
    ...(graph === undefined ? [] : [`import type { ${graph.name} } from ${quoted(graph.from)}`]),
    '',
    `export const ${exported} = (graph: ${type}): PlanDecl =>`,
    `  plan(${quoted(plan.name)}, graph, {`,
    ...(packed === undefined ? [] : [`    packed: { ${packedText(packed)} },`]),
    ...(stacked.length === 0
      ? []
      : ['    stacked: {', ...stacked.map(({ name, nodes }) => `      ${keyText(name)}: ${listText(nodes)},`), '    },']),
    '    groups: {',
    ...groupLines,
    '    },',
    ...(library.length === 0 ? [] : [`    library: ${listText(library)},`]),
    ...(byRows.length === 0
      ? []
      : [`    byRows: { ${byRows.map(({ most, plan: few }) => `${most}: ${quoted(few)}`).join(', ')} },`]),
    '  })',
  ].join('\n')}\n`
}

const packedText = (packed: NonNullable<PlanDecl['packed']>): string =>
  Object.entries(packed)
    .flatMap(([part, name]) => (name === undefined ? [] : [`${part}: ${quoted(name)}`]))
    .join(', ')
