/** Attention variants as emitted source on the CPU device, checked against the bodies of their nodes, one by one. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { FloatType } from '../../src/checkpoint/convert.js'
import { generate } from '../../src/emit/generate.js'
import { type KernelEntry, manifestSchema } from '../../src/emit/manifest/manifest.js'
import { writeGenerated } from '../../src/emit/write.js'
import { readDeclarations, readSpecsOrThrow } from '../../src/frontend/index.js'
import { applyPlan } from '../../src/fuse/apply.js'
import { attrOf, runNodes } from '../../src/fuse/check/compose.js'
import type { DerivedGroup } from '../../src/fuse/check/derived.js'
import { drawValues, randomFrom } from '../../src/fuse/check/inputs.js'
import { maskedRule } from '../../src/fuse/check/masked.js'
import type { DType } from '../../src/ir/dtype.js'
import { evaluateTemplate } from '../../src/ir/evaluate_template.js'
import type { NodeOf, ValueId } from '../../src/ir/graph.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { evaluateExtent } from '../../src/ir/shape.js'
import { isTemplate, type TemplateKernel } from '../../src/ir/template.js'
import { decode } from '../../src/runtime/buffer.js'
import { type Device, openDevice } from '../../src/runtime/device.js'
import { loadKernels } from '../../src/runtime/library.js'
import type { NativeLibrary } from '../../src/runtime/native.js'
import { encodeNumbers, roundTo } from '../../src/runtime/numbers.js'
import { graphOf } from '../../src/search/resolve.js'
import { buildKernels, buildNative } from '../../src/toolchain/index.js'
import { compare } from '../../src/verify/compare.js'
import { tolerance } from '../../src/verify/tolerance.js'
import { plans } from '../projects/attention/specs/index.js'
import { oneInTurn } from '../turns.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const specs = 'test/projects/attention/specs'
/** Graphs by the storage type whose turn it is. bfloat16 has the loops of float16: one kernel with all of a graph's parts shows that it is compiled too. */
const typed = new Map<string, FloatType>(
  plans.map(({ graph }, at) => [graph, oneInTurn(graph === 'attend_everything' ? ['f32', 'f16', 'bf16'] : ['f32', 'f16'], at)]),
)

let folder: string
let device: Device
let library: NativeLibrary
let entries: ReadonlyMap<string, KernelEntry>
let ops: ReadonlyMap<string, Kernel>
const groups = new Map<string, DerivedGroup>()

beforeAll(async () => {
  ops = new Map(readSpecsOrThrow({ root: process.cwd(), specs: [specs] }).kernels.map((kernel) => [kernel.name, kernel]))
  const declared = await readDeclarations(process.cwd(), specs)
  const templates: TemplateKernel[] = []
  for (const plan of declared.plans) {
    const made = applyPlan(graphOf(plan, declared.graphs), plan, ops)
    for (const group of made.groups) groups.set(plan.graph, group)
    for (const kernel of made.templates.values()) templates.push({ ...kernel, types: { T: [typeOfGraph(plan.graph)] } })
  }
  folder = await mkdtemp(join(tmpdir(), 'heddle-attention-'))
  const files = generate([], {}, templates)
  await writeGenerated(folder, files)
  process.env.HEDDLE_NATIVE ??= (await buildNative()).folder
  // Most of the time would go into the compiler.
  const built = await buildKernels({ target: 'simt', root, generated: folder, outDir: join(folder, 'out'), optimise: '-O0' })
  device = openDevice('simt')
  const manifest = manifestSchema.parse(JSON.parse(files.get('manifest.json') ?? ''))
  library = loadKernels(device, built.library, manifest).library
  entries = new Map(manifest.kernels.map((entry) => [entry.key, entry]))
})
afterAll(async () => {
  device?.close()
  await rm(folder, { recursive: true, force: true })
})

const typeOfGraph = (name: string): FloatType => typed.get(name) ?? 'f32'

/** More than a tile of keys, with a tail; and rows that no chunk divides. */
const sizes = [
  { b: 1, h: 4, g: 2, s: 70, t: 83, d: 8, e: 24, r: 9 },
  { b: 2, h: 2, g: 1, s: 5, t: 3, d: 20, e: 12, r: 3 },
]

/** An output on the device, by the bodies of the nodes, and by evaluation of the kernel. */
interface Computed {
  readonly found: ArrayLike<number>
  readonly expected: ArrayLike<number>
  readonly evaluated: ArrayLike<number>
}

/** Difference between the results of the kernel and those of the nodes; undefined if they agree. */
async function difference(name: string, dtype: DType, dims: Readonly<Record<string, number>>, seed: number): Promise<string> {
  const rule = tolerance({ dtype, class: 'attention', length: dims.d ?? 1 })
  return (await computed(name, dtype, dims, seed))
    .map(({ found, expected }) => {
      const result = compare(found, expected, rule)
      return result.passed ? '' : `${name} ${dtype} at ${JSON.stringify(dims)}: ${result.summary}`
    })
    .join('')
}

/** @param spoil changes the random inputs, by name */
async function computed(
  name: string,
  dtype: DType,
  dims: Readonly<Record<string, number>>,
  seed: number,
  spoil: (input: string, data: Float64Array) => void = () => {},
): Promise<Computed[]> {
  const group = groups.get(name)
  const entry = entries.get(`fused_${name}__${dtype}`)
  if (group === undefined || entry === undefined) throw new Error(`there is no kernel of ${name} in ${dtype}`)
  const { graph, nodes, derived } = group
  const typeOf = (id: ValueId): DType => {
    const ref = graph.values[id]?.dtype ?? 'f32'
    return typeof ref === 'string' ? ref : dtype
  }
  const drawn = drawValues(graph, graph.nodes, ops, dims, randomFrom(seed))
  const values = new Map([...drawn].map(([id, data]) => [id, Float64Array.from(roundTo(typeOf(id), data))]))
  for (const [input, id] of Object.entries(graph.inputs)) spoil(input, values.get(id) ?? new Float64Array())
  const masked = maskedRule(graph, nodes, ops)
  const [scores, context] = nodes.filter((node): node is NodeOf<'matmul'> => node.kind === 'matmul')
  // Computed rows are rounded in the same way as rows stored for the matmuls.
  const multiplied = new Set([scores?.a, scores?.b, context?.a, context?.b].filter((id) => id !== undefined))
  const weights = new Set([context?.a, context?.b].filter((id) => id !== undefined && !isOperand(group, id)))
  const expected = runNodes(graph, graph.nodes, {
    values,
    dims,
    attrs: { window: 3 },
    kernels: ops,
    revise: (id, made) => {
      const data = masked?.(id, made) ?? made.data
      return multiplied.has(id) && !weights.has(id) ? Float64Array.from(roundTo(typeOf(id), Array.from(data))) : data
    },
  })
  const bindings = [...derived.inputs, ...derived.outputs]
  const extents: Record<string, number> = {}
  const buffers = derived.kernel.tensors.map((tensor, at) => {
    const binding = bindings.find(({ param }) => param === tensor.name)
    if (binding === undefined) throw new Error(`nothing is bound to ${tensor.name}`)
    const shape = binding.shape.map((extent) => evaluateExtent(extent, dims))
    tensor.dims.forEach((dim, axis) => {
      extents[dim] = shape[axis] ?? 0
    })
    const stored = entry.buffers[at]?.dtype ?? dtype
    const size = shape.reduce((product, extent) => product * extent, 1)
    const isInput = tensor.access === 'in'
    const bytes = encodeNumbers(
      stored,
      isInput ? Array.from(values.get(binding.value) ?? []) : new Array<number>(size).fill(stored === 'i32' ? -1 : Number.NaN),
    )
    return {
      ...binding,
      isInput,
      dtype: stored,
      bytes,
      slice: { buffer: device.allocate(bytes.length), offset: 0, bytes: bytes.length },
    }
  })
  const program = device.program([
    {
      kind: 'kernel',
      label: entry.key,
      library,
      key: entry.key,
      buffers: buffers.map(({ slice }) => slice),
      dims: entry.dims.map((dim) => extents[dim] ?? 1),
      attrs: entry.attrs.map((attr) => attrOf(derived.attrs[attr.name] ?? attr.default, dims, { window: 3 })),
    },
  ])
  const outputs = buffers.filter(({ isInput }) => !isInput)
  const results = await program.run(
    buffers.map(({ slice, bytes }) => ({ to: slice, data: bytes })),
    outputs.map(({ slice }) => slice),
  )
  program.release()
  for (const { slice } of buffers) slice.buffer.release()
  const tensors = buffers.flatMap(({ isInput, param, value, shape }) =>
    isInput
      ? [[param, { data: values.get(value) ?? [], shape: shape.map((extent) => evaluateExtent(extent, dims)) }] as const]
      : [],
  )
  const attrs = Object.fromEntries(
    Object.entries(derived.attrs).map(([attr, bound]) => [attr, attrOf(bound, dims, { window: 3 })]),
  )
  if (!isTemplate(derived.kernel)) throw new Error(`${name} is not an attention kernel`)
  const evaluated = evaluateTemplate(derived.kernel, Object.fromEntries(tensors), extents, attrs)
  return outputs.map(({ value, param, dtype: stored }, at) => ({
    found: decode(stored, results[at] ?? new Uint8Array()),
    expected: expected.get(value) ?? [],
    evaluated: evaluated[param]?.data ?? [],
  }))
}

/** True if a value is made without the scores: a query, a key or a value, and no weight. */
function isOperand({ graph, nodes }: DerivedGroup, id: ValueId): boolean {
  const [scores] = nodes.filter((node): node is NodeOf<'matmul'> => node.kind === 'matmul')
  const reached = new Set<ValueId>(scores === undefined ? [] : [scores.out])
  for (const node of graph.nodes) {
    const read = node.kind === 'op' ? Object.values(node.inputs) : node.kind === 'matmul' ? [node.a, node.b] : [node.input]
    const made = node.kind === 'op' ? Object.values(node.outputs) : [node.out]
    if (read.some((input) => reached.has(input))) for (const output of made) reached.add(output)
  }
  return !reached.has(id)
}

const named = plans.map(({ graph }) => graph)

describe('each variant on simt equals its nodes', () => {
  it.each([...typed])('%s %s', async (name, dtype) => {
    const found: string[] = []
    for (const [seed, dims] of sizes.entries()) found.push(await difference(name, dtype, dims, seed + 1))
    expect(found.filter((text) => text !== '')).toEqual([])
  })

  it.each(named)('NaN stays NaN, in each row that attends to it: %s', async (name) => {
    const [, size] = sizes
    if (size === undefined) throw new Error('no size')
    const none = (data: ArrayLike<number>): number[] => Array.from(data).flatMap((each, i) => (Number.isNaN(each) ? [i] : []))
    // The first key, which no mask of these hides from every query, and none by adding a number: that hides no NaN from a body.
    const spoil = (input: string, data: Float64Array): void => {
      if (input === 'key') data[0] = Number.NaN
    }
    for (const { found, expected, evaluated } of await computed(name, typeOfGraph(name), size, 1, spoil)) {
      expect(none(expected)).not.toEqual([])
      expect(none(evaluated)).toEqual(none(expected))
      expect(none(found)).toEqual(none(expected))
    }
  })

  it('another graph would be noticed', async () => {
    const [plain, causal] = [groups.get('attend_plain'), groups.get('attend_causal')]
    if (plain === undefined || causal === undefined) throw new Error('there are no such groups')
    groups.set('attend_plain', { ...plain, graph: causal.graph, nodes: causal.nodes })
    const [size] = sizes
    if (size === undefined) throw new Error('no size')
    expect(await difference('attend_plain', typeOfGraph('attend_plain'), size, 1)).toContain('attend_plain')
    groups.set('attend_plain', plain)
  })
})
