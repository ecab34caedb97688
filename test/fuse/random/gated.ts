/** A layer that searches are tried on. */
import { call, dim, f32, index } from '../../../src/ir/build.js'
import { Draft } from './draft.js'

/** A norm before two matmuls, whose results are multiplied: the first half of a gated MLP. */
export function gated(): Draft {
  const draft = new Draft()
  const mn = { m: 'm', n: 'n' }
  const x = draft.op({
    over: ['m', 'k'],
    extents: { m: 'm', k: 'k' },
    reads: { x: { value: draft.input('m k'), dims: ['m', 'k'] } },
    body: ({ x: given }, { m = index('m') }) => {
      const element = (column: string) => given?.(m, index(column)) ?? f32(0)
      const square = call('mul', element('i'), element('i'))
      const scale = call('rsqrt', call('add', { kind: 'local', type: 'f32', name: 'sum' }, f32(1)))
      return [
        { kind: 'reduce', name: 'sum', type: 'f32', monoid: 'sum', length: dim('k'), index: 'i', value: square },
        { kind: 'storeRow', tensor: 'y', rows: [m], length: dim('k'), index: 'c', value: call('mul', element('c'), scale) },
      ]
    },
  })
  const [gate, up] = ['n k', 'n k'].map((shape) => draft.matmul('m k, n k -> m n', x, draft.input(shape)))
  const reads = { x: { value: gate ?? x, dims: ['m', 'n'] }, y2: { value: up ?? x, dims: ['m', 'n'] } }
  draft.output(
    draft.each(['m', 'n'], mn, reads, ({ x: one, y2: other }, { m = index('m'), n = index('n') }) =>
      call('mul', one?.(m, n) ?? f32(0), other?.(m, n) ?? f32(0)),
    ),
  )
  return draft
}
