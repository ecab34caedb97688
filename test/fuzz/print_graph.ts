/** Prints graphs and plans as an author's modules: one for each graph with its ops, one for each plan, and the index. */
import type { GraphDesc, NodeDesc, PlanDesc, ValueDesc } from './graph_describe.js'
import { exportName, printOp } from './print.js'

const tensor = ({ dtype, dims }: ValueDesc): string => `tensor('${dtype}', '${dims.join(' ')}')`

export function printGraph(graph: GraphDesc): string {
  const ops = [...new Set(graph.nodes.flatMap((node) => (node.kind === 'op' ? [printOp(node.op)] : [])))]
  const imported = ops.flatMap((text) => /^import \{ (.*) \} from 'heddle'$/m.exec(text)?.[1]?.split(', ') ?? [])
  const names = [...new Set([...imported, 'graph', 'tensor'])].sort()
  const bodies = ops.map((text) => text.replace(/^import .*$/gm, '').trim())
  const isWeight = new Set(graph.given.filter((each) => each.isWeight).map(({ name }) => name))
  const read = (name: string): string => (isWeight.has(name) ? `w.${name}` : name)
  const made = (node: NodeDesc): string => {
    switch (node.kind) {
      case 'op': {
        const inputs = Object.entries(node.inputs).map(([param, value]) => `${param}: ${read(value)}`)
        const { param } = node.op
        // A type parameter without an input is stated at the call.
        const isStated = param !== undefined && node.op.inputs.every(({ dtype }) => dtype !== param)
        return `g.apply(${exportName(node.op.name)}, { ${inputs.join(', ')} }${isStated ? ", {}, {}, { T: 'T' }" : ''}).y`
      }
      case 'matmul':
        return `g.matmul('${node.subscripts}', ${read(node.a)}, ${read(node.b)}${node.result === undefined ? '' : `, { result: '${node.result}' }`})`
      case 'view':
        return `g.view(${read(node.input)}, '${node.dims.join(' ')}')`
    }
  }
  const given = (weights: boolean): string =>
    graph.given
      .filter((each) => each.isWeight === weights)
      .map((each) => `${each.name}: ${tensor(each)}`)
      .join(', ')
  const inputs = graph.given.filter((each) => !each.isWeight).map(({ name }) => name)
  return `import { ${names.join(', ')} } from 'heddle'

${bodies.join('\n\n')}

export const ${exportName(graph.name)} = graph('${graph.name}', {
  inputs: { ${given(false)} },
  weights: { ${given(true)} },
  build: (g, ${inputs.length === 0 ? '_' : `{ ${inputs.join(', ')} }`}${isWeight.size === 0 ? '' : ', w'}) => {
${graph.nodes.map((node) => `    const ${node.name} = ${made(node)}\n`).join('')}    return { nodes: { ${graph.nodes.map(({ name }) => name).join(', ')} }, outputs: { ${graph.outputs.join(', ')} } }
  },
})
`
}

export function printPlan(graph: GraphDesc, plan: PlanDesc): string {
  const kernel = (at: number): string => `${plan.name}_g${at}`
  const list = (names: readonly string[]): string => `[${names.map((name) => `'${name}'`).join(', ')}]`
  const record = (entries: readonly string[]): string => `{ ${entries.join(', ')} }`
  const { stacked, isPacked, stored } = plan
  const int8 = (['values', 'dynamic', 'weightOnly'] as const).flatMap((kind) =>
    stored === undefined || stored[kind].length === 0 ? [] : [`${kind}: ${list(stored[kind])}`],
  )
  const edges = Object.entries(stored?.edges ?? {}).map(([name, dtype]) => `${name}: '${dtype}'`)
  const whole = [
    ...(isPacked === true ? ["packed: { batch: 'b', seq: 's', tokens: 'packed', lengths: 'lengths' }"] : []),
    ...(stacked === undefined ? [] : [`stacked: ${record(Object.entries(stacked).map(([name, of]) => `${name}: ${list(of)}`))}`]),
    ...(int8.length === 0 ? [] : [`quantised: ${record(int8)}`]),
    ...(edges.length === 0 ? [] : [`edges: ${record(edges)}`]),
  ]
  const groups = plan.groups.map((nodes, at) => `    ${kernel(at)}: [${nodes.map((name) => `'${name}'`).join(', ')}],\n`).join('')
  const library = plan.library.length === 0 ? '' : `  library: [${plan.library.map((at) => `'${kernel(at)}'`).join(', ')}],\n`
  return `import { plan } from 'heddle'
import { ${exportName(graph.name)} } from './${graph.name}.js'

export const ${exportName(plan.name)} = plan('${plan.name}', ${exportName(graph.name)}, {
${whole.map((text) => `  ${text},\n`).join('')}  groups: {
${groups}  },
${library}})
`
}

/** The index of a project, over the modules that are left. */
export function printIndex(kept: readonly string[]): string {
  const graphs = kept.filter((name) => name.startsWith('net_'))
  const plans = kept.filter((name) => graphs.includes(graphOf(name) ?? ''))
  const imports = [...graphs, ...plans].map((name) => `import { ${exportName(name)} } from './${name}.js'\n`).join('')
  return `${imports}
export const graphs = { ${graphs.map(exportName).join(', ')} }
export const plans = [${plans.map(exportName).join(', ')}]
`
}

/** The name of the graph that a module is a plan of; of another module nothing. */
export const graphOf = (module: string): string | undefined =>
  module.startsWith('plan_') ? `net_${module.split('_')[1]}` : undefined
