/** Programs of a project: found by their exports, with errors at the author's line. */
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, it } from 'vitest'
import { readKernels } from '../../src/verify/check/specs.js'

const home = fileURLToPath(new URL('../..', import.meta.url))
const roots: string[] = []
afterEach(async () => {
  for (const root of roots.splice(0)) await rm(root, { recursive: true, force: true })
})

const head = `import { graph, op, plan, program, state, tensor } from 'heddle'
export const twice = op('twice', {
  dims: ['m', 'n'],
  types: { T: ['f32'] },
  inputs: { x: tensor('T', 'm n') },
  outputs: { y: tensor('T', 'm n') },
  body: (i) => (m, c) => ({ y: 2 * i.x(m, c) }),
})
export const layer = graph('layer', {
  inputs: { x: tensor('T', 'b*s n') },
  weights: {},
  build: (g, { x }) => {
    const y = g.apply(twice, { x }).y
    return { nodes: { y }, outputs: { y } }
  },
})
`

async function read(text: string) {
  const root = await mkdtemp(join(tmpdir(), 'heddle-programs-'))
  roots.push(root)
  await mkdir(join(root, 'specs'))
  await mkdir(join(root, 'node_modules'))
  await symlink(home, join(root, 'node_modules/heddle'))
  await writeFile(join(root, 'package.json'), '{ "name": "own", "type": "module" }\n')
  await writeFile(join(root, 'specs/index.ts'), `${head}${text}`)
  return readKernels(root)
}
const refusal = async (text: string) => {
  const error: unknown = await read(text).catch((thrown: unknown) => thrown)
  return error as { readonly code: string; readonly message: string; readonly places: readonly object[] }
}
const line = head.split('\n').length

it('are compiled ahead, with the graphs they apply and the library steps between them', async () => {
  const { programs, declared, kernels, refused } = await read(`
const padded = graph('padded', { inputs: { x: tensor('T', 'b*s n') }, weights: {}, build: (g, { x }) => {
  const y = g.apply(twice, { x }).y
  return { nodes: { y }, outputs: { y } }
} })
export const plans = [plan('ragged', layer, { packed: { batch: 'b', seq: 's', tokens: 't' }, groups: {} })]
export const programs = [program('model', {
  dims: { b: 2, s: 3, n: 4 },
  inputs: { x: tensor('T', 'b s n'), lengths: tensor('i32', 'b') },
  build: (p, { x, lengths }) => {
    const rows = p.ragged({ batch: 'b', seq: 's', lengths })
    const last = p.repeat('layer', 3, rows(x), (y) => p.apply(layer, { x: y }).y)
    return { y: p.apply(padded, { x: last }).y }
  },
})]`)
  expect(programs.map(({ compiled }) => `${compiled.name} ${compiled.plan}`)).toEqual(['model unfused', 'model ragged'])
  expect(Object.keys(declared).sort()).toEqual(['layer', 'padded'])
  expect(kernels.map(({ name }) => name)).toEqual(expect.arrayContaining(['twice', 'pack_rows', 'unpack_rows', 'locate_rows']))
  expect(refused).toEqual([])
})

it('are refused at their line if their parts do not fit', async () => {
  const wrong = await refusal(`export const programs = [program('model', {
  dims: { b: 2, s: 3, n: 4 },
  inputs: { x: tensor('T', 'b s n') },
  build: (p, { x }) => {
    const y = p.apply(layer, { x: x as never }).y
    return { y }
  },
})]`)
  expect(wrong).toMatchObject({ code: 'program.shape', places: [{ file: 'specs/index.ts', line: line + 4 }] })
  expect(wrong.message).toContain('model: layer: input x is "b*s n", x is "b s n"')
})

it('are refused at the application that a plan does not support, if no other program can run under it', async () => {
  const ragged =
    await refusal(`export const plans = [plan('ragged', layer, { packed: { batch: 'b', seq: 's', tokens: 't' }, groups: {} })]
export const programs = [program('model', {
  dims: { b: 2, s: 3, n: 4 },
  inputs: { x: tensor('T', 'b*s n') },
  build: (p, { x }) => ({
    y: p.apply(layer, { x }).y,
  }),
})]`)
  expect(ragged).toMatchObject({ code: 'plan.ragged', places: [{ file: 'specs/index.ts', line: line + 5 }] })
  expect(ragged.message).toContain('removes padding from layer, and model does not declare the lengths of its sequences')
})

it('are refused under two names, and as a plan of one', async () => {
  const one = `program('model', { dims: { b: 2, s: 3, n: 4 }, inputs: { x: tensor('T', 'b*s n') }, build: (p, { x }) => ({ y: p.apply(layer, { x }).y }) })`
  expect(await refusal(`export const programs = [${one}, ${one}]`)).toMatchObject({ code: 'specs.programs' })
  const planned = await refusal(`const model = ${one}
export const plans = [plan('across', model as never, { groups: { both: ['y'] } as never })]`)
  expect(planned).toMatchObject({ code: 'plan.graph', places: [{ file: 'specs/index.ts', line: line + 1 }] })
  expect(planned.message).toContain(
    'model is a program: a plan is for a graph, and a group cannot reach from one application to the next',
  )
})
