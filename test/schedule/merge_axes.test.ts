/** Axes that every access walks as one run become one axis, and no others. */
import { expect, it } from 'vitest'
import type { Kernel } from '../../src/ir/kernel.js'
import { printAxis } from '../../src/ir/row_axis.js'
import { mapKernel, schedulePasses } from '../../src/schedule/map.js'
import { mergeAxes } from '../../src/schedule/normalise/merge_axes.js'
import { read } from '../frontend/refuse.js'

/** Dimensions of x and y, the body, and the axes that remain; none if the kernel stays as it is. The last axis is a loop if it is not merged. */
const cases = {
  channels_last: ['b c h w', 'b h w c', '(b, h, w, c) => ({ y: x(b, c, h, w) })', 'b1 < b, w1 < h * w'],
  channels_first: ['b h w c', 'b c h w', '(b, c, h, w) => ({ y: x(b, h, w, c) })', 'b1 < b, c1 < c, w1 < h * w'],
  two_blocks: ['c h b w', 'b w c h', '(b, w, c, h) => ({ y: x(c, h, b, w) })', 'w1 < b * w, h1 < c * h'],
  copy: ['b h w', 'b h w', '(b, h, w) => ({ y: x(b, h, w) * 2 })', 'b1 < b, w1 < h * w'],
  further_down: ['b h w', 'b h w', '(b, h, w) => ({ y: x(b + 1, h, w) })', 'b1 < b, w1 < h * w'],
  value_per_place: ['b h w', 'b h w', '(b, h, w) => ({ y: x(b, h, w) + places(h, w) })', 'b1 < b, w1 < h * w'],
  // The inner pair stays apart.
  value_per_column: ['b h w', 'b h w', '(b, h, w) => ({ y: x(b, h, w) * places(0, w) })', 'h1 < b * h'],
  under_a_condition: ['b h w', 'b h w', '(b, h, w) => ({ y: w > 0 ? x(b, h, w - 1) : 0 })', 'h1 < b * h'],
  // All stay apart.
  matrix: ['h w', 'h w', '(h, w) => ({ y: x(h, w) * 2 })', undefined],
  reversed: ['b h w', 'w h b', '(w, h, b) => ({ y: x(b, h, w) })', undefined],
  exchanged: ['b w h c', 'b h w c', '(b, h, w, c) => ({ y: x(b, w, h, c) })', undefined],
  value_of_an_index: ['b h w', 'b h w', '(b, h, w) => ({ y: x(b, h, w) * h })', undefined],
  place_of_a_table: ['b h w', 'b h w', '(b, h, w) => ({ y: x(b, at(h), w) })', undefined],
} as const

const others = { places: "tensor('T', 'h w')", at: "tensor('i32', 'h')" }
const text = Object.entries(cases).map(([name, [x, y, body]]) => {
  const used = Object.entries(others).filter(([other]) => body.includes(`${other}(`))
  const inputs = [['x', `tensor('T', '${x}')`], ...used].map((each) => each.join(': ')).join(', ')
  const dims = ['b', 'c', 'h', 'w'].filter((dim) => x.split(' ').includes(dim)).map((dim) => `'${dim}'`)
  return `export const ${name} = op('${name}', { dims: [${dims}], types: { T: ['f16'] }, inputs: { ${inputs} },
  outputs: { y: tensor('T', '${y}') }, body: ({ x${used.map(([other]) => `, ${other}`).join('')} }) => ${body} })`
})
const { kernels } = read(`import { op, tensor } from 'heddle'\n${text.join('\n')}`)
const named = (name: string): Kernel => {
  const kernel = kernels.find((each) => each.name === name)
  if (kernel === undefined) throw new Error(`the spec of ${name} is refused`)
  return kernel
}
const mergedOf = (name: string, dims: Readonly<Record<string, number>> = {}): string | undefined =>
  mergeAxes({ kernel: named(name), dims })
    ?.rows.map(printAxis)
    .join(', ')

it.each(Object.entries(cases))('%s', (name, [, , , axes]) => {
  expect(mergedOf(name)).toBe(axes)
})

it('a loop of constant length is not merged: its chunks are known to be whole', () => {
  expect(mergedOf('copy', { w: 64 })).toBe('h1 < b * h')
  expect(mergedOf('copy', { h: 64 })).toBe('b1 < b, w1 < h * w')
})

it('a faulty merge is found by the verifier', () => {
  const kernel = named('copy')
  const faulty: typeof schedulePasses = { ...schedulePasses, mergeAxes: () => ({ ...kernel, rows: kernel.rows.slice(1) }) }
  expect(() => mapKernel({ kernel, types: { T: 'f16' }, dims: {} }, undefined, undefined, faulty)).toThrow('after merging axes')
})

it('two rows that are stored keep indices of their own', () => {
  const {
    kernels: [kernel],
  } = read(`import { op, tensor } from 'heddle'
export const both = op('both', { dims: ['b', 'h', 'w'], types: { T: ['f16'] }, inputs: { x: tensor('T', 'b h w') },
  outputs: { y: tensor('T', 'b h w'), z: tensor('f32', 'b h w') }, body: ({ x }, { w }) => (b, h, c) => ({ y: x(b, h, w - 1 - c), z: 0 }) })`)
  if (kernel === undefined) throw new Error('the spec is refused')
  expect(mergeAxes({ kernel, dims: {} })?.rows.map(printAxis)).toEqual(['h1 < b * h'])
  expect(() => mapKernel({ kernel, types: { T: 'f16' }, dims: {} })).not.toThrow()
})
