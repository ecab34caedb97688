/** Random graphs: chains of ops, layers of matmuls in floats and int8; attention and layers of sequences have separate files. */
import { call, num } from './describe.js'
import { attention, decode } from './draw_attention.js'
import { stack, tokens } from './draw_layers.js'
import { type GraphDesc, readBy, type ValueDesc } from './graph_describe.js'
import { GraphDraft } from './graph_draft.js'
import { all, bias, each, norm, own, read, reduced, residual, softmax } from './graph_ops.js'
import { Random } from './random.js'

function chain(graph: GraphDraft): string[] {
  const { random } = graph
  const dims = random.chance(0.5) ? ['m', 'n'] : ['b', 's', 'n']
  const x = graph.input(dims)
  const values: ValueDesc[] = [x]
  for (let more = random.between(2, 5); more > 0; more--) {
    const from = random.pick(values.slice(-2))
    const step = random.below(5)
    values.push(
      step === 0
        ? norm(graph, from)
        : step === 1
          ? bias(graph, from)
          : step === 2
            ? softmax(graph, from)
            : step === 3
              ? residual(graph, from, random.pick(values))
              : each(graph, from),
    )
  }
  return [values.at(-1)?.name ?? '']
}

/** Matmuls with their prologues and epilogues. */
function layers(graph: GraphDraft): string[] {
  const { random } = graph
  const batch = random.chance(0.25)
  const rows = batch ? ['b', 'm'] : ['m']
  let x = graph.input([...rows, 'k'])
  let depth = 'k'
  const stem = x
  for (const [i, wide] of ['n', 'k'].entries()) {
    if (random.chance(0.3)) x = norm(graph, x)
    if (random.chance(0.15)) x = each(graph, x)
    const swapped = random.chance(0.3)
    const w = graph.weight(swapped ? [depth, wide] : [wide, depth])
    const letters = rows.join(' ')
    x = graph.matmul(`${letters} ${depth}, ${swapped ? `${depth} ${wide}` : `${wide} ${depth}`} -> ${letters} ${wide}`, x, w, [
      ...rows,
      wide,
    ])
    depth = wide
    if (random.chance(0.6)) x = bias(graph, x)
    if (random.chance(0.5)) x = each(graph, x)
    if (i === 1 && random.chance(0.6)) x = residual(graph, x, stem)
    if (random.chance(0.45)) break
  }
  if (random.chance(0.3)) x = norm(graph, x)
  else if (random.chance(0.5)) x = reduced(graph, x)
  return [x.name]
}

/** Rows and columns rounded to int8, multiplied as integers, and scaled back. */
function int8(graph: GraphDraft): string[] {
  const { random } = graph
  const quantised = (x: ValueDesc): ValueDesc =>
    graph.op([{ value: x, axes: all(x) }], 'i8', ({ draft, names }) => ({
      result: { kind: 'number', value: call('f32', 'mul', read(draft, names[0], own), num(16)) },
    }))
  const isWeightOnly = random.chance(0.3)
  const x = graph.input(['m', 'k'])
  const w = graph.weight(['n', 'k'], 'i8', { kind: 'float' })
  let y: ValueDesc
  if (isWeightOnly) {
    const step = graph.weight(['n'], 'f32')
    const wide = graph.op(
      [
        { value: w, axes: [0, 1] },
        { value: step, axes: [0] },
      ],
      'T',
      ({ draft, names }) => ({
        result: {
          kind: 'number',
          value: call('f32', 'mul', read(draft, names[0], own), call('f32', 'mul', read(draft, names[1], own), num(0.125))),
        },
      }),
    )
    y = graph.matmul('m k, n k -> m n', x, wide, ['m', 'n'])
  } else {
    const given = random.chance(0.4)
      ? graph.input(['m', 'k'], 'i8', { kind: 'float' })
      : quantised(random.chance(0.3) ? norm(graph, x) : x)
    const sums = graph.matmul('m k, n k -> m n', given, w, ['m', 'n'], 'i32', 'i32')
    const step = graph.weight(['n'], 'f32')
    y = graph.op(
      [
        { value: sums, axes: [0, 1] },
        { value: step, axes: [1] },
      ],
      'T',
      ({ draft, names }) => ({
        result: {
          kind: 'number',
          value: call(
            'f32',
            'mul',
            call('f32', 'toFloat', read(draft, names[0], own)),
            call('f32', 'mul', read(draft, names[1], own), num(2 ** -7)),
          ),
        },
      }),
    )
  }
  if (random.chance(0.6)) y = bias(graph, y)
  if (random.chance(0.4)) y = each(graph, y)
  if (random.chance(0.3)) y = quantised(y)
  return [y.name]
}

const families = { chain, layers, int8, attention, decode, stack, tokens } as const

/** The graph of a seed. @param name snake_case */
export function drawGraph(seed: number, name: string): GraphDesc {
  const random = new Random(seed)
  const family = random.weighed({ chain: 2, layers: 3, int8: 2, attention: 3, decode: 2, stack: 2, tokens: 3 })
  const draft = new GraphDraft(random, name)
  const outputs = families[family](draft)
  const used = new Set(outputs)
  const nodes = draft.nodes.toReversed().filter((node) => {
    if (used.has(node.name)) for (const name of readBy(node)) used.add(name)
    return used.has(node.name)
  })
  return {
    name,
    family,
    main: draft.main,
    given: draft.given.filter((each) => used.has(each.name)),
    nodes: nodes.toReversed(),
    outputs,
    core: draft.core.filter((each) => used.has(each)),
    stacks: draft.stacks.filter((stack) => stack.every((each) => used.has(each))),
    isRagged: draft.isRagged,
  }
}
