/** Ops made by functions: each call with literal arguments is a separate op, and everything else is refused at its place. */
import { describe, expect, it } from 'vitest'
import { printKernel } from '../../../src/ir/print.js'
import { read, refuses } from '../refuse.js'

const imports = "import { exp, maximum, op, tensor } from 'heddle'\n"

/** A factory of ops `y = f(x) * by`. */
const factory = `export const scaled = (name: string, by: number, f: (x: number) => number = (x) => x) =>
  op(name, {
    dims: ['m', 'n'],
    types: { T: ['f32', 'f16'] },
    inputs: { x: tensor('T', 'm n') },
    outputs: { y: tensor('T', 'm n') },
    body: ({ x }) => (m, c) => ({ y: f(x(m, c)) * by }),
  })
`

const printed = (sources: string | Readonly<Record<string, string>>): Record<string, string> => {
  const { kernels, diagnostics } = read(sources)
  expect(diagnostics.filter(({ code }) => code.startsWith('HED'))).toEqual([])
  return Object.fromEntries(
    kernels.map((kernel) => [kernel.name, printKernel(kernel).trimEnd().split('\n').at(-1)?.trim() ?? '']),
  )
}

describe('ops made by functions', () => {
  it('are one per call, with the given numbers and functions', () =>
    expect(
      printed(`${imports}${factory}
const relu = (x: number): number => maximum(x, 0)
export const half = scaled('half', 0.5)
export const twiceRelu = scaled('twice_relu', 2, relu)
export const minusExp = scaled('minus_exp', -1, exp)
export const squared = scaled('squared', 1 / 4, (x) => x * x)`),
    ).toEqual({
      half: 'y[m1, c] = x[m1, c] * 0.5 for c < n',
      twice_relu: 'y[m1, c] = maximum(x[m1, c], 0.0) * 2.0 for c < n',
      minus_exp: 'y[m1, c] = exp(x[m1, c]) * -1.0 for c < n',
      squared: 'y[m1, c] = x[m1, c] * x[m1, c] * 0.25 for c < n',
    }))

  it('come from functions of other modules, from objects taken apart, templates, defaults and functions that call them', () =>
    expect(
      printed({
        'factory.ts': `${imports}interface Options { prefix: string; power: number; offset?: number }
export function powered({ prefix, power: by, offset = 3 }: Options) {
  const shift = offset
  return op(\`\${prefix}_power_\${by}\`, {
    dims: ['m', 'n'],
    inputs: { x: tensor('f32', 'm n') },
    outputs: { y: tensor('f32', 'm n') },
    body: ({ x }) => (m, c) => ({ y: x(m, c) ** by + shift }),
  })
}`,
        'ops.ts': `import { powered } from './factory.js'
const shifted = (prefix: string) => powered({ prefix, power: 5, offset: 7 })
export const cube = powered({ prefix: 'plain', power: 3 })
export const fifth = shifted('shifted')`,
      }),
    ).toEqual({
      plain_power_3: 'y[m1, c] = pow(x[m1, c], 3.0) + 3.0 for c < n',
      shifted_power_5: 'y[m1, c] = pow(x[m1, c], 5.0) + 7.0 for c < n',
    }))

  it('have the place of the call', () => {
    const { kernels } = read(`${imports}${factory}export const half = scaled('half', 0.5)`)
    expect(kernels[0]?.source).toEqual({ file: 'specs/memory/refused.ts', line: 10, column: 21 })
  })
})

describe('refusals of ops made by functions', () => {
  it('a number that is not written out', () =>
    refuses(`${imports}${factory.replace('* by', '* «by»')}export const now = scaled('now', Date.now())`, {
      code: 'runtimeValue',
      message: 'by is not a constant known at compile time: it is Date.now(), in the op made at specs/memory/refused.ts:10',
      hint: 'pass it as an attribute of the op, or write a number',
    }))
  it('a name that is not written out', () =>
    refuses(
      `${imports}${factory}export const named = scaled(«String(1)», 1)`
        .replace('«String(1)»', 'String(1)')
        .replace('op(name', 'op(«name»'),
      {
        code: 'signature',
        message: 'name is not a string known at compile time, in the op made at specs/memory/refused.ts:10',
        hint: 'write literals, or a module-level const made of literals',
      },
    ))
  it('two calls with one name', () =>
    refuses(
      `${imports}${factory.replace('op(name', 'op(«name»')}export const a = scaled('same', 1)\nexport const b = scaled('same', 2)`,
      {
        code: 'duplicate',
        message: 'op same is declared twice, in the op made at specs/memory/refused.ts:11',
        hint: 'names are unique in the project',
      },
    ))
  it('a function that does more than return op(...)', () =>
    refuses(
      `${imports}function chosen(first: boolean) {
  if (first) return make('a')
  return make('b')
}
${factory.replaceAll('scaled', 'makeScaled')}const make = (name: string) => makeScaled(name, 1)
export const two = make('two')
export const one = «chosen(true)»`,
      {
        code: 'notExported',
        message: 'chosen returns an op, but does more than return op(...): it has an if statement in line 3',
        hint: 'a function that makes ops declares constants and returns op(...); its parameters may choose by condition ? a : b in a body',
      },
    ))
  it('functions that call each other', () =>
    refuses(
      `${imports}import type { Op } from 'heddle'
const a = (name: string): Op => b(name)
const b = (name: string): Op => a(name)
export const never = «a('x')»`,
      {
        code: 'recursion',
        message: 'a calls itself before it returns op(...)',
        hint: 'return op(...) at some point',
      },
    ))
})
