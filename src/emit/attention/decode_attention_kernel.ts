/**
 * A decode attention kernel as CUDA source: a struct of small functions. They give the attended places, the owner of each place, the query, the
 * score, and the keys and values of a step.
 */
import { f32, i32 } from '../../ir/build.js'
import { dtypeInfo } from '../../ir/dtype.js'
import type { Expr } from '../../ir/expr.js'
import { resolveDType } from '../../ir/instance.js'
import type { TensorParam } from '../../ir/kernel.js'
import { type DecodeAttentionKernel, type FreshPlace, isNormalised, storesAsIs } from '../../ir/template.js'
import { visit } from '../../ir/walk.js'
import { offsetOf } from '../../schedule/access/access.js'
import { contains, substituteIndex } from '../../schedule/normalise/rewrite.js'
import { declareNames, type TemplateInstance, templateFile } from '../kernels/template.js'
import { expressionText, offsetText, type Scope, tensorOf, wideText } from '../print/expression.js'
import { createNames, type Names } from '../print/names.js'
import { beforeStore } from '../print/rounding.js'
import { type ChunkRead, elementStatements } from './computed_row.js'
import { alignedText, mentions, type RowStart, refuseScattered, stepOf } from './row_access.js'
import { withoutDivisions } from './score.js'
import { notingScope, SlotWriter } from './slots.js'

/** Indices and locals of slots, whose names do not change. */
const values = ['b', 'c', 'h', 'i', 'j', 'owner', 'raw', 'result', 'top', 'total'] as const

/** Names of slots and of locals inside them; no tensor may have one of these. */
const reserved =
  'aligned denominator e element elements folds_rows fresh_key fresh_key_row fresh_place fresh_value fresh_value_row has_fresh has_steps key_row key_scale key_step ' +
  'lower out_row query score shared_rows rows_shift store_row stored upper valid value_row value_scale value_step Vec Whole'

/** The file of an instance. @throws usage `emit.rows` for rows of a head that are not contiguous */
export function emitDecodeAttention(instance: TemplateInstance, kernel: DecodeAttentionKernel): string {
  const names = namesOf(instance, kernel)
  const scope = notingScope({ names, tensors: kernel.tensors })
  const writer = writeSlots(instance, kernel, scope)

  // The launcher knows every parameter itself; those that it reads need not become members of the slots.
  const outside = notingScope(scope)
  const { batch, heads, shared, queries, headDim, valueDim, places, fresh } = kernel
  const extents = [batch, heads, shared, queries, headDim, valueDim, places].map((extent) => expressionText(extent, outside))
  const handles = [kernel.key, kernel.value, kernel.out].map(({ tensor }) => names.tensor(tensor))
  const caches = cachesOf(fresh).map(({ tensor }) => `, ${names.tensor(tensor)}`)
  const given = `launch, error, "${instance.key}", {${[...extents, settled(kernel)].join(', ')}}, ${handles.join(', ')}`
  return templateFile(
    instance,
    scope,
    {
      comment: `${instance.key}: decode attention of native/device/attention_decode.cuh`,
      include: 'attention_decode.cuh',
      slots: { name: 'Slots', comment: 'Where rows lie, which count, and what queries and scores are.', body: writer.text },
      launch: (slots) => [`return heddle::launch_attention_decode(${given}, ${slots}${caches.join('')});`],
      extents: [batch, heads, queries].filter(({ kind }) => kind !== 'const').map((extent) => expressionText(extent, outside)),
    },
    { tuned: [] },
  )
}

function writeSlots({ key, types }: TemplateInstance, kernel: DecodeAttentionKernel, scope: Scope): SlotWriter {
  const writer = new SlotWriter(scope)
  const starts: RowStart[] = []
  const bases = new Set<string>()
  const row = (name: string, parameters: readonly string[], at: RowStart): void => {
    refuseScattered(key, at, scope)
    starts.push(at)
    writer.define('int64_t', name, parameters, () => offsetText(at.tensor, at.indices, scope))
  }
  const inChunks = ({ tensor, indices }: ChunkRead): void => {
    bases.add(scope.names.tensor(tensor))
    starts.push({ tensor, indices: indices.map((index) => substituteIndex(index, 'c', i32(0))) })
  }
  const ends = new Set<string>()
  const chunk = chunkOf(tensorOf(kernel.key.tensor, scope), types)
  const bounds = (bound: Expr): void => void ends.add(`(${expressionText(bound, scope)}) % ${chunk} == 0`)
  const elements = (name: string, parameters: readonly string[], value: Expr): void =>
    writer.elements(name, 'template <int Vec, bool Whole>', [...parameters, 'c'], () =>
      elementStatements(value, scope, 'Vec, Whole', inChunks, { bounds }),
    )
  const { fresh, out } = kernel
  writer.constant('has_fresh', fresh !== undefined)
  writer.constant('shared_rows', sharedRows(kernel.shared))
  const computed = [kernel.query, ...(fresh === undefined ? [] : [fresh.key, fresh.value])]
  if (computed.some((value) => contains(value, ({ kind }) => kind === 'fold'))) writer.constant('folds_rows', true)
  writer.value('lower', ['b', 'h', 'i'], kernel.range.lower)
  writer.value('upper', ['b', 'h', 'i'], kernel.range.upper)
  writer.value('owner', ['b', 'j'], kernel.owner)
  row('key_row', ['owner', 'h', 'j'], kernel.key)
  row('value_row', ['owner', 'h', 'j'], kernel.value)
  writeSteps(writer, kernel, scope)
  writeScales(writer, kernel)
  row('out_row', ['b', 'i', 'h'], out)
  elements('query', ['b', 'i', 'h'], kernel.query)
  writer.value('score', ['raw', 'b', 'i', 'h', 'j'], withoutDivisions(kernel.score))
  if (fresh !== undefined) {
    writer.value('fresh_place', ['b'], fresh.place)
    elements('fresh_key', ['b', 'h'], fresh.key)
    elements('fresh_value', ['b', 'h'], fresh.value)
    row('fresh_key_row', ['b', 'h', 'j'], fresh.keyCache)
    row('fresh_value_row', ['b', 'h', 'j'], fresh.valueCache)
  }
  if (!isNormalised(kernel)) {
    writer.comment('What sums of weighted values are divided by.')
    writer.value('denominator', ['total', 'top', 'b', 'h', 'i'], kernel.denominator)
  }
  if (!storesAsIs(kernel)) {
    writer.comment('What is stored of a result.')
    const stored = beforeStore(kernel.stored, tensorOf(out.tensor, scope).dtype)
    writer.value('stored', ['result', 'b', 'h', 'i', 'c'], stored)
  }
  writer.rowValues(kernel.perRow ?? [])
  writer.comment('Whether rows, and pieces of them, begin at multiples of 16 bytes.')
  const aligned = [...[...bases].map((name) => `${name}.aligned(0, 16)`), ...ends]
  const multiples = alignedText(starts, scope)
  writer.host('bool', 'aligned', [...aligned, ...(multiples === 'true' && aligned.length > 0 ? [] : [multiples])].join(' && '))
  return writer
}

/** Distances between the places of a sequence, if a sequence owns all its places and they are evenly spaced. */
function writeSteps(writer: SlotWriter, { owner, key, value }: DecodeAttentionKernel, scope: Scope): void {
  if (mentions(owner, 'j')) return
  const [keyStep, valueStep] = [key, value].map(({ tensor, indices }) =>
    stepOf(offsetOf(tensorOf(tensor, scope), indices, scope.fixed), 'j'),
  )
  if (keyStep === undefined || valueStep === undefined) return
  writer.comment('Elements from one place to the next.')
  writer.constant('has_steps', true)
  writer.host('int64_t', 'key_step', wideText(keyStep, scope))
  writer.host('int64_t', 'value_step', wideText(valueStep, scope))
}

/** Scales of the rows of a cache: of keys and values, or of neither. */
function writeScales(writer: SlotWriter, { key, value }: DecodeAttentionKernel): void {
  if (key.scale === undefined && value.scale === undefined) return
  writer.comment('Rows of keys and values are in steps of their own.')
  writer.value('key_scale', ['owner', 'h', 'j'], key.scale ?? f32(1))
  writer.value('value_scale', ['owner', 'h', 'j'], value.scale ?? f32(1))
}

/** Number of heads computed together if that many share keys: all of a few, and some of many or of a number known at run time. */
const sharedRows = (shared: Expr): number => (shared.kind === 'const' ? Math.min(Number(shared.value), most) : usual)
const most = 8
const usual = 4

/** Elements of a head that a lane reads together. */
const chunkOf = ({ dtype }: TensorParam, types: TemplateInstance['types']): number =>
  16 / dtypeInfo[resolveDType(dtype, types)].bytes

/** True if keys and values, their places and the attended range may be prefetched; the program decides at each launch. */
function settled({ tensors, range, owner, key, value, fresh }: DecodeAttentionKernel): string {
  const rows: readonly RowStart[] = [key, value]
  const places = [range.lower, range.upper, owner, ...rows.flatMap(({ indices }) => indices)]
  const told = [...places, ...[key.scale, value.scale, fresh?.place].flatMap((each) => each ?? [])]
  const read = new Set(rows.map(({ tensor }) => tensor))
  for (const expr of told) visit(expr, (node) => node.kind === 'load' && read.add(node.tensor))
  return tensors.flatMap(({ name }, i) => (read.has(name) ? [`arguments.is_settled(${i})`] : [])).join(' && ')
}

const cachesOf = (fresh: FreshPlace | undefined): readonly RowStart[] =>
  fresh === undefined ? [] : [fresh.keyCache, fresh.valueCache]

/** Names of the kernel. Its tensors are renamed if their names collide with slots. */
function namesOf(instance: TemplateInstance, kernel: DecodeAttentionKernel): Names {
  const names = createNames({
    instance: { kernel: { ...kernel, rows: [], body: [], tensors: [] }, types: instance.types, dims: {} },
    axes: values.map((name) => ({ index: name, dim: name })),
    program: { kind: 'elementwise', steps: [], threads: 0 },
  })
  for (const name of reserved.split(' ')) names.fresh(name)
  return declareNames(kernel, names)
}
