/** An attention kernel as CUDA text: where rows lie, which count, what a score is, what is stored, as a struct of small functions. */
import { i32 } from '../ir/build.js'
import type { Expr } from '../ir/expr.js'
import { simplifyExpr } from '../ir/simplify.js'
import { type AttentionKernel, type RowAccess, storesAsIs } from '../ir/template.js'
import { offsetOf } from '../schedule/access.js'
import { contains, dropZeros } from '../schedule/rewrite.js'
import type { TileChoice } from '../schedule/tiles.js'
import { expressionText, offsetText, type Scope, tensorOf, wideText } from './expression.js'
import { bodyWriter, lines } from './kernel.js'
import { capitalise } from './launcher.js'
import { createNames } from './names.js'
import { beforeStore } from './stored.js'
import { declareNames, type TemplateInstance, type Tiles, templateFile, tileCondition } from './template.js'

/** Parameters of slots that are numbers; the others are indices. */
const numbers: readonly string[] = ['raw', 'result']

/** Names of slots, which no tensor may have. */
const slotNames = 'keys queries owned score stored'

/** The file of an instance. */
export function emitAttention(instance: TemplateInstance, kernel: AttentionKernel, tiles: Tiles): string {
  const names = declareNames(
    kernel,
    createNames(
      {
        instance: { kernel: { ...kernel, rows: [], body: [] }, types: instance.types, dims: {} },
        axes: ['b', 'h', 'i', 'j'].map((name) => ({ index: name, dim: name })),
        program: { kind: 'elementwise', steps: [], threads: 0 },
      },
      slotNames,
    ),
  )
  const scope: Scope = {
    names,
    used: { dims: new Set(), attrs: new Set(), indices: new Set() },
    tensors: kernel.tensors,
    fixed: {},
    elements: new Map(),
  }
  const writer = bodyWriter()
  const define = (result: string, name: string, parameters: readonly string[], text: () => string): void => {
    scope.used.indices.clear()
    const value = text()
    // Parameters a slot does not use have no name, so that no compiler complains about them.
    const list = parameters.map((parameter) => {
      const isNumber = numbers.includes(parameter)
      const known = isNumber ? value.includes(names.value(parameter)) : scope.used.indices.has(parameter)
      return `${isNumber ? 'float' : 'int'}${known ? ` ${names.value(parameter)}` : ''}`
    })
    writer.writeLine(`__device__ __forceinline__ ${result} ${name}(${list.join(', ')}) const { return ${value}; }`)
  }
  if (isPlain(kernel.score)) {
    writer.writeLine('/// A score depends on its product alone.')
    writer.writeLine('static constexpr bool plain_score = true;')
  }
  define('int', 'keys', ['b'], () => expressionText(kernel.range.upper, scope))
  define('int', 'queries', ['b'], () => expressionText(kernel.queryCount, scope))
  define('int', 'owned', ['b'], () => expressionText(kernel.ownedCount, scope))
  for (const [role, access, row] of [
    ['query', kernel.query, 'i'],
    ['key', kernel.key, 'j'],
    ['value', kernel.value, 'j'],
    ['out', kernel.out, 'i'],
  ] as const) {
    define('int64_t', `${role}_row`, ['b', 'h', row], () => offsetText(access.tensor, access.indices, scope))
    define('int64_t', `${role}_stride`, [], () => wideText(strideOf(access, row, kernel), scope))
  }
  define('float', 'score', ['raw', 'b', 'h', 'i', 'j'], () => expressionText(kernel.score, scope))
  if (!storesAsIs(kernel)) {
    writer.writeLine('/// What is stored of a result.')
    const stored = beforeStore(kernel.stored, tensorOf(kernel.out.tensor, scope).dtype)
    define('float', 'stored', ['result'], () => expressionText(stored, scope))
  }

  // The launcher knows every parameter by itself; what it reads need not become a member of the slots.
  const outside: Scope = { ...scope, used: { dims: new Set(), attrs: new Set(), indices: new Set() } }
  const query = tensorOf(kernel.query.tensor, scope)
  const type = typeof query.dtype === 'string' ? query.dtype : names.type(query.dtype.param)
  const extents = [kernel.batch, kernel.heads, kernel.queries, kernel.headDim].map((extent) => expressionText(extent, outside))
  const tensors = [kernel.query, kernel.key, kernel.value, kernel.out].map(({ tensor }) => names.tensor(tensor))
  const [, , queries = '', headDim = ''] = extents
  const given = (key: string, slots: string): string =>
    `launch, error, "${key}", ${extents.join(', ')}, ${tensors.join(', ')}, ${slots}`
  const byTile = (choice: TileChoice, headDim: number, key: string, slots: string): string =>
    `return heddle::launch_attention_as<${headDim}, ${tileText(choice)}, ${type}>(${given(key, slots)});`
  return templateFile(
    instance,
    scope,
    {
      comment: `${instance.key}: attention main loop of native/device/attention.cuh`,
      include: 'attention.cuh',
      slots: { name: 'Slots', comment: 'Where rows lie, which count, and what a score is.', body: lines(writer) },
      launch: (slots, { key, choice, length }) => {
        if (choice !== undefined && length !== undefined) return [byTile(choice, length, key, slots)]
        const measured = tiles.tuned.flatMap((tile) => {
          const condition = `${tileCondition(tile, { length: headDim, rows: queries })} && heddle::in_words(${tensors.join(', ')})`
          return [`// ${capitalise(tile.reason)}.`, `if (${condition}) ${byTile(tile.choice, tile.length, key, slots)}`]
        })
        return [...measured, `return heddle::launch_attention<${type}>(${given(key, slots)});`]
      },
      extents: extents.slice(0, 2),
    },
    tiles,
  )
}

/** A tile as native/device/attention_mma.cuh has it. */
function tileText(choice: TileChoice): string {
  if (choice.kind !== 'attention') throw new Error(`internal: attention has no tile ${choice.kind}`)
  return `heddle::AttentionTile<${choice.queries}, ${choice.keys}, ${choice.warpgroups}>`
}

/** Elements between neighbouring rows: the offset of row 1 of sequence 0, which starts at 0, less that of row 0. */
function strideOf({ tensor, indices }: RowAccess, row: string, kernel: AttentionKernel): Expr {
  const param = kernel.tensors.find(({ name }) => name === tensor)
  if (param === undefined) throw new Error(`internal: no tensor ${tensor}`)
  const axis = indices.findIndex((expr) => contains(expr, (node) => node.kind === 'index' && node.name === row))
  const at = (position: number): Expr =>
    simplifyExpr(
      dropZeros(
        offsetOf(
          param,
          indices.map((_, i) => i32(i === axis ? position : 0)),
          {},
        ),
      ),
    )
  if (JSON.stringify(at(0)) !== JSON.stringify(i32(0))) throw new Error(`internal: ${tensor} does not start at its first element`)
  return at(1)
}

/** Whether a score is arithmetic on its product and attributes. */
const isPlain = (score: Expr): boolean => !contains(score, ({ kind }) => kind === 'load' || kind === 'index' || kind === 'fold')
