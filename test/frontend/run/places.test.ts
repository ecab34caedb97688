/** Errors in graphs and plans appear at the line in the author's source, with a caret at the wrong part. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { HeddleError } from '../../../src/errors.js'
import { readDeclarations, readSearched, readSpecsOrThrow, type Specs } from '../../../src/frontend/index.js'
import { planAll } from '../../../src/search/plans.js'
import { heddle, repository } from '../../cli/host.js'

const ops = `import { op, row, sum, tensor } from 'heddle'
const shape = { dims: ['r', 'c'], types: { T: ['f32'] }, outputs: { y: tensor('T', 'r c') } } as const
export const twice = op('twice', {
  ...shape,
  inputs: { x: tensor('T', 'r c') },
  attrs: { by: 2 },
  body: ({ x }, { by }) => (r, c) => ({ y: by * x(r, c) }),
})
export const plus = op('plus', {
  ...shape,
  inputs: { x: tensor('T', 'r c'), gap: tensor('T', 'c') },
  body: ({ x, gap }) => (r, c) => ({ y: x(r, c) + gap(c) }),
})
export const share = op('share', {
  ...shape,
  inputs: { x: tensor('T', 'r c') },
  body: ({ x }, { c }) => (r) => {
    const total = sum(c, (i) => x(r, i))
    return { y: row(c, (i) => x(r, i) / total) }
  },
})
export const next = op('next', {
  ...shape,
  inputs: { x: tensor('T', 'r c') },
  body: ({ x }) => (r, c) => ({ y: x(r, c + 1) }),
})
export const over = op('over', {
  ...shape,
  inputs: { x: tensor('T', 'r c') },
  body: ({ x }, { r }) => (m, c) => ({ y: x(m, c) / sum(r, (i) => x(i, c)) }),
})
`

/** A module with the marked statement or group; \`^\` lines say where the author is to be sent. */
const layerOf = ({
  build = '',
  more = '',
  outputs = '',
  plans = '',
}) => `import { graph, plan, autoPlan, tensor, type GraphTensor } from 'heddle'
import { next, over, plus, share, twice } from './ops.js'

export const layer = graph('layer', {
  inputs: { x: tensor('T', 'q w') },
  weights: { gap: tensor('T', 'w'), other: tensor('T', 'z') },
  build: (g, { x }, w) => {
    const doubled = g.apply(twice, { x }).y
    const moved = g.apply(plus, { x: doubled, gap: w.gap }).y
    const shared = g.apply(share, { x: moved }).y
    const last = g.apply(over, { x: shared }).y
    ${build}
    return { nodes: { doubled, moved, shared, last${more} }, outputs: { last${outputs} } }
  },
})
export const graphs = { any: layer }
const nodes = (...names: string[]) => names as 'doubled'[]
export const plans = [
  ${plans}
]
`

let folder: string
let specs: string
let compiled: Omit<Specs, 'diagnostics'>
beforeAll(async () => {
  await mkdir(join(repository, '.heddle'), { recursive: true })
  folder = await mkdtemp(join(repository, '.heddle', 'places-'))
  specs = relative(repository, folder)
  await writeFile(join(folder, 'ops.ts'), ops)
  compiled = readSpecsOrThrow({ root: repository, specs: [`${specs}/ops.ts`] })
})
afterAll(() => rm(folder, { recursive: true }))

async function refused(text: string): Promise<HeddleError> {
  await writeFile(join(folder, 'index.ts'), text)
  try {
    const { graphs, plans, locating } = await readDeclarations(repository, specs)
    locating(() => planAll(plans, graphs, [...compiled.kernels, ...compiled.standard]))
  } catch (error) {
    if (error instanceof HeddleError) return error
    throw error
  }
  throw new Error('nothing was refused')
}

/** The line above the caret, with the part under it. */
function pointed(message: string): string {
  const lines = message.split('\n')
  const at = lines.findIndex((line) => /^ +\| +\^+$/.test(line))
  const run = /\^+/.exec(lines[at] ?? '')
  return (lines[at - 1] ?? '').slice(run?.index ?? 0, (run?.index ?? 0) + (run?.[0].length ?? 0))
}

const group = (text: string) => `plan('p', layer, { groups: { ${text} } }),`

it.each<[string, Parameters<typeof layerOf>[0], string, string]>([
  ['a shape that does not fit', { build: 'g.apply(plus, { x, gap: w.other })' }, 'graph.shape', 'gap'],
  ['a rank that does not fit', { build: 'g.apply(plus, { x: w.gap, gap: w.gap })' }, 'graph.rank', 'x'],
  [
    'an axis that does not fit',
    { build: "const made = g.matmul('m k, n k -> m n', x, x); g.matmul('m k, k -> m', x, w.other)", more: ', made' },
    'graph.matmul',
    "'m k, k -> m'",
  ],
  ['no product', { build: "g.matmul('m k; n k', x, x)" }, 'graph.matmul', "'m k; n k'"],
  ['an axis twice', { build: "g.matmul('m m, m n -> m n', x, x)" }, 'graph.matmul', "'m m, m n -> m n'"],
  ['an axis in one operand only', { build: "g.matmul('m k, n m -> n', x, x)" }, 'graph.matmul', "'m k, n m -> n'"],
  ['a view of another size', { build: "g.view(x, 'q q')" }, 'graph.view', "'q q'"],
  ['no extent', { build: "g.view(x, 'q w+1')" }, 'graph.extent', "'q w+1'"],
  [
    'an input the op lacks',
    { build: 'g.apply(plus, { x, gap: w.gap, y: x } as { x: GraphTensor, gap: GraphTensor })' },
    'graph.input',
    'y',
  ],
  ['an attribute the op lacks', { build: 'g.apply(twice, { x }, { much: 3 } as { by: number })' }, 'graph.attribute', 'much'],
  [
    'a value that is not a tensor',
    { build: 'g.apply(plus, { x, gap: (w as Record<string, GraphTensor>).nope as GraphTensor })' },
    'graph.input',
    'apply',
  ],
  ['a node without a name', { build: 'g.apply(twice, { x: last })' }, 'graph.name', 'apply'],
  ['a node that is none', { more: ', odd: undefined as unknown as GraphTensor' }, 'graph.tensor', 'odd'],
  ['a group with a node the graph lacks', { plans: group("odd: nodes('doubled', 'moveed')") }, 'plan.node', "'moveed'"],
  [
    'nodes that cannot be one kernel',
    { plans: group("fine: ['doubled', 'moved'], odd: ['shared', 'last']") },
    'plan.illegal',
    'odd',
  ],
  ['a node in two groups', { plans: group("one: ['doubled', 'moved'], two: ['moved', 'shared']") }, 'plan.overlap', "'moved'"],
  ['a group of nothing', { plans: group('none: []') }, 'plan.empty', 'none'],
  ['a node twice in a group', { plans: group("two: ['doubled', 'doubled']") }, 'plan.overlap', "'doubled'"],
  ['a group that is called like an op', { plans: group("twice: ['doubled', 'moved']") }, 'plan.differ', 'twice'],
  ['two plans of one name', { plans: `${group("a: ['doubled', 'moved']")} ${group('')}` }, 'plan.duplicate', 'plan'],
  ['a group name that is none', { plans: group("'no such': ['doubled', 'moved']") }, 'plan.name', "'no such'"],
  ['a stack of one', { plans: "plan('p', layer, { stacked: { both: ['doubled'] }, groups: {} })," }, 'plan.stack', 'both'],
  ['a library group that is none', { plans: "plan('p', layer, { library: ['prod'], groups: {} })," }, 'plan.library', "'prod'"],
  [
    'an edge that has a layout',
    { plans: "plan('p', layer, { edges: { shared: { layout: { name: 'odd' } as never } }, groups: {} })," },
    'plan.edge',
    'shared',
  ],
  [
    'values that cannot be int8',
    { plans: "plan('p', layer, { quantised: { values: nodes('nope') }, groups: {} })," },
    'plan.quantised',
    "'nope'",
  ],
  [
    'a schedule for no group',
    { plans: "plan('p', layer, { schedules: { odd: { kind: 'elementwise', threads: 64 } }, groups: {} })," },
    'plan.schedule',
    'odd',
  ],
  [
    'a plan made by a loop',
    { plans: "...['a'].map((name) => plan(name, layer, { groups: { ['x' + name]: ['shared', 'last'] } }))," },
    'plan.illegal',
    'groups',
  ],
  [
    'a group that nothing reads',
    {
      build: 'const once = g.apply(twice, { x }).y; const again = g.apply(twice, { x: once }).y',
      more: ', once, again',
      plans: group("odd: ['once', 'again']"),
    },
    'plan.unread',
    'odd',
  ],
  [
    'bodies that a kernel cannot be held against',
    {
      build: 'const ahead = g.apply(next, { x }).y; const again = g.apply(twice, { x: ahead }).y',
      more: ', ahead, again',
      outputs: ', again',
      plans: group("fine: ['doubled', 'moved'], odd: ['ahead', 'again']"),
    },
    'plan.meaning',
    'odd',
  ],
  ['a search for no device', { plans: "autoPlan('p', layer, { device: 'abacus' })," }, 'cost.device', 'autoPlan'],
  ['a size the graph does not say', { plans: "autoPlan('p', layer, { device: 'h200' })," }, 'graph.dim', 'autoPlan'],
])('%s', async (_, parts, code, culprit) => {
  const error = await refused(layerOf(parts))
  expect(error.code).toBe(code)
  expect(error.message).toMatch(new RegExp(`^${specs}/index.ts:[0-9]+:[0-9]+: `))
  expect(pointed(error.message)).toBe(culprit)
  const [file, line, column] = error.message.split(':')
  expect(error.places[0]).toMatchObject({ file, line: Number(line), column: Number(column) })
})

it('reports the errors of every plan, in the order of their lines, and their number', async () => {
  const two = `${group('none: []')}\n  plan('q', layer, { stacked: { both: ['doubled'] }, groups: {} }),`
  const { code, places, message } = await refused(layerOf({ plans: two }))
  expect(code).toBe('frontend.rejected')
  expect(places.map((place) => place.code)).toEqual(['plan.empty', 'plan.stack'])
  expect(message.split('\n')[0]).toBe('2 errors in the specs')
  expect(message).toContain(`plan.empty: plan p: group none holds no node\n`)
  const searched = `${two}\n  autoPlan('r', layer, { device: 'abacus' }),\n  autoPlan('s', layer, { device: 'h200', dims: { q: 4, w: 4, z: 4 } }),`
  const beside = await refused(layerOf({ plans: searched }))
  expect(beside.places.map((place) => place.code)).toEqual(['plan.empty', 'plan.stack', 'cost.device'])
  const many = Array.from({ length: 25 }, (_, at) => `plan('p${at}', layer, { groups: { none: [] } }),`).join('\n')
  const error = await refused(layerOf({ plans: many }))
  expect(error.places).toHaveLength(25)
  expect(error.message.match(/plan\.empty/g)).toHaveLength(20)
  expect(error.message).toContain('... and 5 more')
})

it('reports errors of ops and of every graph at once, without consequential ones', async () => {
  const broken = layerOf({ build: "g.view(x, 'q q')" })
  const text = broken
    .replace(
      'export const graphs',
      `${broken.slice(broken.indexOf('export const layer'), broken.indexOf('export const graphs')).replaceAll('layer', 'other')}export const graphs`,
    )
    .replace(
      'const nodes',
      "export const bad = op('bad', { dims: ['n'], inputs: { x: tensor('T', 'n') }, outputs: { y: tensor('f32', 'n') }, body: ({ x }) => (c) => ({ y: x(c) }) })\nconst nodes",
    )
    .replace('import { graph,', 'import { op, graph,')
  await writeFile(join(folder, 'index.ts'), text)
  const error = await readSearched(repository, specs).catch((reason: unknown) => reason)
  const own = error instanceof HeddleError ? error.places.filter(({ code }) => code?.startsWith('TS') === false) : []
  expect(own.map(({ code }) => code)).toEqual(['graph.view', 'graph.view', 'HED115'])
  expect(
    own.every(({ hint, message }) => message !== undefined && (hint !== undefined || message.includes('sizes differ'))),
  ).toBe(true)
})

it('reports errors of every node of a graph, without consequential ones', async () => {
  const build = `const wide = g.apply(plus, { x, gap: w.other }).y
    const turned = g.view(wide, 'w q')
    const onward = g.apply(plus, { x: wide, gap: w.gap }, { by: 3 } as object).y
    const product = g.matmul('m k; n k', wide, turned)
    const squared = g.matmul('m k, n k -> m n', x, turned)
    const fine = g.apply(twice, { x: doubled }).y
    const unnamed = g.apply(twice, { x: fine }).y
    const missing = g.apply(plus, { x: onward } as { x: GraphTensor; gap: GraphTensor }).y
    const after = g.apply(share, { x: squared }).y`
  const more = ', wide, onward, product, squared, fine, missing, after'
  const error = await refused(layerOf({ build, more, outputs: ', after' }))
  expect(error.code).toBe('frontend.rejected')
  expect(error.places.map(({ code, line, nodes = [] }) => [code, line, ...nodes])).toEqual([
    ['graph.shape', 12, 'wide'],
    ['graph.attribute', 14, 'onward'],
    ['graph.matmul', 15, 'product'],
    ['graph.name', 18],
    ['graph.input', 19, 'missing'],
  ])
  expect(error.message).toContain('graph.shape: node wide: plus: dimension c of gap is z, but w elsewhere')
  expect(error.message).toContain('node 10 (twice) has no name')
  // A single fault is the error itself.
  const alone = await refused(layerOf({ build: build.split('\n')[0] ?? '', more: ', wide' }))
  expect(alone).toMatchObject({ code: 'graph.shape', places: [{ line: 12, nodes: ['wide'] }] })
  // Any other error of a build follows from a refusal, and is reported only if there is none.
  const broken = "throw new TypeError('of ' + String(wide.value))"
  const both = await refused(layerOf({ build: `${build.split('\n')[0]}\n${broken}` }))
  expect(both.code).toBe('graph.shape')
  expect((await refused(layerOf({ build: `const wide = x\n${broken}` }))).code).toBe('specs.run')
})

it('reports errors of every tensor that a graph declares', async () => {
  const text = layerOf({}).replace("tensor('T', 'q w')", "tensor('T', 'q w+')").replace("tensor('T', 'z')", "tensor('T', 'z-')")
  expect((await refused(text)).places.map(({ code, line }) => [code, line])).toEqual([
    ['graph.extent', 5],
    ['graph.extent', 6],
  ])
})

it('names the lines of the nodes, after that of the group', async () => {
  const { message } = await refused(layerOf({ plans: group("odd: ['shared', 'last']") }))
  const places = message.split('\n').slice(3)
  expect(places).toEqual([`  node shared: ${specs}/index.ts:10:22`, `  node last: ${specs}/index.ts:11:20`])
})

it('a module of a deeper folder that throws is named with its line', async () => {
  await mkdir(join(folder, 'deep'), { recursive: true })
  await writeFile(
    join(folder, 'deep', 'part.ts'),
    "type Unused = { a: 1 }\nexport const part: Unused = (() => {\n  throw new TypeError('none')\n})()\n",
  )
  const { message, code } = await refused("import { part } from './deep/part.js'\nexport const graphs = { part }\n")
  expect(code).toBe('specs.run')
  expect(message).toBe(
    `${specs}/deep/part.ts:3:9: ${specs}/index.ts cannot be imported: none\n  3 |   throw new TypeError('none')\n    |         ^^^`,
  )
})

it('graphs may be exported under any key, and two of one name are refused', async () => {
  await writeFile(join(folder, 'index.ts'), layerOf({ plans: group("both: ['doubled', 'moved']") }))
  const { graphs, plans } = await readDeclarations(repository, specs)
  expect(Object.keys(graphs)).toEqual(['layer'])
  expect(() => planAll(plans, graphs, [...compiled.kernels])).not.toThrow()
  const twins = layerOf({}).replace(
    '{ any: layer }',
    "{ a: layer, b: graph('layer', { inputs: {}, weights: {}, build: () => ({ nodes: {}, outputs: {} }) }) }",
  )
  expect(await refused(twins)).toMatchObject({ code: 'specs.graphs' })
})

it('a graph without a field is reported at its statement, even if another is refused too', async () => {
  const text = `import { graph } from 'heddle'
export const one = graph('one', { inputs: {}, build: () => ({ nodes: {}, outputs: {} }) } as never)
export const other = graph('other', undefined as never)
`
  const { message } = await refused(text)
  expect(message).toContain(`${specs}/index.ts:2:20 graph.config: graph one has no weights`)
  expect(message).toContain(`${specs}/index.ts:3:22 graph.config: graph other has no config`)
})

it('the command line reports it too', async () => {
  // TypeScript runs first, and refuses unused names.
  const text = layerOf({ plans: group("odd: ['shared', 'last']") })
  await writeFile(
    join(folder, 'index.ts'),
    text
      .replace(', autoPlan, tensor, type GraphTensor', ', tensor')
      .replace(/const nodes = .*/, '')
      .replace('next, ', ''),
  )
  for (const argv of [
    ['gen', '--out', join(folder, 'out')],
    ['plan', 'show', 'p', '--dim', 'q=2,w=4,z=4'],
    ['inspect', 'p', '--passes'],
  ]) {
    const { exitCode, log } = await heddle([...argv, '--specs', specs])
    expect(exitCode).toBe(2)
    expect(log).toContain(`error[plan.illegal]: ${specs}/index.ts:19:32: group odd: nodes shared and last cannot be one kernel`)
  }
})
