/**
 * A computed left operand without the scale of its rows, as CUDA source, for main loops that read a whole row once. Elements and the sums that the
 * scale depends on come from the same chunks, and sums of products are scaled at the end.
 */
import type { TensorParam } from '../../ir/kernel.js'
import type { Access } from '../../loop/ir.js'
import type { Pass } from '../../schedule/normalise/passes.js'
import { bodyWriter, lines } from '../kernels/frame.js'
import { writePass, writeSteps } from '../kernels/steps.js'
import type { PassContext } from '../print/context.js'
import { expressionText } from '../print/expression.js'
import type { Names } from '../print/names.js'
import type { Frame } from './factor_frame.js'
import { renamed } from './frame.js'
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
export function unscaledText({ scaled, last, frame, param, names, context, whole, shared }: Unscaled): string {
  const { matrix, at, along, kept, values } = frame
  const folds = names.fresh('folds')
  const place = `[[maybe_unused]] int64_t ${matrix}, [[maybe_unused]] int ${at}`
  const terms = scaled.sums.map((sum) => ({ sum, tensor: `${sum.name} of the row`, text: names.fresh('terms') }))
  const writer = bodyWriter()
  writer.writeLine('/// Factor 0 without what its rows are scaled by, which is known of sums over the row.')
  writer.writeLine(`static constexpr int FOLDS = ${terms.length};`)
  writer.write(`${inline} void prefetch_of(heddle::Factor<0>, [[maybe_unused]] int ${along}) const `).block(() => {
    for (const tensor of shared) writer.writeLine(`heddle::prefetch(${tensor}, ${along});`)
  })
  writer.writeLine('template <bool WHOLE>')
  const given = `int ${along}, int valid, Sum (&${values})[VEC], float (&${folds})[FOLDS]`
  writer.write(`${inline} void unscaled_of(heddle::Factor<0>, ${place}, ${given}) const `)

  const body = bodyWriter(2)
  const texts = new Map(terms.map(({ tensor, text }) => [tensor, `${text}_kept`]))
  const inside: Names = {
    ...names,
    tensor: (name) => texts.get(name) ?? names.tensor(name),
    first: (name) => (name === last.loop.index ? along : names.first(name)),
  }
  body.writeLine(`const heddle::KeptChunk<VEC> ${kept}{${values}};`)
  for (const { text } of terms) {
    body.writeLine(`float ${text}[VEC];`)
    body.writeLine(`const heddle::KeptChunk<VEC> ${text}_kept{${text}};`)
  }
  const made = context(body, inside)
  const stored = terms.map(({ sum, tensor }) => ({ ...scaled.store, tensor, value: sum.value }))
  writePass(
    { ...last, rows: scaled.rows, statements: [scaled.store, ...stored] },
    {
      ...made,
      tensors: [...made.tensors, ...terms.map(({ tensor }): TensorParam => ({ ...param, name: tensor, dtype: 'f32' }))],
    },
    whole,
  )
  body.writeLine('HEDDLE_UNROLL')
  body.write('for (int i = 0; i < VEC; ++i)').block(() => {
    for (const [f, { text }] of terms.entries()) body.writeLine(`if (WHOLE || i < valid) ${folds}[${f}] += ${text}[i];`)
  })

  const scale = bodyWriter()
  scale.write(`${inline} Sum scale_of(heddle::Factor<0>, ${place}, const float (&${folds})[FOLDS]) const `)
  const end = bodyWriter(2)
  const known = renamed(names, new Map(terms.map(({ sum }, f) => [sum.name, `${folds}[${f}]`])))
  const after = context(end, known)
  writeSteps(scaled.after, after)
  end.writeLine(`return ${expressionText(scaled.scale, after)};`)
  return `${lines(writer).trimEnd()} {\n${lines(body)}  }\n${lines(scale).trimEnd()} {\n${lines(end)}  }\n`
}
