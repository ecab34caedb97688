/** Passes and later stages do not refer to any op, input, result or node of the specs by name. */
import { Project } from 'ts-morph'
import { beforeAll, describe, expect, it } from 'vitest'
import { namesIn, specNames } from './names.js'

/** Strings that some spec happens to use too, by file, with their meaning there. */
const allowed: readonly (readonly [file: string, texts: readonly string[], what: string])[] = [
  ['decode_attention_kernel.ts', ['query', 'top', 'total'], 'functions and statistics that the text of decode attention defines'],
  ['attention_kernel.ts', ['top', 'total', 'unit'], "a softmax's statistics, as the text of attention calls them"],
  ['softmax.ts', ['top', 'total'], 'the same'],
  ['inputs.ts', ['lengths', 'starts', 'sequences', 'positions'], 'fields of what a graph says of its packing'],
  [
    'conversions.ts',
    ['value', 'sequences', 'positions', 'starts', 'lengths'],
    'what an input of a step is: the value, or a field of its packing',
  ],
  ['insert_conversions.ts', ['sequences', 'positions', 'starts', 'lengths'], 'the same fields'],
  ['names.ts', ['value', 'first', 'z'], 'what a C++ name is called where none is given, and a range of letters'],
  ['scaled_bodies.ts', ['add'], 'an intrinsic, by the name it has'],
  ['block_mask.ts', ['add', 'minimum'], 'intrinsics, by the names they have'],
  ['attention.ts', ['key', 'value'], 'operands of the template, in the words of a refusal'],
  [
    'slots.ts',
    ['x', 'y', 'z', 'top', 'total'],
    'what parameters of a derived kernel are called, a range of letters, and statistics',
  ],
  ['library.ts', ['x', 'bias'], 'a local of its own, and the fields of an epilogue'],
  ['epilogue.ts', ['x', 'y'], 'what parameters of a bare product are called'],
  ['identity.ts', ['x', 'y'], 'the same of a product that is stored as it is'],
  ['print.ts', ['value'], 'a field of a statement'],
  ['states.ts', ['states'], 'the label of a step'],
  ['load.ts', ['states'], 'an option of loading a model'],
  ['load_layouts.ts', ['offset', 'size'], 'parts of a layout'],
  ['computed_row.ts', ['first'], 'a variable of the emitted source'],
  ['graph_program.ts', ['lengths'], 'the input that a graph gets for the plan, as fuse/graph/pack.ts calls it'],
  ['source.ts', ['weight'], 'what a refusal is about'],
  ['load_states.ts', ['states', 'value', 'next'], 'the same, and the fields of a state'],
  ['user_monoids.ts', ['next'], 'a field of a fold'],
  ['describe.ts', ['next'], 'the same'],
  ['recurrence_variants.ts', ['next'], 'the same'],
  ['verify.ts', ['next'], 'the same'],
  ['columns.ts', ['add'], 'an intrinsic, by the name it has'],
  ['divided_loop.ts', ['counts'], 'a variable of the emitted source'],
  ['exchange.ts', ['merged'], 'the same'],
  ['loop_leaf.ts', ['merged', 'sums'], 'parts of names of variables'],
  ['templates.ts', ['slots', 'part', 'last'], 'files of templates'],
  ['slots.ts', ['slots'], 'a variable of the emitted text'],
  ['instances.ts', ['text'], 'a part of a template'],
  ['user_monoid.ts', ['left', 'top'], 'a side of a combination, and what it is relative to'],
  ['one_pass.ts', ['left'], 'a side of a combination'],
  ['long_rows.ts', ['argmax'], 'a reduction of bodies, by the name it has'],
  ['loops.ts', ['places'], 'a variable of the emitted source'],
  ['grouped.ts', ['left'], 'the left factor, in a struct of the source'],
  ['grouped_matmul.ts', ['sums'], 'the tensor that stands for sums, unless its name is taken'],
  ['kernel.ts', ['rows'], 'what a kernel has a work item for'],
  ['launcher.ts', ['rows', 'kept'], 'the same, and a way of walking a row'],
  ['tiles.ts', ['rows'], 'a tile by the name it has'],
  ['group_parts.ts', ['kept'], 'a variable of the emitted source'],
  ['agent_device.ts', ['value'], 'a field of a result'],
  ['failures.ts', ['key', 'left', 'cache'], "words of ssh's and the shell's messages"],
  ['tuned_matmuls.ts', ['bias', 'relu'], 'parts of the name of a library matmul'],
]
const isAllowed = (file: string, text: string): boolean =>
  allowed.some(([known, texts]) => known === file && texts.includes(text))

let project: Project
beforeAll(() => {
  project = new Project({ tsConfigFilePath: 'tsconfig.json', skipAddingFilesFromTsConfig: true })
})

it('no pass, no generated source and no program knows a name of the specs', () => {
  const files = project.addSourceFilesAtPaths('src/{fuse,schedule,emit,program,runtime}/**/*.ts')
  expect(files.length).toBeGreaterThan(100)
  const found = files.flatMap((file) => namesIn(file, project))
  expect(found.filter(({ file, text }) => !isAllowed(file, text))).toEqual([])
  const unused = allowed.flatMap(([file, texts]) =>
    texts.flatMap((text) => (found.some((each) => each.file === file && each.text === text) ? [] : [`${file}: ${text}`])),
  )
  expect(unused).toEqual([])
})

it('ops, their inputs, and inputs and nodes of graphs are names', () => {
  const some = [
    'softmax',
    'std.pack_rows',
    'pack_rows',
    'starts',
    'lengths',
    'queryBias',
    'attentionNorm',
    'memoryKeys',
    'factor',
  ]
  for (const name of some) expect([...specNames], name).toContain(name)
})

describe('a planted name is found', () => {
  const found = (text: string) => {
    const imports = "import type { Graph, GraphNode } from '../ir/graph.js'\nimport { call } from '../ir/build.js'\n"
    const file = project.createSourceFile('src/fuse/planted.ts', `${imports}${text}\n`, { overwrite: true })
    return namesIn(file, project).map((each) => each.text)
  }

  it.each([
    ['an op', "export const is = (node: GraphNode) => node.kind === 'op' && node.op === 'softmax'", 'softmax'],
    ['an op in a switch', "export const is = (op: string) => { switch (op) { case 'take': return 1 } return 0 }", 'take'],
    ['an op in a list', "export const is = (op: string) => ['gelu', 'silu'].includes(op)", 'gelu'],
    ['a key', "export const of = (ops: ReadonlyMap<string, number>) => ops.get('std.quantize')", 'std.quantize'],
    ['an input', 'export const of = (graph: Graph) => graph.inputs.starts', 'starts'],
    ['a node', "export const of = (graph: Graph) => graph.nodes.find(({ name }) => name === 'fc1Bias')", 'fc1Bias'],
    ['a pattern', "export const of = (name: string) => name.replace(/\\.pack$/, '')", 'pack'],
    ['a pattern of several', 'export const of = (name: string) => /^(.+)\\.(step|inverse)$/.exec(name)', 'step'],
    ['an ending', "export const of = (name: string) => name.endsWith('.int8')", '.int8'],
    ['a name that is made', 'export const of = (name: string) => `$' + '{name}.float`', '.float'],
  ])('%s', (_, text, name) => {
    expect(found(text)).toContain(name)
  })

  it.each([
    ['an intrinsic', "export const sum = (a: Parameters<typeof call>[1]) => call('add', a, a)"],
    ['a kind', "export const is = (node: GraphNode) => node.kind === 'matmul'"],
    ['a declared property', "export const of = (node: GraphNode) => (node.kind === 'op' ? node.inputs : {})"],
    ['a module', "export { take } from '../std/index.js'"],
  ])('and %s is not one', (_, text) => {
    expect(found(text)).toEqual([])
  })
})
