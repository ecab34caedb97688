/** An attention kernel as CUDA source: a struct of small functions for the places of rows, the mask, the score, and the stored results. */
import { call, f32 } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import { resolveDType } from '../../ir/instance.js'
import type { IntrinsicName } from '../../ir/intrinsics.js'
import { type AttentionKernel, isNormalised, multipliedTensor, type RowOperand, storesAsIs } from '../../ir/template.js'
import { freeNames, visit } from '../../ir/walk.js'
import { offsetOf } from '../../schedule/access/access.js'
import { maskedScore, tileMaskOf } from '../../schedule/block_mask.js'
import { contains } from '../../schedule/normalise/rewrite.js'
import type { TileChoice } from '../../schedule/tiles.js'
import { declareNames, type TemplateInstance, type Tiles, templateFile, tileCondition } from '../kernels/template.js'
import { capitalise } from '../launch/conditions.js'
import { expressionText, offsetText, type Scope, tensorOf, wideText } from '../print/expression.js'
import { createNames } from '../print/names.js'
import { beforeStore } from '../print/rounding.js'
import { tileMaskNames, writeTileMask } from './block_mask.js'
import { elementStatements } from './computed_row.js'
import { pairLoad, pair as pairName, withPair } from './pair_load.js'
import { alongRow, isTogether, multiplesText, refuseScattered, rowFactors, stepOf } from './row_access.js'
import { factorOf, placesAsFloats, withoutDivisions, withPlacesAsFloats, withShifts } from './score.js'
import { notingScope, SlotWriter } from './slots.js'

/** Names of slots and of locals inside them; no tensor may have one of these. */
const reserved =
  'aligned computed_key computed_query computed_value denominator e element elements key key_elements key_row key_stride lower ' +
  'out_row owned plain_score rises queries query query_elements query_row query_stride score score_factor rows_shift store_row stored unit upper valid value value_elements ' +
  `value_row value_stride Vec Whole allowed pair_chunk pair_of_head pair_of_sequence span At ${tileMaskNames}`

/** A row operand of the kernel: read whole from its start, or computed element by element. */
interface Operand {
  readonly role: 'query' | 'key' | 'value'
  /** Index that runs over rows. */
  readonly row: 'i' | 'j'
  readonly access: RowOperand
  /** Distance between neighbouring rows; undefined if rows are computed. */
  readonly step: Expr | undefined
  /** Element `c` of a computed row. */
  readonly element: Expr | undefined
}

/** The file of an instance. @throws usage `emit.rows` for results that are not contiguous */
export function emitAttention(instance: TemplateInstance, kernel: AttentionKernel, tiles: Tiles): string {
  const names = createNames({
    instance: { kernel: { ...kernel, rows: [], body: [], tensors: [] }, types: instance.types, dims: {} },
    axes: ['b', 'c', 'h', 'i', 'j', 'pair', 'raw', 'result', 'top', 'total', ...Object.values(placesAsFloats)].map((name) => ({
      index: name,
      dim: name,
    })),
    program: { kind: 'elementwise', steps: [], threads: 0 },
  })
  for (const name of reserved.split(' ')) names.fresh(name)
  declareNames(kernel, names)
  const scope = notingScope({ names, tensors: kernel.tensors })
  const type = tensorOf(multipliedTensor(kernel), { tensors: instance.kernel.tensors })
  const operands = [
    operandOf('query', 'i', kernel.query, instance, type, scope),
    operandOf('key', 'j', kernel.key, instance, type, scope),
    operandOf('value', 'j', kernel.value, instance, type, scope),
  ]
  const writer = writeSlots(instance, kernel, operands, scope)

  // The launcher knows every parameter itself; those that it reads need not become members of the slots.
  const outside = notingScope(scope)
  const extent = (of: Expr): string => expressionText(of, outside)
  const { batch, heads, queries, keys, headDim, valueDim } = kernel
  const extents = `{${[...[batch, heads, queries, keys, headDim, valueDim].map(extent), settled(kernel)].join(', ')}}`
  const handles = [
    ...operands.map(({ access }) => handleOf(access, operands, instance, type, scope)),
    names.tensor(kernel.out.tensor),
  ]
  const storage = typeof type.dtype === 'string' ? type.dtype : names.type(type.dtype.param)
  const given = (key: string, slots: string): string => `launch, error, "${key}", ${extents}, ${handles.join(', ')}, ${slots}`
  const byTile = (choice: TileChoice, length: number, key: string, slots: string): string =>
    `return heddle::launch_attention_as<${length}, ${tileText(choice)}, ${storage}>(${given(key, slots)});`
  return templateFile(
    instance,
    scope,
    {
      comment: `${instance.key}: attention main loop of native/device/attention.cuh`,
      include: 'attention.cuh',
      slots: { name: 'Slots', comment: 'Where rows lie, which count, and what a score is.', body: writer.text },
      launch: (slots, { key, choice, length }) => {
        if (choice !== undefined && length !== undefined) return [byTile(choice, length, key, slots)]
        const measured = tiles.tuned.flatMap((tile) => {
          const sizes = { length: extent(headDim), rows: extent(queries) }
          const condition = `${tileCondition(tile, sizes)} && heddle::in_words(${extents}, ${handles.join(', ')}, ${slots})`
          return [`// ${capitalise(tile.reason)}.`, `if (${condition}) ${byTile(tile.choice, tile.length, key, slots)}`]
        })
        return [...measured, `return heddle::launch_attention<${storage}>(${given(key, slots)});`]
      },
      extents: [extent(batch), extent(heads)],
    },
    tiles,
  )
}

function writeSlots(instance: TemplateInstance, kernel: AttentionKernel, operands: readonly Operand[], scope: Scope): SlotWriter {
  const writer = new SlotWriter(scope)
  if (isPlain(kernel.score)) {
    writer.comment('A score depends on its product alone.')
    writer.constant('plain_score', true)
  }
  writer.value('lower', ['b', 'h', 'i'], kernel.range.lower)
  writer.value('upper', ['b', 'h', 'i'], kernel.range.upper)
  const span = spanText(kernel, scope)
  if (span !== undefined) {
    writer.comment('For the host: how many keys the range of a query has.')
    writer.host('int', 'span', span, [`int ${scope.names.value('i')}`, 'int keys'])
  }
  writer.value('queries', ['b'], kernel.queryCount)
  writer.value('owned', ['b'], kernel.ownedCount)
  const ends = writeOperands(writer, operands, scope)
  const { out } = kernel
  refuseScattered(instance.key, out, scope)
  writer.define('int64_t', 'out_row', ['b', 'h', 'i'], () => offsetText(out.tensor, out.indices, scope))
  writeScore(writer, kernel, scope)
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
  writer.comment('Whether rows, and pieces of computed ones, begin at multiples of `unit` elements.')
  const read = operands.filter(({ element }) => element === undefined).map(({ access }) => access)
  writer.host('bool', 'aligned', multiplesText([...rowFactors([...read, out], scope), ...ends], 'unit', scope), ['int unit'])
  return writer
}

/** Writes places of the rows of operands, or their elements where these are computed. @returns bounds that divide what is computed */
function writeOperands(writer: SlotWriter, operands: readonly Operand[], scope: Scope): readonly Expr[] {
  const ends: Expr[] = []
  for (const { role, row, access, step, element } of operands) {
    if (element === undefined && step !== undefined) {
      writer.define('int64_t', `${role}_row`, ['b', 'h', row], () => offsetText(access.tensor, access.indices, scope))
      writer.define('int64_t', `${role}_stride`, [], () => wideText(step, scope))
    } else if (element !== undefined) {
      writer.constant(`computed_${role}`, true)
      writer.elements(`${role}_elements`, 'template <int Vec, bool Whole>', ['b', 'h', row, 'c'], () =>
        elementStatements(element, scope, 'Vec', undefined, { bounds: (bound) => ends.push(bound) }),
      )
    }
  }
  return ends
}

/** Writes the mask of a score, the score, and the factor by which it is a multiple of its product. */
function writeScore(writer: SlotWriter, kernel: AttentionKernel, scope: Scope): void {
  const { kept, condition } = maskedScore(kernel.score)
  const pair = pairLoad([kept, ...(condition === undefined ? [] : [condition])], kernel, scope)
  const known = (expr: Expr): Expr => (pair === undefined ? expr : withPair(expr, pair))
  if (pair !== undefined) {
    const read = freeNames(pair)
    writer.constant('pair_of_sequence', read.has('b'))
    writer.constant('pair_of_head', read.has('h'))
    writer.comment('Neighbouring keys of what is read for each pair.')
    writer.chunk('pair_chunk', ['b', 'h', 'i', 'j'], pair)
    if (pair.type === 'i32') writer.integer(pairName)
  }
  const ofPair = pair === undefined ? [] : [pairName]
  if (condition !== undefined) {
    writer.comment('Which keys of its range a query attends.')
    writer.value('allowed', ['b', 'h', 'i', 'j', ...ofPair], withShifts(known(condition)))
    const mask = tileMaskOf(condition, kernel)
    if (mask !== undefined) writeTileMask(writer, mask, scope)
  }
  const score = withPlacesAsFloats(withoutDivisions(withShifts(known(kept))))
  writer.value('score', ['raw', 'b', 'h', 'i', 'j', ...Object.values(placesAsFloats), ...ofPair], score)
  const factor = factorOf(score)
  if (factor !== undefined) {
    writer.comment('A score is this multiple of its product.')
    writer.value('score_factor', [], factor)
    writer.host('bool', 'rises', expressionText(call('gt', factor, f32(0)), scope))
  }
}

/** Condition under which numbers of queries, ranges and places of rows may be read before the previous launch ends. */
function settled({ tensors, queryCount, ownedCount, range, query, key, value }: AttentionKernel): string {
  const rows = [query, key, value].flatMap(({ indices }) => indices)
  const read = new Set<string>()
  for (const expr of [queryCount, ownedCount, range.lower, range.upper, ...rows])
    visit(expr, (node) => node.kind === 'load' && read.add(node.tensor))
  const conditions = tensors.flatMap(({ name }, i) => (read.has(name) ? [`arguments.is_settled(${i})`] : []))
  return conditions.length === 0 ? 'true' : conditions.join(' && ')
}

/** Operations that give the same result on the host as on a device. */
const onHost: ReadonlySet<IntrinsicName> = new Set(['add', 'sub', 'mul', 'neg', 'minimum', 'maximum'] as const)

/**
 * Number of keys that a query attends, as an expression for the host. Undefined if it is one number, or depends on memory, the sequence or the
 * head.
 */
function spanText({ range }: AttentionKernel, scope: Scope): string | undefined {
  const isKnown = (bound: Expr): boolean =>
    !contains(bound, (node) => {
      if (node.kind === 'call') return !onHost.has(node.fn)
      return node.kind === 'index' ? node.name !== 'i' : node.kind !== 'const' && node.kind !== 'dim' && node.kind !== 'attr'
    })
  if (!isKnown(range.lower) || !isKnown(range.upper)) return undefined
  if (!freeNames(range.lower).has('i') && !freeNames(range.upper).has('i')) return undefined
  return `heddle::span_of(${expressionText(range.lower, scope)}, ${expressionText(range.upper, scope)}, keys)`
}

/**
 * Access of a row operand. A row is read whole if rows are at one distance from each other, its elements are contiguous, and they have the
 * multiplied type. Otherwise it is computed, by loading each element.
 */
function operandOf(
  role: Operand['role'],
  row: Operand['row'],
  access: RowOperand,
  { types }: TemplateInstance,
  type: ReturnType<typeof tensorOf>,
  scope: Scope,
): Operand {
  if (access.element !== undefined) return { role, row, access, step: undefined, element: access.element }
  const tensor = tensorOf(access.tensor, scope)
  const offset = offsetOf(tensor, access.indices, scope.fixed)
  const step = stepOf(offset, row)
  const sameType = resolveDType(tensor.dtype, types) === resolveDType(type.dtype, types)
  if (sameType && step !== undefined && isTogether(access, scope)) return { role, row, access, step, element: undefined }
  const element: Expr = { kind: 'load', type: 'f32', tensor: access.tensor, indices: alongRow(access.indices) }
  return { role, row, access, step: undefined, element }
}

/** Handle that a launch passes for an operand. For a computed operand of another type, any tensor of the right type serves: it is not read. */
function handleOf(
  { tensor }: RowOperand,
  operands: readonly Operand[],
  { types }: TemplateInstance,
  type: ReturnType<typeof tensorOf>,
  scope: Scope,
): string {
  const fits = (name: string): boolean => resolveDType(tensorOf(name, scope).dtype, types) === resolveDType(type.dtype, types)
  const chosen = fits(tensor) ? tensor : operands.map(({ access }) => access.tensor).find(fits)
  if (chosen === undefined) throw new Error(`internal: no operand other than ${tensor} has the multiplied type`)
  return scope.names.tensor(chosen)
}

/** A tile as the type in native/device/attention_mma.cuh. */
function tileText(choice: TileChoice): string {
  if (choice.kind !== 'attention') throw new Error(`internal: attention has no tile ${choice.kind}`)
  return `heddle::AttentionTile<${choice.queries}, ${choice.keys}, ${choice.warpgroups}>`
}

/** True if a score is arithmetic on its matmul result and attributes. */
const isPlain = (score: Expr): boolean => !contains(score, ({ kind }) => kind === 'load' || kind === 'index' || kind === 'fold')
