/**
 * Names in generated source. Names of bodies are kept. If C++ or the generated frame needs a name, or an index has the name of a dimension (`m`
 * runs over `m`), one of the two is renamed.
 */
import { dtypeInfo } from '../../ir/dtype.js'
import type { Expr } from '../../ir/expr.js'
import type { TensorParam } from '../../ir/kernel.js'
import { passStatementOf, rowStatementOf } from '../../schedule/constructs/index.js'
import { programNames } from '../../schedule/divided/divided_program.js'
import { declaring, intervalIn, type MappedKernel } from '../../schedule/mapped.js'
import { freshName } from '../../schedule/normalise/normal.js'
import { ownsOf } from './user_monoids.js'

export interface Names {
  dim(name: string): string
  attr(name: string): string
  tensor(name: string): string
  type(name: string): string
  /** An index variable, a scalar or a row value. */
  value(name: string): string
  /** The loop index of a chunk's first element: `c0` for `c`, `c3_0` for `c3`. */
  first(index: string): string
  /** A name that nothing else has. */
  fresh(wanted: string): string
}

const keywords =
  'alignas alignof and asm auto bool break case catch char class concept const consteval constexpr constinit continue decltype ' +
  'default delete do double else enum explicit export extern false final float for friend goto if import inline int long module ' +
  'mutable namespace new noexcept not nullptr operator or override private protected public register requires return short signed ' +
  'sizeof static struct switch template this thread_local throw true try typedef typeid typename typeof union unsigned using ' +
  'virtual void volatile wchar_t while xor bitand bitor compl'
/**
 * Names of the C library and of CUDA that generated source uses: a variable must not hide them. Macros in capitals are recognised by their form.
 */
const library =
  'abs ceilf cosf erff exp2f expf expm1f fabsf floorf heddle log10f log1pf log2f logf max min powf rintf rsqrtf sinf sqrtf std tanhf truncf ' +
  'int32_t int64_t ' +
  'blockDim blockIdx gridDim threadIdx warpSize main ' +
  'I alloca assert complex errno i386 imaginary linux major makedev minor offsetof static_assert stderr stdin stdout unix ' +
  'fpclassify isfinite isgreater isgreaterequal isinf isless islessequal islessgreater isnan isnormal isunordered signbit setjmp'
/** Names of the frame. */
const frame =
  'CHUNKS Epilogue Loaded Slots Team VEC WHOLE arguments choice chunk column compute error finish i kernel launch length load ' +
  'measured name operands position prefetch product row rows run team threads valid whole width work THREADS ' +
  'Element PARTS PRODUCTS Row0 Row1 Row2 Row3 Row4 Sum chunk_of copies copy_of keep_parts row_of whole_chunks whole_rows'

/** Further names in the source around a column program. */
const columnFrame = 'STEP arrived held holds j left paired round sections shared tile tiles'

/** Further names in the source around a program of rows. */
const rowFrame = 'STEP paired round'

/** Names in the source around an interval of an axis. */
const intervalFrame = 'interval slot slots'

/** Names in the source around tiles of staged loads. */
const tileFrame = 'Shape Stored at chunk_of_tile column first row tile_column tile_row'

/** Further names in the source around a program of totals. */
const totalFrame = 'ALONE alone arrived at brief chunks divided j joined part parts place round stride sums words'

/** Names of one capital letter (and digits) are reserved for types; others may be a type of the C library or of CUDA. */
const isTypeName = (name: string): boolean => /^[A-Z][0-9]*$/.test(name)

/** Names of two or more capitals may be macros of the compiler, the C library or CUDA, of which there is no list. */
const mayBeMacro = (name: string): boolean => /^[A-Z][A-Z0-9_]+$/.test(name) && !isTypeName(name)

/**
 * A name of a body as a C++ name. Letters of other alphabets and `$` become `_`, and names reserved by C++ (two underscores, one in front) are
 * avoided.
 */
function plainName(wanted: string): string {
  const plain = wanted
    .replace(/[^A-Za-z0-9_]/g, '_')
    .replace(/__+/g, '_')
    .replace(/^_/, '')
  return /^[A-Za-z]/.test(plain) ? plain : `v${plain}`
}

type Named = Pick<MappedKernel, 'instance' | 'axes' | 'program'>

/** @param reserved further names in the source around the kernel, separated by blanks */
export function createNames(mapped: Named, reserved = ''): Names {
  const { program } = mapped
  const own = [
    { columns: columnFrame, totals: totalFrame, rows: rowFrame, elementwise: '' }[program.kind],
    intervalIn({ program }) === undefined ? '' : intervalFrame,
    program.kind === 'elementwise' && program.staging !== undefined ? tileFrame : '',
    ...ownsOf(declaring(mapped)).map((_, i) => `Own${i}`),
  ].join(' ')
  const taken = new Set(`${keywords} ${library} ${frame} ${own} ${reserved}`.split(' '))
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
    const plain = plainName(wanted)
    const kept = !taken.has(plain) && !mayBeMacro(plain) && (suffix !== 'type' || isTypeName(plain))
    const given = freshName(kept ? plain : `${plain}_${suffix}`, taken)
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
    fresh: (wanted) => {
      const plain = plainName(wanted)
      return freshName(mayBeMacro(plain) ? `${plain}_value` : plain, taken)
    },
  }
  claim(names, mapped)
  return names
}

/** Gives names to all that a kernel has, in order: the first of two with one name keeps it. */
function claim(names: Names, { instance: { kernel }, axes, program }: Named): void {
  for (const axis of axes) names.value(axis.index)
  if (program.kind === 'columns') names.first(program.column.index)
  if (program.kind === 'columns' || program.kind === 'totals') for (const name of programNames(program)) names.value(name)
  const steps =
    program.kind === 'rows' ? [...program.kept, ...program.reread] : program.kind === 'elementwise' ? program.steps : []
  for (const step of steps) {
    if (step.kind === 'pass') {
      names.first(step.pass.loop.index)
      for (const { name: given } of [...step.pass.rows, ...step.pass.statements.flatMap((s) => passStatementOf(s).defines(s))])
        names.value(given)
      continue
    }
    for (const { name: given } of rowStatementOf(step).defines(step)) names.value(given)
    if ('loop' in step) names.value(step.loop.index)
  }
  for (const tensor of kernel.tensors) names.tensor(tensor.name)
  for (const attr of kernel.attrs) names.attr(attr.name)
  for (const param of Object.keys(kernel.types)) names.type(param)
  for (const dim of kernel.dims) names.dim(dim)
}

/** C++ names of the scalar types. */
export const scalarText: Readonly<Record<Expr['type'], string>> = { f32: 'float', i32: 'int', bool: 'bool' }

/** Storage type of a tensor: the name of a type parameter, or the C++ type. */
export const storageText = ({ dtype }: TensorParam, names: Names): string =>
  typeof dtype === 'string' ? dtypeInfo[dtype].cuda : names.type(dtype.param)

/** Handle type of a tensor in a kernel, which determines the allowed accesses (native/device/cuda.cuh). */
export const handleText = (tensor: TensorParam, names: Names): string =>
  `heddle::${tensor.access === 'out' ? 'Out' : tensor.constant === true ? 'ConstantIn' : 'In'}<${storageText(tensor, names)}>`

/** Member of heddle::Arguments that makes the handle. */
export const argumentText = ({ access, constant }: TensorParam): string => (constant === true ? 'constant_in' : access)
