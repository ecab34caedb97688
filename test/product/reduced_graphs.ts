/** Graphs of matmuls whose rows are reduced, for the tests of reduced_rows.ts. */
import { type GraphBuilder, type GraphTensor, tensor } from 'heddle'
import { addBias } from '../../specs/ops/add_bias.js'
import { type Decl, type Given, linear, m, made, of, type ProductCase } from './graphs.js'
import * as own from './ops/index.js'

/** A matmul whose rows are reduced by the last node, with its inputs besides the matmul. */
function reduction(
  name: string,
  more: Readonly<Record<string, Decl>>,
  outputs: readonly string[],
  build: (g: GraphBuilder, product: GraphTensor, x: Given) => Given,
): ProductCase {
  return made(
    name,
    { x: m, w: tensor('T', 'n k'), ...more },
    (g, x) => {
      const product = g.matmul(linear, of(x, 'x'), of(x, 'w'))
      const results = build(g, product, x)
      const [first = '', ...others] = outputs
      return {
        product,
        ...Object.fromEntries(others.map((key) => [`also_${key}`, of(results, key)])),
        [first]: of(results, first),
      }
    },
    { also: outputs.slice(1).map((key) => `also_${key}`) },
  )
}

const labels = { label: tensor('i32', 'm') }

/** Matmuls that are reduced along their rows and never stored. */
export const reducedRows: readonly ProductCase[] = [
  reduction('cross_entropy', labels, ['loss', 'lse'], (g, x, given) =>
    g.apply(own.crossEntropy, { x, label: of(given, 'label') }),
  ),
  reduction('best', {}, ['place'], (g, x) => g.apply(own.best, { x })),
  reduction('choice', { bias: tensor('T', 'n') }, ['weight', 'place', 'least'], (g, x, given) =>
    g.apply(own.choice, { x, bias: of(given, 'bias') }),
  ),
  reduction('nearest', { bias: tensor('T', 'n'), scale: tensor('f32', 'm') }, ['weighted', 'place', 'below'], (g, x, given) =>
    g.apply(own.nearest, { x, bias: of(given, 'bias'), scale: of(given, 'scale') }),
  ),
  reduction('masked', labels, ['total'], (g, x, given) => g.apply(own.masked, { x, label: of(given, 'label') })),
  made('biased_cross_entropy', { x: m, w: tensor('T', 'n k'), bias: tensor('T', 'n'), ...labels }, (g, x) => {
    const product = g.matmul(linear, of(x, 'x'), of(x, 'w'))
    const biased = g.apply(addBias, { x: product, bias: of(x, 'bias') }).y
    const { loss } = g.apply(own.crossEntropy, { x: biased, label: of(x, 'label') })
    return { product, biased, loss }
  }),
  made('best_of_batches', { x: tensor('T', 'b m k'), w: tensor('T', 'b n k') }, (g, x) => {
    const product = g.matmul('b m k, b n k -> b m n', of(x, 'x'), of(x, 'w'))
    return { product, place: g.apply(own.bestOfBatches, { x: product }).place }
  }),
  made('best_of_gated', { x: m, w: tensor('T', 'n k'), u: tensor('T', 'n k') }, (g, x) => {
    const gate = g.matmul(linear, of(x, 'x'), of(x, 'w'))
    const up = g.matmul(linear, of(x, 'x'), of(x, 'u'))
    const both = g.apply(own.gated, { gate, up }).y
    return { gate, up, both, place: g.apply(own.best, { x: both }).place }
  }),
]

/** Reductions of a matmul's rows that do not follow from parts of them. */
export const refusedRows: readonly (ProductCase & { readonly words: string })[] = [
  {
    ...reduction('variance', {}, ['y'], (g, x) => g.apply(own.variance, { x })),
    words: 'of the whole row, which no part of it knows',
  },
  {
    ...reduction('other_shift', { bias: tensor('T', 'n') }, ['y'], (g, x, given) =>
      g.apply(own.otherShift, { x, bias: of(given, 'bias') }),
    ),
    words: 'only sums of exponentials shifted by the maximum of their own exponents follow from parts',
  },
  {
    ...reduction('next', {}, ['y'], (g, x) => g.apply(own.next, { x })),
    words: 'is read at a column that follows from',
  },
  {
    ...reduction('rank', labels, ['y'], (g, x, given) => g.apply(own.rank, { x, label: of(given, 'label') })),
    words: 'reads an element of the matmul in another row or column than its own',
  },
  {
    ...reduction('two', {}, ['y'], (g, x) => g.apply(own.two, { x })),
    words: 'ranks a row, which is a kernel of its own',
  },
  {
    ...made(
      'stored_too',
      { x: m, w: tensor('T', 'n k') },
      (g, x) => {
        const product = g.matmul(linear, of(x, 'x'), of(x, 'w'))
        return { product, place: g.apply(own.best, { x: product }).place }
      },
      { also: ['product'] },
    ),
    words: 'a reduction of a row of the matmul needs a kernel of its own',
  },
]
