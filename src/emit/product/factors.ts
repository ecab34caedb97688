/**
 * The operands of matmuls as CUDA source: for each, the scalars of one of its rows, and eight consecutive elements of the row along k. An operand
 * that is a tensor is loaded; computed_factor.ts has the source of computed operands.
 */
import { index as indexVar } from '../../ir/build.js'
import { dtypeInfo, isFloat8 } from '../../ir/dtype.js'
import type { TensorParam } from '../../ir/kernel.js'
import { factorParam, factorsOf, type MatmulFactor, type MatmulKernel, sumsIntegers } from '../../ir/product.js'
import { classify, offsetOf } from '../../schedule/access/access.js'
import { bodyWriter, lines } from '../kernels/frame.js'
import type { TemplateInstance } from '../kernels/template.js'
import { offsetText, type Scope } from '../print/expression.js'
import { type Names, scalarText, storageText } from '../print/names.js'
import { computedFactor } from './computed_factor.js'
import { type FactorText, frameOf, isLong, ownAxis, type Place, placeTexts } from './factor_frame.js'
import { placed, renamed } from './frame.js'

const inline = '__device__ __forceinline__'

/** Members of the slots' struct that give the operands. */
export function factorsBody(kernel: MatmulKernel, scope: Scope, types: TemplateInstance['types']): string {
  const writer = bodyWriter()
  writer.writeLine('/// What is summed, and what tensor cores multiply.')
  writer.writeLine(`using Sum = ${sumsIntegers(kernel) ? scalarText.i32 : scalarText.f32};`)
  writer.writeLine(`using Element = ${elementText(kernel, scope.names)};`)
  writer.writeLine(`static constexpr int PRODUCTS = ${kernel.products.length};`)
  const frame = frameOf(scope.names)
  const bodies = factorsOf(kernel).map((factor, which) => factorBody(kernel, factor, { which, frame }, scope, types))
  return lines(writer) + bodies.join('') + rowsText(kernel, scope)
}

/**
 * A function that puts other memory in the place of all factors: aligned copies of rows that are not. It exists if factors are all that the kernel
 * reads from their tensors, and nothing but their rows depends on the length of these.
 */
function rowsText(kernel: MatmulKernel, scope: Scope): string {
  const factors = factorsOf(kernel)
  const names = factors.map(({ tensor }) => tensor)
  const { epilogue, partials, reduced } = kernel
  const others = reduced === undefined ? [epilogue, ...(partials === undefined ? [] : [partials])] : [reduced.partials]
  const areRows = factors.every((factor, which) => {
    if (factor.prologue !== undefined) return false
    const param = factorParam(kernel, factor)
    return isCopied(kernel, param, which, scope.names) && param.dims.length === 2
  })
  const areAlone = others.every(
    ({ tensors, dims }) => !dims.includes(kernel.k) && !tensors.some(({ name }) => names.includes(name)),
  )
  if (!areRows || !areAlone || new Set(names).size < names.length) return ''
  const writer = bodyWriter()
  writer.writeLine('/// The same with other memory of all factors: rows of `length` elements.')
  writer.write(`auto with_rows(const heddle::In<Element> (&rows)[${names.length}], int64_t length) const `).block(() => {
    writer.writeLine('auto other = *this;')
    for (const [which, name] of names.entries()) writer.writeLine(`other.${scope.names.tensor(name)} = rows[${which}];`)
    writer.writeLine(`other.${scope.names.dim(kernel.k)} = static_cast<int>(length);`)
    writer.writeLine('return other;')
  })
  return lines(writer)
}

/** True if a tensor holds rows along k of the type that is multiplied. */
function isCopied(kernel: MatmulKernel, param: TensorParam, which: number, names: Names): boolean {
  return isStored(kernel, param, which) && storageText(param, names) === elementText(kernel, names)
}
function isStored(kernel: MatmulKernel, param: TensorParam, which: number): boolean {
  const batch = kernel.batch.filter((axis) => param.dims.includes(axis))
  return param.layout.name === 'row' && param.dims.join() === [...batch, ownAxis(kernel, which), kernel.k].join()
}

/**
 * The one type in which all operands are stored, or to which they can be rounded without a loss; float32 if there is none. float16 represents all
 * 8-bit floats, so these are converted while they are loaded: to the type of the other operands, or to float16 if there is no other.
 */
function elementText(kernel: MatmulKernel, names: Names): string {
  const params = factorsOf(kernel).map((factor) => factorParam(kernel, factor))
  const wide = params.filter(({ dtype }) => dtype !== 'i8' && !isFloat8(dtype))
  if (wide.length === 0 && params.some(({ dtype }) => isFloat8(dtype))) return dtypeInfo.f16.cuda
  const texts = new Set((wide.length === 0 ? params : wide).map((param) => storageText(param, names)))
  const [text = ''] = texts
  return texts.size === 1 ? text : scalarText.f32
}

function factorBody(
  kernel: MatmulKernel,
  factor: MatmulFactor,
  { which, frame }: Place,
  scope: Scope,
  types: TemplateInstance['types'],
): string {
  const { rows, first, chunk, read, unscaled } =
    factor.prologue === undefined
      ? plainFactor(kernel, factor, { which, frame }, scope)
      : computedFactor(kernel, factor, { which, frame }, scope, types)
  const writer = bodyWriter()
  writer.writeLine(
    `/// Factor ${which}: what is known of a row of a matrix, and its next VEC elements, of which \`valid\` exist.`,
  )
  writer.write(`struct Row${which} `).inlineBlock(() => {
    for (const { name, type } of rows) writer.writeLine(`${scalarText[type]} ${name};`)
  })
  writer.write(';').newLine()
  const { matrix, at, along, known, values } = frame
  const place = `[[maybe_unused]] int64_t ${matrix}, [[maybe_unused]] int ${at}`
  writer.writeLine('template <class Team>')
  writer.write(`${inline} Row${which} row_of(heddle::Factor<${which}>, [[maybe_unused]] Team team, ${place}) const `)
  const head = `${lines(writer).trimEnd()} {\n${first}  }\n`
  const second = bodyWriter()
  const given = `[[maybe_unused]] const Row${which}& ${known}, ${place}, int ${along}, int valid, Sum (&${values})[VEC]`
  second.writeLine('template <bool WHOLE>')
  second.write(`${inline} void chunk_of(heddle::Factor<${which}>, ${given}) const `)
  const third = bodyWriter()
  const tests = ['length % VEC == 0', ...read.map((tensor) => `${tensor}.aligned(0, 16)`)]
  third.writeLine(`bool whole_rows(heddle::Factor<${which}>, int64_t length) const { return ${tests.join(' && ')}; }`)
  return `${head}${lines(second).trimEnd()} {\n${chunk}  }\n${unscaled}${lines(third)}${copyText(kernel, factor, { which, frame }, scope)}`
}

function plainFactor(kernel: MatmulKernel, factor: MatmulFactor, { which, frame }: Place, scope: Scope): FactorText {
  const param = factorParam(kernel, factor)
  const own = ownAxis(kernel, which)
  const rows = param.dims.filter((dim) => dim !== kernel.k).map((dim) => ({ index: `i_${dim}`, dim }))
  const texts = placeTexts({ rows }, kernel, own, frame, scope.names)
  const element = 'element of the row'
  const indices = param.dims.map((dim) => indexVar(dim === kernel.k ? element : `i_${dim}`))
  const at = (k: string): string => {
    const names = renamed(placed(scope.names, texts, scope.used), new Map([[element, k]]))
    return offsetText(param.name, indices, { ...scope, names })
  }
  const tensor = scope.names.tensor(param.name)
  const access = classify(offsetOf(param, indices, {}), element)
  const runs = access.kind === 'contiguous' && access.run === Number.POSITIVE_INFINITY
  const writer = bodyWriter(2)
  const together = runs && isLong(param, kernel.k)
  const width = together ? 'VEC, WHOLE' : 'VEC'
  if (runs) writer.writeLine(`const auto chunk = heddle::load_chunk<${width}>(${tensor}, ${at(frame.along)}, valid);`)
  writer.writeLine('HEDDLE_UNROLL')
  const value = runs ? 'chunk[i]' : `i < valid ? heddle::read(${tensor}, ${at(`(${frame.along} + i)`)}) : 0`
  writer.writeLine(`for (int i = 0; i < VEC; ++i) ${frame.values}[i] = static_cast<Sum>(${value});`)
  return { read: together ? [tensor] : [], rows: [], first: '    return {};\n', chunk: lines(writer), unscaled: '' }
}

/**
 * Functions that read an operand's rows directly, if they are contiguous and of length k, and that copy them if they are of the element type too.
 * An operand that is computed, or has another layout, is marked by a type. Launchers also call them, to describe rows to the copy engine.
 */
function copyText(kernel: MatmulKernel, factor: MatmulFactor, { which, frame }: Place, scope: Scope): string {
  const param = factorParam(kernel, factor)
  const { names } = scope
  const own = ownAxis(kernel, which)
  const batch = kernel.batch.filter((axis) => param.dims.includes(axis))
  const stored = factor.prologue === undefined && isStored(kernel, param, which)
  const copied = stored && isCopied(kernel, param, which, names)
  const matrix = `[[maybe_unused]] int64_t ${frame.matrix}`
  const writer = bodyWriter()
  const none = (member: string): void => {
    writer.writeLine(`${inline} heddle::NotCopied ${member}(heddle::Factor<${which}>, int64_t) const { return {}; }`)
  }
  if (!copied) {
    none('copy_of')
    writer.writeLine(`bool copies(heddle::Factor<${which}>, int64_t) const { return true; }`)
  }
  if (!stored) {
    none('stored_of')
    return lines(writer)
  }
  const texts = placeTexts({ rows: batch.map((dim) => ({ index: `i_${dim}`, dim })) }, kernel, own, frame, names)
  const tensor = names.tensor(param.name)
  const zero = param.dims.map((dim) =>
    batch.includes(dim) ? indexVar(`i_${dim}`) : ({ kind: 'const', type: 'i32', value: 0 } as const),
  )
  const offset = offsetText(param.name, zero, { ...scope, names: placed(names, texts, scope.used) })
  const rows = (member: string): void => {
    const type = `heddle::CopiedRows<${storageText(param, names)}>`
    writer.writeLine(
      `__host__ ${inline} ${type} ${member}(heddle::Factor<${which}>, ${matrix}) const { return {${tensor}, ${offset}}; }`,
    )
  }
  rows('stored_of')
  if (copied) {
    rows('copy_of')
    writer.writeLine(
      `bool copies(heddle::Factor<${which}>, int64_t length) const { return length * static_cast<int64_t>(sizeof(Element)) % 16 == 0 && ${tensor}.aligned(0, 16); }`,
    )
  }
  return lines(writer)
}
