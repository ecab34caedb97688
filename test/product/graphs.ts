/** Small graphs around matmuls, each with the group that is to be one kernel: inputs of the evaluator and the CPU device. */
import { type GraphBuilder, type GraphDecl, type GraphTensor, graph, tensor } from 'heddle'
import { gelu } from '../../specs/ops/activations.js'
import { add } from '../../specs/ops/add.js'
import { addBias } from '../../specs/ops/add_bias.js'
import { layerNorm } from '../../specs/ops/layer_norm.js'
import * as own from './ops/index.js'

export type Decl = ReturnType<typeof tensor>
export type Given = Readonly<Record<string, GraphTensor>>

export interface ProductCase {
  readonly name: string
  readonly decl: GraphDecl
  readonly group: readonly string[]
}

/** A graph of the given inputs and weights; the nodes of the group come first, and the last of all is the result, together with those in `also`. */
export function made(
  name: string,
  inputs: Readonly<Record<string, Decl>>,
  build: (g: GraphBuilder, x: Given) => Given,
  {
    weights = {},
    also = [],
    outside = [],
  }: { weights?: Record<string, Decl>; also?: readonly string[]; outside?: readonly string[] } = {},
): ProductCase {
  const decl = graph(name, {
    inputs,
    weights,
    build: (g, x, w) => {
      const values = build(g, { ...x, ...w } as Given)
      // A second result of a node has a separate name, which no node has.
      const nodes = Object.fromEntries(Object.entries(values).filter(([key]) => !key.startsWith('also')))
      const last = Object.values(nodes).at(-1)
      if (last === undefined) throw new Error(`${name} has no node`)
      const more = Object.fromEntries(also.map((each) => [each, values[each] ?? last]))
      return { nodes, outputs: { last, ...more } }
    },
  })
  return { name, decl, group: decl.nodes.filter((node) => !outside.includes(node)) }
}

export const m = tensor('T', 'm k')

/** A matmul by its subscripts, with the operand shapes that follow from them, and a bias after it. */
const ordered = (name: string, a: string, b: string, out: string): ProductCase =>
  made(
    name,
    { x: tensor('T', a) },
    (g, { x, w, bias }) => {
      const product = g.matmul(`${a}, ${b} -> ${out}`, x as GraphTensor, w as GraphTensor)
      return { product, biased: g.apply(addBias, { x: product, bias: bias as GraphTensor }).y }
    },
    { weights: { w: tensor('T', b), bias: tensor('T', out.split(' ').at(-1) ?? '') } },
  )

export const of = (given: Given, name: string): GraphTensor => {
  const found = given[name]
  if (found === undefined) throw new Error(`no value ${name}`)
  return found
}

export const linear = 'm k, n k -> m n'

export const products: readonly ProductCase[] = [
  ordered('plain', 'm k', 'n k', 'm n'),
  ordered('columns_first', 'm k', 'k n', 'm n'),
  ordered('both_transposed', 'k m', 'n k', 'm n'),
  ordered('all_transposed', 'k m', 'k n', 'm n'),
  ordered('swapped', 'n k', 'm k', 'm n'),
  ordered('swapped_transposed', 'k n', 'k m', 'm n'),
  ordered('result_transposed', 'm k', 'n k', 'n m'),
  made('row_scaled', { x: m, w: tensor('T', 'n k'), scale: tensor('f32', 'm') }, (g, x) => {
    const product = g.matmul(linear, of(x, 'x'), of(x, 'w'))
    return { product, scaled: g.apply(own.rowScale, { x: product, scale: of(x, 'scale') }).y }
  }),
  made('row_constant', { x: m, w: tensor('T', 'n k') }, (g, x) => {
    const product = g.matmul(linear, of(x, 'x'), of(x, 'w'))
    return { product, changed: g.apply(own.rowConstants, { x: product }, { a: 2, b: 5 }).y }
  }),
  made(
    'row_table',
    { x: m, w: tensor('T', 'n k'), ids: tensor('i32', 'm'), table: tensor('T', 'v n'), scale: tensor('f32', 'v') },
    (g, x) => {
      const product = g.matmul(linear, of(x, 'x'), of(x, 'w'))
      const given = { x: product, ids: of(x, 'ids'), table: of(x, 'table'), scale: of(x, 'scale') }
      return { product, scaled: g.apply(own.tableScale, given).y }
    },
  ),
  made(
    'product_outside',
    { x: m, w: tensor('T', 'n k'), bias: tensor('T', 'n') },
    (g, x) => {
      const product = g.matmul(linear, of(x, 'x'), of(x, 'w'))
      const biased = g.apply(addBias, { x: product, bias: of(x, 'bias') }).y
      return { product, biased, active: g.apply(gelu, { x: biased }).y }
    },
    { also: ['product', 'biased'] },
  ),
  made(
    'two_results',
    { x: m, w: tensor('T', 'n k'), other: tensor('T', 'm n') },
    (g, x) => {
      const product = g.matmul(linear, of(x, 'x'), of(x, 'w'))
      const { total, difference } = g.apply(own.sumAndDifference, { x: product, y: of(x, 'other') })
      return { product, total, active: g.apply(gelu, { x: difference }).y }
    },
    { also: ['total'] },
  ),
  made(
    'batched',
    { x: tensor('T', 'b m k') },
    (g, x) => {
      const product = g.matmul('b m k, b n k -> b m n', of(x, 'x'), of(x, 'w'))
      return { product, biased: g.apply(own.matrixBias, { x: product, bias: of(x, 'bias') }).y }
    },
    { weights: { w: tensor('T', 'b n k'), bias: tensor('T', 'b n') } },
  ),
  made('batched_inside', { x: tensor('T', 'm b k'), w: tensor('T', 'k b n'), bias: tensor('T', 'm n') }, (g, x) => {
    const product = g.matmul('m b k, k b n -> m b n', of(x, 'x'), of(x, 'w'))
    return { product, biased: g.apply(own.matrixBias, { x: product, bias: of(x, 'bias') }).y }
  }),
  made('shared_weight', { x: tensor('T', 'b m k'), w: tensor('T', 'n k'), bias: tensor('T', 'b n') }, (g, x) => {
    const product = g.matmul('b m k, n k -> b m n', of(x, 'x'), of(x, 'w'))
    return { product, biased: g.apply(own.matrixBias, { x: product, bias: of(x, 'bias') }).y }
  }),
  made(
    'quantised',
    {
      x: tensor('i8', 'm k'),
      w: tensor('i8', 'n k'),
      rowStep: tensor('f32', 'm'),
      columnStep: tensor('f32', 'n'),
      r: tensor('T', 'm n'),
    },
    (g, x) => {
      const product = g.matmul(linear, of(x, 'x'), of(x, 'w'), { result: 'i32' })
      const steps = { rowStep: of(x, 'rowStep'), columnStep: of(x, 'columnStep') }
      const floats = g.apply(own.dequantiseBoth, { x: product, ...steps }, {}, {}, { T: 'T' }).y
      return { product, floats, added: g.apply(add, { x: floats, y: of(x, 'r') }).z }
    },
  ),
  made('quantised_batch', { x: tensor('i8', 'b m k'), w: tensor('i8', 'b n k'), bias: tensor('T', 'b n') }, (g, x) => {
    const product = g.matmul('b m k, b n k -> b m n', of(x, 'x'), of(x, 'w'), { result: 'T' })
    return { product, biased: g.apply(own.matrixBias, { x: product, bias: of(x, 'bias') }).y }
  }),
  made('int8_transposed', { x: tensor('i8', 'm k'), w: tensor('i8', 'k n'), scale: tensor('f32', 'm') }, (g, x) => {
    const product = g.matmul('m k, k n -> m n', of(x, 'x'), of(x, 'w'), { result: 'f32' })
    return { product, scaled: g.apply(own.rowScale, { x: product, scale: of(x, 'scale') }).y }
  }),
  made('wider_result', { x: m, w: tensor('T', 'n k'), scale: tensor('f32', 'm') }, (g, x) => {
    const product = g.matmul(linear, of(x, 'x'), of(x, 'w'), { result: 'f32' })
    return { product, scaled: g.apply(own.rowScale, { x: product, scale: of(x, 'scale') }).y }
  }),
  made('mixed', { x: m, w: tensor('i8', 'n k'), scale: tensor('f32', 'm') }, (g, x) => {
    const product = g.matmul(linear, of(x, 'x'), of(x, 'w'), { result: 'f32' })
    return { product, scaled: g.apply(own.rowScale, { x: product, scale: of(x, 'scale') }).y }
  }),
  made('mixed_bare', { x: tensor('f32', 'm k'), w: m }, (g, x) => {
    return { product: g.matmul('n k, m k -> n m', of(x, 'x'), of(x, 'w'), { result: 'f32' }) }
  }),
  made('pairs', { x: m, w: tensor('T', 'n k'), angle: tensor('f32', 'm') }, (g, x) => {
    const product = g.matmul(linear, of(x, 'x'), of(x, 'w'))
    return { product, biased: g.apply(own.pairRotation, { x: product, angle: of(x, 'angle') }).y }
  }),
  made('bit_partners', { x: m, w: tensor('T', 'n k') }, (g, x) => {
    const product = g.matmul(linear, of(x, 'x'), of(x, 'w'))
    return { product, biased: g.apply(own.butterflies, { x: product }).y }
  }),
  made('row_folded', { x: m, w: tensor('T', 'n k'), most: tensor('f32', 'm g') }, (g, x) => {
    const product = g.matmul(linear, of(x, 'x'), of(x, 'w'))
    return { product, divided: g.apply(own.byLargest, { x: product, most: of(x, 'most') }).y }
  }),
  made(
    'gate_and_up',
    { x: m },
    (g, x) => {
      const gate = g.matmul(linear, of(x, 'x'), of(x, 'gateWeight'))
      const up = g.matmul('r q, s q -> r s', of(x, 'x'), of(x, 'upWeight'))
      return { gate, up, both: g.apply(own.gated, { gate, up }).y }
    },
    { weights: { gateWeight: tensor('T', 'n k'), upWeight: tensor('T', 'n k') } },
  ),
  made('gate_and_up_transposed', { x: m, gateWeight: tensor('T', 'k n'), upWeight: tensor('T', 'n k') }, (g, x) => {
    const gate = g.matmul('m k, k n -> m n', of(x, 'x'), of(x, 'gateWeight'))
    const up = g.matmul(linear, of(x, 'x'), of(x, 'upWeight'))
    return { gate, up, both: g.apply(own.gated, { gate, up }).y }
  }),
  made('three_products', { x: m, q: tensor('T', 'n k'), r: tensor('T', 'n k'), s: tensor('T', 'n k') }, (g, x) => {
    const first = g.matmul(linear, of(x, 'x'), of(x, 'q'))
    const second = g.matmul(linear, of(x, 'x'), of(x, 'r'))
    const third = g.matmul(linear, of(x, 'x'), of(x, 's'))
    const both = g.apply(own.gated, { gate: first, up: second }).y
    return { first, second, third, both, total: g.apply(add, { x: both, y: third }).z }
  }),
]

/** Axes that meet again in another order, under one name, or after several views: the meaning of an index is easily mistaken. */
export const crossed: readonly ProductCase[] = [
  made('transposed_twice', { x: m, w: tensor('T', 'n k'), bias: tensor('T', 'm') }, (g, x) => {
    const product = g.matmul(linear, of(x, 'x'), of(x, 'w'))
    const once = g.apply(own.transposed, { x: product }).y
    const biased = g.apply(addBias, { x: once, bias: of(x, 'bias') }).y
    return { product, once, biased, twice: g.apply(own.transposed, { x: biased }).y }
  }),
  made('square', { x: m, bias: tensor('T', 'm') }, (g, x) => {
    const product = g.matmul(linear, of(x, 'x'), of(x, 'x'))
    const rows = g.apply(own.rowBias, { x: product, bias: of(x, 'bias') }).y
    const columns = g.apply(addBias, { x: rows, bias: of(x, 'bias') }).y
    return { product, rows, columns, both: g.apply(own.squareBias, { x: columns, bias: of(x, 'bias') }).y }
  }),
]

/** The same, of which no kernel needs to be built. */
export const crossedToo: readonly ProductCase[] = [
  made('factor_transposed_twice', { x: m, w: tensor('T', 'n k') }, (g, x) => {
    const once = g.apply(own.transposed, { x: of(x, 'x') }).y
    const twice = g.apply(own.transposed, { x: once }).y
    return { once, twice, product: g.matmul(linear, twice, of(x, 'w')) }
  }),
  made('reversed_twice', { x: m, w: tensor('T', 'n k') }, (g, x) => {
    const product = g.matmul(linear, of(x, 'x'), of(x, 'w'))
    const once = g.apply(own.reversed, { x: product }).y
    return { product, once, twice: g.apply(own.reversed, { x: once }).y }
  }),
  made('vector_along_both', { x: m, w: tensor('T', 'm k'), b: tensor('T', 'm') }, (g, x) => {
    const bias = g.apply(own.vectorStep, { x: of(x, 'b') }).y
    const product = g.matmul(linear, of(x, 'x'), of(x, 'w'))
    const rows = g.apply(own.rowBias, { x: product, bias }).y
    return { bias, product, rows, both: g.apply(addBias, { x: rows, bias }).y }
  }),
  made('viewed_there_and_back', { x: tensor('T', 'b*m k'), w: tensor('T', 'g*h k'), bias: tensor('T', 'g*h') }, (g, x) => {
    const product = g.matmul(linear, of(x, 'x'), of(x, 'w'))
    const viewed = g.view(g.view(product, 'b m g h'), 'b*m g*h')
    return { product, biased: g.apply(addBias, { x: viewed, bias: of(x, 'bias') }).y }
  }),
]

/** Rows or columns of a matmul that a view splits, or ends elsewhere. */
export const inParts: readonly ProductCase[] = [
  made('heads', { x: m, w: tensor('T', 'g*h k'), scale: tensor('f32', 'g') }, (g, x) => {
    const product = g.matmul(linear, of(x, 'x'), of(x, 'w'))
    return { product, scaled: g.apply(own.headScale, { x: g.view(product, 'm g h'), scale: of(x, 'scale') }).y }
  }),
  made('heads_and_elements', { x: m, w: tensor('T', 'g*h k'), gate: tensor('T', 'm g*h'), bias: tensor('T', 'h') }, (g, x) => {
    const product = g.matmul(linear, of(x, 'x'), of(x, 'w'))
    const [parts, gate] = [g.view(product, 'm g h'), g.view(of(x, 'gate'), 'm g h')]
    return { product, gated: g.apply(own.headGate, { x: parts, gate, bias: of(x, 'bias') }).y }
  }),
  made('sequences', { x: tensor('T', 'b*m k'), w: tensor('T', 'n k'), bias: tensor('T', 'b n') }, (g, x) => {
    const product = g.matmul(linear, of(x, 'x'), of(x, 'w'))
    return { product, biased: g.apply(own.transposedMatrixBias, { x: g.view(product, 'b m n'), bias: of(x, 'bias') }).y }
  }),
  made('sequences_of_heads', { x: tensor('T', 'b*m k'), w: tensor('T', 'g*h k'), bias: tensor('T', 'm h') }, (g, x) => {
    const product = g.matmul(linear, of(x, 'x'), of(x, 'w'))
    return { product, biased: g.apply(own.placeBias, { x: g.view(product, 'b m g h'), bias: of(x, 'bias') }).y }
  }),
  made('other_end', { x: tensor('T', 'b*m k'), w: tensor('T', 'n k'), bias: tensor('T', 'm*n') }, (g, x) => {
    const product = g.matmul(linear, of(x, 'x'), of(x, 'w'))
    return { product, biased: g.apply(addBias, { x: g.view(product, 'b m*n'), bias: of(x, 'bias') }).y }
  }),
]

/** Groups that no main loop computes, and words of the reason. */
export const refused: readonly (ProductCase & { readonly words: string })[] = [
  {
    ...made(
      'transposed_and_kept',
      { x: m, w: tensor('T', 'n k') },
      (g, x) => {
        const product = g.matmul(linear, of(x, 'x'), of(x, 'w'))
        const once = g.apply(own.transposed, { x: product }).y
        return { product, once, twice: g.apply(own.transposed, { x: once }).y }
      },
      { also: ['once'] },
    ),
    words: 'nodes once and twice cannot be one kernel: their iteration spaces differ',
  },
  {
    ...made('cube', { x: tensor('T', 'm m k'), w: tensor('T', 'm m k') }, (g, x) => {
      const product = g.matmul('b m k, b n k -> b m n', of(x, 'x'), of(x, 'w'))
      return { product, masked: g.apply(own.cube, { x: product }).y }
    }),
    words: 'masked has m twice among the axes of its rows',
  },
  {
    ...made('no_type', { x: m, w: tensor('T', 'n k') }, (g, x) => {
      const half = g.apply(own.noBf16, { x: of(x, 'x') }).y
      const product = g.matmul(linear, half, of(x, 'w'))
      return { half, product, brain: g.apply(own.bf16Only, { x: product }).y }
    }),
    words: 'brain takes bf16, and the nodes before it take f32, f16: they have no storage type in common',
  },
  {
    ...made('halves', { x: m, w: tensor('T', 'n k') }, (g, x) => {
      const product = g.matmul(linear, of(x, 'x'), of(x, 'w'))
      return { product, biased: g.apply(own.halfPartners, { x: product }).y }
    }),
    words: 'not always in the same aligned eight columns',
  },
  {
    ...made('normed', { x: m, w: tensor('T', 'n k'), gamma: tensor('T', 'n') }, (g, x) => {
      const product = g.matmul(linear, of(x, 'x'), of(x, 'w'))
      return { product, normed: g.apply(own.rmsNorm, { x: product, gamma: of(x, 'gamma') }).y }
    }),
    words: 'a reduction of a row of the matmul needs a kernel of its own',
  },
  {
    ...made('two_sums', { x: tensor('T', 'm k l'), w: tensor('T', 'n k l'), bias: tensor('T', 'n') }, (g, x) => {
      const product = g.matmul('m k l, n k l -> m n', of(x, 'x'), of(x, 'w'))
      return { product, biased: g.apply(addBias, { x: product, bias: of(x, 'bias') }).y }
    }),
    words: 'sums over k and l: view both factors with one axis for the two',
  },
  {
    ...made('sums_apart', { x: tensor('T', 'b m k'), w: tensor('T', 'b n k'), bias: tensor('T', 'n') }, (g, x) => {
      const product = g.matmul('b m k, b n k -> m n', of(x, 'x'), of(x, 'w'))
      return { product, biased: g.apply(addBias, { x: product, bias: of(x, 'bias') }).y }
    }),
    words: 'sums over b and k: store both factors with the two adjacent, in one order, and view both factors with one axis',
  },
  {
    ...made('matrices_last', { x: tensor('T', 'b m k'), w: tensor('T', 'b n k'), bias: tensor('T', 'n b') }, (g, x) => {
      const product = g.matmul('b m k, b n k -> n m b', of(x, 'x'), of(x, 'w'))
      return { product, biased: g.apply(own.matrixBias, { x: product, bias: of(x, 'bias') }).y }
    }),
    words: 'whose last axis must belong to one factor alone',
  },
  {
    ...made('vectors', { x: tensor('T', 'b k'), w: tensor('T', 'b n k'), bias: tensor('T', 'n') }, (g, x) => {
      const product = g.matmul('b k, b n k -> b n', of(x, 'x'), of(x, 'w'))
      return { product, biased: g.apply(addBias, { x: product, bias: of(x, 'bias') }).y }
    }),
    words: 'has no axis of rows',
  },
  {
    ...made('heads_first', { x: tensor('T', 'b*m k'), w: tensor('T', 'g*h k'), scale: tensor('f32', 'g') }, (g, x) => {
      const product = g.matmul(linear, of(x, 'x'), of(x, 'w'))
      return { product, split: g.apply(own.headsFirst, { x: g.view(product, 'b*m g h'), scale: of(x, 'scale') }).y }
    }),
    words: 'does not have the columns of the matmul adjacent to each other',
  },
  {
    ...made('partners_in_heads', { x: m, w: tensor('T', 'g*h k') }, (g, x) => {
      const product = g.matmul(linear, of(x, 'x'), of(x, 'w'))
      return { product, biased: g.apply(own.headPartners, { x: g.view(product, 'm g h') }).y }
    }),
    words: 'an element of an op after the matmul needs others of it, along "h" of "m g h"',
  },
  {
    ...made('without_mean', { x: m, w: tensor('T', 'g*h k') }, (g, x) => {
      const product = g.matmul(linear, of(x, 'x'), of(x, 'w'))
      return { product, centred: g.apply(own.withoutMean, { x: g.view(product, 'm g h') }).y }
    }),
    words: 'an op after the matmul reduces it along "m" and "h" of "m g h"',
  },
  {
    ...made('by_extent', { x: m, w: tensor('T', 'n k') }, (g, x) => {
      const product = g.matmul(linear, of(x, 'x'), of(x, 'w'))
      return { product, scaled: g.apply(own.byExtent, { x: product }, {}, { v: 'v' }).y }
    }),
    words: 'scaled computes with the extent v, which no tensor of by_extent has',
  },
  {
    ...made('elements_untold', { x: m, w: tensor('T', 'g*h*v k'), bias: tensor('T', 'h') }, (g, x) => {
      const product = g.matmul(linear, of(x, 'x'), of(x, 'w'))
      return { product, biased: g.apply(own.middleBias, { x: g.view(product, 'm g h v'), bias: of(x, 'bias') }).y }
    }),
    words: 'no tensor of the epilogue has all of "v", by which "g h v" is split',
  },
  {
    ...made('rows_for_columns', { x: m, w: tensor('T', 'n k'), bias: tensor('T', 'm') }, (g, x) => {
      const product = g.matmul(linear, of(x, 'x'), of(x, 'w'))
      return { product, biased: g.apply(addBias, { x: g.view(product, 'n m'), bias: of(x, 'bias') }).y }
    }),
    words: 'splits axes where none of the other side ends',
  },
  {
    ...made('two_inputs', { x: m, z: m, w: tensor('T', 'n k') }, (g, x) => {
      const gate = g.matmul(linear, of(x, 'x'), of(x, 'w'))
      const up = g.matmul(linear, of(x, 'z'), of(x, 'w'))
      return { gate, up, both: g.apply(own.gated, { gate, up }).y }
    }),
    words: 'these have different inputs',
  },
  {
    ...made('two_shapes', { x: m, w: tensor('T', 'n k'), v: tensor('T', 'j k') }, (g, x) => ({
      gate: g.matmul(linear, of(x, 'x'), of(x, 'w')),
      up: g.matmul('m k, j k -> m j', of(x, 'x'), of(x, 'v')),
    })),
    words: 'have results of one shape',
  },
  {
    ...made(
      'norm_outside',
      { x: m, w: tensor('T', 'n k'), gamma: tensor('T', 'k') },
      (g, x) => {
        const normed = g.apply(own.rmsNorm, { x: of(x, 'x'), gamma: of(x, 'gamma') }).y
        return { normed, product: g.matmul(linear, normed, of(x, 'w')) }
      },
      { also: ['normed'] },
    ),
    words: 'rows that are computed while a matmul loads them are never stored',
  },
  {
    ...made('norm_across', { x: tensor('T', 'k m'), w: tensor('T', 'n k'), gamma: tensor('T', 'm') }, (g, x) => {
      const normed = g.apply(own.rmsNorm, { x: of(x, 'x'), gamma: of(x, 'gamma') }).y
      return { normed, product: g.matmul('k m, n k -> m n', normed, of(x, 'w')) }
    }),
    words:
      'product reads normed as "k m" and sums over k: a factor is computed in rows along the summed axis, so let normed make "m k"',
  },
]

/** Matmuls with one operand computed on load. */
export const computed: readonly ProductCase[] = [
  made('norm_in_front', { x: m, w: tensor('T', 'n k'), gamma: tensor('T', 'k'), bias: tensor('T', 'n') }, (g, x) => {
    const normed = g.apply(own.rmsNorm, { x: of(x, 'x'), gamma: of(x, 'gamma') }).y
    const product = g.matmul(linear, normed, of(x, 'w'))
    return { normed, product, biased: g.apply(addBias, { x: product, bias: of(x, 'bias') }).y }
  }),
  made(
    'layer_norm_in_front',
    { far: m, w: tensor('T', 'n k'), gamma: tensor('T', 'k'), beta: tensor('T', 'k'), bias: tensor('T', 'n') },
    (g, x) => {
      const normed = g.apply(layerNorm, { x: of(x, 'far'), gamma: of(x, 'gamma'), beta: of(x, 'beta') }).y
      const product = g.matmul(linear, normed, of(x, 'w'))
      return { normed, product, biased: g.apply(addBias, { x: product, bias: of(x, 'bias') }).y }
    },
  ),
  made(
    'summed_norm_gate_and_up',
    {
      ...{ x: m, r: m, gamma: tensor('T', 'k'), beta: tensor('T', 'k') },
      ...{ gateWeight: tensor('T', 'n k'), upWeight: tensor('T', 'n k') },
    },
    (g, x) => {
      const normed = g.apply(own.summedNorm, { x: of(x, 'x'), r: of(x, 'r'), gamma: of(x, 'gamma'), beta: of(x, 'beta') }).y
      const gate = g.matmul(linear, normed, of(x, 'gateWeight'))
      const up = g.matmul(linear, normed, of(x, 'upWeight'))
      return { normed, gate, up, both: g.apply(own.gated, { gate, up }).y }
    },
  ),
  made('scaled_in_front', { x: m, w: tensor('T', 'n k'), scale: tensor('f32', 'm') }, (g, x) => {
    const scaled = g.apply(own.rowScale, { x: of(x, 'x'), scale: of(x, 'scale') }).y
    return { scaled, product: g.matmul(linear, scaled, of(x, 'w')) }
  }),
  made(
    'norm_gate_and_up',
    { x: m, gateWeight: tensor('T', 'n k'), upWeight: tensor('T', 'n k'), gamma: tensor('T', 'k') },
    (g, x) => {
      const normed = g.apply(own.rmsNorm, { x: of(x, 'x'), gamma: of(x, 'gamma') }).y
      const gate = g.matmul(linear, normed, of(x, 'gateWeight'))
      const up = g.matmul(linear, normed, of(x, 'upWeight'))
      return { normed, gate, up, both: g.apply(own.gated, { gate, up }).y }
    },
  ),
  made('balanced_gate_and_up', { x: m, v: tensor('T', 'n k'), w: tensor('T', 'n k'), weight: tensor('T', 'k') }, (g, x) => {
    const balance = g.apply(own.balanced, { x: of(x, 'x'), weight: of(x, 'weight') }).y
    const gate = g.matmul(linear, balance, of(x, 'v'))
    const up = g.matmul(linear, balance, of(x, 'w'))
    return { balance, gate, up, both: g.apply(own.gated, { gate, up }).y }
  }),
  made('balanced_in_front', { x: m, w: tensor('T', 'n k'), weight: tensor('T', 'k'), scale: tensor('f32', 'm') }, (g, x) => {
    const balance = g.apply(own.balanced, { x: of(x, 'x'), weight: of(x, 'weight') }).y
    const product = g.matmul(linear, balance, of(x, 'w'))
    return { balance, product, scaled: g.apply(own.rowScale, { x: product, scale: of(x, 'scale') }).y }
  }),
  made('centred_in_front', { x: m, w: tensor('T', 'n k') }, (g, x) => {
    const centred = g.apply(own.centred, { x: of(x, 'x') }).y
    return { centred, product: g.matmul(linear, centred, of(x, 'w')) }
  }),
  made('skewed_in_front', { x: m, w: tensor('T', 'n k') }, (g, x) => {
    const skewed = g.apply(own.skewed, { x: of(x, 'x') }).y
    return { skewed, product: g.matmul(linear, skewed, of(x, 'w')) }
  }),
  made('peaked_in_front', { x: m, w: tensor('T', 'n k') }, (g, x) => {
    const peaked = g.apply(own.peaked, { x: of(x, 'x') }).y
    return { peaked, product: g.matmul(linear, peaked, of(x, 'w')) }
  }),
  made('channel_weights', { x: m, w: tensor('i8', 'n k'), step: tensor('T', 'n'), bias: tensor('T', 'n') }, (g, x) => {
    const weight = g.apply(own.channelWeight, { w: of(x, 'w'), step: of(x, 'step') }).y
    const product = g.matmul(linear, of(x, 'x'), weight)
    return { weight, product, biased: g.apply(addBias, { x: product, bias: of(x, 'bias') }).y }
  }),
  made('group_weights', { x: m, w: tensor('u8', 'n h'), step: tensor('T', 'n g'), bias: tensor('T', 'n') }, (g, x) => {
    const weight = g.apply(own.groupWeight, { w: of(x, 'w'), step: of(x, 'step') }, {}, { k: 'k' }).y
    const product = g.matmul(linear, of(x, 'x'), weight)
    return { weight, product, biased: g.apply(addBias, { x: product, bias: of(x, 'bias') }).y }
  }),
  made('both_computed', { x: m, w: tensor('i8', 'n k'), step: tensor('T', 'n'), gamma: tensor('T', 'k') }, (g, x) => {
    const normed = g.apply(own.rmsNorm, { x: of(x, 'x'), gamma: of(x, 'gamma') }).y
    const weight = g.apply(own.channelWeight, { w: of(x, 'w'), step: of(x, 'step') }).y
    return { normed, weight, product: g.matmul(linear, normed, weight) }
  }),
  made('scaled_on_both_sides', { x: tensor('T', 'm k'), w: tensor('T', 'n k'), scale: tensor('f32', 'm') }, (g, x) => {
    const scaled = g.apply(own.rowScale, { x: of(x, 'x'), scale: of(x, 'scale') }).y
    const product = g.matmul(linear, scaled, of(x, 'w'))
    return { scaled, product, again: g.apply(own.rowScale, { x: product, scale: of(x, 'scale') }).y }
  }),
]

/** Matmuls whose kernel stores a partial result for each 32 columns of a row. */
export const partial: readonly ProductCase[] = [
  made(
    'moments',
    { x: m, w: tensor('T', 'n k'), bias: tensor('T', 'n'), r: tensor('T', 'm n') },
    (g, x) => {
      const product = g.matmul(linear, of(x, 'x'), of(x, 'w'))
      const biased = g.apply(addBias, { x: product, bias: of(x, 'bias') }).y
      const added = g.apply(add, { x: biased, y: of(x, 'r') }).z
      const { total, squares } = g.apply(own.rowMoments, { x: added }, {}, { g: 'g' })
      return { product, biased, total, alsoSquares: squares, added }
    },
    { also: ['total', 'alsoSquares'] },
  ),
  made(
    'largest',
    { x: m, w: tensor('T', 'n k'), u: tensor('T', 'n k') },
    (g, x) => {
      const gate = g.matmul(linear, of(x, 'x'), of(x, 'w'))
      const up = g.matmul(linear, of(x, 'x'), of(x, 'u'))
      const both = g.apply(own.gated, { gate, up }).y
      const { most, place } = g.apply(own.rowLargest, { x: both }, {}, { g: 'g' })
      return { gate, up, most, alsoPlace: place, both }
    },
    { also: ['most', 'alsoPlace'] },
  ),
]

/** A matmul that passes the moments of its rows to the next kernel. */
export const handedOn: readonly ProductCase[] = [
  made(
    'standardised',
    { x: m, w: tensor('T', 'n k'), r: tensor('T', 'm n') },
    (g, x) => {
      const product = g.matmul(linear, of(x, 'x'), of(x, 'w'))
      const added = g.apply(add, { x: product, y: of(x, 'r') }).z
      const { total, squares } = g.apply(own.rowMoments, { x: added }, {}, { g: 'g' })
      return { product, added, total, standard: g.apply(own.standardise, { x: added, total, squares }).y }
    },
    { outside: ['standard'] },
  ),
]

/** Partials that no kernel keeps. */
export const refusedPartials: readonly (ProductCase & { readonly words: string })[] = [
  {
    ...made('folded_at_once', { x: m, w: tensor('T', 'n k') }, (g, x) => {
      const product = g.matmul(linear, of(x, 'x'), of(x, 'w'))
      const { total, squares } = g.apply(own.rowMoments, { x: product }, {}, { g: 'g' })
      return { product, total, standard: g.apply(own.standardise, { x: product, total, squares }).y }
    }),
    words: 'reduces the partials of total over whole rows, in a kernel of its own',
  },
  {
    ...made(
      'shifted',
      { x: m, w: tensor('T', 'n k') },
      (g, x) => {
        const product = g.matmul(linear, of(x, 'x'), of(x, 'w'))
        return { product, total: g.apply(own.shiftedSums, { x: product }, {}, { g: 'g' }).total }
      },
      { also: ['product'] },
    ),
    words: 'total is not a plain reduction over 32 columns each, from a multiple of 32 on, as partials of a row are',
  },
  {
    ...made('places_of_all', { x: m, w: tensor('T', 'n k') }, (g, x) => {
      const product = g.matmul(linear, of(x, 'x'), of(x, 'w'))
      return { product, place: g.apply(own.wholePlaces, { x: product }, {}, { g: 'g' }).place }
    }),
    words: 'place is not a plain reduction over 32 columns each, from a multiple of 32 on, as partials of a row are',
  },
  {
    ...made('sums_in_front', { x: m, w: tensor('T', 'n k') }, (g, x) => {
      const sums = g.apply(own.sumsBefore, { x: of(x, 'x') }).y
      return { sums, product: g.matmul(linear, sums, of(x, 'w')) }
    }),
    words: 'node sums cannot be in the kernel: sums has a reduction for each element, which no row has in common',
  },
]
