/**
 * Faults planted into passes of derivation: each must cause a wrong kernel for one of the random graphs, and be found. A fault that no graph shows
 * means that the graphs are too tame.
 */
import { describe, expect, it, vi } from 'vitest'
import type { Roles } from '../../src/fuse/attention/roles.js'
import type { Derived } from '../../src/fuse/rows/derive.js'
import { call, f32, i32, index } from '../../src/ir/build.js'
import type { Expr, ExprOf } from '../../src/ir/expr.js'
import type { Kernel, Stmt } from '../../src/ir/kernel.js'
import type { MatmulKernel } from '../../src/ir/template.js'
import { mapStmt, rewrite, substitute } from '../../src/ir/walk.js'
import type { Family } from './random_graphs.js'

/** Graphs of a family that a fault is looked for in. */
const tried = 150

type Rule = (node: Expr, kernel: Kernel) => Expr

const changed = (kernel: Kernel, rule: Rule): Kernel => ({
  ...kernel,
  body: kernel.body.map((stmt) => mapStmt(stmt, (expr) => rewrite(expr, (node) => rule(node, kernel)))),
})

/** A fault in every expression that row programs, epilogues and operands are derived with. */
const inRows = (rule: Rule) => ({
  module: '../../src/fuse/rows/derive.js',
  patch: (actual: Record<string, unknown>) => {
    const derive = actual.deriveKernel as (...args: unknown[]) => Derived
    return {
      deriveKernel: (...args: unknown[]): Derived => {
        const derived = derive(...args)
        return { ...derived, kernel: changed(derived.kernel, rule) }
      },
    }
  },
})

/** A fault in the derivation for a matmul. */
const inProducts = (change: (kernel: MatmulKernel) => MatmulKernel) => ({
  module: '../../src/fuse/product/matmul.js',
  patch: (actual: Record<string, unknown>) => {
    const derive = actual.deriveProducts as (...args: unknown[]) => Derived<MatmulKernel>
    return {
      deriveProducts: (...args: unknown[]): Derived<MatmulKernel> => {
        const derived = derive(...args)
        return { ...derived, kernel: change(derived.kernel) }
      },
    }
  },
})

const inRoles = (change: (roles: Roles) => Roles) => ({
  module: '../../src/fuse/attention/roles.js',
  patch: (actual: Record<string, unknown>) => {
    const rolesOf = actual.rolesOf as (...args: unknown[]) => Roles
    return { rolesOf: (...args: unknown[]): Roles => change(rolesOf(...args)) }
  },
})

const swapped = <T>([first, second, ...more]: readonly T[]): T[] => [second, first, ...more].flatMap((item) => item ?? [])
const isCall = (node: Expr, fn: string): node is ExprOf<'call'> => node.kind === 'call' && node.fn === fn
const first = (node: ExprOf<'call'>): Expr => node.args[0] ?? node
const second = (node: ExprOf<'call'>): Expr => node.args[1] ?? node

const epilogue = (kernel: MatmulKernel, rule: Rule): MatmulKernel => ({ ...kernel, epilogue: changed(kernel.epilogue, rule) })
/** A tensor of a column or of a row. */
const isVector = (node: Expr): node is ExprOf<'load'> => node.kind === 'load' && node.indices.length === 1

/** Elements of the last tensor with the same axes, for elements of this one. */
function fromAnother(node: Expr, kernel: Kernel): Expr {
  if (node.kind !== 'load') return node
  const own = kernel.tensors.find(({ name }) => name === node.tensor)
  const like = kernel.tensors.filter(
    ({ access, dims, dtype }) => access === 'in' && dims.join() === own?.dims.join() && dtype !== 'i32',
  )
  return { ...node, tensor: own?.dtype === 'i32' ? node.tensor : (like.at(-1)?.name ?? node.tensor) }
}

/** The index of the row for that of the column, and the other way round, where vectors are read. */
function exchanged(kernel: Kernel): Kernel {
  const [row] = kernel.rows
  const exchange = (stmt: Stmt): Stmt => {
    if (row === undefined || !('index' in stmt)) return stmt
    const other = new Map([
      [row.index, index(stmt.index)],
      [stmt.index, index(row.index)],
    ])
    return mapStmt(stmt, (expr) => rewrite(expr, (node) => (isVector(node) ? substitute(node, other) : node)))
  }
  return { ...kernel, body: kernel.body.map(exchange) }
}

/** Loops renamed one by one, without making names distinct first. */
function captured(expr: Expr): Expr {
  let count = 0
  return rewrite(expr, (node) => {
    if (node.kind !== 'fold') return node
    count += 1
    const name = `fold${count}`
    return { ...node, index: name, value: substitute(node.value, new Map([[node.index, index(name)]])) }
  })
}

interface Fault {
  readonly module: string
  readonly patch: (actual: Record<string, unknown>) => Record<string, unknown>
}

const planted: readonly (readonly [string, Family, Fault])[] = [
  [
    'two indices of a load are swapped',
    'rows',
    inRows((node) => (node.kind === 'load' && node.indices.length > 1 ? { ...node, indices: swapped(node.indices) } : node)),
  ],
  [
    'the second term of a sum is dropped',
    'rows',
    inRows((node) => (isCall(node, 'add') && node.type === 'f32' ? first(node) : node)),
  ],
  [
    'the outer part of a split axis is dropped, as if a view were not there',
    'rows',
    inRows((node) => (isCall(node, 'add') && node.type === 'i32' && isCall(first(node), 'mul') ? second(node) : node)),
  ],
  ['an element is read from another tensor of the same shape', 'rows', inRows(fromAnother)],
  [
    'a choice takes its other branch',
    'products',
    inRows((node) => (isCall(node, 'select') ? { ...node, args: [first(node), ...swapped(node.args.slice(1))] } : node)),
  ],
  [
    'any two places count as the same',
    'rows',
    { module: '../../src/fuse/space/positions.js', patch: () => ({ equalExprs: () => true }) },
  ],
  [
    'an operand of a product is transposed',
    'products',
    inProducts((kernel) => ({
      ...kernel,
      tensors: kernel.tensors.map((tensor) =>
        tensor.name === kernel.products[0].b.tensor ? { ...tensor, dims: swapped(tensor.dims) } : tensor,
      ),
    })),
  ],
  [
    'the bias of a column is lost',
    'products',
    inProducts((kernel) => epilogue(kernel, (node) => (isVector(node) ? f32(0) : node))),
  ],
  ['row and column are exchanged', 'products', inProducts((kernel) => ({ ...kernel, epilogue: exchanged(kernel.epilogue) }))],
  ['a residual is read from another tensor', 'products', inProducts((kernel) => epilogue(kernel, fromAnother))],
  [
    'the range of keys is one too long',
    'attention',
    {
      module: '../../src/fuse/attention/masks.js',
      patch: (actual) => {
        const rangeOf = actual.rangeOf as (...args: unknown[]) => { lower: Expr; upper: Expr }
        return {
          rangeOf: (...args: unknown[]) => {
            const range = rangeOf(...args)
            return { ...range, upper: call('add', range.upper, i32(1)) }
          },
        }
      },
    },
  ],
  [
    'the range of keys has no lower end',
    'attention',
    {
      module: '../../src/fuse/attention/masks.js',
      patch: (actual) => {
        const rangeOf = actual.rangeOf as (...args: unknown[]) => { lower: Expr; upper: Expr }
        return { rangeOf: (...args: unknown[]) => ({ ...rangeOf(...args), lower: i32(0) }) }
      },
    },
  ],
  [
    '`h % g` for `idiv(h, q)`',
    'attention',
    inRoles((roles) => {
      const wrong = (expr: Expr): Expr => rewrite(expr, (node) => (isCall(node, 'idiv') ? { ...node, fn: 'mod' } : node))
      return { ...roles, key: { ...roles.key, axes: roles.key.axes.map(wrong) } }
    }),
  ],
  [
    'queries and keys are exchanged',
    'attention',
    inRoles((roles) => ({ ...roles, query: { ...roles.query, axes: roles.key.axes } })),
  ],
  [
    'any two expressions count as the same score',
    'attention',
    { module: '../../src/ir/canonical.js', patch: () => ({ isSameForm: () => true }) },
  ],
  [
    'an index is captured by the loop around it',
    'attention',
    { module: '../../src/ir/loop_names.js', patch: () => ({ renameLoops: captured }) },
  ],
  [
    'nodes run in another order than they wait for each other',
    'rows',
    {
      module: '../../src/fuse/graph/edit.js',
      patch: () => ({ sortNodes: (nodes: readonly unknown[]) => [...nodes].reverse() }),
    },
  ],
]

describe('planted faults are found', { timeout: 600_000 }, () => {
  it.each(planted)('%s (%s)', async (name, family, { module, patch }) => {
    vi.resetModules()
    vi.doMock(module, async (original) => {
      const actual = await original<Record<string, unknown>>()
      return { ...actual, ...patch(actual) }
    })
    const { judge } = await import('./random/judge.js')
    const { drawCase } = await import('./random_graphs.js')
    const found: string[] = []
    for (let seed = 1; seed <= tried && found.length === 0; seed++) {
      const drawn = drawCase(family, seed)
      try {
        const verdict = judge(drawn)
        if (verdict.kind === 'wrong') found.push(`${seed}: ${verdict.how}`)
      } catch (error) {
        found.push(`${seed}: ${error instanceof Error ? error.message : String(error)}`)
      }
    }
    vi.doUnmock(module)
    expect(found).toHaveLength(1)
    process.stdout.write(`${name}: seed ${found[0]?.slice(0, 140)}\n`)
  })
})
