/**
 * A decode attention kernel as CUDA text: which places count and whose row holds each, what a query, a score and the keys and values
 * of a step are, as a struct of small functions.
 */
import { usageError } from '../errors.js'
import type { Expr, ExprOf } from '../ir/expr.js'
import { type DecodeAttentionKernel, type FreshPlace, storesAsIs } from '../ir/template.js'
import { rewrite, visit } from '../ir/walk.js'
import { classify, offsetOf } from '../schedule/access.js'
import { expressionText, offsetText, type Scope, tensorOf } from './expression.js'
import { bodyWriter, lines } from './kernel.js'
import { createNames, type Names, scalarText } from './names.js'
import { beforeStore } from './stored.js'
import { declareNames, type TemplateInstance, templateFile } from './template.js'

/** Indices and locals of slots, which keep their names. */
const values = ['b', 'c', 'h', 'i', 'j', 'owner', 'raw', 'result'] as const
type Value = (typeof values)[number]
const numbers: readonly string[] = ['raw', 'result']

/** Names of slots and of what is inside of them, which no tensor may have. */
const reserved =
  'aligned e elements fresh_key fresh_key_row fresh_place fresh_value fresh_value_row has_fresh key_row keys out_row query score ' +
  'stored valid value_row Vec Whole'

/** The file of an instance. @throws usage `emit.rows` for elements of a head that do not lie together */
export function emitDecodeAttention(instance: TemplateInstance, kernel: DecodeAttentionKernel): string {
  const names = namesOf(instance, kernel)
  const scope: Scope = {
    names,
    used: { dims: new Set(), attrs: new Set(), indices: new Set() },
    tensors: kernel.tensors,
    fixed: {},
    elements: new Map(),
  }
  const writer = bodyWriter()
  const define = (result: string, name: string, parameters: readonly Value[], text: string): void => {
    const list = parameterList(parameters, text, names)
    writer.writeLine(`__device__ __forceinline__ ${result} ${name}(${list}) const { return ${text}; }`)
  }
  const row = (name: string, parameters: readonly Value[], { tensor, indices }: DecodeAttentionKernel['key']): void =>
    define('int64_t', name, parameters, offsetText(tensor, indices, scope))
  const read = new Set<string>()
  const elements = (name: string, parameters: readonly Value[], value: Expr): void => {
    const { loads, text } = chunked(value, instance, scope)
    for (const { load } of loads) read.add(names.tensor(load.tensor))
    const list = parameterList([...parameters, 'c'], [text, ...loads.map(({ offset }) => offset)].join(' '), names)
    const count = loads.length === 0 ? 'int' : 'int valid'
    writer.writeLine('template <int Vec, bool Whole>')
    writer.write(`__device__ __forceinline__ void ${name}(${list}, ${count}, float (&elements)[Vec]) const `).block(() => {
      for (const { name: chunk, load, offset } of loads)
        writer.writeLine(`const auto ${chunk} = heddle::load_chunk<Vec, Whole>(${names.tensor(load.tensor)}, ${offset}, valid);`)
      writer.writeLine('HEDDLE_UNROLL')
      writer.writeLine(`for (int e = 0; e < Vec; ++e) elements[e] = ${text};`)
    })
  }
  const { fresh } = kernel
  writer.writeLine(`static constexpr bool has_fresh = ${fresh !== undefined};`)
  define('int', 'keys', ['b'], expressionText(kernel.range.upper, scope))
  define('int', 'owner', ['b', 'j'], expressionText(kernel.owner, scope))
  row('key_row', ['owner', 'h', 'j'], kernel.key)
  row('value_row', ['owner', 'h', 'j'], kernel.value)
  row('out_row', ['b', 'i', 'h'], kernel.out)
  elements('query', ['b', 'i', 'h'], kernel.query)
  define('float', 'score', ['raw', 'b', 'i', 'h', 'j'], expressionText(kernel.score, scope))
  if (fresh !== undefined) {
    define('int', 'fresh_place', ['b'], expressionText(fresh.place, scope))
    elements('fresh_key', ['b', 'h'], fresh.key)
    elements('fresh_value', ['b', 'h'], fresh.value)
    row('fresh_key_row', ['b', 'h', 'j'], fresh.keyCache)
    row('fresh_value_row', ['b', 'h', 'j'], fresh.valueCache)
  }
  if (!storesAsIs(kernel)) {
    writer.writeLine('/// What is stored of a result.')
    const stored = beforeStore(kernel.stored, tensorOf(kernel.out.tensor, scope).dtype)
    define('float', 'stored', ['result'], expressionText(stored, scope))
  }
  writer.writeLine('/// Whether rows that are read element by element begin at multiples of 16 bytes.')
  const bases = [...read].map((name) => `${name}.aligned(0, 16)`)
  writer.writeLine(`bool aligned() const { return ${bases.length === 0 ? 'true' : bases.join(' && ')}; }`)

  // The launcher knows every parameter by itself; what it reads need not become a member of the slots.
  const outside: Scope = { ...scope, used: { dims: new Set(), attrs: new Set(), indices: new Set() } }
  const extents = [kernel.batch, kernel.heads, kernel.queries, kernel.headDim, kernel.places].map((extent) =>
    expressionText(extent, outside),
  )
  const handles = [kernel.key, kernel.value, kernel.out].map(({ tensor }) => names.tensor(tensor))
  const caches = cachesOf(fresh).map((tensor) => `, ${names.tensor(tensor)}`)
  const given = `launch, error, "${instance.key}", ${[...extents, ...handles].join(', ')}`
  return templateFile(
    instance,
    scope,
    {
      comment: `${instance.key}: decode attention of native/device/attention_decode.cuh`,
      include: 'attention_decode.cuh',
      slots: { name: 'Slots', comment: 'Where rows lie, which count, and what queries and scores are.', body: lines(writer) },
      launch: (slots) => [`return heddle::launch_attention_decode(${given}, ${slots}${caches.join('')});`],
      extents: extents.slice(0, 3).filter((extent) => !/^\d+$/.test(extent)),
    },
    { tuned: [] },
  )
}

const cachesOf = (fresh: FreshPlace | undefined): readonly string[] =>
  fresh === undefined ? [] : [fresh.keyCache.tensor, fresh.valueCache.tensor]

/** The kernel's names, of which tensors give way to slots. */
function namesOf(instance: TemplateInstance, kernel: DecodeAttentionKernel): Names {
  const names = createNames({
    instance: { kernel: { ...kernel, rows: [], body: [], tensors: [] }, types: instance.types, dims: {} },
    axes: values.map((name) => ({ index: name, dim: name })),
    program: { kind: 'elementwise', steps: [], threads: 0 },
  })
  for (const name of reserved.split(' ')) names.fresh(name)
  return declareNames(kernel, names)
}

/** Parameters of a slot. Those it does not use have no name, so that no compiler complains about them. */
function parameterList(parameters: readonly Value[], text: string, names: Names): string {
  return parameters
    .map((parameter) => {
      const name = names.value(parameter)
      const isUsed = new RegExp(`\\b${name}\\b`).test(text)
      return `${scalarText[numbers.includes(parameter) ? 'f32' : 'i32']}${isUsed ? ` ${name}` : ''}`
    })
    .join(', ')
}

interface ChunkLoad {
  readonly name: string
  readonly load: ExprOf<'load'>
  /** Text of where the chunk begins, at column `c`. */
  readonly offset: string
}

/** The text of element `e` of a chunk, and the chunks it is made of. */
function chunked(
  value: Expr,
  { key }: TemplateInstance,
  scope: Scope,
): { readonly loads: readonly ChunkLoad[]; readonly text: string } {
  const loads: ChunkLoad[] = []
  const text = rewrite(value, (node) => {
    if (node.kind !== 'load' || !usesColumn(node)) return node
    const tensor = tensorOf(node.tensor, scope)
    const access = classify(offsetOf(tensor, node.indices, scope.fixed), 'c')
    if (access.kind !== 'contiguous' || access.run !== Number.POSITIVE_INFINITY) {
      throw usageError(
        'emit.rows',
        `${key}: elements of a head of ${tensor.name} do not lie together in layout ${tensor.layout.name}`,
        {
          hint: 'give the edge a layout whose last axis is contiguous',
        },
      )
    }
    const offset = offsetText(node.tensor, node.indices, scope)
    const same = loads.find((known) => known.load.tensor === node.tensor && known.offset === offset)
    const name = same?.name ?? scope.names.fresh(`${scope.names.tensor(node.tensor)}_part`)
    if (same === undefined) loads.push({ name, load: node, offset })
    scope.elements.set(name, `${name}[e]`)
    return { kind: 'element', type: node.type, row: name, index: { kind: 'index', type: 'i32', name: 'c' } }
  })
  return { loads, text: expressionText(text, scope) }
}

function usesColumn(load: ExprOf<'load'>): boolean {
  let found = false
  visit(load, (node) => {
    found ||= node.kind === 'index' && node.name === 'c'
  })
  return found
}
