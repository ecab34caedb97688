/**
 * Names in generated text. Authors' names are kept; where C++ or the generated frame needs a name, or an index has the
 * name of a dimension (`m` runs over `m`), one of the two gives way.
 */
import { dtypeInfo } from '../ir/dtype.js'
import type { Expr } from '../ir/expr.js'
import type { TensorParam } from '../ir/kernel.js'
import type { MappedKernel } from '../schedule/mapped.js'
import { freshName } from '../schedule/normal.js'

export interface Names {
  dim(name: string): string
  attr(name: string): string
  tensor(name: string): string
  type(name: string): string
  /** An index variable, a scalar or a row value. */
  value(name: string): string
  /** The loop index of a chunk's first element: `c0` for `c`, `c3_0` for `c3`. */
  first(index: string): string
  /** A name nothing else has. */
  fresh(wanted: string): string
}

const keywords =
  'alignas alignof and asm auto bool break case catch char class const constexpr continue default delete do double else enum ' +
  'explicit export extern false float for friend goto if inline int int64_t long mutable namespace new noexcept not nullptr ' +
  'operator or private protected public register return short signed sizeof static struct switch template this throw true ' +
  'try typedef typename union unsigned using virtual void volatile while xor'
/** Functions generated text calls, and macros of the C library: a variable must not hide or become one. */
const library =
  'abs cosf erff expf fabsf floorf fmaxf fminf heddle logf max min powf rintf rsqrtf sinf sqrtf tanhf ' +
  'INFINITY NAN NULL NDEBUG EOF I assert errno stdin stdout stderr'
/** The frame's own names. */
const frame =
  'CHUNKS Epilogue Slots Team VEC WHOLE arguments choice chunk column compute error i launch length operands position product row rows run ' +
  'team threads valid whole width work THREADS ' +
  'Element Loaded PARTS PRODUCTS Row0 Row1 Row2 Row3 Row4 Sum chunk_of copies copy_of finish keep_parts load prefetch row_of whole_chunks'

export function createNames({ instance: { kernel }, axes, program }: Pick<MappedKernel, 'instance' | 'axes' | 'program'>): Names {
  const taken = new Set(`${keywords} ${library} ${frame}`.split(' '))
  const scopes = {
    value: new Map<string, string>(),
    first: new Map(),
    type: new Map(),
    tensor: new Map(),
    attr: new Map(),
    dim: new Map(),
  }
  const name = (scope: Map<string, string>, wanted: string, suffix: string): string => {
    const known = scope.get(wanted)
    if (known !== undefined) return known
    const given = freshName(taken.has(wanted) ? `${wanted}_${suffix}` : wanted, taken)
    scope.set(wanted, given)
    return given
  }
  const names: Names = {
    dim: (wanted) => name(scopes.dim, wanted, 'extent'),
    attr: (wanted) => name(scopes.attr, wanted, 'attr'),
    tensor: (wanted) => name(scopes.tensor, wanted, 'tensor'),
    type: (wanted) => name(scopes.type, wanted, 'type'),
    value: (wanted) => name(scopes.value, wanted, 'value'),
    first: (index) => {
      const given = names.value(index)
      return name(scopes.first, /\d$/.test(given) ? `${given}_0` : `${given}0`, 'first')
    },
    fresh: (wanted) => freshName(wanted, taken),
  }
  for (const axis of axes) names.value(axis.index)
  for (const step of program.kind === 'rows' ? [...program.kept, ...program.reread] : program.steps) {
    if (step.kind === 'let' || step.kind === 'threshold') names.value(step.name)
    if (step.kind === 'threshold') names.value(step.loop.index)
    if (step.kind !== 'pass') continue
    names.first(step.pass.loop.index)
    for (const { name: given } of [...step.pass.rows, ...step.pass.reductions, ...step.pass.rankings, ...step.pass.sharedRows])
      names.value(given)
  }
  for (const tensor of kernel.tensors) names.tensor(tensor.name)
  for (const attr of kernel.attrs) names.attr(attr.name)
  for (const param of Object.keys(kernel.types)) names.type(param)
  for (const dim of kernel.dims) names.dim(dim)
  return names
}

/** C++ names of the scalar types. */
export const scalarText: Readonly<Record<Expr['type'], string>> = { f32: 'float', i32: 'int', bool: 'bool' }

/** The storage type of a tensor: a type parameter's name, or the C++ type. */
export const storageText = ({ dtype }: TensorParam, names: Names): string =>
  typeof dtype === 'string' ? dtypeInfo[dtype].cuda : names.type(dtype.param)
