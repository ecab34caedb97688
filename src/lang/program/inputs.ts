/** Rewrites of a program after it is built. */
import type { Program, ProgramNode } from '../../ir/program.js'

/** Gives inputs that are only read through one view the shape of the view: the bytes are the same. */
export function withoutViewsOfInputs(program: Program): Program {
  const { nodes, states, outputs, ragged, values } = program
  const reads = nodes.flatMap((node) => (node.kind === 'view' ? [node.input] : Object.values(node.inputs)))
  const otherUses = [
    ...Object.values(outputs),
    ...Object.values(states).flatMap(({ next }) => next ?? []),
    ...ragged.map(({ lengths }) => lengths),
  ]
  const gone = new Set<ProgramNode>()
  const renamed = [...values]
  const inputs = Object.fromEntries(
    Object.entries(program.inputs).map(([name, id]) => {
      const only = nodes.find((node) => node.kind === 'view' && node.input === id)
      const used = [...reads, ...otherUses].filter((each) => each === id).length
      if (only?.kind !== 'view' || used !== 1) return [name, id]
      gone.add(only)
      const value = renamed[only.out]
      if (value !== undefined) renamed[only.out] = { ...value, name }
      return [name, only.out]
    }),
  )
  return { ...program, inputs, values: renamed, nodes: nodes.filter((node) => !gone.has(node)) }
}
