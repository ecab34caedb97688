/** Forms of operations: fast where the storage type of every result hides it or the op asks for it, and exact otherwise. */
import { describe, expect, it } from 'vitest'
import { f32 } from '../../src/ir/build.js'
import type { DType } from '../../src/ir/dtype.js'
import type { Expr } from '../../src/ir/expr.js'
import { hashOf } from '../../src/ir/expr_hash.js'
import { accuracyOf } from '../../src/ir/facts/accuracy.js'
import { emittedForm } from '../../src/ir/forms.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { printStmt } from '../../src/ir/print.js'
import { structuralHash } from '../../src/ir/structural_hash.js'
import { mapStmt, rewrite, stmtExprs, visit } from '../../src/ir/walk.js'
import { chooseForms } from '../../src/schedule/normalise/forms.js'
import { verifyForms } from '../../src/schedule/verify/forms.js'
import { read, refuses } from '../frontend/refuse.js'

const module = `import { argmax, cos, exp, exp2, floor, log, monoid, op, round, row, sin, sqrt, sum, tensor, toInt } from 'heddle'
const ratio = monoid({ identity: { a: 1 }, combine: (p, q) => ({ a: p.a / (1 / q.a) }) })
`
const both = '(m) => ({ y: row(n, (c) => exp(x(m, c))), z: sum(n, (d) => exp(x(m, d))) })'
const silu = '(m, c) => ({ y: x(m, c) / (1 + exp(-x(m, c))) })'
const unhidden = '(m, c) => ({ y: log(exp2(x(m, c))) + (sin(x(m, c)) * cos(x(m, c))) / sqrt(x(m, c)) })'

/** Bodies over `x` and `w: m n` with the output `y: m n`, and further parts of the op. */
const written = {
  silu,
  softmax: '(m) => { const e = row(n, (c) => exp(x(m, c))); const s = sum(n, e); return { y: row(n, (c) => e(c) / s) } }',
  twice: '(m, c) => { const e = exp(x(m, c)); return { y: e, z: e } }',
  repeated: both,
  repeated_in_type: both,
  compared: '(m, c) => ({ y: exp(x(m, c)) > 0.5 ? 1 : 2 })',
  chosen: '(m, c) => ({ y: exp(x(m, c)) > w(m, c) ? w(m, c) : exp(w(m, c)) })',
  rounded_down: '(m, c) => ({ y: floor(exp(x(m, c))) })',
  indexed: '(m, c) => ({ y: toInt(exp(x(m, c))) * 0.5 })',
  placed: '(m) => { const at = argmax(n, (c) => exp(x(m, c))); return { y: row(n, (c) => x(m, c) * at) } }',
  difference: '(m, c) => ({ y: w(m, c) - exp(x(m, c)) })',
  exponent: '(m, c) => ({ y: exp(exp(x(m, c))) })',
  factors: '(m, c) => ({ y: exp(x(m, c)) * exp(w(m, c)) })',
  quotient_in_difference: '(m, c) => ({ y: w(m, c) - x(m, c) / exp(w(m, c)) })',
  root_in_sum: '(m, c) => ({ y: w(m, c) + sqrt(x(m, c)) })',
  exact_quotient: '(m, c) => ({ y: x(m, c) / w(m, c) })',
  quantised: '(m, c) => ({ y: round(exp(x(m, c)) * 3) })',
  rounded_before: '(m, c) => ({ y: round(exp(x(m, c))) * 3 })',
  third: '(m, c) => ({ y: exp(x(m, c)) / 3 })',
  unhidden,
  asked: unhidden,
  forbidden: silu,
  merged: '(m) => { const r = ratio.reduce(n, (c) => ({ a: x(m, c) })).a; return { y: row(n, () => r) } }',
} as const
type Name = keyof typeof written

const parts: Partial<Record<Name, string>> = {
  twice: "outputs: { y: tensor('T', 'm n'), z: tensor('f32', 'm n') },",
  repeated: "outputs: { y: tensor('T', 'm n'), z: tensor('f32', 'm') },",
  repeated_in_type: "outputs: { y: tensor('T', 'm n'), z: tensor('T', 'm') },",
  asked: "accuracy: 'fast',",
  forbidden: "accuracy: 'exact',",
  merged: "accuracy: 'fast',",
}

function opText(name: Name, part = parts[name] ?? ''): string {
  const body = written[name]
  const inputs = [...'xw'].filter((input) => body.includes(`${input}(m`))
  return `export const ${name} = op('${name}', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16', 'bf16', 'i8', 'f8e4m3'] },
  inputs: { ${inputs.map((input) => `${input}: tensor('f32', 'm n')`).join(', ')} },
  ${part.includes('outputs') ? '' : "outputs: { y: tensor('T', 'm n') },"}
  ${part}
  body: ({ ${inputs.join(', ')} }, { n }) => ${body},
})`
}

const specs = read(`${module}${(Object.keys(written) as Name[]).map((name) => opText(name)).join('\n')}`)
const kernels = new Map(specs.kernels.map((kernel) => [kernel.name, kernel]))

function kernelOf(name: Name): Kernel {
  const kernel = kernels.get(name)
  if (kernel === undefined) throw new Error(`no kernel ${name}`)
  return kernel
}

const inType = (name: Name, T: DType): Kernel => chooseForms({ kernel: kernelOf(name), types: { T }, dims: {} }).kernel
const printed = (kernel: Kernel): string => kernel.body.map(printStmt).join('\n')

/** Fast calls of an op in a storage type, as the functions of their source. */
function fast(name: Name, T: DType): readonly string[] {
  const found: string[] = []
  const see = (node: Expr): void => {
    if (node.kind !== 'call') return
    const text = emittedForm(node).cuda(['', ''], node.type)
    if (text.startsWith('heddle::fast')) found.push(text.slice('heddle::fast::'.length, text.indexOf('(')))
  }
  for (const expr of inType(name, T).body.flatMap(stmtExprs)) visit(expr, see)
  return found
}

describe('errors that a store hides', () => {
  it('are those of an exponential and a quotient, in types of at most 16 bits', () => {
    for (const type of ['f16', 'bf16', 'i8', 'f8e4m3'] as const)
      expect(fast('silu', type), type).toEqual(['quotient', 'exp_flushed'])
    expect(fast('softmax', 'f16')).toEqual(['exp', 'quotient'])
    expect(printed(inType('silu', 'f16'))).toContain('x[m1, c] /~ (1.0 + exp~(-x[m1, c]))')
  })
  it('are none in f32, whose body stays as it is', () => {
    for (const name of ['silu', 'softmax', 'third', 'root_in_sum'] as const)
      expect(printed(inType(name, 'f32')), name).toBe(printed(kernelOf(name)))
  })
  it('are not those of a value that an f32 output needs too, from the same or an equal expression', () => {
    expect(fast('twice', 'f16')).toEqual([])
    expect(fast('repeated', 'f16')).toEqual([])
    expect(fast('repeated_in_type', 'f16')).toEqual(['exp', 'exp'])
  })
  it('are not those of what decides: comparisons, indices, positions, roundings', () => {
    for (const name of ['compared', 'rounded_down', 'indexed', 'placed'] as const) expect(fast(name, 'f16'), name).toEqual([])
    expect(fast('chosen', 'f16')).toEqual(['exp_flushed'])
  })
  it('do not grow: differences and exponents are exact', () => {
    expect(fast('difference', 'f16')).toEqual([])
    expect(fast('exponent', 'f16')).toEqual(['exp_flushed'])
    expect(fast('factors', 'f16')).toEqual(['exp', 'exp'])
  })
  it('are those of roots and quotients in a difference, whose arithmetic errs as much', () => {
    expect(fast('quotient_in_difference', 'f16')).toEqual(['quotient'])
    expect(fast('root_in_sum', 'bf16')).toEqual(['sqrt'])
  })
  it('are none where results are exact on small integers', () => {
    expect(fast('exact_quotient', 'f16')).toEqual([])
  })
  it('are hidden by the rounding of an int8 quantiser, and no other', () => {
    expect(fast('quantised', 'i8')).toEqual(['exp'])
    expect(fast('quantised', 'f16')).toEqual([])
    expect(fast('rounded_before', 'i8')).toEqual([])
  })
  it('are those of a reciprocal of a literal', () => {
    expect(printed(inType('third', 'f16'))).toContain('exp~(x[m1, c]) *~ 0.333')
    expect(printed(inType('third', 'f32'))).toContain('exp(x[m1, c]) / 3.0')
  })
})

describe('accuracy', () => {
  it('asks for every fast form, in f32 too', () => {
    expect([...fast('asked', 'f32')].sort()).toEqual(['cos', 'exp2', 'log', 'quotient', 'sin', 'sqrt'])
    expect(fast('unhidden', 'f16')).toEqual(['quotient'])
  })
  it('forbids them all', () => {
    expect(fast('forbidden', 'f16')).toEqual([])
  })
  it('reaches the monoids of an op', () => {
    const [merge] = kernelOf('merged').body
    expect(merge?.kind === 'merge' ? merge.monoid.combine.map((expr) => 'form' in expr && expr.form) : []).toEqual(['fast'])
  })
  it('is one of two words', () => {
    refuses(`${module}${opText('silu', 'accuracy: «"quick" as never»,')}`, {
      code: 'signature',
      message: "expected the accuracy 'fast' or 'exact', got \"quick\"",
      hint: "write accuracy: 'fast', or leave it out: operations are then fast where the storage type of the results hides it",
    })
  })
  it('is part of the identity of an expression', () => {
    expect(structuralHash(kernelOf('silu').body)).not.toBe(structuralHash(kernelOf('forbidden').body))
    const open: Expr = { kind: 'call', type: 'f32', fn: 'exp', args: [f32(1)] }
    const hashes = [open, { ...open, form: 'exact' }, { ...open, form: 'fast' }].map((each) => hashOf(each as Expr))
    expect(new Set(hashes).size).toBe(3)
  })
})

describe('verification', () => {
  const chosen = inType('silu', 'f16')
  const changed = (change: (node: Expr) => Expr): Kernel => ({
    ...chosen,
    body: chosen.body.map((stmt) => mapStmt(stmt, (root) => rewrite(root, change))),
  })
  it('passes forms, and a quotient by a literal as a product', () => {
    expect(() => verifyForms(kernelOf('silu'), chosen)).not.toThrow()
    expect(() => verifyForms(kernelOf('third'), inType('third', 'f16'))).not.toThrow()
  })
  it('finds another function, another operand, and a form of an operation that has none', () => {
    const faults: readonly ((node: Expr) => Expr)[] = [
      (node) => (node.kind === 'call' && node.fn === 'exp' ? { ...node, fn: 'exp2' } : node),
      (node) => (node.kind === 'const' ? f32(2) : node),
      (node) => (node.kind === 'call' && node.fn === 'neg' ? { ...node, form: 'fast' } : node),
    ]
    for (const fault of faults) expect(() => verifyForms(kernelOf('silu'), changed(fault))).toThrow('computes something else')
    expect(() => verifyForms(kernelOf('third'), kernelOf('silu'))).toThrow('computes something else')
  })
})

describe('tolerances', () => {
  it('count the errors of the forms', () => {
    expect(accuracyOf(inType('silu', 'f32')).y).toMatchObject({ class: 'transcendental' })
    expect(accuracyOf(inType('silu', 'f16')).y).toMatchObject({ class: 'reduction', length: 1 })
  })
})
