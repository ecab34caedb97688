/**
 * A computed left operand without the scale of its rows, as CUDA source, for main loops that read a whole row once. Elements and the sums that the
 * scale depends on come from the same chunks, and sums of products are scaled at the end. Parts of elements that all rows share are multiplied apart.
 */
import type { Expr } from '../../ir/expr.js'
import type { TensorParam } from '../../ir/kernel.js'
import type { Access } from '../../loop/ir.js'
import type { Pass } from '../../schedule/normalise/passes.js'
import { bodyWriter, lines } from '../kernels/frame.js'
import { writePass, writeSteps } from '../kernels/steps.js'
import type { PassContext } from '../print/context.js'
import { expressionText } from '../print/expression.js'
import type { Names } from '../print/names.js'
import { anchorName } from './anchored_row.js'
import type { Frame } from './factor_frame.js'
import { renamed } from './frame.js'
import { readBy } from './row_polynomial.js'
import type { RowScale } from './row_scale.js'

const inline = '__device__ __forceinline__'

export interface Unscaled {
  readonly scaled: RowScale
  /** The pass that computes the elements of the operand. */
  readonly last: Pass
  readonly frame: Frame
  /** The operand as the prologue stores it. */
  readonly param: TensorParam
  /** Names of the operand's functions, in which the operand itself names the kept chunk. */
  readonly names: Names
  readonly context: (writer: PassContext['writer'], names: Names) => PassContext
  readonly whole: (access: Access) => boolean
  /** Tensors that chunks of every row read at the same place. */
  readonly shared: readonly string[]
}

/** Members of the slots' struct. */
export function unscaledText(unscaled: Unscaled): string {
  const { scaled, frame, names, shared } = unscaled
  const { matrix, at, along, values } = frame
  const { anchored } = scaled
  const folds = names.fresh('folds')
  const anchor = names.fresh('anchor')
  const place = `[[maybe_unused]] int64_t ${matrix}, [[maybe_unused]] int ${at}`
  const inside = anchored === undefined ? names : renamed(names, new Map([[anchorName, anchor]]))
  const given: Unscaled = { ...unscaled, names: inside }
  const writer = bodyWriter()
  writer.writeLine('/// Factor 0 without what its rows are scaled by, which is known of sums over the row.')
  writer.writeLine(`static constexpr int FOLDS = ${scaled.sums.length};`)
  writer.write(`${inline} void prefetch_of(heddle::Factor<0>, [[maybe_unused]] int ${along}) const `).block(() => {
    for (const tensor of shared) writer.writeLine(`heddle::prefetch(${tensor}, ${along});`)
  })
  const more = anchored === undefined ? '' : `, float ${anchor}`
  const sums = `Sum (&${values})[VEC], float (&${folds})[FOLDS]${more}`
  const members = [
    lines(writer),
    functionText(
      'WHOLE',
      `void unscaled_of(heddle::Factor<0>, ${place}, int ${along}, int valid, ${sums})`,
      elementsText(given, folds),
    ),
    ...(anchored === undefined ? [] : anchoredText(given, anchored, place)),
    scaleText(given, { folds, place, more }),
  ]
  return members.join('')
}

/** A member function. @param template the name of its boolean parameter, if it has one */
function functionText(template: string | undefined, head: string, body: string): string {
  const writer = bodyWriter()
  if (template !== undefined) writer.writeLine(`template <bool ${template}>`)
  writer.write(`${inline} ${head} const `)
  return `${lines(writer).trimEnd()} {\n${body}  }\n`
}

/** Body that computes a chunk of elements without their scale, and adds the terms of the sums. */
function elementsText(unscaled: Unscaled, folds: string): string {
  const { scaled, names } = unscaled
  const terms = scaled.sums.map((sum) => ({ value: sum.value, text: names.fresh('terms') }))
  const body = bodyWriter(2)
  writeChunks(unscaled, body, scaled.store.value, terms)
  body.writeLine('HEDDLE_UNROLL')
  body.write('for (int i = 0; i < VEC; ++i)').block(() => {
    for (const [f, { text }] of terms.entries()) body.writeLine(`if (WHOLE || i < valid) ${folds}[${f}] += ${text}[i];`)
  })
  return lines(body)
}

/** Writes the pass with other values of its elements: one kept in the function's result, and each term in an array that it declares. */
function writeChunks(
  { scaled, last, frame, param, names, context, whole }: Unscaled,
  body: PassContext['writer'],
  value: Expr,
  terms: readonly { readonly value: Expr; readonly text: string }[],
): void {
  const { along, kept, values } = frame
  const named = terms.map((term, f) => ({ ...term, tensor: `sum${f} of the row` }))
  const texts = new Map(named.map(({ tensor, text }) => [tensor, `${text}_kept`]))
  const inside: Names = {
    ...names,
    tensor: (name) => texts.get(name) ?? names.tensor(name),
    first: (name) => (name === last.loop.index ? along : names.first(name)),
  }
  body.writeLine(`const heddle::KeptChunk<VEC> ${kept}{${values}};`)
  for (const { text } of named) {
    body.writeLine(`float ${text}[VEC];`)
    body.writeLine(`const heddle::KeptChunk<VEC> ${text}_kept{${text}};`)
  }
  const made = context(body, inside)
  const store = { ...scaled.store, value }
  const stored = named.map(({ tensor, value }) => ({ ...store, tensor, value }))
  writePass(
    { ...last, rows: scaled.rows, statements: [store, ...stored] },
    {
      ...made,
      tensors: [...made.tensors, ...named.map(({ tensor }): TensorParam => ({ ...param, name: tensor, dtype: 'f32' }))],
    },
    whole,
  )
}

/** Functions for the anchor of a row, and for the parts that all rows share. */
function anchoredText(
  unscaled: Unscaled,
  { anchor, common }: NonNullable<RowScale['anchored']>,
  place: string,
): readonly string[] {
  const { frame, names } = unscaled
  const { along, values } = frame
  const first = bodyWriter(2)
  first.writeLine(`constexpr int ${along} = 0, valid = VEC;`)
  first.writeLine(`Sum ${values}[VEC];`)
  writeChunks({ ...unscaled, scaled: { ...unscaled.scaled, rows: readBy([anchor], unscaled.scaled.rows) } }, first, anchor, [])
  first.writeLine(`return ${values}[0];`)
  const all = names.fresh('all')
  const anyRow = `    [[maybe_unused]] constexpr int ${frame.at} = 0;\n    [[maybe_unused]] constexpr int64_t ${frame.matrix} = 0;\n`
  const parts = common.map(({ value }, f) => {
    const body = bodyWriter(3)
    body.writeLine(`Sum (&${values})[VEC] = ${all}[${f}];`)
    writeChunks({ ...unscaled, scaled: { ...unscaled.scaled, rows: readBy([value], unscaled.scaled.rows) } }, body, value, [])
    return `    {\n${lines(body)}    }\n`
  })
  return [
    `  /// Parts of elements that all rows share, and the element from which distances are taken: the first of a row.\n`,
    `  static constexpr int COMMON = ${common.length};\n`,
    functionText('WHOLE', `Sum anchor_of(heddle::Factor<0>, ${place})`, lines(first)),
    functionText(
      'WHOLE',
      `void common_of(heddle::Factor<0>, int ${along}, int valid, Sum (&${all})[COMMON][VEC])`,
      anyRow + parts.join(''),
    ),
  ]
}

/** The scale of a row from its sums, and the factors of the parts that all rows share. */
function scaleText(
  { scaled, names, context }: Unscaled,
  { folds, place, more }: { readonly folds: string; readonly place: string; readonly more: string },
): string {
  const { anchored } = scaled
  const factors = names.fresh('factors')
  const end = bodyWriter(2)
  const known = renamed(names, new Map(scaled.sums.map(({ name }, f) => [name, `${folds}[${f}]`])))
  const after = context(end, known)
  writeSteps(scaled.after, after)
  for (const [f, { factor }] of (anchored?.common ?? []).entries()) {
    end.writeLine(`${factors}[${f}] = ${expressionText(factor, after)};`)
  }
  end.writeLine(`return ${expressionText(scaled.scale, after)};`)
  const given = anchored === undefined ? '' : `${more}, Sum (&${factors})[COMMON]`
  return functionText(undefined, `Sum scale_of(heddle::Factor<0>, ${place}, const float (&${folds})[FOLDS]${given})`, lines(end))
}
