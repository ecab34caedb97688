/** Requests that cannot be expressed: each is refused, for the stated reason. */
import { softmax } from '../../../specs/ops/softmax.js'
import { readSpecsOrThrow } from '../../../src/frontend/index.js'
import { graph, plan, tensor } from '../../../src/index.js'
import { planAll } from '../../../src/search/plans.js'
import { refusal } from '../../refusal.js'

/** Reads a single op. */
const read =
  (dtype: string, body: string, more = '') =>
  (): unknown =>
    readSpecsOrThrow({
      root: process.cwd(),
      specs: [],
      files: {
        'specs/wrong.ts':
          `import { op, tensor } from 'heddle'\nexport const wrong = op('wrong', {\n  dims: ['m', 'n'],\n` +
          `  inputs: { x: tensor('${dtype}', 'm n'), at: tensor('i32', 'm') },\n  outputs: { y: tensor('f32', 'm n') },\n  ${more}\n  body: ${body},\n})\n`,
      },
    })

const normal = graph('normal', {
  inputs: { x: tensor('T', 'm k') },
  weights: { w: tensor('T', 'n k') },
  build: (g, { x }, { w }) => {
    const product = g.matmul('m k, n k -> m n', x, w)
    const weights = g.apply(softmax, { x: product }).y
    return { nodes: { product, weights }, outputs: { weights } }
  },
})

/** Each ends in an error with this code and reason. */
export const refusals = {
  doublePrecision: {
    code: 'HED115',
    reason: 'f64 is neither a storage type nor a declared type parameter',
    act: read('f64', '({ x }) => (m, c) => ({ y: x(m, c) })'),
  },
  scatter: {
    code: 'HED132',
    reason: 'output y cannot be replaced in place: it reads another element of x than the one that it replaces',
    act: read('f32', '({ x, at }, { n }) => (m, c) => ({ y: x(m, c) + x(at(m), n - 1 - c) })', "updates: { y: 'x' },"),
  },
  loop: {
    code: 'HED103',
    reason: 'is not part of the language',
    act: read('f32', '({ x }, { n }) => (m) => { for (const c of [0]) { } return { y: x(m, n - 1) } }'),
  },
  rowOfProduct: {
    code: 'plan.illegal',
    reason: 'a reduction of a row of the matmul needs a kernel of its own',
    act: (): unknown => {
      const { kernels, standard, layouts } = readSpecsOrThrow({ root: process.cwd(), specs: ['specs/ops/softmax.ts'] })
      const plans = [plan('one', normal, { groups: { normal_inside: ['product', 'weights'] } })]
      return planAll(plans, { normal }, [...kernels, ...standard], layouts)
    },
  },
} as const

/** A module without faults. */
export const accepted = read('f32', '({ x, at }) => (m, c) => ({ y: x(m, c) + at(m) })')

/** The code and the message of the refusal of `act`. @throws if nothing is refused */
export function saidBy(act: () => unknown): string {
  const { code, message } = refusal(act)
  return `${code}: ${message}`
}
