/**
 * A matmul whose rows are reduced, as CUDA source of two launches: the main loop, which keeps reductions of groups of columns in scratch memory, and
 * a row program, which combines them. Their launcher divides the scratch memory between the tensors that they share.
 */
import type { Expr } from '../../ir/expr.js'
import type { Kernel } from '../../ir/kernel.js'
import type { MatmulKernel, ReducedRows } from '../../ir/product.js'
import { mapPart } from '../../schedule/map.js'
import type { MappedKernel } from '../../schedule/mapped.js'
import { launcherBody } from '../launch/launcher.js'
import { type Scope, wideText } from '../print/expression.js'
import { createNames, type Names } from '../print/names.js'
import { factorsBody } from '../product/factors.js'
import { noting } from '../product/frame.js'
import { groupsBody } from '../product/group_parts.js'
import { render } from '../templates.js'
import { headersOfMapped } from './headers.js'
import { kernelTexts } from './kernel.js'
import { splitLauncher } from './split_launcher.js'
import { declareNames, type TemplateInstance, templateFile } from './template.js'

/** Namespace of the second launch. */
const restName = 'rest'

/** The file of an instance. */
export function emitReduced(instance: TemplateInstance, kernel: MatmulKernel, reduced: ReducedRows): string {
  const { types, key } = instance
  const { width, groups, rest, shared } = reduced
  const first: MatmulKernel = {
    ...kernel,
    dims: [...kernel.dims, width, groups],
    ...(rest.computed === undefined ? {} : { computed: rest.computed }),
    tensors: [...kernel.tensors.filter(({ access }) => access === 'in'), ...shared],
  }
  const mapped = mapPart({ kernel: rest, types, dims: {} })
  const names = declareNames(
    first,
    createNames({ ...mapped, instance: { ...mapped.instance, kernel: partialsOf(first, reduced) } }, frame),
  )
  const used = { dims: new Set<string>(), attrs: new Set<string>(), indices: new Set<string>(), tensors: new Set<string>() }
  const scope: Scope = {
    names: noting(names, used.tensors),
    used,
    tensors: reduced.partials.tensors,
    fixed: {},
    elements: new Map(),
  }
  const body = groupsBody(first, reduced, scope, types) + factorsBody(first, { ...scope, tensors: first.tensors }, types)
  const products = `products_of_${key}`
  return templateFile(
    { ...instance, kernel: first },
    { names, used },
    {
      comment: `${key}: matmul main loop of native/device/matmul_reduced.cuh, which reduces groups of columns, and a launch that combines them`,
      include: 'matmul_reduced.cuh',
      also: ['kernel.cuh', 'split.cuh', ...headersOfMapped(mapped)],
      slots: { name: 'Epilogue', comment: 'The reductions of groups, and the factors.', body },
      beside: restText(mapped),
      launch: (slots, launch) => launchLines(first, names, slots, launch.key),
      extents: [...first.batch, first.m, first.n].map(names.dim),
    },
    { tuned: [], part: { name: products, whole: launcherText(instance, kernel, first, mapped, products) } },
  )
}

/** Names in the source of the slots. */
const frame = 'LANES WIDTH keep_groups groups_of split elements'

/** The program of groups, with all that the kernel reads. */
const partialsOf = ({ tensors }: MatmulKernel, { partials }: ReducedRows): Kernel => ({ ...partials, tensors })

function restText(mapped: MappedKernel): string {
  const { text, parameters } = kernelTexts(mapped)
  return render('part', { name: restName, vec: mapped.vec, kernels: text, body: launcherBody(mapped, parameters) })
}

function launchLines(
  { batch, m, n, k, products, tensors }: MatmulKernel,
  names: Names,
  slots: string,
  key: string,
): readonly string[] {
  const count = batch.length === 0 ? '1' : batch.map(names.dim).join(' * ')
  const rights = products.map(({ b }) => b)
  const places = new Set(rights.map(({ tensor }) => `arguments.is_constant(${tensors.findIndex(({ name }) => name === tensor)})`))
  const constant = rights.some(({ prologue }) => prologue !== undefined) ? 'false' : [...places].join(' && ')
  const sizes = [m, n, k].map(names.dim).join(', ')
  return [`return heddle::launch_matmul_reduced(launch, error, "${key}", ${count}, ${sizes}, ${slots}, ${constant});`]
}

/** The exported launcher, which runs both. */
function launcherText(
  { key, types }: TemplateInstance,
  kernel: MatmulKernel,
  first: MatmulKernel,
  mapped: MappedKernel,
  products: string,
): string {
  const { shared = [], rest } = first.reduced ?? {}
  const names = createNames(
    { ...mapped, instance: { kernel: { ...mapped.instance.kernel, tensors: [] }, types, dims: {} } },
    frame,
  )
  const used: Scope['used'] = { dims: new Set(), attrs: new Set(), indices: new Set() }
  const scope: Scope = { names, used, tensors: [], fixed: {}, elements: new Map() }
  const extent = (name: string): Expr => ({ kind: 'dim', type: 'i32', name })
  const sizes = shared.map(({ dims }) =>
    dims.map((each) => `heddle::Count(${wideText(extent(each), scope, (operand) => operand)})`).join(' * '),
  )
  const computed = Object.entries(rest?.computed ?? {}).flatMap(([name, value]) =>
    used.dims.has(name) ? [`const int64_t ${names.dim(name)} = ${wideText(value, scope)};`] : [],
  )
  const runs = [
    [products, first.tensors],
    [`slots_of_${key}::${restName}::run`, mapped.instance.kernel.tensors],
  ] as const
  const body = splitLauncher({
    key,
    kernel,
    names,
    used: used.dims,
    before: computed,
    sequence: { scratch: shared, sizes, runs },
  })
  return render('launcher', { key, body })
}
