/** Kernels that replace elements in place compute the same as their bodies, for positions inside and outside of the axis. */
import { beforeAll, describe, expect, it } from 'vitest'
import { evaluateKernel, forEachPoint, type HostTensor } from '../../src/ir/evaluate.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { printKernel } from '../../src/ir/print.js'
import { placeUpdates } from '../../src/ir/update.js'
import { verifyKernel } from '../../src/ir/verify.js'
import { visitKernel } from '../../src/ir/walk.js'
import { read } from '../frontend/refuse.js'

/** Modules of ops, by the names of these. */
const modules = new Map<string, string>()

/** Kernels of all modules, which are read together: a type check for each would take more than all else here. */
const kernels = new Map<string, Kernel>()

/** An op that updates `cache`, by the dimensions of `cache` and the body. It is available inside tests. */
function op(dims: string, rows: string, body: string, also = ''): () => Kernel {
  const name = `t${modules.size}`
  modules.set(
    name,
    `import { op, ${body.includes('total') ? 'sum, ' : ''}tensor } from 'heddle'
export const t = op('${name}', {
  dims: ['r', 's', 'o'],
  inputs: { cache: tensor('f32', '${dims}'), x: tensor('f32', 'r'), at: tensor('i32', 'r'), step: tensor('i32', 'o') },
  outputs: { y: tensor('f32', '${dims}') },
  updates: { y: 'cache' },
  body: ({ cache, x, at, step }) => (${rows}) => {
    ${also}
    return { y: ${body} }
  },
})
`,
  )
  return () => {
    const kernel = kernels.get(name)
    if (kernel === undefined) throw new Error('no kernel')
    return kernel
  }
}

beforeAll(() => {
  const found = read(Object.fromEntries([...modules].map(([name, text]) => [`${name}.ts`, text])))
  expect(found.diagnostics.filter(({ code }) => code !== 'HED112')).toEqual([])
  for (const kernel of found.kernels) kernels.set(kernel.name, kernel)
})

/** Every argument used, so that none is refused as unused: adds nothing. */
const all = '0 * (x(r) + at(r) + step(0))'
const cases: readonly (readonly [name: string, kernel: () => Kernel, rows: number])[] = [
  ['first axis', op('s r', 's, r', `s === step(0) ? x(r) + ${all} : cache(s, r)`), 0],
  ['last axis, one place', op('r s', 'r, s', `s === step(0) ? x(r) + ${all} : cache(r, s)`), 1],
  ['last axis, a place each', op('r s', 'r, s', `s === at(r) ? x(r) + ${all} : cache(r, s)`), 1],
  ['first axis, a place each', op('s r', 's, r', `at(r) === s ? x(r) + ${all} : cache(s, r)`), 1],
  [
    'named values',
    op('s r', 's, r', 'here ? value : cache(s, r)', `const here = s === step(0)\nconst value = s + x(r) + ${all}`),
    0,
  ],
  // A condition that selects no position is evaluated for every element: no axis is left out.
  ['every place up to one', op('r s', 'r, s', `s <= at(r) ? x(r) + ${all} : cache(r, s)`), 1],
  ['an interval of places', op('s r', 's, r', `s >= at(r) && s < at(r) + step(0) ? s + x(r) + ${all} : cache(s, r)`), 1],
  ['a place that knows the index', op('s r', 's, r', `s === s * at(r) ? x(r) + ${all} : cache(s, r)`), 1],
  [
    'a named interval',
    op('r s', 'r, s', 'here ? x(r) : cache(r, s)', `const here = s > at(r) - 2 && s <= step(0) + 0 * at(r)`),
    1,
  ],
  ['new values that know the place', op('r s', 'r, s', `s === at(r) + step(0) ? s * x(r) + ${all} : cache(r, s)`), 1],
]

const interval = op('r s', 'r, s', `s >= at(r) && s < step(0) ? x(r) : cache(r, s)`)
const longerInterval = op('r s', 'r, s', `s >= at(r) && s <= step(0) ? x(r) : cache(r, s)`)
const shown = op('s r', 's, r', `s === step(0) ? x(r) + at(r) : cache(s, r)`)
const conditional = op(
  's r',
  's, r',
  'old > total ? old / 2 : cache(s, r)',
  ['const old = cache(s, r)', 'const total = sum(6, (c) => x(r) * old + (at(r) + step(0)) * c)'].join('\n'),
)

type Dims = Readonly<Record<string, number>>

function tensors(kernel: Kernel, dims: Dims, step: number): Record<string, HostTensor> {
  return Object.fromEntries(
    kernel.tensors
      .filter(({ access }) => access === 'in')
      .map(({ name, dims: names }) => {
        const shape = names.map((dim) => dims[dim] ?? 0)
        const length = shape.reduce((a, b) => a * b, 1)
        const value = (i: number): number => (name === 'step' ? step : name === 'at' ? (i * 2) % 7 : name === 'x' ? 100 + i : i)
        return [name, { shape, data: Float64Array.from({ length }, (_, i) => value(i)) }]
      }),
  )
}

/** Differences between a placed kernel and its body. */
function differences(kernel: Kernel, placed: Kernel): string[] {
  const found: string[] = []
  forEachPoint([7, 5, 4], ([step = 0, s = 0, r = 0]) => {
    const dims = { r: r + 1, s: s + 1, o: 1 }
    const given = tensors(kernel, dims, step - 1)
    const [expected, actual] = [kernel, placed].map((each) => Array.from(evaluateKernel(each, given, dims).y?.data ?? []))
    if (JSON.stringify(expected) !== JSON.stringify(actual)) found.push(`step ${step - 1} of ${s + 1}`)
  })
  return found
}

describe('placeUpdates', () => {
  it.each(cases)('%s', (_, make, rows) => {
    const kernel = make()
    const placed = placeUpdates(kernel)
    verifyKernel(placed, 'test')
    expect(placed.rows).toHaveLength(rows)
    const reads: string[] = []
    visitKernel(placed, (expr) => {
      if (expr.kind === 'load') reads.push(expr.tensor)
    })
    expect(reads).not.toContain('cache')
    expect(differences(kernel, placed)).toEqual([])
  })

  it('is noticed if it stores at a neighbouring place, or without a bounds check', () => {
    const kernel = cases[0]?.[1]()
    if (kernel === undefined) throw new Error('no case')
    const placed = placeUpdates(kernel)
    const beside = placed.body.map((stmt) =>
      stmt.kind === 'storeRow' ? { ...stmt, rows: [{ kind: 'const', type: 'i32', value: 0 } as const] } : stmt,
    )
    expect(differences(kernel, { ...placed, body: beside }).length).toBeGreaterThan(0)
    const unasked = placed.body.map((stmt) => {
      if (stmt.kind !== 'storeRow') return stmt
      const { when: _, ...rest } = stmt
      return rest
    })
    expect(() => differences(kernel, { ...placed, body: unasked })).toThrow('is outside its shape')
  })

  it('is noticed when an interval is one place too long', () => {
    expect(differences(interval(), placeUpdates(longerInterval())).length).toBeGreaterThan(0)
  })

  it('shows the derived form', () => {
    const text = printKernel(placeUpdates(shown()))
    expect(text).toContain('out y: f32[s, r] updates cache')
    expect(text).toContain('once')
    expect(text).toContain('let place: i32 = step[0]')
    expect(text).toContain('y[place, r1] = x[r1] + toFloat(at[r1]) for r1 < r when inside')
  })

  it('reads values first that a reduction or a condition uses before they are replaced', () => {
    const kernel = conditional()
    const [first, ...rest] = placeUpdates(kernel).body
    expect(first).toMatchObject({ kind: 'let', value: { kind: 'load', tensor: 'cache' } })
    const again = placeUpdates(kernel)
    const later: string[] = []
    visitKernel({ ...again, body: rest.filter(({ kind }) => kind !== 'store') }, (expr) => {
      if (expr.kind === 'load') later.push(expr.tensor)
    })
    expect(later).not.toContain('cache')
    expect(differences(kernel, again)).toEqual([])
  })

  it('does not change other kernels', () => {
    const kernel = cases[0]?.[1]()
    if (kernel === undefined) throw new Error('no case')
    const plain = { ...kernel, tensors: kernel.tensors.map(({ updates: _, ...tensor }) => tensor) }
    expect(placeUpdates(plain)).toBe(plain)
  })
})
