/** Facts inferred from bodies: errors of results, and ranges of integer inputs. */
import { describe, expect, it } from 'vitest'
import { accuracyOf } from '../../src/ir/facts/accuracy.js'
import { constrained } from '../../src/ir/facts/constrained.js'
import { bothDomains, evaluateCount, namesOf, renameCount } from '../../src/ir/facts/facts.js'
import { loopDims } from '../../src/ir/facts/loops.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { read } from '../frontend/refuse.js'

const imports =
  "import { abs, argmax, exp, gelu, idiv, log, max, maximum, minimum, op, round, row, rsqrt, shiftRightUnsigned, sqrt, sum, tensor, tanh, toFloat, wrappingAdd, wrappingMul } from 'heddle'"

interface Written {
  readonly body: string
  readonly outputs?: string
  readonly facts?: string
}

const declared = {
  x: "tensor('f32', 'm n')",
  w: "tensor('f32', 'm n')",
  ids: "tensor('i32', 'm')",
  table: "tensor('f32', 'v n')",
}

/** An op with a body over `x: m n`, `w: m n`, `ids: m` and `table: v n`, and the output `y: m n` or `outputs`. */
const opText = (name: string, { body, outputs = "{ y: tensor('f32', 'm n') }", facts = '{}' }: Written): string => {
  const inputs = Object.entries(declared).filter(([input]) => new RegExp(`\\b${input}\\(`).test(body))
  const usesEps = /\beps\b/.test(body)
  return `export const ${name} = op('${name}', {
  dims: ['m', 'n'${body.includes('table(') ? ", 'v'" : ''}],
  inputs: { ${inputs.map(([input, type]) => `${input}: ${type}`).join(', ')} },
  outputs: ${outputs},
  attrs: ${usesEps ? '{ eps: 0.5 }' : '{}'},
  facts: ${facts},
  body: ({ ${inputs.map(([input]) => input).join(', ')} }, { n${usesEps ? ', eps' : ''} }) => ${body},
})`
}

const mean = '(m) => { const s = sum(n, (c) => x(m, c)) / n; return { y: row(n, () => s) } }'
const integers = "{ y: tensor('i32', 'm n') }"
const written = {
  element: { body: '(m, c) => ({ y: x(m, c) })' },
  larger: { body: '(m, c) => ({ y: maximum(x(m, c), 0) })' },
  added: { body: '(m, c) => ({ y: x(m, c) + w(m, c) })' },
  scaled: { body: '(m, c) => ({ y: x(m, c) * 0.125 })' },
  scaled_otherwise: { body: '(m, c) => ({ y: x(m, c) * 0.1 })' },
  quotient: { body: '(m, c) => ({ y: x(m, c) / 3 })' },
  large_terms: { body: '(m, c) => ({ y: 1000 * x(m, c) - 999 * w(m, c) })' },
  called: { body: '(m, c) => ({ y: tanh(x(m, c)) })' },
  choice: { body: '(m, c) => ({ y: x(m, c) * 0.1 > 0.2 ? 1 : 2 })' },
  mean: { body: mean },
  total: { body: mean.replace(' / n', '') },
  softmax: {
    body: '(m) => { const top = max(n, (c) => x(m, c)); const e = row(n, (c) => exp(x(m, c) - top)); const s = sum(n, e); return { y: row(n, (c) => e(c) / s) } }',
  },
  norm: {
    body: '(m) => { const mean = sum(n, (c) => x(m, c)) / n; const v = sum(n, (c) => (x(m, c) - mean) ** 2) / n; return { y: row(n, (c) => (x(m, c) - mean) * rsqrt(v + eps) + w(m, c)) } }',
  },
  root_mean_square: {
    body: '(m) => { const v = sum(n, (c) => x(m, c) ** 2) / n; return { y: row(n, (c) => x(m, c) * rsqrt(v + eps)) } }',
  },
  stated: { body: '(m, c) => ({ y: tanh(x(m, c)) })', facts: "{ y: 'reduction' }" },
  gated: {
    body: '(m) => ({ y: sum(n, (c) => x(m, c)) * sum(n, (c) => x(m, c) * w(m, c)) })',
    outputs: "{ y: tensor('f32', 'm') }",
  },
  squared: {
    body: '(m) => { const s = sum(n, (c) => x(m, c)); return { y: s * tanh(s + s * s * s) } }',
    outputs: "{ y: tensor('f32', 'm') }",
  },
  total_scaled: { body: '(m, c) => ({ y: sum(n, (k) => x(m, k)) * w(m, c) })' },
  total_of_multiples: { body: '(m, c) => ({ y: sum(n, (k) => x(m, k) * (ids(m) + 1)) })' },
  total_by_place: { body: '(m, c) => ({ y: sum(n, (k) => x(m, k) * k) })' },
  multiple_of_total: { body: '(m, c) => ({ y: sum(n, (k) => x(m, k)) * (ids(m) + 1) })' },
  place: { body: '(m) => ({ y: argmax(n, (c) => x(m, c)) })', outputs: "{ y: tensor('i32', 'm') }" },
  looked_up: { body: '(m, c) => ({ y: table(ids(m), c) })' },
  looked_up_by_name: { body: '(m) => { const id = ids(m); return { y: row(n, (c) => table(id, c)) } }' },
  flag: { body: '(m, c) => ({ y: ids(m) === 0 ? x(m, c) : w(m, c) })' },
  number: { body: '(m, c) => ({ y: x(m, c) * toFloat(ids(m) + 1) })' },
  computed_place: { body: '(m, c) => ({ y: table(minimum(ids(m) + 1, 2), c) })' },
  hashed: {
    body: '(m, c) => ({ y: wrappingMul(wrappingAdd(ids(m), 7) ^ shiftRightUnsigned(ids(m), 16), 3) })',
    outputs: integers,
  },
  hashed_by_name: {
    body: '(m, c) => { const h = wrappingMul(ids(m), 3); return { y: h ^ shiftRightUnsigned(h, 16) } }',
    outputs: integers,
  },
  hashed_and_added: { body: '(m, c) => ({ y: wrappingMul(ids(m), 3) + ids(m) })', outputs: integers },
  hashed_place: { body: '(m, c) => ({ y: table(wrappingMul(ids(m), 3), c) })' },
  hashed_float: { body: '(m, c) => ({ y: toFloat(wrappingMul(ids(m), 3)) * x(m, c) })' },
  hashed_flag: { body: '(m, c) => ({ y: ids(m) === 0 ? 1 : wrappingMul(ids(m), 3) })', outputs: integers },
  hashed_amount: { body: '(m, c) => ({ y: shiftRightUnsigned(7, ids(m)) })', outputs: integers },
  hashed_locally: { body: '(m, c) => { const h = wrappingMul(ids(m), 3); return { y: minimum(h, 9) } }', outputs: integers },
  masked: { body: '(m, c) => ({ y: x(m, c) * ((ids(m) >> 4) & 15) })' },
  masked_place: { body: '(m, c) => ({ y: table(ids(m) & 15, c) })' },
  masked_and_added: { body: '(m, c) => ({ y: x(m, c) * ((ids(m) & 15) + ids(m)) })' },
  masked_by_another: { body: '(m, c) => ({ y: table(ids(m) & m, c) })' },
  compared: { body: '(m, c) => ({ y: c < ids(m) ? x(m, c) : 0 })' },
  length: { body: '(m, c) => ({ y: c < ids(m) ? x(m, c) : 0 })', facts: "{ ids: { from: 1, to: 'n' } }" },
  chosen: { body: '(m, c) => ({ y: table(ids(m), c) })', facts: '{ ids: { values: [0, 1] } }' },
  folded: { body: '(m) => ({ y: row(n, (c) => sum(n, (k) => x(m, k)) + x(m, c)) })' },
} satisfies Readonly<Record<string, Written>>

// All at once: a read checks types, which takes longer than all of these.
const { kernels, diagnostics } = read([imports, ...Object.entries(written).map(([name, each]) => opText(name, each))].join('\n'))

function kernelOf(name: keyof typeof written): Kernel {
  const found = kernels.find((kernel) => kernel.name === name)
  if (found === undefined) throw new Error(`no kernel ${name}`)
  return found
}

const accuracy = (name: keyof typeof written) => accuracyOf(kernelOf(name)).y

it('are read off ops that are all accepted', () => {
  expect(diagnostics.filter(({ code }) => code.startsWith('HED')).map(({ message }) => message)).toEqual([])
})

describe('how results err', () => {
  it.each([
    ['an element as it is', 'element', { class: 'exact', integers: true }],
    ['the larger of two', 'larger', { class: 'exact', integers: true }],
    ['a sum', 'added', { class: 'elementwise', integers: true }],
    ['a product by a power of two', 'scaled', { class: 'elementwise', integers: true, scale: 0 }],
    ['its twin, by another number', 'scaled_otherwise', { class: 'elementwise', integers: false, scale: 0 }],
    ['a quotient', 'quotient', { class: 'elementwise', integers: false, scale: 0 }],
    ['a difference of large terms', 'large_terms', { class: 'elementwise', integers: true, scale: 1000 }],
    ['a function', 'called', { class: 'transcendental', integers: false }],
    ['a choice that a rounding may turn', 'choice', { class: 'elementwise', integers: false, scale: 0 }],
    ['a softmax: relative', 'softmax', { class: 'reduction', integers: false, length: 'n', scale: 0 }],
    ['a norm, which needs rows that differ', 'norm', { class: 'reduction', integers: false, length: 'n', steep: true }],
    ['its twin that cannot cancel', 'root_mean_square', { class: 'reduction', integers: false, length: 'n', scale: 0 }],
    ['a mean, less than', 'mean', { class: 'reduction', integers: false, length: 'n' }],
    ['a sum of terms of either sign', 'total', { class: 'matmul', integers: true, length: 'n' }],
    ['a sum times another sum: by as much as that grows', 'gated', { class: 'matmul', integers: false, length: 'n', roots: 1 }],
    ['its twin, times a function of itself', 'squared', { class: 'matmul', integers: false, length: ['add', 'n', 8] }],
    ['its twin, times an element', 'total_scaled', { class: 'matmul', integers: true, length: 'n' }],
    ['a sum of multiples of one integer', 'total_of_multiples', { class: 'matmul', integers: true, length: 'n', scale: 100 }],
    ['its twin, a multiple of the sum', 'multiple_of_total', { class: 'matmul', integers: true, length: 'n', roots: 1 }],
    ['a sum of multiples by place', 'total_by_place', { class: 'matmul', integers: false, length: 'n', roots: 2 }],
    ['an integer: nothing', 'place', { class: 'exact', integers: true }],
    ['what an author states about', 'stated', { class: 'reduction', integers: false }],
  ] as const)('of %s', (_, name, expected) => {
    expect(accuracy(name)).toEqual(expected)
  })
})

describe('ranges of integer inputs', () => {
  const domain = (name: keyof typeof written) => kernelOf(name).facts?.inputs.ids

  it('places of a tensor that is indexed directly, by a name or not', () => {
    expect(domain('looked_up')).toEqual({ from: [0], to: [['sub', 'v', 1]] })
    expect(domain('looked_up_by_name')).toEqual(domain('looked_up'))
  })
  it('flags, if they are compared with numbers', () => {
    expect(domain('flag')).toEqual({ from: [0], to: [1] })
  })
  it('any number, if it is only used in arithmetic', () => {
    expect(domain('number')).toEqual({ from: [-100], to: [100] })
  })
  it('every integer, if only its bits are used', () => {
    expect(domain('hashed')).toEqual({ from: [-(2 ** 31)], to: [2 ** 31 - 1] })
    expect(domain('hashed_by_name')).toEqual(domain('hashed'))
  })
  it('every integer, if a number selects its bits', () => {
    expect(domain('masked')).toEqual(domain('hashed'))
    expect(domain('masked_place')).toEqual(domain('hashed'))
    expect(domain('masked_and_added')).toBeUndefined()
    expect(domain('masked_by_another')).toBeUndefined()
  })
  it.each(['hashed_and_added', 'hashed_place', 'hashed_float', 'hashed_flag', 'hashed_amount', 'hashed_locally'] as const)(
    'unknown, if anything else reads it or its bits: %s',
    (name) => {
      expect(domain(name)).toBeUndefined()
    },
  )
  it('unknown, if an index is computed or compared', () => {
    expect(domain('computed_place')).toBeUndefined()
    expect(domain('compared')).toBeUndefined()
  })
  it('as stated, whatever follows from the body', () => {
    expect(domain('length')).toEqual({ from: [1], to: ['n'] })
    expect(domain('chosen')).toEqual({ values: [0, 1] })
  })
})

describe('extents', () => {
  it('follow from facts, in any order', () => {
    const dims = { n: { equal: ['mul', 2, 'k'] as const }, k: { equal: 32 }, p: { atLeast: 'n' }, q: { atMost: 3 } }
    expect(constrained({ n: 5, k: 3, p: 1, q: 9, r: 4 }, { dims }, 1)).toEqual({ n: 64, k: 32, p: 64, q: 3, r: 4 })
    expect(constrained({ s: 1 }, { dims: { s: { atLeast: '(seq)' }, other: { equal: 7 } } }, 12)).toEqual({ s: 12 })
  })
})

describe('counts', () => {
  it('are evaluated, renamed and joined', () => {
    expect(evaluateCount(['sub', ['mul', 'w', 3], 1], { w: 5 })).toBe(14)
    expect(evaluateCount(['mul', 'w', 'q'], { w: 5 })).toBeUndefined()
    expect(namesOf(['add', 'a', ['mul', 'b', 2]])).toEqual(['a', 'b'])
    expect(renameCount(['add', 'a', 1], (name) => (name === 'a' ? ['mul', 'b', 's'] : undefined))).toEqual([
      'add',
      ['mul', 'b', 's'],
      1,
    ])
    expect(renameCount('a', () => undefined)).toBeUndefined()
    expect(bothDomains({ from: [0], to: [['sub', 's', 1]] }, { from: [-1], to: ['s'] })).toEqual({
      from: [0, -1],
      to: [['sub', 's', 1], 's'],
    })
  })
  it('name the dimensions that loops run over', () => {
    expect(loopDims(kernelOf('folded'))).toEqual(['n'])
    expect(loopDims(kernelOf('looked_up_by_name'))).toEqual(['n'])
  })
})
